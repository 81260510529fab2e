//! Urls and credentials of the servers, in a file that tests read.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::{Roles, with_database};

/// Name of the environment variable that holds the path of the description.
pub const TEST_SERVERS_VARIABLE: &str = "COUNTERSIGN_TEST_SERVERS";

/// Everything that a client needs to use the servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    pub postgres: PostgresDescription,
    pub rabbitmq: RabbitMqDescription,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostgresDescription {
    /// The superuser's URL for the database `postgres`.
    pub admin_url: String,
    /// The passwords of the four roles, which are the same in every database of the server.
    pub passwords: Roles,
}

impl PostgresDescription {
    pub fn admin_url_of(&self, name: &str) -> Result<String> {
        with_database(&self.admin_url, name)
    }

    /// Returns the URLs of the four roles for the database `name`, which [`crate::bootstrap::run`] must have
    /// prepared.
    pub fn roles_of(&self, name: &str) -> Result<Roles> {
        Roles::urls(&self.admin_url_of(name)?, &self.passwords)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RabbitMqDescription {
    /// The URL of the default vhost, ending in `/%2f`.
    pub amqp_url: String,
    /// The URL of the management API, without a slash at the end.
    pub management_url: String,
    /// An administrator of the broker.
    pub username: String,
    pub password: String,
}

impl RabbitMqDescription {
    /// Returns the `Authorization` header of calls of the management API.
    pub fn authorization(&self) -> String {
        let credentials = format!("{}:{}", self.username, self.password);
        format!("Basic {}", STANDARD.encode(credentials))
    }

    /// Returns the AMQP URL of the vhost `name`, which must not need escaping.
    pub fn amqp_url_of(&self, name: &str) -> String {
        format!("{}{name}", self.amqp_url.trim_end_matches("%2f"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amqp_url_of_replaces_the_vhost() {
        let broker = RabbitMqDescription {
            amqp_url: "amqp://me:pw@127.0.0.1:5672/%2f".into(),
            management_url: "http://127.0.0.1:15672".into(),
            username: "me".into(),
            password: "pw".into(),
        };
        assert_eq!(
            broker.amqp_url_of("test-1"),
            "amqp://me:pw@127.0.0.1:5672/test-1"
        );
    }
}
