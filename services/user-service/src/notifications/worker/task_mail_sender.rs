//! Mails about tasks. The people-task service has their rows: it hands over those that are due, and is told what became
//! of each. So this worker needs no access to tasks, and no secret of a task is stored here.
//!
//! A mail whose report is lost is handed over again when its claim has ended: it is sent at least once. All its messages
//! have the same `Message-ID`, by which mail programs recognise duplicates.

use std::collections::HashMap;
use std::time::Duration;

use auth::mails::{DueMails, Report, Room};
use jobs::{RetryPolicy, growing_pause};
use reqwest::{Client, RequestBuilder, Response};
use telemetry::{Outage, RequestContext, SpanKind};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;
use values::{Names as _, Secret, UserId};

use super::channels::Mail;
use super::error::SendError;
use super::task_mail::TaskMail;
use crate::calls::{self, CallError, append_path};

/// Mails that one worker sends at once. The others wait in the database.
const CONCURRENCY: usize = 16;
/// Mails of one creator that one worker sends at once, so that those to addresses for which the mail server is slow leave
/// the others a way.
const PER_CREATOR: usize = 12;
/// How often a worker asks for mails that are due.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause while the people-task service does not respond.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause before another attempt that the service accepts. After it, the mail would be too late.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(24 * 3_600);
/// Claims that may end without a report, such as when a worker is killed, before the mail itself is taken for the cause. In
/// an outage all other attempts have the number of the last one.
const LOST_CLAIMS: u32 = 4;
/// A report that fails is repeated, because a lost one sends the mail again.
const REPORT_ATTEMPTS: u32 = 5;

#[derive(Clone)]
pub(super) struct TaskMailSender {
    pub(super) client: Client,
    /// The URL of the people-task service, and the token for its operations on mails.
    pub(super) base: Url,
    pub(super) token: Secret,
    pub(super) mail: Mail,
    pub(super) retry: RetryPolicy,
}

