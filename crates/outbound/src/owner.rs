//! Who a call is made for. The HTTP client asks the resolver for a name only, so the owner is a value of the task.

use std::sync::Arc;

/// Who shares lookups: `None` for calls that are made for no one in particular.
pub(crate) type Owner = Option<Arc<str>>;

tokio::task_local! {
    static OWNER: Owner;
}

/// Makes a call or a lookup for an owner, so that it uses that owner's share of all lookups. The text tells owners
/// apart.
pub async fn for_owner<F: Future>(owner: &str, call: F) -> F::Output {
    scoped(Some(owner.into()), call).await
}

/// Lets a part of a call, which another task may finish, be for the same owner.
pub(crate) fn scoped<F: Future>(owner: Owner, call: F) -> impl Future<Output = F::Output> {
    OWNER.scope(owner, call)
}

pub(crate) fn current() -> Owner {
    OWNER.try_with(Clone::clone).ok().flatten()
}
