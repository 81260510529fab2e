use clap::Args;
use url::Url;

use crate::output::Output;

/// Options of every command.
#[derive(Args)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) output: Output,
    /// The gateway.
    #[arg(
        long,
        global = true,
        env = "COUNTERSIGN_URL",
        default_value = "http://gateway:8080",
        value_name = "URL"
    )]
    pub(crate) url: Url,
    /// The administrator who does it. The password is read from ADMIN_PASSWORD or the file that ADMIN_PASSWORD_FILE names; a token in
    /// COUNTERSIGN_TOKEN replaces both.
    #[arg(
        long = "as",
        global = true,
        env = "ADMIN_USERNAME",
        default_value = "admin@countersign.local",
        value_name = "USERNAME"
    )]
    pub(crate) administrator: String,
}
