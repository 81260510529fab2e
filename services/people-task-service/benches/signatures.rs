//! Signing webhook calls.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the benchmark needs only a part of the signing module"
)]

use std::hint::black_box;

use criterion::Criterion;
use signing::{SigningSettings, WebhookSecret, WebhookSigner};
use values::{DeliveryId, FromText as _};

// The module is private to the service, and compiling it again needs no change of what is public.
#[path = "../src/webhook_signature.rs"]
mod signing;

/// A usual body.
const BODY: &[u8] = br#"{"id":"665f1c2ab3d4e5f60718293a","approver":"grace@example.com","requester":"ada@example.com","title":"Buy a second printer","description":"The first one jams.","decisionBy":null,"status":"approved"}"#;
const TIMESTAMP: i64 = 1_800_000_000;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let settings = SigningSettings {
        key: testkit::ed25519_pem(),
        previous_key: None,
    };
    let signer = WebhookSigner::new(&settings).unwrap();
    let secret = WebhookSecret::from_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let id = DeliveryId::generate();
    for (name, secret) in [
        ("Ed25519", None),
        ("Ed25519 and HMAC-SHA-256", Some(&secret)),
    ] {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| signer.sign(id, TIMESTAMP, black_box(BODY), secret));
        });
    }
    criterion.final_summary();
}
