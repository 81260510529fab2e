use clap::Args;
use url::Url;

use crate::api::Credentials;

/// Options of every command.
#[derive(Args)]
pub(crate) struct Global {
    /// Print JSON for programs instead of tables for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Do not ask before something is destroyed.
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    /// The gateway.
    #[arg(
        long,
        global = true,
        env = "COUNTERSIGN_URL",
        default_value = "http://gateway:8080",
        value_name = "URL"
    )]
    url: Url,
    /// The administrator who does it. The password is read from ADMIN_PASSWORD or the file that ADMIN_PASSWORD_FILE names; a token in
    /// COUNTERSIGN_TOKEN replaces both.
    #[arg(
        long = "as",
        global = true,
        env = "ADMIN_USERNAME",
        default_value = "admin@countersign.local",
        value_name = "USERNAME"
    )]
    administrator: String,
}

impl Global {
    /// How to sign in at the gateway.
    pub(crate) fn credentials(&self) -> Credentials<'_> {
        Credentials {
            url: &self.url,
            username: &self.administrator,
        }
    }
}
