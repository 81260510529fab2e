use anyhow::Context as _;
use audit_log::{Actor, Entry, RequestMeta};
use database::Database;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, RunQueryDsl as _};
use values::UserId;

use super::user::NewUser;
use super::{AccountError, admin_scopes, store};
use crate::audit::Action;
use crate::hashing::{Hasher, NewPassword, PasswordRules};
use crate::settings::{FirstAdmin, SignUpSettings};

/// Replicas that start together make one administrator: they take turns by this lock.
const LOCK: i64 = 0x6164_6d69_6e31;

/// Makes the first administrator, if there is none. Nothing is ever overwritten.
///
/// # Errors
/// A password that breaks the rules, or a database that does not answer.
pub(crate) async fn create_first_admin(
    database: &Database,
    hasher: &Hasher,
    rules: PasswordRules,
    sign_up: &SignUpSettings,
    wanted: FirstAdmin,
) -> anyhow::Result<()> {
    let exists =
        |connection: &mut PgConnection| Ok::<_, AccountError>(store::has_admin(connection)?);
    if database.run(exists).await? {
        return Ok(());
    }
    let password = NewPassword::parse(wanted.password, rules).context("ADMIN_PASSWORD")?;
    let new = NewUser {
        id: UserId::generate(),
        email: wanted.username.clone(),
        username: wanted.username,
        password_hash: hasher.hash(password).await?,
        plan: sign_up.plan.clone(),
        scope: admin_scopes(),
        vendor: sign_up.vendor.clone(),
        metadata: serde_json::Map::new(),
        email_verified: true,
    };
    let entry = Action::FirstAdminMade.entry(Actor::Service, new.id, RequestMeta::internal());
    match database
        .transaction(move |connection| insert(connection, &new, entry))
        .await
    {
        Ok(true) => tracing::info!("made the first administrator"),
        Ok(false) => {}
        Err(AccountError::UsernameTaken | AccountError::EmailTaken) => {
            tracing::warn!(
                "there is no administrator, and ADMIN_USERNAME is a user without the scope `admin`: choose another ADMIN_USERNAME"
            );
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn insert(
    connection: &mut PgConnection,
    new: &NewUser,
    entry: Entry,
) -> Result<bool, AccountError> {
    // diesel has no advisory locks. This one ends with the transaction.
    diesel::sql_query("SELECT pg_advisory_xact_lock($1)")
        .bind::<BigInt, _>(LOCK)
        .execute(connection)?;
    if store::has_admin(connection)? {
        return Ok(false);
    }
    store::insert(connection, new, entry)?;
    Ok(true)
}
