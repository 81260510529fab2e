values::names! {
    /// Whether an e-mail address must be confirmed before it is trusted. It says who the approver of a task is.
    pub enum EmailVerification {
        /// Addresses are trusted immediately.
        Off = "off",
        /// An address is trusted once the user has returned a code that was sent to it.
        Required = "required",
    }
}

app_config::named_settings! {
    EmailVerification, "`off` or `required`", "off";
}
