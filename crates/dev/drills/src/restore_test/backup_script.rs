//! The script `deploy/backup`, run as operators run it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail, ensure};
use local_stack::{packages, process::output_of};
use rig::system::System;

pub(super) struct BackupScript<'run>(pub(super) &'run System);

impl BackupScript<'_> {
    /// Writes a dump, and returns its file.
    pub(super) fn dump(&self) -> anyhow::Result<PathBuf> {
        let folder = self.0.workspace.local().join("backups");
        self.run(&["dump".as_ref(), &folder])?;
        let files = fs::read_dir(&folder).context("reading the folder of dumps")?;
        let is_dump = |file: &PathBuf| file.extension().is_some_and(|name| name == "dump");
        let files = files.flatten().map(|entry| entry.path());
        let dumps: Vec<_> = files.filter(is_dump).collect();
        let [dump] = dumps.as_slice() else {
            bail!("deploy/backup wrote {} dumps", dumps.len());
        };
        self.run(&["verify".as_ref(), &folder])?;
        Ok(dump.clone())
    }

    pub(super) fn restore(&self, dump: &Path) -> anyhow::Result<()> {
        self.run(&["restore".as_ref(), dump])
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

    fn run(&self, arguments: &[&Path]) -> anyhow::Result<()> {
        let programs = packages::postgres_programs()?;
        let path = env::var_os("PATH").unwrap_or_default();
        let path = [programs].into_iter().chain(env::split_paths(&path));
        let mut script = Command::new(self.0.workspace.root().join("deploy/backup"));
        script.args(arguments);
        script.env("PATH", env::join_paths(path)?);
        script.env("BACKUP_DATABASE_URL", &self.0.backing.admin_url);
        output_of(&mut script).map(drop)
    }
}
