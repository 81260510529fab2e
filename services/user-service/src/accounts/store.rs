//! Accounts and the confirmation of their addresses in the database.

pub(crate) mod former_emails;
mod list;
mod list_conditions;
#[cfg(test)]
mod list_tests;

pub(super) use list::{count, list};

use std::collections::HashMap;

use audit_log::Entry;
use auth::ADMIN_SCOPE;
use chrono::{DateTime, Utc};
use database::{Connection, Error};
use diesel::dsl::{not, now, sql};
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Timestamptz};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use values::{EmailAddress, Timestamp, UserId};

use crate::accounts::requests::Vendor;
use crate::client_network::ClientNetwork;
use crate::notifications::store::VALID_REQUESTS;
use crate::schema::{clock_timestamp, database_incarnation, sign_up_networks, users};

/// The time of the last sign-in of a row of `users`. It is in a table of its own.
const LAST_SIGN_IN: &str = "(SELECT at FROM last_sign_ins WHERE user_id = users.id)";

/// An account, without its password, as it is shown to administrators.
#[derive(Debug, Clone, Queryable, QueryableByName, Selectable, Serialize, ToSchema)]
#[diesel(table_name = users, check_for_backend(diesel::pg::Pg))]
#[serde(rename_all = "camelCase")]
#[schema(as = UserResponse, description = "A user as shown to administrators.")]
pub(crate) struct User {
    #[schema(inline)]
    pub(crate) id: UserId,
    #[schema(value_type = String, example = "ada@example.com")]
    pub(crate) username: EmailAddress,
    #[schema(value_type = String, example = "ada@example.com")]
    pub(crate) email: EmailAddress,
    /// An inactive user cannot sign in.
    pub(crate) is_active: bool,
    #[schema(example = "free")]
    pub(crate) plan: String,
    #[schema(example = json!(["user"]))]
    pub(crate) scope: Vec<String>,
    #[schema(value_type = Option<Vendor>, inline)]
    pub(crate) vendor: Option<Value>,
    /// The component types that the user can use.
    pub(crate) allowed_private_components: Vec<String>,
    #[schema(inline)]
    pub(crate) created: Timestamp,
    /// The time of the last change of the account.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) mtime: Timestamp,
    /// Null before the first sign-in.
    #[diesel(select_expression = sql::<Nullable<Timestamptz>>(LAST_SIGN_IN))]
    #[diesel(select_expression_type = SqlLiteral<Nullable<Timestamptz>>)]
    #[diesel(sql_type = Nullable<Timestamptz>)]
    #[schema(inline)]
    pub(crate) last_sign_in: Option<Timestamp>,
    /// An object that clients store with the account.
    #[schema(value_type = Object)]
    pub(crate) metadata: Value,
    /// True for a service account, else absent.
    // It has no password, and acts only with API keys.
    #[serde(rename = "service", skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) is_service: bool,
    /// When the present address was confirmed by a code.
    #[serde(skip)]
    pub(crate) email_confirmed: Option<DateTime<Utc>>,
    #[serde(skip)]
    pub(crate) epoch: i64,
    #[serde(skip)]
    pub(crate) deletion_in_progress: bool,
}

