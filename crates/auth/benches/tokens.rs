//! Checking access tokens: every request does it twice, at the gateway and at its service.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::time::Duration;

use auth::{Signer, SigningKey, Subject, Verifier};
use criterion::{BatchSize, Criterion};
use values::{EmailAddress, FromText as _, UserId};

const ISSUER: &str = "countersign";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    check_tokens(&mut criterion);
    criterion.final_summary();
}

fn check_tokens(criterion: &mut Criterion) {
    let key = SigningKey::from_pem(&SigningKey::generate_pem()).unwrap();
    let lifetime = Duration::from_secs(24 * 3600);
    let signer = Signer::new(&key, &[], ISSUER.to_owned(), ISSUER.to_owned(), lifetime);
    let token = signer.sign(subject()).unwrap();
    let verifier = || {
        let verifier = Verifier::new(ISSUER, ISSUER);
        verifier.set_keys(signer.published());
        verifier
    };

    let known = verifier();
    known.verify(token.expose()).unwrap();
    criterion.bench_function("a token that was seen before", |bencher| {
        bencher.iter(|| known.verify(black_box(token.expose())).unwrap());
    });
    criterion.bench_function("a new token", |bencher| {
        bencher.iter_batched(
            verifier,
            |new| {
                new.verify(black_box(token.expose())).unwrap();
                // Returned, so that dropping it is not measured.
                new
            },
            BatchSize::SmallInput,
        );
    });
    criterion.bench_function("signing a token", |bencher| {
        bencher.iter_batched(
            subject,
            |subject| signer.sign(subject).unwrap(),
            BatchSize::SmallInput,
        );
    });
}

fn subject() -> Subject {
    let email = EmailAddress::from_text("ada@example.com").unwrap();
    Subject {
        id: UserId::generate(),
        username: email.clone(),
        email,
        scope: vec!["user".to_owned()],
        epoch: 0,
        incarnation: "test".to_owned(),
        email_verified: true,
    }
}
