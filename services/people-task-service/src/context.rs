//! The state that the handlers of all capabilities share.

use std::sync::Arc;

use database::Database;
use listing::Lists;
use messaging::Publisher;
use outbound::{AddressPolicy, SystemResolver};
use url::Url;

use crate::mailing::Mailing;
use crate::quotas::Quotas;
use crate::webhook_signature::WebhookSigner;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) database: Database,
    /// Publishes deliveries that are due.
    pub(crate) deliveries: Publisher,
    pub(crate) lists: Lists,
    pub(crate) signer: WebhookSigner,
    /// The addresses that webhooks may have.
    pub(crate) address_policy: AddressPolicy,
    pub(crate) resolver: SystemResolver,
    /// The page on which people see their tasks.
    pub(crate) dashboard_url: Url,
    pub(crate) mailing: Arc<Mailing>,
    pub(crate) quotas: Arc<Quotas>,
}