/// An account for which a token is issued, with the incarnation of the database: both must come from the same
/// statement.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = users, check_for_backend(diesel::pg::Pg))]
pub(crate) struct TokenSubject {
    #[diesel(embed)]
    pub(crate) user: User,
    #[diesel(select_expression = database_incarnation())]
    pub(crate) incarnation: String,
    /// What the accounts have in common that strangers made from one client network.
    pub(crate) account_group: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub(crate) struct NewUser {
    pub(crate) id: UserId,
    pub(crate) username: EmailAddress,
    pub(crate) email: EmailAddress,
    pub(crate) password_hash: String,
    pub(crate) is_active: bool,
    pub(crate) plan: String,
    pub(crate) scope: Vec<String>,
    pub(crate) vendor: Option<Value>,
    pub(crate) metadata: Map<String, Value>,
    /// Whether the address needs no code, because the operator chose it.
    pub(crate) email_confirmed: bool,
    pub(crate) is_service: bool,
}

/// The group of the accounts that strangers make from a client network.
pub(super) fn group_of_network(
    connection: &mut Connection,
    client: &ClientNetwork,
) -> Result<Vec<u8>, Error> {
    let hash: [u8; 32] = Sha256::digest(client.as_str()).into();
    let group = UserId::generate();
    Ok(diesel::insert_into(sign_up_networks::table)
        .values((
            sign_up_networks::network_hash.eq(hash.as_slice()),
            sign_up_networks::account_group.eq(group),
        ))
        .on_conflict(sign_up_networks::network_hash)
        .do_update()
        .set(sign_up_networks::last_sign_up.eq(now))
        .returning(sign_up_networks::account_group)
        .get_result(connection)?)
}

/// Inserts an account and its audit entry. A taken name violates a named constraint.
pub(super) fn insert(
    connection: &mut Connection,
    new: &NewUser,
    group: Option<&[u8]>,
    entry: Entry,
) -> Result<TokenSubject, Error> {
    let metadata = Value::Object(new.metadata.clone());
    let insert = diesel::insert_into(users::table)
        .values((
            users::id.eq(new.id),
            users::username.eq(new.username.as_str()),
            users::username_key.eq(new.username.normalized()),
            users::email.eq(new.email.as_str()),
            users::email_key.eq(new.email.normalized()),
            users::password_hash.eq(&new.password_hash),
            users::is_active.eq(new.is_active),
            users::plan.eq(&new.plan),
            users::scope.eq(&new.scope),
            users::vendor.eq(&new.vendor),
            users::metadata.eq(metadata),
            users::account_group.eq(group),
            users::is_service.eq(new.is_service),
            new.email_confirmed
                .then(|| users::email_confirmed.eq(now.into_sql::<Timestamptz>().nullable())),
        ))
        .returning(TokenSubject::as_returning());
    Ok(entry.record_with(insert).get_result(connection)?)
}

/// Revokes the tokens of an account.
pub(super) fn raise_epoch(connection: &mut Connection, id: UserId) -> Result<User, Error> {
    Ok(diesel::update(users::table.find(id))
        .set(users::epoch.eq(users::epoch + 1))
        .returning(User::as_returning())
        .get_result(connection)?)
}

/// Revokes the tokens of an account, with an audit entry. `None` if there is no such account.
pub(super) fn revoke_tokens(
    connection: &mut Connection,
    id: UserId,
    entry: Entry,
) -> Result<Option<User>, Error> {
    let update = diesel::update(users::table.find(id))
        .set(users::epoch.eq(users::epoch + 1))
        .returning(User::as_returning());
    Ok(entry
        .record_with(update)
        .get_result(connection)
        .optional()?)
}

pub(crate) fn find(connection: &mut Connection, id: UserId) -> Result<Option<User>, Error> {
    Ok(find_all(connection, &[id])?.remove(&id))
}

pub(crate) fn find_all(
    connection: &mut Connection,
    ids: &[UserId],
) -> Result<HashMap<UserId, User>, Error> {
    let found = users::table
        .filter(users::id.eq_any(ids))
        .select(User::as_select())
        .load(connection)?;
    Ok(found.into_iter().map(|user| (user.id, user)).collect())
}

pub(super) fn find_password_hash(
    connection: &mut Connection,
    id: UserId,
) -> Result<Option<String>, Error> {
    Ok(users::table
        .find(id)
        .select(users::password_hash)
        .first(connection)
        .optional()?)
}

/// Reads an account and locks it until the transaction ends.
pub(crate) fn lock(connection: &mut Connection, id: UserId) -> Result<Option<User>, Error> {
    Ok(users::table
        .find(id)
        .select(User::as_select())
        .for_update()
        .first(connection)
        .optional()?)
}

/// Locks a user whose password was checked, unless the user was deactivated or the user's tokens were revoked since.
pub(crate) fn lock_unchanged(
    connection: &mut Connection,
    id: UserId,
    epoch: i64,
) -> Result<Option<TokenSubject>, Error> {
    Ok(users::table
        .find(id)
        .filter(users::epoch.eq(epoch))
        .filter(users::is_active)
        .select(TokenSubject::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()?)
}

/// Locks an account against deletion until the transaction ends, so that a concurrent deletion sees the rows
/// about the user that the transaction writes. `None` if the user does not exist.
pub(crate) fn lock_against_deletion(
    connection: &mut Connection,
    id: UserId,
) -> Result<Option<UserId>, Error> {
    Ok(users::table
        .find(id)
        .select(users::id)
        .for_key_share()
        .first(connection)
        .optional()?)
}

/// Reads the active administrators who can sign in and locks them until the transaction ends. A transaction that also
/// locks an account calls this first, so that two of them cannot deadlock.
pub(crate) fn lock_active_admins(connection: &mut Connection) -> Result<Vec<UserId>, Error> {
    Ok(users::table
        .filter(users::scope.contains(vec![ADMIN_SCOPE]))
        .filter(users::is_active)
        .filter(not(users::is_service))
        .select(users::id)
        .order(users::id)
        .for_update()
        .load(connection)?)
}

/// Serializes replicas that create the first administrator, until the transaction ends.
pub(super) fn lock_first_admin(connection: &mut Connection) -> Result<(), Error> {
    const LOCK: i64 = 0x6164_6d69_6e31;
    // diesel has no advisory locks.
    Ok(diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(LOCK)
        .execute(connection)
        .map(drop)?)
}

/// Whether there is an administrator who can sign in, active or not.
pub(super) fn has_admin(connection: &mut Connection) -> Result<bool, Error> {
    let admins = users::table
        .filter(users::scope.contains(vec![ADMIN_SCOPE]))
        .filter(not(users::is_service));
    Ok(diesel::select(diesel::dsl::exists(admins)).get_result(connection)?)
}

/// The difference between an account and what was requested.
pub(super) struct UserChange {
    pub(super) columns: ChangedColumns,
    /// Whether the user's mail goes to another mailbox after the change.
    pub(super) moves_email: bool,
    /// Whether earlier tokens contain or depend on an outdated value.
    pub(super) revokes_tokens: bool,
    /// Whether earlier codes went to an outdated address or would replace an outdated password.
    pub(super) revokes_codes: bool,
}

/// The columns that a change sets to values of the request. `None` leaves a column as it is.
#[derive(AsChangeset)]
#[diesel(table_name = users)]
pub(super) struct ChangedColumns {
    pub(super) username: Option<String>,
    pub(super) username_key: Option<String>,
    pub(super) email: Option<String>,
    pub(super) email_key: Option<String>,
    pub(super) password_hash: Option<String>,
    pub(super) is_active: Option<bool>,
    pub(super) plan: Option<String>,
    pub(super) scope: Option<Vec<String>>,
    pub(super) vendor: Option<Option<Value>>,
    pub(super) allowed_private_components: Option<Vec<String>>,
    pub(super) metadata: Option<Value>,
}

/// Writes a change and its audit entry. Raises the epoch and the generation of codes if the change
/// revokes tokens or codes. A new mailbox is not confirmed.
pub(super) fn update(
    connection: &mut Connection,
    id: UserId,
    change: &UserChange,
    is_service: bool,
    entry: Entry,
) -> Result<User, Error> {
    let moves_email = change.moves_email;
    let is_reactivated = change.columns.is_active == Some(true);
    let columns = (
        &change.columns,
        is_reactivated.then(|| users::reactivated.eq(clock_timestamp().nullable())),
        // The administrator vouches for the address of a service account, which gets no codes.
        (moves_email && !is_service).then(|| users::email_confirmed.eq(None::<DateTime<Utc>>)),
        moves_email.then(|| users::email_since.eq(now)),
        users::epoch.eq(users::epoch + i64::from(change.revokes_tokens)),
        users::code_generation
            .eq(users::code_generation + VALID_REQUESTS * i64::from(change.revokes_codes)),
        users::mtime.eq(now),
    );
    let update = diesel::update(users::table.find(id))
        .set(columns)
        .returning(User::as_returning());
    Ok(entry.record_with(update).get_result(connection)?)
}

/// Deactivates an account and revokes its tokens and codes.
pub(crate) fn deactivate(
    connection: &mut Connection,
    id: UserId,
    entry: Entry,
) -> Result<User, Error> {
    let update = diesel::update(users::table.find(id))
        .set((
            users::is_active.eq(false),
            users::epoch.eq(users::epoch + 1),
            users::code_generation.eq(users::code_generation + VALID_REQUESTS),
            users::mtime.eq(now),
        ))
        .returning(User::as_returning());
    Ok(entry.record_with(update).get_result(connection)?)
}

/// Deletes an account. Its names are deleted first, in the order in which every transaction locks names:
/// the cascade of the account's row has no order.
pub(crate) fn delete(connection: &mut Connection, id: UserId) -> Result<(), Error> {
    // The DSL has no COLLATE.
    diesel::sql_query(
        "DELETE FROM sign_in_names WHERE name IN (\
            SELECT name FROM sign_in_names WHERE user_id = $1 ORDER BY name COLLATE \"C\" FOR UPDATE)",
    )
    .bind::<Binary, _>(id)
    .execute(connection)?;
    diesel::delete(users::table.find(id)).execute(connection)?;
    Ok(())
}

/// Records that the user's current address is confirmed, unless it was before.
pub(crate) fn confirm_email(
    connection: &mut Connection,
    id: UserId,
    entry: Entry,
) -> Result<(), Error> {
    let unconfirmed = users::table
        .find(id)
        .filter(users::email_confirmed.is_null());
    let confirm = diesel::update(unconfirmed)
        .set(users::email_confirmed.eq(now.into_sql::<Timestamptz>().nullable()))
        .returning(users::id);
    entry
        .record_with(confirm)
        .get_result::<UserId>(connection)
        .optional()?;
    Ok(())
}
