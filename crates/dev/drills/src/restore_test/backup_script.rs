//! The script `deploy/backup`, run as operators run it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use local_stack::packages;

use rig::workspace::Workspace;

/// The script for one database.
pub(super) struct BackupScript {
    program: PathBuf,
    folder: PathBuf,
    database_url: String,
}

impl BackupScript {
    pub(super) fn new(workspace: &Workspace, database_url: &str) -> Self {
        Self {
            program: workspace.root().join("deploy/backup"),
            folder: workspace.local().join("backups"),
            database_url: database_url.to_owned(),
        }
    }

    /// Writes a dump, and returns its file.
    pub(super) fn dump(&self) -> anyhow::Result<PathBuf> {
        self.run(&["dump".as_ref(), &self.folder])?;
        let files = fs::read_dir(&self.folder).context("reading the folder of dumps")?;
        let files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
        let mut dumps = files.iter().filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "dump")
        });
        let dump = dumps.next().context("deploy/backup wrote no dump")?.clone();
        ensure!(dumps.next().is_none(), "there is more than one dump");
        self.run(&["verify".as_ref(), &self.folder])?;
        Ok(dump)
    }

    pub(super) fn restore(&self, dump: &Path) -> anyhow::Result<()> {
        self.run(&["restore".as_ref(), dump]).map(drop)
    }

    /// Fails unless the script refuses to restore the dump for this reason.
    pub(super) fn refuses_to_restore(&self, dump: &Path, reason: &str) -> anyhow::Result<()> {
        let Err(refused) = self.restore(dump) else {
            bail!("deploy/backup restored a dump although {reason}");
        };
        let refused = refused.to_string();
        ensure!(refused.contains(reason), "{refused}");
        Ok(())
    }

    fn run(&self, arguments: &[&Path]) -> anyhow::Result<String> {
        let programs = packages::postgres_programs()?;
        let path = env::var_os("PATH").unwrap_or_default();
        let path = [programs].into_iter().chain(env::split_paths(&path));
        let output = Command::new(&self.program)
            .args(arguments)
            .env("PATH", env::join_paths(path)?)
            .env("BACKUP_DATABASE_URL", &self.database_url)
            .stdin(Stdio::null())
            .output()
            .context("running deploy/backup")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "deploy/backup: {errors}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
