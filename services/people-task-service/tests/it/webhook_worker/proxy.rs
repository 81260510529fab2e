//! A proxy between a worker and its database.

use std::net::SocketAddr;

use testkit::eventually;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;
use values::Secret;

/// Forwards connections until it is cut. The server notices a cut only when it responds.
pub(crate) struct Proxy {
    address: SocketAddr,
    open: watch::Sender<bool>,
}

impl Proxy {
    /// A proxy for the server that the URL names.
    pub(crate) async fn start(url: &Secret) -> Self {
        let url = Url::parse(url.expose()).unwrap();
        let target = (url.host_str().unwrap().to_owned(), url.port().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = watch::Sender::new(true);
        let state = open.subscribe();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if *state.borrow() {
                    let far = TcpStream::connect(target.clone()).await.unwrap();
                    tokio::spawn(forward(near, far, state.clone()));
                }
            }
        });
        Self { address, open }
    }

    /// The same URL by way of this proxy.
    pub(crate) fn url(&self, url: &Secret) -> Secret {
        let mut url = Url::parse(url.expose()).unwrap();
        url.set_ip_host(self.address.ip()).unwrap();
        url.set_port(Some(self.address.port())).unwrap();
        Secret::new(url.as_str())
    }

    /// Closes all connections and refuses new ones.
    pub(crate) async fn cut(&self) {
        self.open.send_replace(false);
        eventually("the connections to be closed", async || {
            // The listener has one.
            (self.open.receiver_count() == 1).then_some(())
        })
        .await;
    }

    /// Accepts new connections again.
    pub(crate) fn reopen(&self) {
        self.open.send_replace(true);
    }
}

async fn forward(mut near: TcpStream, mut far: TcpStream, mut open: watch::Receiver<bool>) {
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}
