use hickory_resolver::net::NetError;

/// Why a client or a resolver could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// For example, there are no root certificates.
    #[error("the HTTP client cannot be created")]
    Client(#[from] reqwest::Error),
    /// The name servers cannot be set up.
    #[error("the DNS resolver cannot be created")]
    Resolver(#[from] NetError),
}