impl TaskMailSender {
    /// Sends mails until it is cancelled. Those that are being sent then are finished.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let mut sending = Sending::default();
        let outage = Outage::new("mails about tasks cannot be claimed");
        while !shutdown.is_cancelled() {
            let room = sending.room();
            let claimed = self.claim(&room).await;
            outage.record(&claimed);
            let wait = match claimed {
                Ok(DueMails { mails, more, .. }) => {
                    let more = more.unwrap_or(mails.len() >= room.limit);
                    for mail in mails {
                        self.start(&mut sending, mail);
                    }
                    (!more).then_some(PAUSE)
                }
                Err(_) => Some(growing_pause(2 * PAUSE, MAX_PAUSE, outage.failures())),
            };
            let waiting = sending.wait(wait, &room);
            shutdown.run_until_cancelled(waiting).await;
        }
        while sending.mails.join_next().await.is_some() {}
    }

    fn start(&self, sending: &mut Sending, mail: TaskMail) {
        let (sender, creator) = (self.clone(), mail.creator);
        let send = async move { sender.send(&mail).await };
        let send = RequestContext::fresh().scope(SpanKind::Client, "task-mail.send", send);
        let id = sending.mails.spawn(send).id();
        sending
            .creators
            .extend(creator.map(|creator| (id, creator)));
    }

    #[tracing::instrument(skip_all, fields(mail.id = %mail.id, task.id = %mail.task_id, kind = mail.kind.name()))]
    async fn send(&self, mail: &TaskMail) {
        let attempt = mail.attempt;
        // A worker that ends while it sends reports nothing, so the attempts are counted by the claims.
        let sent = if attempt > self.retry.max_attempts() + LOST_CLAIMS {
            Err(SendError::TooManyAttempts)
        } else {
            self.mail.send_about_task(mail).await
        };
        let (pause, is_outage) = Self::pause_after(&self.retry, attempt, &sent);
        let outcome = match (&sent, pause) {
            (Ok(()), _) => {
                tracing::info!(attempt, "a mail about a task was sent");
                "sent"
            }
            (Err(error), Some(_)) => {
                tracing::warn!(attempt, error = %error, "a mail about a task was not sent");
                "retry"
            }
            (Err(error), None) => {
                tracing::error!(attempt, error = %error, "a mail about a task was given up");
                "fail"
            }
        };
        metrics::counter!("task_mail_attempts_total", "kind" => mail.kind.name(), "outcome" => outcome)
            .increment(1);
        let retry_after_ms = pause.map(|pause| {
            let millis = pause.min(MAX_RETRY_PAUSE).as_millis();
            u64::try_from(millis).unwrap_or(u64::MAX).max(1)
        });
        let report = Report {
            attempt,
            retry_after_ms,
            is_outage,
        };
        self.report(mail, report).await;
    }

    /// The pause before the next attempt, if there is one, and whether this one does not count: after the last pause, a mail
    /// waits as long for a mail server that fails, because a request of which no one is told would wait for ever. The
    /// people-task service drops it when it is too late.
    fn pause_after(
        retry: &RetryPolicy,
        attempt: u32,
        sent: &Result<(), SendError>,
    ) -> (Option<Duration>, bool) {
        let last = retry.max_attempts();
        match sent {
            Err(error) if error.is_of_mail_server() && attempt >= last => {
                (Some(retry.last_pause()), true)
            }
            Err(error) if !error.is_permanent() => (retry.pause_after(attempt), false),
            _ => (None, false),
        }
    }

    async fn report(&self, mail: &TaskMail, report: Report) {
        for repeated in 1..=REPORT_ATTEMPTS {
            let request = self.post(&[&mail.id.to_string(), "report"]);
            match self.call(request.json(&report)).await {
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(repeated, error = %error, "a mail about a task could not be reported");
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Claims mails that are due, as many as there is room for. After an error, those that were claimed are handed over again
    /// later.
    async fn claim(&self, room: &Room) -> Result<DueMails<TaskMail>, CallError> {
        let response = self.call(self.post(&["claim"]).json(room)).await?;
        let mut claimed: DueMails<TaskMail> = response.json().await?;
        claimed.mails.append(&mut claimed.cancelled);
        Ok(claimed)
    }

    fn post(&self, path: &[&str]) -> RequestBuilder {
        let url = append_path(&self.base, &["internal", "mails"], path);
        self.client.post(url).bearer_auth(self.token.expose())
    }

    async fn call(&self, request: RequestBuilder) -> Result<Response, CallError> {
        let response = calls::send("people-task-service", request).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(CallError::Status(status.as_u16())),
        }
    }
}

/// The mails that are being sent.
#[derive(Debug, Default)]
struct Sending {
    mails: JoinSet<()>,
    /// Who created the task of each.
    creators: HashMap<Id, UserId>,
}

impl Sending {
    fn room(&self) -> Room {
        let mut numbers = HashMap::new();
        for creator in self.creators.values() {
            *numbers.entry(creator).or_insert(0) += 1;
        }
        // Two of them are more than all mails.
        let except = numbers.iter().find(|(_, number)| **number >= PER_CREATOR);
        let except = except.map(|(creator, _)| **creator);
        let others = numbers.values().filter(|number| **number < PER_CREATOR);
        Room {
            limit: CONCURRENCY.saturating_sub(self.mails.len()),
            per_creator: Some(PER_CREATOR - others.max().copied().unwrap_or_default()),
            except_creator: except,
        }
    }

    /// Waits until there is room and may be something else to claim: for a time, or not at all if it is `None`.
    async fn wait(&mut self, time: Option<Duration>, room: &Room) {
        match time {
            _ if self.mails.len() >= CONCURRENCY => self.end_of_one().await,
            // That creator may have more.
            Some(time) if room.except_creator.is_some() => {
                let _ = timeout(time, self.end_of_one()).await;
            }
            Some(time) => tokio::time::sleep(time).await,
            None => {}
        }
        while let Some(ended) = self.mails.try_join_next_with_id() {
            self.forget(ended);
        }
    }

    /// Waits until one of them is sent or has failed. It is safe to cancel.
    async fn end_of_one(&mut self) {
        if let Some(ended) = self.mails.join_next_with_id().await {
            self.forget(ended);
        }
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
        self.creators.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use jobs::RetryPolicy;
    use values::UserId;

    use super::{Room, SendError, Sending, TaskMailSender};

    fn room(mails: [(UserId, usize); 2]) -> Room {
        let mut sending = Sending::default();
        for (creator, number) in mails {
            for _ in 0..number {
                let id = sending.mails.spawn(pending()).id();
                sending.creators.insert(id, creator);
            }
        }
        sending.room()
    }

    #[tokio::test]
    async fn one_creator_has_three_quarters_of_the_places() {
        let (a, b) = (UserId::generate(), UserId::generate());
        for (mails, limit, per_creator, except_creator) in [
            ([(a, 0), (b, 0)], 16, 12, None),
            ([(a, 3), (b, 1)], 12, 9, None),
            ([(a, 11), (b, 1)], 4, 1, None),
            ([(a, 12), (b, 0)], 4, 12, Some(a)),
            ([(a, 12), (b, 3)], 1, 9, Some(a)),
        ] {
            let expected = Room {
                limit,
                per_creator: Some(per_creator),
                except_creator,
            };
            assert_eq!(room(mails), expected);
        }
    }

    #[test]
    fn without_pauses_a_mail_waits_for_a_mail_server_that_fails_and_no_other_is_repeated() {
        let none = RetryPolicy([].into());
        let failed = Err(SendError::Mail("could not be reached".to_owned()));
        let (pause, is_outage) = TaskMailSender::pause_after(&none, 1, &failed);
        assert!(pause.is_some_and(|pause| pause.as_secs() >= 480) && is_outage);
        let uncertain = Err(SendError::MailUncertain("is silent".to_owned()));
        let given_up = TaskMailSender::pause_after(&none, 1, &uncertain);
        assert_eq!(given_up, (None, false));
    }
}
