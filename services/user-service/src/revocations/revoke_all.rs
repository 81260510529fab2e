use database::{Connection, Database, DatabaseSettings};

use super::store;

/// Revokes the access tokens of all users. API keys are off until they are confirmed, as after a restore.
///
/// # Errors
/// The database is unavailable.
pub async fn revoke_all_tokens(settings: &DatabaseSettings) -> Result<(), database::Error> {
    let database = Database::connect(settings);
    let start = |connection: &mut Connection| store::start_generation(connection);
    database.run(start).await?;
    tracing::info!(
        "all access tokens are revoked, and every gateway and service refuses them within a second; API keys are off until \
         `countersign keys confirm --all`"
    );
    Ok(())
}
