//! Every gateway refuses a revoked token within a second.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Http, Reply};

use crate::harness::System;

/// A request takes no longer than this, unless the machine stalls.
const TURN: Duration = Duration::from_millis(200);

/// Sends requests with a token, or an API key, at these intervals until the gateway refuses it with this code. Returns when the last
/// one was sent that it accepted, less how long the machine had stalled by then: that delays what the gateway learns, too.
pub(crate) async fn last_acceptance(
    gateway: Http,
    token: String,
    code: &str,
    pause: Duration,
) -> Instant {
    let started = Instant::now();
    let (mut last, mut stalled) = (started, Duration::ZERO);
    loop {
        let sent = Instant::now();
        let request = gateway.get("/people-task/tasks-count").bearer(&token);
        let reply = request.send().await;
        if reply.status != 200 {
            reply.expect_problem(401, code);
            return last;
        }
        last = sent - stalled;
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(pause).await;
        stalled += sent.elapsed().saturating_sub(TURN);
    }
}

async fn last_acceptance_of_token(gateway: Http, token: String) -> Instant {
    last_acceptance(gateway, token, "token-revoked", Duration::from_millis(20)).await
}

/// A call that revokes a user's tokens: method, path, body, and whether the administrator makes it.
type Cause = (&'static str, String, Value, bool);
/// Makes the call for a user's id.
type CauseOf = fn(&str) -> Cause;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_revocation_takes_effect_within_a_second_without_a_broker() {
    let system = System::start_with(&[("AMQP_URL", "amqp://127.0.0.1:9/%2f")]).await;
    let second = system.start_another_gateway().await;
    let causes: [(&str, CauseOf); 4] = [
        ("change", |_| {
            let body = json!({"oldPassword": System::PASSWORD, "newPassword": "another password"});
            ("POST", "/user/change-password".to_owned(), body, false)
        }),
        ("reset", |_| {
            let body = json!({"email": "reset@example.com", "password": "another password"});
            ("POST", "/user/reset-password".to_owned(), body, true)
        }),
        ("update", |id| {
            let body = json!({"isActive": false});
            ("PUT", format!("/users/{id}"), body, true)
        }),
        ("delete", |id| {
            ("DELETE", format!("/users/{id}"), Value::Null, true)
        }),
    ];
    for (name, cause) in causes {
        let email = format!("{name}@example.com");
        let token = system.sign_up(&email).await;
        let (method, path, body, by_admin) = cause(&system.user_id(&email).await);
        for gateway in [&system.http, &second] {
            let _ = gateway.get("/user").bearer(&token).send().await.expect(200);
        }
        let watching = [system.http.clone(), second.clone()]
            .map(|gateway| tokio::spawn(last_acceptance_of_token(gateway, token.clone())));
        let caller = if by_admin { &system.admin } else { &token };
        let request = system.http.request(method.parse().unwrap(), &path);
        let revoked = request.bearer(caller).json(&body).send().await.expect(200);
        let committed = Instant::now();
        for watch in watching {
            let last = watch.await.unwrap();
            let late = last.saturating_duration_since(committed);
            assert!(late < Duration::from_secs(1), "{name}: {late:?}");
        }
        if name == "change" {
            let fresh = revoked.text_of("token");
            for gateway in [&system.http, &second] {
                let _ = gateway.get("/user").bearer(&fresh).send().await.expect(200);
            }
        }
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_later_refuses_revoked_tokens() {
    let system = System::start().await;
    let token = system.sign_up("ada@example.com").await;
    let id = system.user_id("ada@example.com").await;
    let _ = system
        .http
        .put(&format!("/users/{id}"))
        .bearer(&system.admin)
        .json(&json!({"scope": ["user", "auditor"]}))
        .send()
        .await
        .expect(200);
    let late = system.start_another_gateway().await;
    late.get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await
        .expect_problem(401, "token-revoked");
    system.stop().await;
}

/// Sends what a page of the server sends about its session. Returns the response.
async fn of_page(
    gateway: &Http,
    method: &str,
    path: &str,
    cookie: Option<&str>,
    body: &Value,
) -> Reply {
    let request = gateway.request(method.parse().unwrap(), path);
    let request = request.header("sec-fetch-site", "same-origin").json(body);
    match cookie {
        Some(cookie) => request.header("cookie", cookie).send().await,
        None => request.send().await,
    }
}

/// The cookie that a response sets.
fn cookie_of(reply: &Reply) -> String {
    let header = reply.header("set-cookie").unwrap();
    header.split(';').next().unwrap().to_owned()
}

/// Ends a session, of which the last two values of its cookie are given.
async fn end(system: &System, gateway: &Http, ending: &str, [own, first, cookie]: [&String; 3]) {
    let nothing = json!({});
    match ending {
        "sign-out" => {
            let left = of_page(gateway, "DELETE", "/session", Some(cookie), &nothing);
            let _ = left.await.expect(200);
        }
        "replay" => {
            let copied = of_page(gateway, "POST", "/session/token", Some(first), &nothing);
            copied.await.expect_problem(401, "session-ended");
        }
        _ => {
            let listed = system.get("/user/sessions", own).await.json;
            let path = format!("/user/sessions/{}", listed[0]["id"].as_str().unwrap());
            let request = system.http.delete(&path).bearer(own);
            let _ = request.send().await.expect(200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_a_session_takes_effect_within_a_second_and_ends_nothing_else() {
    let system = System::start().await;
    let second = system.start_another_gateway().await;
    let own = system.sign_up("ada@example.com").await;
    let nothing = json!({});
    for ending in ["sign-out", "another browser", "replay"] {
        let body = json!({"username": "ada@example.com", "password": System::PASSWORD});
        let started = of_page(&system.http, "POST", "/session", None, &body).await;
        let first = cookie_of(&started.expect(200));
        // Either gateway exchanges it.
        let exchanged = of_page(&second, "POST", "/session/token", Some(&first), &nothing).await;
        let exchanged = exchanged.expect(200);
        let (cookie, token) = (cookie_of(&exchanged), exchanged.text_of("token"));
        let watching = [system.http.clone(), second.clone()]
            .map(|gateway| tokio::spawn(last_acceptance_of_token(gateway, token.clone())));
        end(&system, &second, ending, [&own, &first, &cookie]).await;
        let committed = Instant::now();
        for watch in watching {
            let late = watch.await.unwrap().saturating_duration_since(committed);
            assert!(late < Duration::from_secs(1), "{ending}: {late:?}");
        }
        let again = of_page(&second, "POST", "/session/token", Some(&cookie), &nothing).await;
        again.expect_problem(401, "session-ended");
        // The token of the same person that no session issued.
        let _ = system.get("/user", &own).await;
    }
    system.stop().await;
}
