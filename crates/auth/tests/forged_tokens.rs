//! Tokens that must be rejected, each for a different reason.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use auth::{Claims, Rejection, Signer, SigningKey, Subject, Verifier};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};
use values::{EmailAddress, FromText, Secret, UserId};

const ISSUER: &str = "countersign";

struct Fixture {
    key: SigningKey,
    signer: Signer,
    verifier: Verifier,
}

fn new_key() -> SigningKey {
    let pem = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    SigningKey::from_pem(&Secret::new(pem.serialize_pem())).unwrap()
}

fn fixture() -> Fixture {
    let key = new_key();
    let lifetime = Duration::from_secs(60);
    let signer = Signer::new(&key, &[], ISSUER.to_owned(), ISSUER.to_owned(), lifetime);
    let verifier = Verifier::new(ISSUER, ISSUER);
    verifier.set_keys(signer.published());
    Fixture {
        key,
        signer,
        verifier,
    }
}

fn subject() -> Subject {
    let email = EmailAddress::from_text("ada@example.com").unwrap();
    Subject {
        id: UserId::generate(),
        username: email.clone(),
        email,
        scope: vec!["user".to_owned()],
        epoch: 3,
        incarnation: "test".to_owned(),
        email_verified: true,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    }
}

fn now() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

fn good_claims() -> Value {
    let id = UserId::generate();
    json!({
        "iss": ISSUER, "aud": ISSUER, "sub": id, "id": id, "jti": "1", "iat": now(), "exp": now() + 60,
        "email": "ada@example.com", "username": "ada@example.com", "scope": ["user"], "epoch": 0,
        "incarnation": "test"
    })
}

