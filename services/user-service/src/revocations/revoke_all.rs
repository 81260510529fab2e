use std::io::Write as _;
use std::process::ExitCode;

use app_config::{Reader, Settings as _};
use database::{Connection, Database, DatabaseSettings};

use super::store;

const DONE: &str =
    "All access tokens are revoked. Every gateway and service refuses them within a second.\n";

/// The subcommand `revoke-all-tokens` of the user service, which reads the service's own settings. `None` when the process was
/// started without it.
pub(crate) fn revoke_all_tokens_command() -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != "revoke-all-tokens" {
        return None;
    }
    if let Err(error) = run() {
        telemetry::print_error(format!("the tokens could not be revoked: {error:#}"));
        return Some(ExitCode::FAILURE);
    }
    // The reader may be gone.
    let _ = std::io::stdout().write_all(DONE.as_bytes());
    Some(ExitCode::SUCCESS)
}

fn run() -> anyhow::Result<()> {
    let settings = DatabaseSettings::read(&mut Reader::from_process()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(revoke_all_tokens(&settings))?;
    Ok(())
}

/// Revokes the access tokens of all users.
///
/// # Errors
/// The database is unavailable.
pub async fn revoke_all_tokens(settings: &DatabaseSettings) -> Result<(), database::Error> {
    let database = Database::connect(settings);
    let start = |connection: &mut Connection| store::start_generation(connection);
    database.run(start).await
}
