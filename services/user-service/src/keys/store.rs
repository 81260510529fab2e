//! API keys in the database. A key without an end has the end `infinity`.

use std::time::Duration;

use audit_log::Entry;
use auth::ApiKey;
use chrono::{DateTime, Utc};
use database::{Connection, Error, prepared};
use diesel::dsl::{AssumeNotNull, exists, now, sql};
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Nullable, Text, Timestamptz};
use listing::{Page, Paging};
use serde::Serialize;
use utoipa::ToSchema;
use values::{CredentialId, Names as _, Timestamp, UserId};

use super::requests::CreateKeyRequest;
use crate::accounts::TokenSubject;
use crate::credentials::CredentialKind;
use crate::credentials::store::valid;
use crate::schema::{credentials, database_incarnation, ended_credentials, users};

/// An API key.
#[derive(Debug, Queryable, Selectable, Serialize, ToSchema)]
#[diesel(table_name = credentials, check_for_backend(diesel::pg::Pg))]
#[serde(rename_all = "camelCase")]
pub(super) struct Key {
    #[schema(inline)]
    pub(super) id: CredentialId,
    #[schema(example = "Invoices in n8n")]
    #[diesel(select_expression = credentials::name.assume_not_null())]
    #[diesel(select_expression_type = AssumeNotNull<credentials::name>)]
    pub(super) name: String,
    #[schema(example = json!(["tasks:read", "tasks:write"]))]
    #[diesel(select_expression = credentials::scopes.assume_not_null())]
    #[diesel(select_expression_type = AssumeNotNull<credentials::scopes>)]
    scopes: Vec<String>,
    #[schema(inline)]
    created: Timestamp,
    /// When it ends by itself; null if never.
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    #[diesel(select_expression = sql::<Nullable<Timestamptz>>(EXPIRES))]
    #[diesel(select_expression_type = SqlLiteral<Nullable<Timestamptz>>)]
    pub(super) expires: Option<Timestamp>,
    /// The minute in which it was used last; null before its first use.
    #[serde(rename = "lastUsed")]
    #[schema(required = true, value_type = Option<String>, format = DateTime)]
    used: Option<Timestamp>,
    /// `false` if the key is off, because the database was restored and no administrator has confirmed the key since.
    #[serde(skip_serializing_if = "is_usual")]
    #[schema(required = false)]
    #[diesel(select_expression = sql::<Bool>(IS_CONFIRMED))]
    #[diesel(select_expression_type = SqlLiteral<Bool>)]
    confirmed: bool,
}

/// A key among those of all users.
#[derive(Debug, Queryable, Selectable, Serialize, ToSchema)]
#[diesel(table_name = credentials, check_for_backend(diesel::pg::Pg))]
#[serde(rename_all = "camelCase")]
pub(super) struct UserKey {
    #[serde(flatten)]
    #[diesel(embed)]
    key: Key,
    #[schema(inline)]
    user_id: UserId,
    #[schema(example = "ada@example.com")]
    #[diesel(select_expression = users::username)]
    username: String,
}

/// Whether a key is confirmed, as all are but after a restore, so that its response does not say it.
fn is_usual(confirmed: &bool) -> bool {
    *confirmed
}

const EXPIRES: &str = "nullif(credentials.expires, 'infinity')";
/// In a subquery, the function is called once and not for each row.
const IS_CONFIRMED: &str = "(credentials.incarnation = (SELECT database_incarnation()))";

/// Keys that have not expired, confirmed or not.
macro_rules! unexpired {
    () => {
        credentials::table
            .filter(credentials::kind.eq(CredentialKind::Key.name()))
            .filter(credentials::expires.gt(now))
    };
}

pub(super) struct NewKey {
    pub(super) key: ApiKey,
    pub(super) user: UserId,
    pub(super) request: CreateKeyRequest,
    /// When a mail is to say that it expires.
    pub(super) notice_due: Option<DateTime<Utc>>,
    /// The administrator who makes it for the user.
    pub(super) created_by: Option<UserId>,
}