/// Signs any header and claims with any key.
fn forge(key: &SigningKey, header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = BASE64.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn header(key: &SigningKey) -> Value {
    json!({"alg": "EdDSA", "typ": "JWT", "kid": key.public().key_id()})
}

#[test]
fn a_signed_token_is_valid_and_has_all_claims() {
    let fixture = fixture();
    let subject = subject();
    let expected = subject.id;
    let token = fixture.signer.sign(subject);
    for _ in 0..2 {
        let claims = fixture.verifier.verify(token.expose()).unwrap();
        let Claims { iss, subject, .. } = claims.as_ref();
        let Subject { id, epoch, .. } = subject;
        assert_eq!((*id, *epoch, iss.as_str()), (expected, 3, ISSUER));
        assert_eq!(claims.exp - claims.iat, 60);
    }
    let hand_made = forge(&fixture.key, &header(&fixture.key), &good_claims());
    assert!(
        fixture.verifier.verify(&hand_made).is_ok(),
        "the forged token must be valid except for the change"
    );
}

#[test]
fn raising_the_epoch_revokes_only_earlier_tokens() {
    let fixture = fixture();
    let subject = subject();
    let token = fixture.signer.sign(subject.clone());
    let newer = Subject {
        epoch: 4,
        ..subject.clone()
    };
    let newer = fixture.signer.sign(newer);
    fixture
        .verifier
        .revocations()
        .raise([(subject.id, 4), (subject.id, 2)]);
    assert_eq!(
        fixture.verifier.verify(token.expose()).unwrap_err(),
        Rejection::Revoked
    );
    assert!(fixture.verifier.verify(newer.expose()).is_ok());
}

#[test]
fn missing_claims_are_rejected() {
    let fixture = fixture();
    for name in [
        "iss",
        "aud",
        "sub",
        "id",
        "jti",
        "iat",
        "exp",
        "email",
        "username",
        "scope",
        "epoch",
        "incarnation",
    ] {
        let mut claims = good_claims();
        claims.as_object_mut().unwrap().remove(name);
        let token = forge(&fixture.key, &header(&fixture.key), &claims);
        assert_eq!(
            fixture.verifier.verify(&token).unwrap_err(),
            Rejection::Invalid,
            "without {name}"
        );
    }
}

#[test]
fn invalid_claims_are_rejected() {
    let fixture = fixture();
    for (name, value, rejection) in [
        ("iss", json!("another"), Rejection::Invalid),
        ("aud", json!("another"), Rejection::Invalid),
        ("aud", json!(Signer::SERVICE_AUDIENCE), Rejection::Invalid),
        ("exp", json!(now() - 31), Rejection::Expired),
        ("exp", json!((now() + 60).to_string()), Rejection::Invalid),
        ("exp", json!(-1), Rejection::Invalid),
        ("iat", json!(now() + 3600), Rejection::Invalid),
        ("nbf", json!(now() + 3600), Rejection::Invalid),
        ("id", json!(UserId::generate()), Rejection::Invalid),
        ("sub", json!("admin"), Rejection::Invalid),
        ("scope", json!("admin"), Rejection::Invalid),
        ("epoch", json!("9"), Rejection::Invalid),
        ("epoch", json!(1.5), Rejection::Invalid),
    ] {
        let mut claims = good_claims();
        claims[name] = value.clone();
        let token = forge(&fixture.key, &header(&fixture.key), &claims);
        assert_eq!(
            fixture.verifier.verify(&token).unwrap_err(),
            rejection,
            "{name}: {value}"
        );
    }
}

#[test]
fn the_header_cannot_choose_the_algorithm_or_another_key() {
    let fixture = fixture();
    let stranger = new_key();
    let own = fixture.key.public().key_id();
    let verify = |token: &str| fixture.verifier.verify(token).unwrap_err();

    let unsigned = json!({"alg": "none", "kid": own});
    assert_eq!(
        verify(&forge(&fixture.key, &unsigned, &good_claims())),
        Rejection::Invalid
    );
    let symmetric = json!({"alg": "HS256", "typ": "JWT", "kid": own});
    assert_eq!(
        verify(&forge(&fixture.key, &symmetric, &good_claims())),
        Rejection::Invalid
    );
    let borrowed = forge(&stranger, &header(&fixture.key), &good_claims());
    assert_eq!(verify(&borrowed), Rejection::Invalid);
    let foreign = forge(&stranger, &header(&stranger), &good_claims());
    assert_eq!(verify(&foreign), Rejection::UnknownKey);
    for kid in ["../../etc/passwd", "' OR 1=1 --", "", "\u{0}"] {
        let hostile = json!({"alg": "EdDSA", "kid": kid});
        assert_eq!(
            verify(&forge(&fixture.key, &hostile, &good_claims())),
            Rejection::UnknownKey
        );
    }
    let nameless = json!({"alg": "EdDSA"});
    assert_eq!(
        verify(&forge(&fixture.key, &nameless, &good_claims())),
        Rejection::Invalid
    );
    let embedded = json!({"alg": "EdDSA", "jwk": stranger.public().jwk(), "kid": own});
    assert_eq!(
        verify(&forge(&stranger, &embedded, &good_claims())),
        Rejection::Invalid
    );
}

#[test]
fn changed_and_malformed_tokens_are_rejected() {
    let fixture = fixture();
    let token = fixture.signer.sign(subject());
    let parts: Vec<_> = token.expose().split('.').collect();
    let mut claims: Value = serde_json::from_slice(&BASE64.decode(parts[1]).unwrap()).unwrap();
    claims["scope"] = json!(["admin"]);
    let changed = format!(
        "{}.{}.{}",
        parts[0],
        BASE64.encode(claims.to_string()),
        parts[2]
    );
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    let long = format!("{}{}", token.expose(), "A".repeat(10_000));
    for forged in [
        changed.as_str(),
        &unsigned,
        &long,
        "",
        ".",
        "..",
        "a.b.c",
        "Bearer",
    ] {
        assert_eq!(
            fixture.verifier.verify(forged).unwrap_err(),
            Rejection::Invalid
        );
    }
}

#[test]
fn text_in_text_in_the_head_of_a_token_does_not_overflow_the_stack() {
    let fixture = fixture();
    let escaped = |text: &str| text.replace('\\', r"\u005c").replace('"', r"\u0022");
    let (begin, end) = ("[".repeat(20), "]".repeat(20));
    let mut text = "0".to_owned();
    while text.len() < 200 * 1024 {
        let inner = escaped(&text);
        text = format!(r#"{begin}{{"$serde_json::private::RawValue":"{inner}"}}{end}"#);
        let header = format!(r#"{{"alg":"EdDSA","kid":"unknown","text":{text}}}"#);
        let token = format!("{}.e30.", BASE64.encode(header));
        let rejection = fixture.verifier.verify(&token).unwrap_err();
        let is_parsed = token.len() <= 8 * 1024;
        assert_eq!(
            rejection == Rejection::UnknownKey,
            is_parsed,
            "{}",
            token.len()
        );
    }
}

#[test]
fn service_tokens_and_access_tokens_are_not_interchangeable() {
    let fixture = fixture();
    let service = fixture.signer.sign_for_service("deletion-worker");
    let access = fixture.signer.sign(subject());
    let claims = fixture.verifier.verify_service(service.expose()).unwrap();
    assert_eq!(claims.sub, "deletion-worker");
    assert!(fixture.verifier.verify(service.expose()).is_err());
    assert!(fixture.verifier.verify_service(access.expose()).is_err());
}

#[test]
fn a_token_that_is_valid_for_longer_than_any_is_rejected() {
    let fixture = fixture();
    let verify = |lifetime: u64| {
        let mut claims = good_claims();
        claims["exp"] = json!(claims["iat"].as_u64().unwrap() + lifetime);
        let token = forge(&fixture.key, &header(&fixture.key), &claims);
        fixture.verifier.verify(&token).map(drop)
    };
    let longest = auth::MAX_TOKEN_LIFETIME.as_secs();
    assert_eq!(verify(longest), Ok(()));
    assert_eq!(verify(longest + 1), Err(Rejection::Invalid));
}

#[test]
fn a_service_token_that_is_valid_for_longer_than_any_is_rejected() {
    let fixture = fixture();
    let verify = |iat: u64, exp: u64| {
        let claims = json!({
            "iss": ISSUER, "aud": Signer::SERVICE_AUDIENCE, "sub": "deletion-worker", "iat": iat, "exp": exp
        });
        let token = forge(&fixture.key, &header(&fixture.key), &claims);
        fixture.verifier.verify_service(&token).map(drop)
    };
    assert_eq!(verify(now(), now() + 60), Ok(()));
    assert_eq!(verify(now(), now() + 600), Err(Rejection::Invalid));
    assert_eq!(verify(now() + 300, now() + 360), Err(Rejection::Invalid));
}

#[test]
fn a_token_that_is_verified_while_its_key_is_withdrawn_is_rejected_afterwards() {
    let fixture = fixture();
    let next = new_key();
    let lifetime = Duration::from_secs(60);
    let next = Signer::new(&next, &[], ISSUER.into(), ISSUER.into(), lifetime);
    let tokens: Vec<_> = (0..2_000).map(|_| fixture.signer.sign(subject())).collect();
    let (verifier, verified) = (&fixture.verifier, &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for half in tokens.chunks(1_000) {
            scope.spawn(move || {
                for token in half {
                    // Accepted before the key is withdrawn, and rejected after that.
                    let _ = verifier.verify(token.expose());
                    verified.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while verified.load(Ordering::Relaxed) < 200 {
            std::thread::yield_now();
        }
        verifier.set_keys(next.published());
    });
    for token in &tokens {
        let rejection = fixture.verifier.verify(token.expose()).unwrap_err();
        assert_eq!(rejection, Rejection::UnknownKey);
    }
}

#[test]
fn tokens_of_a_withdrawn_key_are_rejected() {
    let fixture = fixture();
    let token = fixture.signer.sign(subject());
    assert!(fixture.verifier.verify(token.expose()).is_ok());
    let next = new_key();
    let both = Signer::new(
        &next,
        std::slice::from_ref(&fixture.key),
        ISSUER.into(),
        ISSUER.into(),
        Duration::from_secs(60),
    );
    fixture.verifier.set_keys(both.published());
    assert!(fixture.verifier.verify(token.expose()).is_ok());
    let alone = Signer::new(
        &next,
        &[],
        ISSUER.into(),
        ISSUER.into(),
        Duration::from_secs(60),
    );
    fixture.verifier.set_keys(alone.published());
    assert_eq!(
        fixture.verifier.verify(token.expose()).unwrap_err(),
        Rejection::UnknownKey
    );
}
