//! The servers that `cargo xtask test` started, and a way to wait for them.

use std::env;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use local_stack::{Description, TEST_SERVERS_VARIABLE, private};

/// Installs the cryptography of the TLS library, as `server::main` does. Can be repeated.
pub(crate) fn install_cryptography() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the servers that `cargo xtask test` started.
pub(crate) fn servers() -> &'static Description {
    static SERVERS: OnceLock<Description> = OnceLock::new();
    SERVERS.get_or_init(|| {
        install_cryptography();
        let file = env::var_os(TEST_SERVERS_VARIABLE)
            .expect("this test needs its servers: run it with `cargo xtask test -- <filter>`");
        let description = private::read_json(file.as_ref()).expect("the servers' description");
        description.expect("COUNTERSIGN_TEST_SERVERS must name a file that exists")
    })
}

const LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until `poll` returns a value. Panics after 30 seconds with a message that contains `what`.
pub async fn eventually<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(
            started.elapsed() < LIMIT,
            "{what}: not within {} s",
            LIMIT.as_secs()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
