//! The system that the pages belong to, which `cargo xtask screenshots` names in the environment.

use std::env;

use anyhow::Context as _;

/// Its addresses, and its administrator.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) gateway: String,
    pub(crate) engine: String,
    pub(crate) admin_username: String,
    pub(crate) admin_password: String,
}

impl System {
    /// # Errors
    /// A variable is missing.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        let variable = |name| {
            env::var(name)
                .with_context(|| format!("{name} is not set: use cargo xtask screenshots"))
        };
        Ok(Self {
            gateway: variable("SCREENSHOTS_GATEWAY")?,
            engine: variable("SCREENSHOTS_ENGINE")?,
            admin_username: variable("ADMIN_USERNAME")?,
            admin_password: variable("ADMIN_PASSWORD")?,
        })
    }
}
