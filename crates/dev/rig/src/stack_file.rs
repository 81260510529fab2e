//! `.local/stack.json`: the URLs, processes and credentials of the running system.

use std::fs;
use std::path::PathBuf;

use local_stack::private;
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stack {
    pub gateway: String,
    pub admin: Admin,
    pub demo_engine: String,
    /// The URL of the user service's database.
    pub database: String,
    pub amqp: String,
    pub processes: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admin {
    pub username: String,
    pub password: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name, with a number if there are replicas.
    pub name: String,
    pub pid: i32,
    /// `None` for workers.
    pub url: Option<String>,
    /// The base URL of `/metrics`, `/healthz` and `/readyz`.
    pub metrics: String,
}

impl Stack {
    pub fn path(workspace: &Workspace) -> PathBuf {
        workspace.local.join("stack.json")
    }

    /// Reads the file. `None` when no system is running.
    pub fn read(workspace: &Workspace) -> anyhow::Result<Option<Self>> {
        private::read_json(&Self::path(workspace))
    }

    pub fn write(&self, workspace: &Workspace) -> anyhow::Result<()> {
        private::write_json(&Self::path(workspace), self)
    }

    pub fn remove(workspace: &Workspace) {
        // The file may be missing.
        let _ = fs::remove_file(Self::path(workspace));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_documented_fields() {
        let stack = Stack {
            gateway: "http://127.0.0.1:8080".into(),
            admin: Admin {
                username: "a".into(),
                password: "p".into(),
            },
            demo_engine: "http://127.0.0.1:8090".into(),
            database: "u".into(),
            amqp: "amqp://".into(),
            processes: vec![Entry {
                name: "webhook-worker".into(),
                pid: 7,
                url: None,
                metrics: "m".into(),
            }],
        };
        let expected = serde_json::json!({
            "gateway": "http://127.0.0.1:8080",
            "admin": {"username": "a", "password": "p"},
            "demoEngine": "http://127.0.0.1:8090",
            "database": "u",
            "amqp": "amqp://",
            "processes": [{"name": "webhook-worker", "pid": 7, "url": null, "metrics": "m"}],
        });
        assert_eq!(serde_json::to_value(&stack).unwrap(), expected);
    }
}
