use database::Connection;
use messaging::Message;
use telemetry::RequestContext;
use values::UserId;

use super::store::User;
use crate::context::Context;
use crate::notifications::{self, Channel, Kind};
use crate::settings::EmailVerification;

/// Whether the user's e-mail address gives access to tasks: it was confirmed, or need not be.
pub(crate) fn is_trusted(verification: EmailVerification, user: &User) -> bool {
    user.email_confirmed.is_some() || verification == EmailVerification::Off
}

/// The confirmation of a new e-mail address: a code is sent to it through every channel.
#[derive(Debug)]
pub(crate) struct Confirmation {
    channels: Vec<Channel>,
    request: RequestContext,
}

impl Confirmation {
    /// A confirmation on behalf of the current request. `None` if addresses need not be confirmed.
    pub(super) fn required(context: &Context) -> Option<Self> {
        let is_required = context.email_verification == EmailVerification::Required;
        is_required.then(|| Self::requested(context))
    }

    /// A confirmation that the caller of the current request wants, required or not.
    pub(crate) fn requested(context: &Context) -> Self {
        Self {
            channels: Channel::configured(&context.channels),
            request: RequestContext::current_or_fresh(),
        }
    }

    /// Stores the notifications in the transaction that sets the address. The caller sends the messages
    /// after its commit.
    pub(crate) fn queue(
        &self,
        connection: &mut Connection,
        user: UserId,
    ) -> Result<Vec<Message>, database::Error> {
        let kind = Kind::VerifyEmail;
        let (channels, request) = (&self.channels, &self.request);
        let (user, generation) = (Some(user), None);
        let queued =
            notifications::store::insert(connection, kind, user, generation, channels, request)?;
        let messages = queued
            .iter()
            .map(|queued| Message::new(queued.id, request.clone()));
        Ok(messages.collect())
    }
}
