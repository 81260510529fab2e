use std::sync::OnceLock;

use local_stack::Description;

/// Installs the cryptography of the TLS library, as `server::main` does. Can be repeated.
pub(crate) fn install_cryptography() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the servers that `cargo xtask test` started.
pub(crate) fn servers() -> &'static Description {
    static SERVERS: OnceLock<Description> = OnceLock::new();
    SERVERS.get_or_init(|| {
        install_cryptography();
        Description::from_environment()
            .expect("COUNTERSIGN_TEST_SERVERS must name a readable file")
            .expect("this test needs its servers: run it with `cargo xtask test -- <filter>`")
    })
}
