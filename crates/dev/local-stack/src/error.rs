//! What can go wrong when servers are run, each with what a person needs to go on.

use std::{io, path::PathBuf, time::Duration};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why servers could not be found, started, prepared or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something has to be installed and it cannot be done from here.
    #[error("{reason}\nRun this command, then try again:\n\n  {command}\n")]
    NotInstalled {
        /// Why it cannot be done from here.
        reason: String,
        /// The command for the person at the keyboard.
        command: String,
    },
    /// A program that was installed is not where it ought to be.
    #[error("cannot find {what}")]
    NotFound {
        /// What was looked for and where.
        what: String,
    },
    /// A server did not become ready in time, or ended.
    #[error("{server} {what}; the end of {}:\n{tail}", log.display())]
    NotReady {
        /// The server's name.
        server: &'static str,
        /// What happened.
        what: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A command that was run for its effect failed.
    #[error("{command} failed ({status}): {output}")]
    Command {
        /// The command, without secrets.
        command: String,
        /// How it ended.
        status: String,
        /// What it wrote.
        output: String,
    },
    /// A process went on after it was killed.
    #[error("process {pid} is still there {after:?} after it was told to stop")]
    StillRunning {
        /// The process.
        pid: i32,
        /// How long was waited.
        after: Duration,
    },
    /// A url that is not of the form `postgres://user:password@host:port/database`.
    #[error("not a usable database url: {reason}")]
    Url {
        /// What is wrong with it; never the url, which holds a password.
        reason: &'static str,
    },
    /// No free port.
    #[error("no free port between {from} and {to} on 127.0.0.1")]
    NoFreePort {
        /// The first port tried.
        from: u16,
        /// The port after the last one tried.
        to: u16,
    },
    /// A file that could not be read or written.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Any other failure of the operating system.
    #[error("{action}: {source}")]
    System {
        /// What was attempted.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// A state file that is not what this crate writes.
    #[error("{} is damaged: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err` on operations on one file.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }

    /// For `map_err` on operations that have no file.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }
}
