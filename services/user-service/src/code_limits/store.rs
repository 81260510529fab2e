use std::time::Duration;

use database::{Connection, Error, prepared};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Double, Text};
use values::{EmailAddress, Names as _};

use super::mailbox_hash;
use crate::notifications::Kind;
use crate::schema::code_requests;

values::names! {
    /// Which requests are counted together, with the name in the database and the metric.
    pub(crate) enum LimitScope {
        Account = "account",
        Client = "client",
    }
}

pub(crate) fn delete_code_requests(
    connection: &mut Connection,
    emails: &[&EmailAddress],
) -> Result<(), Error> {
    let mailboxes = emails.iter().flat_map(|email| {
        let kinds = Kind::ALL.iter();
        kinds.map(|kind| mailbox_hash(*kind, email.normalized()).to_vec())
    });
    let counters = code_requests::table
        .filter(code_requests::counted.eq(LimitScope::Account.name()))
        .filter(code_requests::subject.eq_any(mailboxes));
    diesel::delete(counters).execute(connection)?;
    Ok(())
}

/// Counts a request for a code, with a burst of `per_hour` and then one request each hour / `per_hour`, unless that is 0.
/// Returns how long to wait if the request exceeds the limit.
pub(super) fn count(
    connection: &mut Connection,
    scope: LimitScope,
    subject: [u8; 32],
    per_hour: u32,
) -> Result<Option<Duration>, Error> {
    if per_hour == 0 {
        return Ok(None);
    }
    // diesel has neither `greatest` nor `extract`. `clock_timestamp` is read after the row is locked.
    let excess: f64 = prepared(
        "INSERT INTO code_requests AS r (counted, subject, forgotten_at)
        VALUES ($1, $2, clock_timestamp() + interval '1 hour' / $3)
        ON CONFLICT (counted, subject) DO UPDATE
        SET forgotten_at = greatest(r.forgotten_at, clock_timestamp()) + interval '1 hour' / $3
        RETURNING extract(epoch FROM
            forgotten_at - clock_timestamp() - interval '1 hour')::double precision",
    )
    .bind::<Text, _>(scope.name())
    .bind::<Binary, _>(subject.as_slice())
    .bind::<BigInt, _>(i64::from(per_hour))
    .returning::<Double>()
    .get_result(connection)?;
    let wait = Duration::try_from_secs_f64(excess).ok();
    let wait = wait.filter(|wait| !wait.is_zero());
    if wait.is_some() {
        metrics::counter!("code_requests_refused_total", "counted" => scope.name()).increment(1);
    }
    Ok(wait)
}
