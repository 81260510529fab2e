//! Prepares accepted sockets for actix-http, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_service::{ServiceFactory, ServiceFactoryExt as _, fn_service};
use actix_tls::accept::TlsError;
use actix_tls::accept::rustls_0_23::{Acceptor, TlsStream};
use actix_web::rt::net::TcpStream;
use rustls::ServerConfig;

use crate::paced_stream::PacedStream;

/// A connection as actix-http takes it.
type Connection<T> = (PacedStream<T>, Protocol, Option<SocketAddr>);

/// Accepts connections without TLS.
pub(crate) fn accept(
    explains: bool,
) -> impl ServiceFactory<
    TcpStream,
    Config = (),
    Response = Connection<TcpStream>,
    Error = DispatchError,
    InitError = (),
> {
    fn_service(move |socket: TcpStream| async move {
        let peer = prepare(&socket);
        Ok((PacedStream::new(socket, explains), Protocol::Http1, peer))
    })
}

/// Accepts connections with TLS.
pub(crate) fn accept_tls(
    mut config: ServerConfig,
    handshake_timeout: Duration,
    explains: bool,
) -> impl ServiceFactory<
    TcpStream,
    Config = (),
    Response = Connection<TlsStream<TcpStream>>,
    Error = TlsError<io::Error, DispatchError>,
    InitError = (),
> {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut acceptor = Acceptor::new(config);
    acceptor.set_handshake_timeout(handshake_timeout);
    let accept = move |tls: TlsStream<TcpStream>| async move {
        let peer = prepare(tls.get_ref().0);
        Ok((PacedStream::new(tls, explains), Protocol::Http1, peer))
    };
    acceptor
        .map_err(TlsError::into_service_error)
        .and_then(fn_service(accept))
}

/// Sets the options of a client's socket, and returns its address. Both fail if it has just been closed.
fn prepare(socket: &TcpStream) -> Option<SocketAddr> {
    // Otherwise the last part of a response may wait for the client's delayed acknowledgement.
    let _ = socket.set_nodelay(true);
    socket.peer_addr().ok()
}

#[cfg(test)]
mod tests {
    use actix_web::rt::net::TcpStream;
    use tokio::net::TcpListener;

    use super::prepare;

    #[tokio::test]
    async fn the_end_of_a_response_does_not_wait_for_acknowledgements() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        assert!(!socket.nodelay().unwrap());
        assert_eq!(prepare(&socket), client.local_addr().ok());
        assert!(socket.nodelay().unwrap());
    }
}
