values::names! {
    /// Why a mail is sent, with the name in the database and in metrics.
    pub(crate) enum MailKind {
        /// The approver is asked for a decision.
        Asked = "asked",
        /// The approver is reminded before the due date.
        Reminder = "reminder",
        /// The approver is reminded at the due date.
        Due = "due",
        /// The requester is told about the decision.
        Decided = "decided",
    }
}

impl MailKind {
    /// Whether recipients can opt out of it.
    pub(crate) fn is_reminder(self) -> bool {
        matches!(self, Self::Reminder | Self::Due)
    }
}
