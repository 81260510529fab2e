//! Accounts in the database.

mod list;

pub(super) use list::{count, list};

use audit_log::{Actor, AuthMethod, Entry, RequestMeta};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use values::{Fingerprint, UserId};

use super::update::UserChange;
use super::user::{NewUser, User};
use crate::audit::Action;
use crate::schema::{codes, users};

const VERIFY_EMAIL: &str = "verify-email";

/// Makes an account, and says so in the audit log; a taken name violates a named constraint.
pub(super) fn insert(
    connection: &mut PgConnection,
    new: &NewUser,
    entry: Entry,
) -> Result<User, DieselError> {
    let metadata = serde_json::Value::Object(new.metadata.clone());
    let vendor = new.vendor.clone().map(serde_json::Value::String);
    let insert = diesel::insert_into(users::table)
        .values((
            users::id.eq(new.id),
            users::username.eq(new.username.as_str()),
            users::username_key.eq(new.username.key()),
            users::email.eq(new.email.as_str()),
            users::email_key.eq(new.email.key()),
            users::password_hash.eq(&new.password_hash),
            users::plan.eq(&new.plan),
            users::scope.eq(&new.scope),
            users::vendor.eq(vendor),
            users::metadata.eq(metadata),
            users::email_verified.eq(new.email_verified),
        ))
        .returning(User::as_returning());
    entry.with(insert).get_result(connection)
}

pub(crate) fn find(connection: &mut PgConnection, id: UserId) -> Result<Option<User>, DieselError> {
    users::table
        .find(id)
        .select(User::as_select())
        .first(connection)
        .optional()
}

/// The password's hash.
pub(crate) fn password_hash(
    connection: &mut PgConnection,
    id: UserId,
) -> Result<Option<String>, DieselError> {
    users::table
        .find(id)
        .select(users::password_hash)
        .first(connection)
        .optional()
}

/// Reads an account and keeps others from changing it until the transaction ends.
pub(crate) fn lock(connection: &mut PgConnection, id: UserId) -> Result<Option<User>, DieselError> {
    users::table
        .find(id)
        .select(User::as_select())
        .for_update()
        .first(connection)
        .optional()
}

/// The active administrators. None of them changes until the transaction ends. Whoever also locks an
/// account calls this first, so that two such transactions do not wait for each other.
pub(crate) fn lock_active_admins(
    connection: &mut PgConnection,
) -> Result<Vec<UserId>, DieselError> {
    users::table
        .filter(users::scope.contains(vec![auth::ADMIN_SCOPE]))
        .filter(users::is_active)
        .select(users::id)
        .order(users::id)
        .for_update()
        .load(connection)
}

/// Whether anybody, active or not, is an administrator.
pub(super) fn has_admin(connection: &mut PgConnection) -> Result<bool, DieselError> {
    let admins = users::table.filter(users::scope.contains(vec![auth::ADMIN_SCOPE]));
    diesel::select(diesel::dsl::exists(admins)).get_result(connection)
}

/// Writes what changes, and says so in the audit log; the epoch and the codes' generation rise if the change says so.
pub(super) fn update(
    connection: &mut PgConnection,
    id: UserId,
    change: &UserChange,
    entry: Entry,
) -> Result<User, DieselError> {
    let columns = (
        change
            .username
            .as_ref()
            .map(|v| users::username.eq(v.as_str())),
        change
            .username
            .as_ref()
            .map(|v| users::username_key.eq(v.key())),
        change.email.as_ref().map(|v| users::email.eq(v.as_str())),
        change.email.as_ref().map(|v| users::email_key.eq(v.key())),
        change
            .password_hash
            .as_ref()
            .map(|v| users::password_hash.eq(v)),
        change.is_active.map(|v| users::is_active.eq(v)),
        change.plan.as_ref().map(|v| users::plan.eq(&v.0)),
        change.scope.as_ref().map(|v| users::scope.eq(&v.0)),
        change
            .vendor
            .as_ref()
            .map(|v| users::vendor.eq(v.as_ref().map(|v| &v.0))),
        change
            .allowed_private_components
            .as_ref()
            .map(|v| users::allowed_private_components.eq(&v.0)),
        change
            .metadata
            .as_ref()
            .map(|v| users::metadata.eq(serde_json::Value::Object(v.0.clone()))),
        change.email_verified.map(|v| users::email_verified.eq(v)),
        users::epoch.eq(users::epoch + i64::from(change.revokes_tokens)),
        users::code_generation.eq(users::code_generation + i64::from(change.revokes_codes)),
        users::mtime.eq(now),
    );
    let update = diesel::update(users::table.find(id))
        .set(columns)
        .returning(User::as_returning());
    entry.with(update).get_result(connection)
}

/// Makes an account unusable and its tokens invalid; the entry says why.
pub(crate) fn deactivate(
    connection: &mut PgConnection,
    id: UserId,
    entry: Entry,
) -> Result<User, DieselError> {
    let update = diesel::update(users::table.find(id))
        .set((
            users::is_active.eq(false),
            users::epoch.eq(users::epoch + 1),
            users::mtime.eq(now),
        ))
        .returning(User::as_returning());
    entry.with(update).get_result(connection)
}

/// Notes that the mailbox answered by a code that was sent to the address that the user has now.
/// `None` for a code that is unknown, used, expired, or of another address.
pub(super) fn verify_email(
    connection: &mut PgConnection,
    code: Fingerprint,
    origin: RequestMeta,
) -> Result<Option<UserId>, DieselError> {
    let owner = codes::table
        .inner_join(users::table)
        .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
        .filter(codes::purpose.eq(VERIFY_EMAIL))
        .filter(codes::email_key.eq(users::email_key.nullable()))
        .filter(codes::expires.gt(now))
        .select(users::id)
        .first::<UserId>(connection)
        .optional()?;
    let Some(id) = owner else { return Ok(None) };
    let current = users::table.find(id).filter(
        users::email_key.nullable().eq_any(
            codes::table
                .filter(codes::fingerprint.eq(code.as_bytes().as_slice()))
                .select(codes::email_key),
        ),
    );
    let verify = diesel::update(current)
        .set(users::email_verified.eq(true))
        .returning(users::id);
    let entry = Action::EmailVerified.entry(Actor::User(id), id, origin);
    let verified = entry
        .authenticated_by(AuthMethod::VerificationCode)
        .with(verify)
        .get_result::<UserId>(connection)
        .optional()?;
    diesel::delete(codes::table)
        .filter(codes::user_id.eq(id))
        .filter(codes::purpose.eq(VERIFY_EMAIL))
        .execute(connection)?;
    Ok(verified)
}
