use database::{Connection, Database, DatabaseSettings};

use super::store;

/// Revokes the access tokens of all users.
///
/// # Errors
/// The database is unavailable.
pub async fn revoke_all_tokens(settings: &DatabaseSettings) -> Result<(), database::Error> {
    let database = Database::connect(settings);
    let start = |connection: &mut Connection| store::start_generation(connection);
    database.run(start).await?;
    tracing::info!(
        "all access tokens are revoked; every gateway and service refuses them within a second"
    );
    Ok(())
}
