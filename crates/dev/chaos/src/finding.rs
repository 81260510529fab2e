//! What is wrong with a run.

/// The kinds of violations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// Data that was confirmed with 200 is missing, or a webhook of a decision never arrived.
    Lost,
    /// A webhook arrived for a decision that was not made, or two decisions of one task succeeded.
    Phantom,
    /// A webhook arrived under two webhook-ids, or two webhooks under one.
    WebhookId,
    /// A signature is missing or wrong.
    Signature,
    /// A webhook that arrived is not `sent`, or one that was refused with 410 is not `fail`.
    WebhookStatus,
    /// An attempt came before the `Retry-After` of the previous one had passed.
    RetriedTooEarly,
    /// A decision succeeded while no standby could have it.
    Unreplicated,
    /// A token from before a promotion is accepted.
    EarlierToken,
    /// An account is not in the state that was confirmed with 200.
    AccountState,
    /// A response that no fault explains.
    UnexpectedResponse,
    /// A process panicked.
    Panic,
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) violation: Violation,
    pub(crate) task: String,
    pub(crate) what: String,
}
