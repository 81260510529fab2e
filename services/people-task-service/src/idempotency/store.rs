use std::collections::{HashMap, HashSet};

use database::{Connection, Error, column, prepared};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Nullable, Text};
use diesel::{Queryable, RunQueryDsl as _};
use values::{TaskId, UserId};

use crate::idempotency::{RepeatError, Repeatable};

#[derive(Debug, Clone)]
pub(crate) struct StoredAnswer {
    /// The body, without secrets.
    pub(crate) body: String,
    pub(crate) task: TaskId,
    /// The seeds from which its secrets are derived, and the hashes of those: each the approver's and then the requester's.
    pub(crate) secrets: Option<(Vec<u8>, Vec<u8>)>,
}

/// What came of looking for the answer of a request: `None` if there is none.
pub(crate) type Found = Result<Option<StoredAnswer>, RepeatError>;

type Columns = (
    Binary,
    Binary,
    Binary,
    Text,
    Nullable<Binary>,
    Nullable<Binary>,
);

/// The [`Columns`] of [`FIND`].
#[derive(Queryable)]
struct Row {
    key: Vec<u8>,
    task_id: TaskId,
    body: Vec<u8>,
    answer: String,
    seeds: Option<Vec<u8>>,
    secrets: Option<Vec<u8>>,
}

/// Looks for the answer of a request. Another one may be adding it.
pub(crate) fn find(connection: &mut Connection, request: &Repeatable) -> Result<Found, Error> {
    let rows = load(connection, &keys(std::iter::once(request)))?;
    Ok(request.find_in(&rows))
}

/// Looks for the answers of requests that this transaction handles unless there is one. Until it ends, every other request
/// with one of their keys is [`RepeatError::InUse`], and so is all but the first of these with the same key. Requests that
/// are not to be repeated have no answer.
pub(crate) fn claim(
    connection: &mut Connection,
    requests: &[Option<&Repeatable>],
) -> Result<Vec<Found>, Error> {
    let keys = keys(requests.iter().copied().flatten());
    if keys.is_empty() {
        return Ok(requests.iter().map(|_| Ok(None)).collect());
    }
    let locked: Vec<(Vec<u8>, bool)> = prepared(LOCK)
        .bind::<Array<Binary>, _>(keys.as_slice())
        .returning::<(Binary, Bool)>()
        .load(connection)?;
    let held = locked.into_iter().filter(|(_, is_free)| !is_free);
    let held: HashSet<_> = held.map(|(key, _)| key).collect();
    // A statement of its own, which sees what the last holder of a lock has committed.
    let rows = load(connection, &keys)?;
    let mut claimed = HashSet::new();
    let found = requests.iter().map(|request| {
        let Some(request) = request else {
            return Ok(None);
        };
        let keys = || request.hashes.iter().map(|hashes| hashes.key);
        let found = request.find_in(&rows);
        let is_held = keys().any(|key| held.contains(key.as_slice()) || claimed.contains(&key));
        if matches!(found, Ok(None)) && is_held {
            return Err(RepeatError::InUse);
        }
        claimed.extend(keys());
        found
    });
    Ok(found.collect())
}

const LOCK: &str = "SELECT key, pg_try_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 1)) AS is_free FROM unnest($1) AS given (key)";

fn load(connection: &mut Connection, keys: &[&[u8]]) -> Result<HashMap<Vec<u8>, Row>, Error> {
    let rows: Vec<Row> = prepared(FIND)
        .bind::<Array<Binary>, _>(keys)
        .returning::<Columns>()
        .load(connection)?;
    Ok(rows.into_iter().map(|row| (row.key.clone(), row)).collect())
}

// Those that were kept for longer than they must be are deleted, so that their keys can be used again.
const FIND: &str = "
WITH expired AS (
    DELETE FROM idempotency_keys WHERE key = ANY($1) AND created <= now() - interval '24 hours'
)
SELECT key, task_id, body, answer, seeds, secrets FROM idempotency_keys
WHERE key = ANY($1) AND created > now() - interval '24 hours'";

fn keys<'a>(requests: impl Iterator<Item = &'a Repeatable>) -> Vec<&'a [u8]> {
    let hashes = requests.flat_map(|request| &request.hashes);
    hashes.map(|hashes| hashes.key.as_slice()).collect()
}

impl Repeatable {
    fn find_in(&self, rows: &HashMap<Vec<u8>, Row>) -> Found {
        let mut found = self.hashes.iter().filter_map(|hashes| {
            let row = rows.get(hashes.key.as_slice())?;
            Some((row, row.body == hashes.body))
        });
        match found.next() {
            None => Ok(None),
            Some((_, false)) => Err(RepeatError::Reused),
            Some((row, true)) => Ok(Some(StoredAnswer {
                body: row.answer.clone(),
                task: row.task_id,
                secrets: row.seeds.clone().zip(row.secrets.clone()),
            })),
        }
    }
}

impl StoredAnswer {
    /// The bytes that count for the user of the request.
    pub(crate) fn bytes(&self, request: &Repeatable) -> u64 {
        let bytes = self.body.len().saturating_mul(request.hashes.len());
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Adds answers of requests that this transaction has [claimed](claim).
pub(crate) fn insert(
    connection: &mut Connection,
    answers: &[(&Repeatable, StoredAnswer)],
) -> Result<(), Error> {
    let rows = answers.iter().flat_map(|(request, answer)| {
        let hashes = request.hashes.iter();
        hashes.map(move |hashes| (hashes, request.user, answer))
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let secrets = rows
        .iter()
        .map(|(.., answer)| answer.secrets.clone().unzip());
    let (seeds, secrets): (Vec<_>, Vec<_>) = secrets.unzip();
    prepared(INSERT)
        .bind::<Array<Binary>, _>(column(&rows, |(hashes, ..)| hashes.key.as_slice()))
        .bind::<Array<Binary>, _>(column(&rows, |(_, user, _)| *user))
        .bind::<Array<Binary>, _>(column(&rows, |(.., answer)| answer.task))
        .bind::<Array<Binary>, _>(column(&rows, |(hashes, ..)| hashes.body.as_slice()))
        .bind::<Array<Text>, _>(column(&rows, |(.., answer)| answer.body.as_str()))
        .bind::<Array<Nullable<Binary>>, _>(seeds)
        .bind::<Array<Nullable<Binary>>, _>(secrets)
        .execute(connection)?;
    Ok(())
}

const INSERT: &str =
    "INSERT INTO idempotency_keys (key, user_id, task_id, body, answer, seeds, secrets)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)";

/// Deletes at most `limit` answers of a user that no other transaction holds. Returns how many, and whether there are more.
pub(crate) fn delete_of_user(
    connection: &mut Connection,
    user: UserId,
    limit: i64,
) -> Result<(usize, bool), Error> {
    let deleted = prepared(
        "DELETE FROM idempotency_keys WHERE key = ANY(ARRAY(
            SELECT key FROM idempotency_keys WHERE user_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
    )
    .bind::<Binary, _>(user)
    .bind::<BigInt, _>(limit)
    .execute(connection)?;
    let more = prepared("SELECT EXISTS (SELECT FROM idempotency_keys WHERE user_id = $1)");
    let more = more.bind::<Binary, _>(user).returning::<Bool>();
    Ok((deleted, more.get_result(connection)?))
}
