//! Keys and passwords of the local system. They are created once, and only their owner can read them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use local_stack::{Roles, private, random};
use pem::{EncodeConfig, LineEnding, Pem};
use serde_json::json;

use crate::workspace::Workspace;

/// The DER of a PKCS#8 version 1 Ed25519 key up to its 32 secret bytes.
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The files of the keys, and the passwords.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    pub(crate) token_signing_key: PathBuf,
    pub(crate) webhook_signing_key: PathBuf,
    pub(crate) admin_password: String,
    /// The token that the demo flow engine requires of the deletion worker.
    pub(crate) engine_token: String,
    pub(crate) task_mail_key: String,
    pub(crate) webhook_header_keys: String,
    /// For an external database server; the private one keeps its own.
    pub(crate) external_roles: Roles,
}

impl Secrets {
    /// Reads the secrets, and creates those that are missing.
    pub(crate) fn prepare(workspace: &Workspace) -> anyhow::Result<Self> {
        let folder = workspace.local.join("secrets");
        let key = |name: &str| {
            let file = folder.join(name);
            read_or_create(&file, ed25519_pem).map(|_| file)
        };
        let password = |name: &str| read_or_create(&folder.join(name), random::password);
        let roles = read_or_create(&folder.join("database-roles.json"), || {
            json!(Roles::random_passwords()).to_string()
        })?;
        Ok(Self {
            token_signing_key: key("token-signing-key.pem")?,
            webhook_signing_key: key("webhook-signing-key.pem")?,
            admin_password: password("admin-password")?,
            engine_token: password("engine-token")?,
            task_mail_key: password("task-mail-key")?,
            webhook_header_keys: read_or_create(&folder.join("webhook-header-keys"), || {
                random::password() + &random::password()
            })?,
            external_roles: serde_json::from_str(&roles)
                .context("reading the database roles' passwords")?,
        })
    }
}

fn read_or_create(path: &Path, create: impl FnOnce() -> String) -> anyhow::Result<String> {
    if let Ok(text) = fs::read_to_string(path) {
        return Ok(text.trim().to_owned());
    }
    let text = create();
    private::write(path, text.as_bytes())?;
    Ok(text)
}

/// A new Ed25519 private key as PEM text.
pub fn ed25519_pem() -> String {
    let mut der = PKCS8_ED25519.to_vec();
    der.extend(rand::random::<[u8; 32]>());
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("PRIVATE KEY", der), config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_48_bytes_of_pkcs8_version_1() {
        let text = ed25519_pem();
        let parsed = pem::parse(&text).unwrap();
        assert_eq!(parsed.tag(), "PRIVATE KEY");
        assert_eq!(parsed.contents().len(), 48);
        assert!(parsed.contents().starts_with(&PKCS8_ED25519));
        assert!(text.ends_with("-----END PRIVATE KEY-----\n"));
        assert_ne!(text, ed25519_pem());
    }
}
