//! Browsers that stay signed in: `/session` and `/user/sessions`.

use serde_json::{Value, json};
use testkit::{Http, Reply, eventually};

use crate::fixture::{Fixture, PASSWORD, Person};

pub(crate) const ADA: &str = "ada@example.com";
const PROGRAM: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// A browser on a page of the server, with the cookie that it has.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    pub(crate) cookie: String,
    pub(crate) person: Person,
}

impl Browser {
    pub(crate) async fn signed_in(app: &Fixture, email: &str) -> Self {
        let reply = send(&app.http, "POST", "/session", None, &credentials(email)).await;
        Self::of(&reply.expect(200))
    }

    pub(crate) fn of(reply: &Reply) -> Self {
        Self {
            cookie: cookie_of(reply),
            person: Person::of(reply),
        }
    }

    /// Asks for a token.
    pub(crate) async fn exchange(&self, http: &Http, body: &Value) -> Reply {
        send(http, "POST", "/session/token", Some(&self.cookie), body).await
    }

    /// The same, and takes the next cookie.
    pub(crate) async fn exchanged(&self, app: &Fixture) -> Self {
        Self::of(&self.exchange(&app.http, &json!({})).await.expect(200))
    }

    pub(crate) async fn sign_out(&self, app: &Fixture) -> Reply {
        let cookie = Some(self.cookie.as_str());
        send(&app.http, "DELETE", "/session", cookie, &json!({})).await
    }
}

pub(crate) fn credentials(email: &str) -> Value {
    json!({"username": email, "password": PASSWORD})
}

/// Sends what a browser sends for a page of the server.
pub(crate) async fn send(
    http: &Http,
    method: &str,
    path: &str,
    cookie: Option<&str>,
    body: &Value,
) -> Reply {
    let request = http
        .request(method.parse().unwrap(), path)
        .header("x-forwarded-host", "tasks.example")
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-for", "203.0.113.7")
        .header("sec-fetch-site", "same-origin")
        .header("user-agent", PROGRAM)
        .json(body);
    match cookie {
        Some(cookie) => request.header("cookie", cookie).send().await,
        None => request.send().await,
    }
}

/// The name and value of the cookie that a response sets.
fn cookie_of(reply: &Reply) -> String {
    let header = reply.header("set-cookie").unwrap();
    header.split(';').next().unwrap().to_owned()
}

pub(crate) fn ended(reply: &Reply) {
    assert_eq!(reply.status, 401);
    assert_eq!(reply.json.get("code"), Some(&json!("session-ended")));
    assert!(reply.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[tokio::test]
async fn a_session_is_exchanged_for_tokens_that_name_it() {
    let app = Fixture::start().await;
    let ada = app.sign_up(ADA).await;
    let reply = send(&app.http, "POST", "/session", None, &credentials(ADA)).await;
    let reply = reply.expect(200);
    let header = reply.header("set-cookie").unwrap();
    let (pair, attributes) = header.split_once("; ").unwrap();
    assert!(pair.starts_with("__Secure-countersign-session="));
    assert_eq!(
        attributes,
        "Path=/session; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict"
    );
    let first = Browser::of(&reply);
    let second = first.exchanged(&app).await;
    assert_ne!(first.cookie, second.cookie);
    for browser in [&first, &second] {
        assert_eq!(browser.person.id, ada.id);
        app.assert_token(&browser.person, true).await;
        let claims = claims_of(&browser.person.token);
        assert_eq!(
            claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
            300
        );
    }
    let sessions = app
        .get(&second.person, "/user/sessions")
        .await
        .expect(200)
        .json;
    let [session] = sessions.as_array().unwrap().as_slice() else {
        panic!("{sessions}");
    };
    assert_eq!(session["current"], true);
    assert_eq!(session["network"], "203.0.113.7");
    assert_eq!(session["program"], PROGRAM);
    assert_eq!(session["id"], claims_of(&second.person.token)["credential"]);
    let listed = app.get(&ada, "/user/sessions").await.expect(200).json;
    assert_eq!(listed[0]["current"], false);
}

/// The claims of a token, unchecked.
pub(crate) fn claims_of(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let decoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload);
    serde_json::from_slice(&decoded.unwrap()).unwrap()
}

#[tokio::test]
async fn a_value_that_was_replaced_ends_the_session_when_it_comes_back() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let other = Browser::signed_in(&app, ADA).await;
    let first = Browser::signed_in(&app, ADA).await;
    let second = first.exchanged(&app).await;
    let third = second.exchanged(&app).await;
    // Whether it is the last one or an earlier one.
    for copied in [&first, &second] {
        ended(&copied.exchange(&app.http, &json!({})).await);
        ended(&third.exchange(&app.http, &json!({})).await);
    }
    for browser in [&first, &second, &third] {
        app.assert_token(&browser.person, false).await;
    }
    app.assert_token(&other.person, true).await;
    let admin = app.admin().await;
    let audit = app
        .get(&admin, "/audit?filter=action:session-replayed")
        .await;
    assert_eq!(audit.json.as_array().unwrap().len(), 1);
    assert_eq!(audit.json[0]["subject"], first.person.id.as_str());
    assert_eq!(audit.json[0]["actor"], json!(null));
}

