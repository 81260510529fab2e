//! Prepares accepted sockets for actix-http, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_service::{ServiceFactory, fn_service};
use actix_web::rt::net::TcpStream;
use rustls::ServerConfig;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::paced_stream::PacedStream;

pub(crate) type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;

type Connection = (PacedStream<Socket>, Protocol, Option<SocketAddr>);

pub(crate) fn tls_acceptor(mut config: ServerConfig) -> TlsAcceptor {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Accepts connections, with TLS if there is an acceptor for it.
pub(crate) fn accept(
    tls: Option<TlsAcceptor>,
    handshake_timeout: Duration,
    explains: bool,
) -> impl ServiceFactory<
    TcpStream,
    Config = (),
    Response = Connection,
    Error = DispatchError,
    InitError = (),
> {
    fn_service(move |socket: TcpStream| {
        let tls = tls.clone();
        async move {
            let peer = prepare(&socket);
            let socket = match tls {
                None => Either::Left(socket),
                Some(tls) => {
                    let accepted = timeout(handshake_timeout, tls.accept(socket)).await;
                    Either::Right(Box::new(accepted.map_err(io::Error::from)??))
                }
            };
            let stream = PacedStream::new(socket, explains);
            Ok::<_, DispatchError>((stream, Protocol::Http1, peer))
        }
    })
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
