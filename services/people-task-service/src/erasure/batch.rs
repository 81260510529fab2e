use values::UserId;

use crate::tasks::store::erasure::RequesterAddress;

/// The user whose data is deleted.
#[derive(Debug)]
pub(super) struct ErasedUser {
    pub(super) id: UserId,
    /// The addresses under which the user requested tasks.
    pub(super) addresses: Vec<RequesterAddress>,
}

/// A batch of tasks or webhooks.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) deleted: usize,
    /// Whether something that belongs to them was deleted.
    pub(super) progress: bool,
    pub(super) more: bool,
}
