use anyhow::Context as _;
use audit_log::{Actor, RequestMeta};
use auth::ADMIN_SCOPE;
use database::{Connection, Database};
use values::UserId;

use super::create::USER_SCOPE;
use super::store::{self, NewUser};
use crate::audit::AuditAction;
use crate::client_network::ClientNetwork;
use crate::error::UserError;
use crate::hashing::Hasher;
use crate::password_rules::{NewPassword, PasswordRules};
use crate::settings::{FirstAdmin, SignUpSettings};

/// Creates the first administrator if there is none. Never overwrites anything.
pub(crate) async fn create_first_admin(
    database: &Database,
    hasher: &Hasher,
    rules: PasswordRules,
    sign_up: &SignUpSettings,
    settings: FirstAdmin,
) -> anyhow::Result<()> {
    if database.run(store::has_admin).await? {
        return Ok(());
    }
    let password = NewPassword::parse(&settings.password, rules).context("ADMIN_PASSWORD")?;
    let new = NewUser {
        id: UserId::generate(),
        email: settings.username.clone(),
        username: settings.username,
        password_hash: hasher.hash(&ClientNetwork::internal(), password).await?,
        is_active: true,
        plan: sign_up.plan.clone(),
        scope: vec![USER_SCOPE.to_owned(), ADMIN_SCOPE.to_owned()],
        vendor: sign_up.vendor.clone().map(serde_json::Value::String),
        metadata: serde_json::Map::new(),
        email_confirmed: true,
        is_service: false,
    };
    let entry = AuditAction::FirstAdminMade.entry(Actor::Service, new.id, RequestMeta::internal());
    let insert = move |connection: &mut Connection| {
        store::lock_first_admin(connection)?;
        if store::has_admin(connection)? {
            return Ok(false);
        }
        store::insert(connection, &new, None, entry)?;
        Ok(true)
    };
    match database.transaction(insert).await {
        Ok(true) => tracing::info!("created the first administrator"),
        Ok(false) => {}
        Err(UserError::UsernameTaken | UserError::EmailTaken) => {
            tracing::warn!(
                "there is no administrator, and ADMIN_USERNAME belongs to a user without the scope `admin`: choose another ADMIN_USERNAME"
            );
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