#[tokio::test]
async fn a_browser_that_got_no_response_repeats_its_exchange() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let first = Browser::signed_in(&app, ADA).await;
    let attempt = json!({"attempt": "a".repeat(32)});
    for _ in 0..3 {
        // The response and its cookie are lost.
        let reply = first.exchange(&app.http, &attempt).await.expect(200);
        app.assert_token(&Person::of(&reply), true).await;
    }
    let other = json!({"attempt": "b".repeat(32)});
    ended(&first.exchange(&app.http, &other).await);
    for invalid in ["", "short", &"x".repeat(129)] {
        let reply = first
            .exchange(&app.http, &json!({"attempt": invalid}))
            .await;
        reply.expect_problem(400, "validation-failed");
    }
}

#[tokio::test]
async fn exchanges_at_the_same_time_end_no_session() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let first = Browser::signed_in(&app, ADA).await;
    let body = json!({});
    let exchange = || first.exchange(&app.http, &body);
    // They wait for the row's lock, so all begin before the first one is committed.
    let mut lock = app.admin_connection();
    hold(&mut lock);
    let (replies, ()) = tokio::join!(
        async { tokio::join!(exchange(), exchange(), exchange()) },
        async {
            eventually("all to wait", || async {
                (waiting(&app) == 3).then_some(())
            })
            .await;
            release(&mut lock);
        }
    );
    let replies = [replies.0, replies.1, replies.2];
    let (granted, busy): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!((granted.len(), busy.len()), (1, 2));
    for reply in busy {
        assert_eq!(reply.json["code"], "session-busy");
        assert_eq!(reply.header("set-cookie"), None);
    }
    Browser::of(granted[0]).exchanged(&app).await;
}

pub(crate) fn run(connection: &mut diesel::PgConnection, statement: &str) {
    use diesel::connection::SimpleConnection as _;
    connection.batch_execute(statement).unwrap();
}

/// Locks all sessions.
pub(crate) fn hold(connection: &mut diesel::PgConnection) {
    run(
        connection,
        "BEGIN; SELECT FROM users.credentials FOR UPDATE",
    );
}

pub(crate) fn release(connection: &mut diesel::PgConnection) {
    run(connection, "COMMIT");
}

/// How many statements wait for a lock.
pub(crate) fn waiting(app: &Fixture) -> usize {
    let waiting = "SELECT pid::text AS line FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    testkit::lines(&mut app.admin_connection(), waiting).len()
}

#[tokio::test]
async fn sessions_are_for_pages_of_the_same_origin_alone() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let browser = Browser::signed_in(&app, ADA).await;
    for headers in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[],
    ] {
        for (method, path) in [
            ("POST", "/session"),
            ("POST", "/session/token"),
            ("DELETE", "/session"),
        ] {
            let request = app
                .http
                .request(method.parse().unwrap(), path)
                .header("x-forwarded-host", "tasks.example")
                .header("cookie", &browser.cookie)
                .json(&credentials(ADA));
            let request = headers.iter().fold(request, |request, (name, value)| {
                request.header(name, value)
            });
            let reply = request.send().await;
            assert_eq!(reply.header("set-cookie"), None);
            reply.expect_problem(403, "cross-site-request");
        }
    }
    // Forms cannot send JSON.
    let form = app
        .http
        .post("/session/token")
        .header("sec-fetch-site", "same-origin")
        .header("cookie", &browser.cookie)
        .header("content-type", "text/plain")
        .body("{}");
    form.send()
        .await
        .expect_problem(415, "unsupported-media-type");
    browser.exchanged(&app).await;
}

#[tokio::test]
async fn no_other_route_reads_the_cookie() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let browser = Browser::signed_in(&app, ADA).await;
    for path in ["/user", "/user/sessions", "/users"] {
        let reply = send(&app.http, "GET", path, Some(&browser.cookie), &json!({})).await;
        reply.expect_problem(401, "token-missing");
    }
}

#[tokio::test]
async fn a_sign_in_never_takes_over_a_cookie_that_was_there() {
    let app = Fixture::start().await;
    app.sign_up(ADA).await;
    let eve = app.sign_up("eve@example.com").await;
    let planted = Browser::signed_in(&app, "eve@example.com").await;
    let body = credentials(ADA);
    let reply = send(&app.http, "POST", "/session", Some(&planted.cookie), &body).await;
    let ada = Browser::of(&reply.expect(200));
    assert_ne!(ada.cookie, planted.cookie);
    assert_ne!(ada.person.id, eve.id);
    // The browser has one session.
    ended(&planted.exchange(&app.http, &json!({})).await);
    app.assert_token(&planted.person, false).await;
    app.assert_token(&eve, true).await;
    ada.exchanged(&app).await;
    // A neighbouring host can add a cookie, but not choose between them.
    let both = format!("{}; {}", planted.cookie, ada.cookie);
    let reply = send(&app.http, "POST", "/session/token", Some(&both), &json!({})).await;
    ended(&reply);
}
