use audit_log::RequestMeta;
use database::Connection;
use messaging::Message;
use telemetry::RequestContext;
use values::{Secret, UserId};

use super::error::AccountError;
use super::store;
use crate::context::Context;
use crate::notifications::{self, Channel, Kind};
use crate::settings::EmailVerification;

/// Whether an e-mail address must be confirmed before it is trusted.
pub(super) fn is_required(context: &Context) -> bool {
    context.email_verification == EmailVerification::Required
}

/// The confirmation of a new e-mail address: a code is sent to it through every channel.
#[derive(Debug)]
pub(super) struct Confirmation {
    channels: Vec<Channel>,
    request: RequestContext,
}

impl Confirmation {
    /// A confirmation on behalf of the current request. `None` if addresses need not be confirmed.
    pub(super) fn required(context: &Context) -> Option<Self> {
        is_required(context).then(|| Self {
            channels: Channel::configured(&context.channels),
            request: RequestContext::current_or_fresh(),
        })
    }

    /// Stores the notifications in the transaction that sets the address. The caller sends the messages
    /// after its commit.
    pub(super) fn queue(
        &self,
        connection: &mut Connection,
        user: UserId,
    ) -> Result<Vec<Message>, database::Error> {
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
    meta: RequestMeta,
) -> Result<(), AccountError> {
    let code = code.fingerprint();
    let verify = move |connection: &mut Connection| {
        store::verify_email(connection, code, meta)?.ok_or(AccountError::InvalidCode)
    };
    context.database.transaction(verify).await.map(drop)
}
