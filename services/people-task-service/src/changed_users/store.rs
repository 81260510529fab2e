use chrono::{DateTime, Utc};
use database::{Connection, Error, prepared};
use diesel::RunQueryDsl as _;
use diesel::sql_types::{Binary, Bool, Nullable, Text, Timestamptz};
use serde::Deserialize;
use values::{EmailAddress, UserId};

/// A user as the user service knows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangedUser {
    pub(super) changed: DateTime<Utc>,
    pub(super) is_active: bool,
    pub(super) is_admin: bool,
    /// The address that gives rights to tasks; `None` if it is not confirmed.
    pub(super) email: Option<EmailAddress>,
}

/// Records a report, unless a newer one was recorded or the user was erased after it. A report that the user was active
/// after an erasure ends that: the deletion was cancelled or has failed. What waits for the user's rights is due again.
pub(super) fn record(
    connection: &mut Connection,
    id: UserId,
    user: &ChangedUser,
) -> Result<(), Error> {
    // Erasures that are recorded later wait for this transaction, and it sees earlier ones.
    prepared("SELECT pg_advisory_xact_lock_shared(erasure_lock($1))")
        .bind::<Binary, _>(id)
        .execute(connection)?;
    if user.is_active {
        prepared(END_ERASURE)
            .bind::<Binary, _>(id)
            .bind::<Timestamptz, _>(user.changed)
            .execute(connection)?;
    }
    let recorded = prepared(RECORD)
        .bind::<Binary, _>(id)
        .bind::<Timestamptz, _>(user.changed)
        .bind::<Bool, _>(user.is_active)
        .bind::<Bool, _>(user.is_admin)
        .bind::<Nullable<Text>, _>(user.email.as_ref().map(EmailAddress::normalized))
        .execute(connection)?;
    if recorded > 0 && user.is_active {
        prepared(RESUME).bind::<Binary, _>(id).execute(connection)?;
    }
    Ok(())
}

// It waits until no batch of the erasure is being deleted.
const END_ERASURE: &str = "DELETE FROM erased_users
    WHERE pseudonym = substring(sha256($1) FOR 12) AND coalesce(changed, erased) < $2";

const RECORD: &str = "INSERT INTO changed_users AS known (id, changed, is_active, is_admin, email)
    SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (
        SELECT FROM erased_users
        WHERE pseudonym = substring(sha256($1) FOR 12) AND coalesce(erased_users.changed, erased) >= $2)
    ON CONFLICT (id) DO UPDATE SET changed = excluded.changed, is_active = excluded.is_active,
        is_admin = excluded.is_admin, email = excluded.email
    WHERE known.changed <= excluded.changed";

/// The statement that makes suspended deliveries due, because their registrants may have a right to the task again. The
/// new number of the claim drops a judgement that is under way and did not see why.
macro_rules! resume_deliveries {
    ($condition:literal) => {
        concat!(
            "UPDATE deliveries SET suspended_for = NULL, next_attempt = now(), worker_id = NULL, lease = lease + 1 WHERE ",
            $condition
        )
    };
}

pub(crate) use resume_deliveries;

// The limit keeps the call short. The other deliveries are judged again within a quarter of an hour.
const RESUME: &str = resume_deliveries!(
    "id = ANY(ARRAY(
        SELECT id FROM deliveries WHERE suspended_for = $1 LIMIT 5000 FOR NO KEY UPDATE SKIP LOCKED))"
);

pub(crate) fn delete(connection: &mut Connection, id: UserId) -> Result<(), Error> {
    prepared("DELETE FROM changed_users WHERE id = $1")
        .bind::<Binary, _>(id)
        .execute(connection)?;
    Ok(())
}
