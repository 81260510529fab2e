//! What a token that was issued for an API key may do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service, read_body_json};
use actix_web::web::{Data, Json, resource, to};
use actix_web::{App, rt};
use auth::{AdminCaller, Caller, KeyScope, Signer, SigningKey, Subject, Verifier};
use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};
use values::{CredentialId, EmailAddress, FromText as _, Secret, UserId};

const MINUTE: Duration = Duration::from_secs(60);

struct Issuer {
    signer: Signer,
    verifier: Arc<Verifier>,
}

impl Issuer {
    fn new() -> Self {
        let pem = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let key = SigningKey::from_pem(&Secret::new(pem.serialize_pem())).unwrap();
        let name = || "countersign".to_owned();
        let signer = Signer::new(&key, &[], name(), name(), MINUTE);
        let verifier = Verifier::new("countersign", "countersign");
        verifier.set_keys(signer.published());
        Self {
            signer,
            verifier: Arc::new(verifier),
        }
    }

    fn of_key(&self, key: CredentialId, scopes: &[KeyScope]) -> String {
        let token = self.signer.sign_for(admin().of_key(key, scopes), MINUTE);
        token.expose().to_owned()
    }
}

fn admin() -> Subject {
    let email = EmailAddress::from_text("ada@example.com").unwrap();
    Subject {
        id: UserId::generate(),
        username: email.clone(),
        email,
        scope: vec!["user".to_owned(), "admin".to_owned()],
        epoch: 0,
        incarnation: "test".to_owned(),
        email_verified: true,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    }
}

async fn of_anyone(caller: Caller) -> Json<Value> {
    Json(json!({"key": caller.key(), "admin": caller.is_admin()}))
}

async fn of_admins(_: AdminCaller) -> Json<Value> {
    Json(json!({}))
}

/// The status of a call, and the code of its problem or what its handler saw.
fn call(issuer: &Issuer, token: &str, method: Method, path: &str) -> (u16, Value) {
    let verifier = Data::from(Arc::clone(&issuer.verifier));
    rt::System::new().block_on(async {
        let app = App::new()
            .app_data(verifier)
            .service(resource("/users/count").route(to(of_admins)))
            .service(resource("/people-task/forgotten").route(to(of_anyone)))
            .service(resource("/user/keys").route(to(of_anyone)))
            .service(resource("/people-task/tasks/{id}").route(to(of_anyone)))
            .service(resource("/people-task/tasks/{id}/approve").route(to(of_anyone)));
        let app = init_service(app).await;
        let request = TestRequest::with_uri(path)
            .method(method)
            .insert_header(("authorization", format!("Bearer {token}")));
        let response = call_service(&app, request.to_request()).await;
        let status = response.status().as_u16();
        let body: Value = read_body_json(response).await;
        (status, body.get("code").cloned().unwrap_or(body))
    })
}

#[test]
fn a_key_makes_the_calls_of_its_scopes_and_no_others() {
    let issuer = Issuer::new();
    let key = CredentialId::generate();
    let token = issuer.of_key(key, &[KeyScope::TasksRead]);
    let call = |method, path| call(&issuer, &token, method, path);
    let seen = json!({"key": key, "admin": false});
    assert_eq!(call(Method::GET, "/people-task/tasks/1"), (200, seen));
    for (method, path, code) in [
        (Method::PUT, "/people-task/tasks/1", "insufficient-scope"),
        (
            Method::PUT,
            "/people-task/tasks/1/approve",
            "insufficient-scope",
        ),
        (Method::GET, "/users/count", "insufficient-scope"),
        (Method::GET, "/people-task/forgotten", "key-not-accepted"),
        (Method::DELETE, "/people-task/tasks/1", "key-not-accepted"),
        (Method::GET, "/user/keys", "key-not-accepted"),
    ] {
        assert_eq!(call(method, path), (403, json!(code)), "{path}");
    }
}

#[test]
fn an_administrators_key_acts_as_one_only_with_that_scope() {
    let issuer = Issuer::new();
    let key = CredentialId::generate();
    for (scopes, status) in [
        (&[KeyScope::UsersRead][..], 403),
        (&[KeyScope::Admin], 403),
        (&[KeyScope::UsersRead, KeyScope::Admin], 200),
    ] {
        let token = issuer.of_key(key, scopes);
        let (given, _) = call(&issuer, &token, Method::GET, "/users/count");
        assert_eq!(given, status, "{scopes:?}");
    }
    let all = issuer.of_key(key, &[KeyScope::TasksRead, KeyScope::Admin]);
    let (_, seen) = call(&issuer, &all, Method::GET, "/people-task/tasks/1");
    assert_eq!(seen, json!({"key": key, "admin": true}));
}

#[test]
fn a_version_that_knows_no_keys_sees_no_administrator_in_a_key_without_that_scope() {
    let issuer = Issuer::new();
    let token = issuer.of_key(CredentialId::generate(), &[KeyScope::UsersRead]);
    let claims = issuer.verifier.verify(&token).unwrap();
    assert_eq!(claims.subject.scope, ["user"]);
}

#[test]
fn a_token_of_a_person_needs_no_scope_of_keys() {
    let issuer = Issuer::new();
    let token = issuer.signer.sign(admin());
    let mut of_session = admin();
    of_session.credential = Some(CredentialId::generate());
    let of_session = issuer.signer.sign_for(of_session, MINUTE);
    for token in [token.expose(), of_session.expose()] {
        for (method, path) in [
            (Method::PUT, "/people-task/tasks/1/approve"),
            (Method::GET, "/people-task/forgotten"),
            (Method::GET, "/user/keys"),
        ] {
            let (status, seen) = call(&issuer, token, method, path);
            assert_eq!((status, seen), (200, json!({"key": null, "admin": true})));
        }
    }
}

#[test]
fn a_key_ends_as_any_credential_does() {
    let issuer = Issuer::new();
    let key = CredentialId::generate();
    let token = issuer.of_key(key, &[KeyScope::TasksRead]);
    issuer.verifier.revocations().end([key]);
    let (status, code) = call(&issuer, &token, Method::GET, "/people-task/tasks/1");
    assert_eq!((status, code), (401, json!("token-revoked")));
}
