values::names! {
    /// Why a notification is sent. The name is that in the database, and the purpose of the code.
    pub enum Kind {
        /// The user forgot the password; the code sets a new one.
        ForgotPassword = "forgot-password",
        /// The user has a new e-mail address; the code confirms it.
        VerifyEmail = "verify-email",
    }
}
