//! Mails before a key expires.

use std::time::Duration;

use database::{Connection, Database, Error};
use messaging::{Message, Publisher};
use telemetry::Outage;
use tokio_util::sync::CancellationToken;

use super::store;
use crate::context::Context;
use crate::notifications::store::insert_notice;
use crate::notifications::{Channel, Notice};

/// How often it is looked for keys that expire.
const INTERVAL: Duration = Duration::from_secs(10);
/// Notices that one transaction takes.
const BATCH: i64 = 100;

pub(crate) fn can_mail(context: &Context) -> bool {
    Channel::configured(&context.channels).contains(&Channel::Mail)
}

/// Sends mails about keys that expire soon, until it is cancelled.
pub(crate) async fn send_notices(
    database: Database,
    publisher: Publisher,
    shutdown: CancellationToken,
) {
    let failing = Outage::new("cannot look for keys that expire");
    let pause = || shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL));
    while pause().await.is_some() {
        loop {
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

/// Takes the notices that are due, and stores a mail for each. Also says whether there may be more.
fn take(connection: &mut Connection) -> Result<(Vec<Message>, bool), Error> {
    let due = store::take_notices(connection, BATCH)?;
    let more = i64::try_from(due.len()).is_ok_and(|taken| taken >= BATCH);
    let mut messages = Vec::new();
    for (to, name, expires) in &due {
        let Some(to) = *to else { continue };
        let notice = Notice::KeyExpires;
        messages.push(insert_notice(connection, notice, to, name, Some(*expires))?);
    }
    Ok((messages, more))
}
