//! The signing keys, which `deploy/rotate-keys` rotates.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use local_stack::private;
use rig::{plan::Planned, workspace::Workspace};

/// The settings of each process that name a key, and the files of `deploy/rotate-keys`.
const FILES: [(&str, &str); 4] = [
    ("TOKEN_SIGNING_KEY_FILE", "token_signing_key.pem"),
    ("TOKEN_PREVIOUS_KEY_FILE", "token_previous_key.pem"),
    ("WEBHOOK_SIGNING_KEY_FILE", "webhook_signing_key.pem"),
    (
        "WEBHOOK_PREVIOUS_SIGNING_KEY_FILE",
        "webhook_previous_signing_key.pem",
    ),
];

/// A folder with the keys of a system.
pub(super) struct Keys {
    folder: PathBuf,
    script: PathBuf,
}

impl Keys {
    /// Copies the keys of the processes to a folder, and lets the processes read them there.
    pub(super) fn prepare(
        workspace: &Workspace,
        processes: &mut [Planned],
    ) -> anyhow::Result<Self> {
        let folder = workspace.local().join("keys");
        private::create_folder(&folder).context("creating the folder of the keys")?;
        for process in processes {
            for pair in FILES.chunks(2) {
                if let [(signing, signing_file), (second, second_file)] = pair
                    && let Some(key) = process.variables.get(signing)
                {
                    let copy = folder.join(signing_file);
                    copy_once(Path::new(key), &copy)?;
                    // An empty file is no key.
                    let empty = folder.join(second_file);
                    fs::write(&empty, "").context("creating a key file")?;
                    let path = |path: PathBuf| path.display().to_string();
                    process.variables.insert(signing, path(copy));
                    process.variables.insert(second, path(empty));
                }
            }
        }
        Ok(Self {
            folder,
            script: workspace.root().join("deploy/rotate-keys"),
        })
    }

    /// Runs one step of a rotation. `key` is `token` or `webhook`.
    pub(super) fn rotate(&self, key: &str, step: &str) -> anyhow::Result<()> {
        let output = Command::new(&self.script)
            .args([key, step])
            .arg(&self.folder)
            .output()
            .context("running deploy/rotate-keys")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "deploy/rotate-keys: {}",
            error.trim()
        );
        Ok(())
    }
}

fn copy_once(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !to.exists() {
        fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    }
    Ok(())
}
