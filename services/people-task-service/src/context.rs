use std::sync::Arc;

use auth::MailKeys;
use database::Database;
use listing::Lists;
use messaging::Publisher;
use outbound::{AddressPolicy, EngineOrigins, SystemResolver};
use url::Url;

use crate::header_keys::HeaderKeys;
use crate::mailing::Mailing;
use crate::quotas::Quotas;
use crate::settings::DeciderSettings;
use crate::webhook_signature::WebhookSigner;

pub(crate) struct Context {
    pub(crate) database: Database,
    /// Publishes deliveries that are due.
    pub(crate) deliveries: Publisher,
    pub(crate) lists: Lists,
    pub(crate) signer: WebhookSigner,
    /// What recognises repeats of requests.
    pub(crate) repeat_keys: MailKeys,
    pub(crate) address_policy: AddressPolicy,
    /// Where callers may shape requests although the address is not public.
    pub(crate) engine_origins: EngineOrigins,
    pub(crate) header_keys: HeaderKeys,
    pub(crate) resolver: SystemResolver,
    pub(crate) dashboard_url: Url,
    pub(crate) mailing: Arc<Mailing>,
    /// Who decides tasks whose creators do not say.
    pub(crate) deciders: DeciderSettings,
    pub(crate) quotas: Arc<Quotas>,
}
