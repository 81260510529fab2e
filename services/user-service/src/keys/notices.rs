//! Mails about keys that were made, and about those that expire soon.

use std::time::Duration;

use audit_log::RequestMeta;
use chrono::{DateTime, TimeDelta, Utc};
use database::{Connection, Database, Error};
use messaging::{Message, Publisher};
use telemetry::Outage;
use tokio_util::sync::CancellationToken;

use super::store::{self, NewKey};
use crate::accounts::User;
use crate::client_network::ClientNetwork;
use crate::code_limits::count_client;
use crate::context::Context;
use crate::error::UserError;
use crate::notifications::Notice;
use crate::notifications::store::{insert_notice, wait_for_notice};
use crate::settings::{CodeRequestSettings, EmailVerification};

/// How often it is looked for keys that expire, and for how many notices one transaction mails.
const INTERVAL: Duration = Duration::from_secs(10);
const NOTICES: i64 = 100;
/// A key that lives shorter is not mailed about: its owner knows, and many could be made to flood a mailbox.
const SHORTEST_LIFE: TimeDelta = TimeDelta::days(2);

/// What decides whether the owner of a new key is mailed.
pub(super) struct NewKeyMails {
    verification: EmailVerification,
    limits: CodeRequestSettings,
    client: ClientNetwork,
}

impl NewKeyMails {
    pub(super) fn new(context: &Context, meta: &RequestMeta) -> Self {
        Self {
            verification: context.settings.email_verification,
            limits: context.settings.code_requests,
            client: ClientNetwork::of(meta),
        }
    }

    /// Stores the mail to the owner. A key that an account makes for itself whose address no one has confirmed is counted: the
    /// mail may go to a stranger. Over a limit a user makes no key, so that none is made silently with a stolen token.
    pub(super) fn insert(
        &self,
        connection: &mut Connection,
        new: &NewKey,
        owner: &User,
    ) -> Result<Option<Message>, UserError> {
        let verification = self.verification;
        let (notice, to) = (Notice::KeyCreated, owner.id);
        let is_own = new.created_by.is_none();
        let is_unconfirmed = owner.email_confirmed.is_none();
        if is_own && let Some(wait) = wait_for_notice(connection, notice, to)? {
            return Err(UserError::TooManyKeyMails(wait));
        }
        if is_own
            && is_unconfirmed
            && verification == EmailVerification::Off
            && let Some(wait) = count_client(connection, self.limits, &self.client)?
        {
            return Err(UserError::TooManyKeyMails(wait));
        }
        let (name, expires) = (new.request.name.as_str(), new.request.expires);
        let mail = insert_notice(connection, verification, notice, to, name, expires)?;
        Ok(mail)
    }
}

/// When a mail is to say that a key ends then: so long before, but not in the first half of its life.
pub(super) fn notice_due(end: DateTime<Utc>, before: Duration) -> Option<DateTime<Utc>> {
    let now = Utc::now();
    let life = end - now;
    if life < SHORTEST_LIFE {
        return None;
    }
    let before = TimeDelta::from_std(before).unwrap_or(TimeDelta::MAX);
    let half = now + life / 2;
    let due = end.checked_sub_signed(before);
    Some(due.map_or(half, |due| due.max(half)))
}

/// Sends mails about keys that expire soon, until it is cancelled.
pub(crate) async fn send_notices(
    database: Database,
    publisher: Publisher,
    verification: EmailVerification,
    shutdown: CancellationToken,
) {
    let failing = Outage::new("cannot look for keys that expire");
    let pause = || shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL));
    while pause().await.is_some() {
        loop {
            let take = move |connection: &mut Connection| take(connection, verification);
            let taken = database.transaction(take).await;
            failing.record(&taken);
            let Ok((messages, more)) = taken else { break };
            publisher.send(messages);
            if !more {
                break;
            }
        }
    }
}

/// Stores a mail for each notice that is due. Those that may not be mailed now are due again after a day. Also says whether
/// there may be more.
fn take(
    connection: &mut Connection,
    verification: EmailVerification,
) -> Result<(Vec<Message>, bool), Error> {
    let due = store::postpone_notices(connection, NOTICES)?;
    let more = i64::try_from(due.len()).is_ok_and(|taken| taken >= NOTICES);
    let (mut messages, mut mailed) = (Vec::new(), Vec::new());
    for (id, to, name, expires) in &due {
        let (to, notice, expires) = (*to, Notice::KeyExpires, Some(*expires));
        let mail = insert_notice(connection, verification, notice, to, name, expires)?;
        mailed.extend(mail.is_some().then_some(*id));
        messages.extend(mail);
    }
    store::end_notices(connection, &mailed)?;
    Ok((messages, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_comes_before_the_end_but_not_in_the_first_half() {
        let day = Duration::from_secs(24 * 3600);
        let in_days = |days| Utc::now() + TimeDelta::days(days);
        let until = |due: Option<DateTime<Utc>>| (due.unwrap() - Utc::now()).num_minutes() + 1;
        assert_eq!(until(notice_due(in_days(30), 7 * day)), 23 * 24 * 60);
        assert_eq!(until(notice_due(in_days(3), 7 * day)), 36 * 60);
    }

    #[test]
    fn a_key_of_less_than_two_days_causes_no_mail() {
        let hour = Duration::from_secs(3600);
        for life in [TimeDelta::seconds(20), TimeDelta::hours(47)] {
            assert_eq!(notice_due(Utc::now() + life, hour), None, "{life}");
        }
    }
}
