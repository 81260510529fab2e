//! The state that the handlers of all capabilities share.

use std::sync::Arc;

use actix_web::http::StatusCode;
use auth::{Signer, Verifier};
use database::Database;
use listing::Lists;
use messaging::Publisher;

use crate::hashing::Hasher;
use crate::password_rules::PasswordRules;
use crate::settings::HandlerSettings;

pub(crate) struct Context {
    pub(crate) database: Database,
    pub(crate) lists: Lists,
    pub(crate) hasher: Hasher,
    pub(crate) rules: PasswordRules,
    pub(crate) signer: Signer,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) settings: HandlerSettings,
    pub(crate) sign_in_failure_status: StatusCode,
    pub(crate) deletions: Publisher,
    pub(crate) notifications: Publisher,
}
