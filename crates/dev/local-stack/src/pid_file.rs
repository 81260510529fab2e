//! Files that keep a server's process known from one program to the next.

use std::{fs, path::PathBuf, time::Duration};

use crate::{
    Error, Result,
    process::{Identity, tail, wait_until},
};

#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the process of the file if it is still running.
    pub(crate) fn running(&self) -> Option<Identity> {
        let text = fs::read_to_string(&self.path).ok()?;
        serde_json::from_str::<Identity>(&text)
            .ok()
            .filter(Identity::is_alive)
    }

    /// Waits until the server `accepts` connections. Fails when it ends or is not ready within `limit`.
    pub(crate) fn wait_ready(
        &self,
        server: &'static str,
        limit: Duration,
        log: PathBuf,
        accepts: impl Fn() -> bool,
    ) -> Result<()> {
        let ready = wait_until(limit, || match self.running() {
            None => Some(false),
            Some(_) => accepts().then_some(true),
        });
        let what = match ready {
            Some(true) => return Ok(()),
            Some(false) => "ended while it started".to_owned(),
            None => format!("did not become ready within {} s", limit.as_secs()),
        };
        Err(Error::NotReady {
            server,
            what,
            tail: tail(&log, 30),
            log,
        })
    }

    pub(crate) fn write(&self, process: Identity) -> Result<()> {
        let text = serde_json::to_string(&process).map_err(|source| Error::State {
            path: self.path.clone(),
            source,
        })?;
        fs::write(&self.path, text).map_err(Error::file("writing", &self.path))
    }

    pub(crate) fn remove(&self) {
        // A missing file is fine, and one that cannot be removed names a process that has ended.
        let _ = fs::remove_file(&self.path);
    }
}
