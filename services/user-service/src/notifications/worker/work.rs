use std::sync::Arc;
use std::time::Duration;

use database::{Database, Error};
use messaging::{Disposition, Message};
use tokio_util::sync::CancellationToken;
use values::{FromText as _, NotificationId, Secret};

use super::channels::Channels;
use super::notice::{CodeSettings, Kind, Notice};
use super::store::{self, Claimed, Recipient};
use crate::jitter;
use crate::notifications::Channel;

/// Longer than any channel may take.
const LEASE: Duration = Duration::from_secs(30);
/// A database that is away is not asked again at once.
const PAUSE_WITHOUT_DATABASE: Duration = Duration::from_secs(1);

/// Sends messages.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) database: Database,
    pub(super) channels: Channels,
    pub(super) codes: Arc<CodeSettings>,
    pub(super) retry_schedule: Arc<[Duration]>,
    pub(super) shutdown: CancellationToken,
}

/// What a wake-up turned out to be for.
enum Prepared {
    /// Somebody else has it, it is not due, or it is closed.
    Nothing,
    /// There is nobody to send it to: it was closed as if it had been sent.
    NoRecipient,
    /// To be sent now; its code is stored.
    Ready(Claimed, Channel, Box<Notice>),
    /// Tried too often already, or nothing that this version can send.
    Hopeless(Claimed, &'static str),
}

impl Worker {
    /// Handles a wake-up: takes the message, if there is one to take, makes a code, and sends it.
    pub(super) async fn handle(self, message: Message) -> Disposition {
        let Ok(id) = NotificationId::from_text(&message.id) else {
            return Disposition::Reject;
        };
        match self.prepare(id).await {
            Ok(prepared) => {
                if let Err(error) = self.carry_out(prepared).await {
                    // The lease runs out, and the sweep wakes up whoever is there then.
                    tracing::warn!(error = ?error, "what became of a message could not be written");
                }
                Disposition::Done
            }
            Err(error) => {
                tracing::warn!(error = ?error, "a message could not be claimed");
                self.rest().await;
                Disposition::Requeue
            }
        }
    }

    /// Claims the message and stores its code, in one transaction: a code that somebody receives exists.
    async fn prepare(&self, id: NotificationId) -> Result<Prepared, Error> {
        let codes = Arc::clone(&self.codes);
        let longest = self.retry_schedule.len().saturating_add(1);
        let work = move |connection: &mut _| {
            let recipient = store::recipient(connection, id)?;
            let Some(claimed) = store::claim(connection, id, LEASE)? else {
                return Ok(Prepared::Nothing);
            };
            let Some(recipient) = recipient else {
                store::close(connection, &claimed, None)?;
                return Ok(Prepared::NoRecipient);
            };
            let attempt = usize::try_from(claimed.attempt).unwrap_or(0);
            if attempt > longest {
                let why = "every attempt ended without a result";
                return Ok(Prepared::Hopeless(claimed, why));
            }
            let known = Kind::of_name(&claimed.kind).zip(Channel::of_name(&claimed.channel));
            let Some((kind, channel)) = known else {
                let why = "this version knows no such message";
                return Ok(Prepared::Hopeless(claimed, why));
            };
            let code = Secret::random();
            store::insert_code(
                connection,
                code.fingerprint(),
                &recipient,
                kind.name(),
                kind.confirms_address(),
                codes.lifetime,
            )?;
            let notice = Box::new(notice(&claimed, kind, recipient, code, &codes));
            Ok(Prepared::Ready(claimed, channel, notice))
        };
        self.database.transaction(work).await
    }

    async fn carry_out(&self, prepared: Prepared) -> Result<(), Error> {
        match prepared {
            Prepared::Nothing | Prepared::NoRecipient => Ok(()),
            Prepared::Ready(claimed, channel, notice) => self.send(claimed, channel, &notice).await,
            Prepared::Hopeless(claimed, why) => self.fail(claimed, why.to_owned()).await,
        }
    }

    #[tracing::instrument(skip_all, fields(notification.id = %claimed.id, user.id = %notice.user, channel = channel.name()))]
    async fn send(&self, claimed: Claimed, channel: Channel, notice: &Notice) -> Result<(), Error> {
        let sent = self.channels.send(channel, notice).await;
        let outcome = if sent.is_ok() { "sent" } else { "failed" };
        metrics::counter!("notification_attempts_total", "channel" => channel.name(), "outcome" => outcome)
            .increment(1);
        let Err(error) = sent else {
            tracing::info!(attempt = claimed.attempt, "message sent");
            let close = move |connection: &mut _| store::close(connection, &claimed, None);
            return self.database.run(close).await;
        };
        tracing::warn!(attempt = claimed.attempt, error = %error, "message not sent");
        let reason = error.to_string();
        let failures = usize::try_from(claimed.attempt).unwrap_or(0);
        match self.retry_schedule.get(failures.saturating_sub(1)) {
            Some(pause) => {
                let pause = jitter::jittered(*pause);
                let retry =
                    move |connection: &mut _| store::retry(connection, &claimed, &reason, pause);
                self.database.run(retry).await
            }
            None => self.fail(claimed, reason).await,
        }
    }

    async fn fail(&self, claimed: Claimed, reason: String) -> Result<(), Error> {
        tracing::error!(notification.id = %claimed.id, reason, "message given up");
        let close = move |connection: &mut _| store::close(connection, &claimed, Some(&reason));
        self.database.run(close).await
    }

    async fn rest(&self) {
        tokio::select! {
            () = tokio::time::sleep(PAUSE_WITHOUT_DATABASE) => {}
            () = self.shutdown.cancelled() => {}
        }
    }
}

fn notice(
    claimed: &Claimed,
    kind: Kind,
    recipient: Recipient,
    code: Secret,
    codes: &CodeSettings,
) -> Notice {
    Notice {
        kind,
        user: recipient.user,
        email: recipient.email,
        created: claimed.created,
        link: codes.link(kind, &code),
        code,
        lifetime: codes.lifetime,
    }
}
