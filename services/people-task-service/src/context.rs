//! The state that the handlers of all capabilities share.

use database::{Database, Lookups};
use messaging::Publisher;
use outbound::{AddressPolicy, SystemResolver};
use service_http::Lists;
use url::Url;
use values::TaskId;

use crate::signing::WebhookSigner;
use crate::tasks::Task;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) database: Database,
    /// Reads tasks without locking them.
    pub(crate) tasks: Lookups<TaskId, Task>,
    /// Publishes deliveries that are due.
    pub(crate) deliveries: Publisher,
    pub(crate) lists: Lists,
    pub(crate) signer: WebhookSigner,
    /// The addresses that webhooks may have.
    pub(crate) address_policy: AddressPolicy,
    pub(crate) resolver: SystemResolver,
    /// The page on which people see their tasks.
    pub(crate) dashboard_url: Url,
}