/// Inserts a key and its audit entry. Its user must be locked, so that what ends the user's keys does not miss it.
pub(super) fn insert(
    connection: &mut Connection,
    new: &NewKey,
    entry: Entry,
) -> Result<Key, Error> {
    let request = &new.request;
    let scopes: Vec<_> = request.scopes.iter().map(|scope| scope.name()).collect();
    // The DSL has no `infinity`.
    let expires = sql::<Timestamptz>("coalesce(")
        .bind::<Nullable<Timestamptz>, _>(request.expires)
        .sql(", 'infinity')");
    let fingerprint = new.key.fingerprint();
    let insert = diesel::insert_into(credentials::table)
        .values((
            credentials::id.eq(new.key.id()),
            credentials::user_id.eq(new.user),
            credentials::kind.eq(CredentialKind::Key.name()),
            credentials::fingerprint.eq(fingerprint.as_bytes().as_slice()),
            credentials::incarnation.eq(database_incarnation()),
            credentials::expires.eq(expires),
            // Of sessions only.
            credentials::client_network.eq(""),
            credentials::program.eq(""),
            credentials::name.eq(request.name.as_str()),
            credentials::scopes.eq(scopes),
            credentials::created_by.eq(new.created_by),
            credentials::notice_due.eq(new.notice_due),
        ))
        .returning(Key::as_returning());
    Ok(entry.record_with(insert).get_result(connection)?)
}

pub(super) fn count(connection: &mut Connection, user: UserId) -> Result<i64, Error> {
    Ok(unexpired!()
        .filter(credentials::user_id.eq(user))
        .count()
        .get_result(connection)?)
}

/// The keys of a user, the newest first.
pub(super) fn of_user(connection: &mut Connection, user: UserId) -> Result<Vec<Key>, Error> {
    Ok(unexpired!()
        .filter(credentials::user_id.eq(user))
        .order((credentials::created.desc(), credentials::id.desc()))
        .select(Key::as_select())
        .load(connection)?)
}

/// A page of the keys of all users, the newest first.
pub(super) fn of_all(
    connection: &mut Connection,
    paging: Paging,
    confirmed: Option<bool>,
) -> Result<Page<UserKey>, Error> {
    let mut keys = unexpired!()
        .inner_join(users::table)
        .order((credentials::created.desc(), credentials::id.desc()))
        .limit(paging.rows_to_fetch())
        .offset(paging.offset)
        .select(UserKey::as_select())
        .into_boxed();
    if let Some(confirmed) = confirmed {
        keys = keys.filter(sql::<Bool>(IS_CONFIRMED).eq(confirmed));
    }
    let mut keys = keys.load(connection)?;
    let found = keys.len();
    keys.truncate(usize::try_from(paging.limit).unwrap_or_default());
    Ok(paging.page(keys, i64::try_from(found).unwrap_or_default()))
}

/// A key that is valid, and for whom a token can be signed.
#[derive(Debug, Queryable)]
pub(super) struct ValidKey {
    pub(super) scopes: Vec<String>,
    /// For how many seconds it is still valid; `None` if it has no end.
    remaining: Option<i64>,
    /// Whether its last use was recorded in this minute.
    pub(super) is_recorded: bool,
    pub(super) subject: TokenSubject,
}

impl ValidKey {
    /// For how long a token may be valid.
    pub(super) fn lifetime(&self, longest: Duration) -> Duration {
        let remaining = self.remaining.and_then(|seconds| seconds.try_into().ok());
        remaining.map_or(longest, |seconds: u64| {
            Duration::from_secs(seconds.max(1)).min(longest)
        })
    }
}

