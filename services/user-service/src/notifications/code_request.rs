use database::{Connection, Error};
use messaging::Message;
use telemetry::RequestContext;
use values::{Names as _, UserId};

use super::store::{self, QueuedNotification};
use super::{Channel, Kind};
use crate::context::Context;
use crate::settings::EmailVerification;

/// The request for a code that is sent to a user through every channel, on behalf of the current request.
#[derive(Debug)]
pub(crate) struct CodeRequest {
    kind: Kind,
    channels: Vec<Channel>,
    request: RequestContext,
}

impl CodeRequest {
    pub(crate) fn new(context: &Context, kind: Kind) -> Self {
        Self {
            kind,
            channels: Channel::configured(&context.settings.channels),
            request: RequestContext::current_or_fresh(),
        }
    }

    /// The confirmation of a new e-mail address. `None` if addresses need not be confirmed.
    pub(crate) fn for_new_address(context: &Context) -> Option<Self> {
        let is_required = context.settings.email_verification == EmailVerification::Required;
        is_required.then(|| Self::new(context, Kind::VerifyEmail))
    }

    /// Whether a channel is configured.
    pub(crate) fn can_be_sent(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Stores one notification for each channel, in the transaction of the change. The caller sends the messages after its
    /// commit. Without a user the rows are the same, but the worker sends nothing. `generation` is the `code_generation` at
    /// which the code is valid; `None` if the code does not depend on it.
    pub(crate) fn queue(
        &self,
        connection: &mut Connection,
        user: Option<UserId>,
        generation: Option<i64>,
    ) -> Result<(Vec<QueuedNotification>, Vec<Message>), Error> {
        let (request, kind) = (&self.request, self.kind.name());
        let channels = self.channels.iter();
        channels
            .map(|channel| {
                let queued =
                    store::insert(connection, request, kind, *channel, user, generation, None)?;
                let message = Message::new(queued.id, request.clone());
                Ok((queued, message))
            })
            .collect()
    }
}
