use std::sync::Arc;

use rig::mail_server::{Acceptor, MailServer, MailTls};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Starts a mail server on a free port.
pub fn mail_server() -> MailServer {
    MailServer::start().unwrap()
}

/// Starts a mail server that speaks TLS on a free port.
pub fn tls_mail_server(tls: MailTls, config: ServerConfig) -> MailServer {
    let config = Arc::new(config);
    let accept: Acceptor = Arc::new(move |stream| {
        let connection =
            ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    });
    MailServer::start_with(Some((tls, accept))).unwrap()
}