pub(super) fn find_valid(
    connection: &mut Connection,
    key: &ApiKey,
) -> Result<Option<ValidKey>, Error> {
    // The DSL has neither `extract` nor `date_trunc`.
    let remaining = sql::<Nullable<BigInt>>(
        "extract(epoch FROM nullif(credentials.expires, 'infinity') - now())::bigint",
    );
    let is_recorded =
        sql::<Bool>("coalesce(credentials.used >= date_trunc('minute', now()), false)");
    Ok(valid!(CredentialKind::Key)
        .inner_join(users::table)
        .filter(credentials::fingerprint.eq(key.fingerprint().as_bytes().as_slice()))
        .filter(users::is_active)
        .select((
            credentials::scopes.assume_not_null(),
            remaining,
            is_recorded,
            TokenSubject::as_select(),
        ))
        .first(connection)
        .optional()?)
}

pub(super) fn record_use(connection: &mut Connection, id: CredentialId) -> Result<(), Error> {
    diesel::update(credentials::table.find(id))
        .set(credentials::used.eq(sql::<Nullable<Timestamptz>>("date_trunc('minute', now())")))
        .execute(connection)?;
    Ok(())
}

/// What is known of a text that is refused.
#[derive(Debug, Queryable)]
pub(super) struct Refused {
    /// The user of the key with this identifier, valid or not.
    pub(super) user: Option<UserId>,
    /// Whether it is a key that waits to be confirmed.
    pub(super) is_off: bool,
    /// Whether a key with this identifier has ended within the last two hours.
    pub(super) has_ended: bool,
}

pub(super) fn find_refused(connection: &mut Connection, key: &ApiKey) -> Result<Refused, Error> {
    let fingerprint = key.fingerprint();
    let user = credentials::table
        .find(key.id())
        .filter(credentials::kind.eq(CredentialKind::Key.name()))
        .select(credentials::user_id);
    let waiting = unexpired!()
        .filter(credentials::fingerprint.eq(fingerprint.as_bytes().as_slice()))
        .filter(credentials::incarnation.ne(database_incarnation()));
    let ended = ended_credentials::table.find(key.id());
    let refused = (user.single_value(), exists(waiting), exists(ended));
    Ok(diesel::select(refused).get_result(connection)?)
}

/// Confirms a key after a restore. Returns whether it was confirmed now, and not before; `None` if it does not exist, or is
/// another user's.
pub(super) fn confirm(
    connection: &mut Connection,
    user: UserId,
    id: CredentialId,
    entry: Entry,
) -> Result<Option<bool>, Error> {
    let of_user = unexpired!()
        .filter(credentials::id.eq(id))
        .filter(credentials::user_id.eq(user));
    let was_confirmed = of_user
        .select(credentials::incarnation.eq(database_incarnation()))
        .for_update()
        .first::<bool>(connection)
        .optional()?;
    if was_confirmed == Some(false) {
        let confirm = diesel::update(credentials::table.find(id))
            .set(credentials::incarnation.eq(database_incarnation()))
            .returning(credentials::id);
        entry
            .record_with(confirm)
            .get_result::<CredentialId>(connection)?;
    }
    Ok(was_confirmed.map(|was_confirmed| !was_confirmed))
}

/// Keys that wait to be confirmed, after `after` in the order of their identifiers.
pub(super) fn unconfirmed(
    connection: &mut Connection,
    after: Option<CredentialId>,
    limit: i64,
) -> Result<Vec<(CredentialId, UserId)>, Error> {
    let mut keys = unexpired!()
        .filter(sql::<Bool>(IS_CONFIRMED).eq(false))
        .order(credentials::id)
        .limit(limit)
        .select((credentials::id, credentials::user_id))
        .into_boxed();
    if let Some(after) = after {
        keys = keys.filter(credentials::id.gt(after));
    }
    Ok(keys.load(connection)?)
}

/// A key of which a mail is due, whom that goes to, and the name and the end of the key.
type DueNotice = (CredentialId, UserId, String, DateTime<Utc>);

