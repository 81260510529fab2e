use audit_log::RequestMeta;
use diesel::PgConnection;
use diesel::result::Error as DieselError;
use messaging::Message;
use telemetry::RequestContext;
use values::{Secret, UserId};

use super::error::AccountError;
use super::store;
use crate::app::Service;
use crate::notifications::{self, Channel, store::Kind};

/// How a new e-mail address is confirmed: a code goes to it by every channel.
#[derive(Debug)]
pub(crate) struct Confirmation {
    channels: Vec<Channel>,
    context: RequestContext,
}

impl Confirmation {
    /// On behalf of the current request.
    pub(crate) fn by(channels: Vec<Channel>) -> Self {
        Self {
            channels,
            context: RequestContext::current_or_fresh(),
        }
    }

    /// Stores the messages, in the transaction that makes the address new. They are sent after its
    /// commit.
    pub(super) fn ask(
        &self,
        connection: &mut PgConnection,
        user: UserId,
    ) -> Result<Vec<Message>, DieselError> {
        let kind = Kind::VerifyEmail;
        let (channels, context) = (&self.channels, &self.context);
        let queued = notifications::store::insert(connection, kind, Some(user), channels, context)?;
        let messages = queued
            .iter()
            .map(|queued| Message::new(queued.id, context.clone()));
        Ok(messages.collect())
    }
}

/// Confirms an e-mail address by the code that was sent to it.
#[tracing::instrument(skip_all)]
pub(super) async fn verify_email(
    service: &Service,
    code: &Secret,
    origin: RequestMeta,
) -> Result<(), AccountError> {
    let code = code.fingerprint();
    let verify = move |connection: &mut PgConnection| {
        store::verify_email(connection, code, origin)?.ok_or(AccountError::InvalidCode)
    };
    service.database.transaction(verify).await.map(drop)
}
