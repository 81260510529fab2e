//! The state that the handlers of all capabilities share.

use std::sync::Arc;

use actix_web::http::StatusCode;
use auth::{Signer, Verifier};
use database::Database;
use listing::Lists;
use messaging::Publisher;

use crate::hashing::Hasher;
use crate::password_rules::PasswordRules;
use crate::settings::{
    ChannelSettings, CodeRequestSettings, EmailVerification, KeySettings, SessionSettings,
    SignUpSettings,
};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) database: Database,
    pub(crate) lists: Lists,
    pub(crate) hasher: Hasher,
    pub(crate) rules: PasswordRules,
    pub(crate) signer: Signer,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) sign_up: SignUpSettings,
    pub(crate) sign_in_failure_status: StatusCode,
    pub(crate) email_verification: EmailVerification,
    pub(crate) channels: ChannelSettings,
    pub(crate) code_requests: CodeRequestSettings,
    pub(crate) sessions: SessionSettings,
    pub(crate) keys: KeySettings,
    /// Whether a deletion has steps at a flow engine.
    pub(crate) has_engine: bool,
    pub(crate) deletions: Publisher,
    pub(crate) notifications: Publisher,
}
