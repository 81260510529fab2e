//! Backups of a database, by `pg_dump` and `pg_restore`, and of a whole server, by copies of its files.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::private::{self, failed};
use crate::process::output_of;
use crate::{Postgres, client};

/// Returns a dump of the database in the custom format.
pub fn dump(url: &str) -> Result<Vec<u8>> {
    let mut command = client::command("pg_dump", url)?;
    command.arg("--format=custom").stdout(Stdio::piped());
    client::run("pg_dump", &mut command, b"")
}

/// Restores a dump into the database of `url`, with more options of `pg_restore`, such as `--clean`.
pub fn restore(url: &str, dump: &[u8], options: &[&str]) -> Result<()> {
    let mut command = client::command("pg_restore", url)?;
    command
        .arg("--exit-on-error")
        .args(options)
        .stdout(Stdio::null());
    client::run("pg_restore", &mut command, dump).map(drop)
}

impl Postgres {
    /// Copies all files of the server, which must have been stopped. Replaces an earlier copy.
    pub fn copy_files(&self) -> Result<()> {
        copy(&self.data, &self.files_copy())
    }

    /// Replaces all files of the server, which must have been stopped, by the copy. It continues as after a power failure.
    pub fn restore_files(&self) -> Result<()> {
        copy(&self.files_copy(), &self.data)
    }

    /// The same, and it continues by recovery to a point in time: on a new timeline.
    pub fn recover_files(&self) -> Result<()> {
        self.restore_files()?;
        let signal = self.data.join("recovery.signal");
        fs::write(&signal, "").with_context(failed("writing", &signal))?;
        self.give_to_user(&signal)?;
        // There is no archive: recovery ends with the copy.
        let settings = self.data.join("postgresql.auto.conf");
        OpenOptions::new()
            .append(true)
            .open(&settings)
            .and_then(|mut file| file.write_all(b"restore_command = 'false'\n"))
            .with_context(failed("writing", &settings))
    }

    pub(crate) fn files_copy(&self) -> PathBuf {
        self.data.with_extension("copy")
    }
}

/// Copies a folder with owners and permissions, in place of an existing one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    private::remove_folder(to)?;
    output_of(Command::new("cp").arg("--archive").args([from, to])).map(drop)
}
