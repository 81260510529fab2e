use audit_log::RequestMeta;
use diesel::PgConnection;
use diesel::result::Error as DieselError;
use messaging::Message;
use telemetry::RequestContext;
use values::{Secret, UserId};

use super::error::AccountError;
use super::store;
use crate::context::Context;
use crate::notifications::{self, Channel, store::Kind};
use crate::settings::EmailVerification;

/// Whether an e-mail address counts only after it was confirmed.
pub(super) fn confirmation_is_required(context: &Context) -> bool {
    context.email_verification == EmailVerification::Required
}

/// How a new e-mail address is confirmed: a code goes to it by every channel.
#[derive(Debug)]
pub(super) struct Confirmation {
    channels: Vec<Channel>,
    request: RequestContext,
}

impl Confirmation {
    /// The confirmation of an address that is new by the current request. `None` if addresses need not
    /// be confirmed.
    pub(super) fn required(context: &Context) -> Option<Self> {
        confirmation_is_required(context).then(|| Self {
            channels: Channel::configured(&context.channels),
            request: RequestContext::current_or_fresh(),
        })
    }

    /// Stores the messages, in the transaction that makes the address new. They are sent after its
    /// commit.
    pub(super) fn ask(
        &self,
        connection: &mut PgConnection,
        user: UserId,
    ) -> Result<Vec<Message>, DieselError> {
        let kind = Kind::VerifyEmail;
        let (channels, request) = (&self.channels, &self.request);
        let queued = notifications::store::insert(connection, kind, Some(user), channels, request)?;
        let messages = queued
            .iter()
            .map(|queued| Message::new(queued.id, request.clone()));
        Ok(messages.collect())
    }
}

/// Confirms an e-mail address by the code that was sent to it.
#[tracing::instrument(skip_all)]
pub(super) async fn verify_email(
    context: &Context,
    code: &Secret,
    origin: RequestMeta,
) -> Result<(), AccountError> {
    let code = code.fingerprint();
    let verify = move |connection: &mut PgConnection| {
        store::verify_email(connection, code, origin)?.ok_or(AccountError::InvalidCode)
    };
    context.database.transaction(verify).await.map(drop)
}