/// Postpones the notices that are due by a day, and returns them. Those of a service account go to the administrator who made
/// the key; if that user was deleted, they are left as they are. No other process takes them until the transaction ends.
pub(super) fn postpone_notices(
    connection: &mut Connection,
    limit: i64,
) -> Result<Vec<DueNotice>, Error> {
    let postpone = prepared(POSTPONE_NOTICES)
        .bind::<BigInt, _>(limit)
        .returning::<(Binary, Binary, Text, Timestamptz)>();
    Ok(postpone.load(connection)?)
}

// Locks the recipients, too, as the insertion of a mail does, but waits for none: what changes a user locks the user before
// the user's keys.
const POSTPONE_NOTICES: &str = "
WITH due AS (
    SELECT credentials.id, recipients.id AS recipient, name, expires
    FROM credentials JOIN users AS owners ON owners.id = user_id
        JOIN users AS recipients ON recipients.id = CASE WHEN owners.is_service THEN created_by ELSE user_id END
    WHERE kind = 'key' AND expires > now() AND notice_due <= now()
    ORDER BY notice_due LIMIT $1
    FOR UPDATE OF credentials SKIP LOCKED FOR KEY SHARE OF recipients SKIP LOCKED
), postponed AS (
    UPDATE credentials SET notice_due = now() + interval '1 day' FROM due WHERE credentials.id = due.id
    RETURNING due.*
)
SELECT * FROM postponed ORDER BY expires";

/// Ends the notices of keys that were mailed about.
pub(super) fn end_notices(connection: &mut Connection, ids: &[CredentialId]) -> Result<(), Error> {
    diesel::update(credentials::table.filter(credentials::id.eq_any(ids)))
        .set(credentials::notice_due.eq(None::<DateTime<Utc>>))
        .execute(connection)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection as _;
    use testkit::{TestDatabase, lines};

    use super::{Paging, of_all, unconfirmed};
    use crate::MIGRATIONS;

    /// A user with thirty keys, and a transaction in which calls of functions are counted.
    const KEYS: &str = "
        SET search_path = users;
        INSERT INTO users (id, username, email, username_key, email_key, password_hash, plan, scope)
        VALUES (decode(repeat('00', 12), 'hex'), 'ada', 'ada', 'ada', 'ada', 'x', 'free', '{user}');
        INSERT INTO credentials
            (id, user_id, kind, fingerprint, incarnation, expires, client_network, program, name, scopes)
        SELECT substr(sha256(n::text::bytea), 1, 12), decode(repeat('00', 12), 'hex'), 'key', sha256(n::text::bytea),
            database_incarnation(), 'infinity', '', '', 'a', '{}'
        FROM generate_series(1, 30) AS n;
        SET track_functions = 'all';
        BEGIN;";

    const CALLS: &str = "SELECT calls::text AS line FROM pg_stat_xact_user_functions
        WHERE funcname = 'database_incarnation'";

    #[test]
    fn keys_that_wait_are_found_by_one_call_for_the_incarnation() {
        let database = TestDatabase::users(MIGRATIONS);
        let mut connection = database.admin();
        connection.batch_execute(KEYS).unwrap();
        assert_eq!(unconfirmed(&mut connection, None, 20).unwrap(), []);
        assert_eq!(lines(&mut connection, CALLS), ["1"]);
    }

    #[test]
    fn a_page_asks_for_the_incarnation_once_for_each_use_and_not_for_each_key() {
        let database = TestDatabase::users(MIGRATIONS);
        let mut connection = database.admin();
        connection.batch_execute(KEYS).unwrap();
        let paging = Paging {
            limit: 20,
            offset: 0,
        };
        let page = of_all(&mut connection, paging, Some(true)).unwrap();
        assert_eq!((page.rows.len(), page.found), (20, 21));
        assert_eq!(lines(&mut connection, CALLS), ["2"]);
    }
}
