//! Signatures of webhook calls, verified by independent libraries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diesel::connection::SimpleConnection as _;
use ring::signature::{ED25519, UnparsedPublicKey};
use standardwebhooks::Webhook;
use testkit::ed25519_pem;
use values::Secret;

use crate::webhook_worker::fixture::{Call, CannedResponse, Fixture, Receiver};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn public(pem: &Secret) -> Vec<u8> {
    let key = auth::SigningKey::from_pem(pem).unwrap();
    key.public().as_bytes().to_vec()
}

fn signatures<'a>(call: &'a Call, version: &str) -> Vec<&'a str> {
    let all = call.header("webhook-signature").split(' ');
    let parts = all.map(|signature| signature.split_once(',').unwrap());
    parts
        .filter(|(v, _)| *v == version)
        .map(|(_, s)| s)
        .collect()
}

/// Whether a key made one of the call's `v1a` signatures.
fn is_signed_by(call: &Call, public: &[u8]) -> bool {
    let mut signed = format!(
        "{}.{}.",
        call.header("webhook-id"),
        call.header("webhook-timestamp")
    )
    .into_bytes();
    signed.extend_from_slice(&call.body);
    let key = UnparsedPublicKey::new(&ED25519, public);
    let mut signatures = signatures(call, "v1a").into_iter();
    signatures.any(|signature| {
        key.verify(&signed, &STANDARD.decode(signature).unwrap())
            .is_ok()
    })
}

fn verify(call: &Call, secret: &str, body: &[u8]) -> bool {
    let mut headers = reqwest::header::HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        headers.insert(name, call.header(name).parse().unwrap());
    }
    Webhook::new(secret).unwrap().verify(body, &headers).is_ok()
}

#[tokio::test]
async fn every_call_is_signed_by_the_current_and_the_previous_key() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    fixture.decide(&[receiver.url("/")]);
    let previous = ed25519_pem();
    let _worker = fixture
        .worker(&[("WEBHOOK_PREVIOUS_SIGNING_KEY", previous.expose())])
        .await;
    let call = receiver.wait_for_calls(1).await.remove(0);
    assert_eq!(signatures(&call, "v1a").len(), 2);
    assert!(signatures(&call, "v1").is_empty());
    assert!(is_signed_by(&call, &public(&fixture.key)));
    assert!(is_signed_by(&call, &public(&previous)));
    assert!(!is_signed_by(&call, &public(&ed25519_pem())));
}

#[tokio::test]
async fn a_registered_secret_also_signs() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    fixture.decide_with(&[receiver.url("/")], Some(SECRET), false);
    let _worker = fixture.worker(&[]).await;
    let call = receiver.wait_for_calls(1).await.remove(0);
    assert_eq!(
        (
            signatures(&call, "v1").len(),
            signatures(&call, "v1a").len()
        ),
        (1, 1)
    );
    assert!(is_signed_by(&call, &public(&fixture.key)));
    assert!(verify(&call, SECRET, &call.body));
    assert!(!verify(
        &call,
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        &call.body
    ));
    assert!(!verify(&call, SECRET, b"{}"));
}

#[tokio::test]
async fn a_call_has_the_time_of_the_database_and_not_of_its_worker() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    // The worker finds this clock before that of Postgres.
    let set_back = "
        CREATE FUNCTION people_task.clock_timestamp() RETURNS timestamptz LANGUAGE sql
            AS $$ SELECT timestamptz '2020-01-01 00:00:00Z' $$;
        DO $$ BEGIN
            EXECUTE format('ALTER ROLE people_task_service IN DATABASE %I
                SET search_path = people_task, pg_catalog, public', current_database());
        END $$";
    fixture.database.admin().batch_execute(set_back).unwrap();
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[]).await;
    fixture.wait_for_status(&ids[0], "sent").await;
    let sent: i64 = receiver.calls()[0]
        .header("webhook-timestamp")
        .parse()
        .unwrap();
    let minute = 1_577_836_800..1_577_836_860;
    assert!(minute.contains(&sent), "{sent}");
    assert_eq!(
        fixture.count("attempt_log->0->>'at' LIKE '2020-01-01T00:00:%'"),
        1
    );
}
