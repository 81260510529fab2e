use std::sync::OnceLock;

use local_stack::Description;

/// The servers that `cargo xtask test` started.
pub(crate) fn servers() -> &'static Description {
    static SERVERS: OnceLock<Description> = OnceLock::new();
    SERVERS.get_or_init(|| {
        Description::from_environment()
            .expect("COUNTERSIGN_TEST_SERVERS must name a readable file")
            .expect("this test needs its servers: run it with `cargo xtask test -- <filter>`")
    })
}
