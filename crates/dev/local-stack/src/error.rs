//! Errors, which say how to solve the problem.

use std::{io, path::PathBuf, time::Duration};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why servers could not be found, started, prepared or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A package is missing, and this user cannot install it.
    #[error("{reason}\nRun this command, and then try again:\n\n  {command}\n")]
    NotInstalled {
        /// Which packages, and why they cannot be installed.
        reason: String,
        /// The command that installs them.
        command: String,
    },
    /// An installed program is not where it should be.
    #[error("cannot find {what}")]
    NotFound {
        /// What is missing.
        what: String,
    },
    /// A server ended, or was not ready in time.
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
    /// A command failed.
    #[error("{command} failed ({status}): {output}")]
    Command {
        /// The command, without secrets.
        command: String,
        /// Its exit status.
        status: String,
        /// Its output.
        output: String,
    },
    /// A server runs in this folder that is not known to have been started here.
    #[error(
        "{} names process {pid}, which another container or an earlier version of this project started, so it is left \
         alone. Stop it where it runs (`kill {pid}`), and then try again",
        file.display()
    )]
    NotOwn {
        /// Its process.
        pid: i32,
        /// The file that names it.
        file: PathBuf,
    },
    /// A process did not end after it was killed.
    #[error("process {pid} is still running {after:?} after it was killed")]
    StillRunning {
        /// The process.
        pid: i32,
        /// The time since it was killed.
        after: Duration,
    },
    /// A URL is not of the form `postgres://user:password@host:port/database`.
    ///
    /// Holds what is wrong with it, and never the URL itself, which contains a password.
    #[error("invalid database URL: {0}")]
    Url(String),
    /// There is no free port.
    #[error("no free port between {from} and {to} on 127.0.0.1")]
    NoFreePort {
        /// The first port tried.
        from: u16,
        /// The port after the last one tried.
        to: u16,
    },
    /// A file cannot be read or written.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another operation of the operating system failed.
    #[error("{action}: {source}")]
    System {
        /// What was attempted.
        action: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A state file is not what this crate writes.
    #[error("{} is damaged: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err` after an operation on a file.
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

    /// For `map_err` after other operations.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }
}
