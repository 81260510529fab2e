use std::io;
use std::path::PathBuf;

use hickory_resolver::net::NetError;

/// Why a client or a resolver could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// For example, there are no root certificates.
    #[error("the HTTP client cannot be created")]
    Client(#[source] io::Error),
    /// The name servers cannot be set up.
    #[error("the DNS resolver cannot be created")]
    Resolver(#[from] NetError),
    /// A file that says how to resolve names cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}
