//! Limits on requests for codes: `FORGOT_PASSWORD_PER_ACCOUNT`, `FORGOT_PASSWORD_PER_CLIENT`.

use diesel::QueryableByName;
use diesel::RunQueryDsl as _;
use diesel::sql_types::BigInt;
use futures_util::future::join_all;
use serde_json::json;
use testkit::{Http, Reply};

use crate::fixture::{Fixture, PASSWORD};

const ADA: &str = "Ada@example.com";
const UNKNOWN: &str = "unknown@example.com";

async fn forgot(http: &Http, client: &str, email: &str) -> Reply {
    let request = http.post("/user/forgot-password");
    let request = request.header("X-Forwarded-For", client);
    request.json(&json!({"email": email})).send().await
}

/// The `Retry-After` of a refused request, in seconds.
fn refused(reply: &Reply) -> u64 {
    reply.expect_problem(429, "rate-limited");
    reply.header("retry-after").unwrap().parse().unwrap()
}

async fn with_limits(account: &str, client: &str) -> Fixture {
    Fixture::start_with(&[
        ("FORGOT_PASSWORD_LOG", "true"),
        ("FORGOT_PASSWORD_PER_ACCOUNT", account),
        ("FORGOT_PASSWORD_PER_CLIENT", client),
    ])
    .await
}

fn count(app: &Fixture, query: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let count: Count = diesel::sql_query(format!("SELECT count(*) AS count FROM {query}"))
        .get_result(&mut app.admin_connection())
        .unwrap();
    count.count
}

fn backdate_requests(app: &Fixture, minutes: u32) {
    diesel::sql_query(format!(
        "UPDATE users.code_requests SET forgotten_at = forgotten_at - interval '{minutes} minutes'"
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn requests_are_limited_for_known_and_unknown_addresses_alike() {
    let app = with_limits("3", "0").await;
    let other = app
        .replica(&[
            ("FORGOT_PASSWORD_LOG", "true"),
            ("FORGOT_PASSWORD_PER_ACCOUNT", "3"),
        ])
        .await;
    let _ = app.sign_up(ADA).await;
    let mut refusals = Vec::new();
    for email in [ADA, UNKNOWN] {
        for (number, http) in [&app.http, &other, &app.http].into_iter().enumerate() {
            let client = format!("198.51.100.{number}");
            let _ = forgot(http, &client, email).await.expect(200);
        }
        let reply = forgot(&other, "198.51.100.9", &email.to_uppercase()).await;
        assert!((1_190..=1_200).contains(&refused(&reply)), "{reply:?}");
        refusals.push(reply);
    }
    let shape = |reply: &Reply| {
        let mut problem = reply.json.clone();
        problem["requestId"].take();
        (problem, reply.headers.len())
    };
    assert_eq!(shape(&refusals[0]), shape(&refusals[1]));
    let _ = forgot(&app.http, "198.51.100.9", "bob@example.com")
        .await
        .expect(200);
}

#[tokio::test]
async fn a_refused_request_does_not_count_and_keeps_earlier_codes() {
    let app = with_limits("2", "0").await;
    let _ = app.sign_up(ADA).await;
    for _ in 0..2 {
        let _ = forgot(&app.http, "198.51.100.1", ADA).await.expect(200);
    }
    for _ in 0..5 {
        refused(&forgot(&app.http, "198.51.100.1", ADA).await);
    }
    assert_eq!(count(&app, "users.notifications"), 2);
    assert_eq!(count(&app, "users.users WHERE code_generation = 2"), 1);
    backdate_requests(&app, 30);
    let _ = forgot(&app.http, "198.51.100.1", ADA).await.expect(200);
    refused(&forgot(&app.http, "198.51.100.1", ADA).await);
}

#[tokio::test]
async fn requests_are_limited_for_each_client_network() {
    let app = with_limits("0", "3").await;
    let email = |number: u32| format!("user{number}@example.com");
    for client in ["198.51.100.1", "2001:db8:1:2::1"] {
        for number in 0..3 {
            let _ = forgot(&app.http, client, &email(number)).await.expect(200);
        }
        refused(&forgot(&app.http, client, &email(4)).await);
    }
    // All addresses of an IPv6 network belong to one client.
    refused(&forgot(&app.http, "2001:db8:1:2:ffff::7", ADA).await);
    for client in ["198.51.100.2", "2001:db8:1:3::1"] {
        let _ = forgot(&app.http, client, ADA).await.expect(200);
    }
    assert_eq!(
        count(&app, "users.code_requests WHERE counted = 'account'"),
        0
    );
}

#[tokio::test]
async fn concurrent_requests_do_not_evade_the_limit() {
    let app = with_limits("5", "0").await;
    let _ = app.sign_up(ADA).await;
    let requests = (0..20).map(|_| forgot(&app.http, "198.51.100.1", ADA));
    let replies = join_all(requests).await;
    let given = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(given, 5);
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        refused(reply);
    }
}

#[tokio::test]
async fn an_invalid_request_is_not_counted() {
    let app = with_limits("1", "1").await;
    for _ in 0..3 {
        let reply = forgot(&app.http, "198.51.100.1", "ada").await;
        reply.expect_problem(400, "validation-failed");
    }
    let _ = forgot(&app.http, "198.51.100.1", ADA).await.expect(200);
}

async fn sign_in(http: &Http, client: &str, email: &str) {
    let request = http.post("/user/auth").header("X-Forwarded-For", client);
    let body = json!({"username": email, "password": PASSWORD});
    let _ = request.json(&body).send().await.expect(200);
}

#[tokio::test]
async fn strangers_do_not_use_up_the_requests_of_a_user_on_a_known_network() {
    const HOME: &str = "203.0.113.7";
    let app = with_limits("2", "5").await;
    for email in [ADA, "bob@example.com"] {
        let _ = app.sign_up(email).await;
    }
    sign_in(&app.http, HOME, ADA).await;
    for stranger in ["198.51.100.1", "198.51.100.2"] {
        let _ = forgot(&app.http, stranger, ADA).await.expect(200);
    }
    refused(&forgot(&app.http, "198.51.100.3", ADA).await);
    for _ in 0..5 {
        let _ = forgot(&app.http, HOME, ADA).await.expect(200);
    }
    // The limit of the client still applies, and requests from the known network do not use up those of others.
    refused(&forgot(&app.http, HOME, ADA).await);
    backdate_requests(&app, 60);
    let _ = forgot(&app.http, "198.51.100.3", ADA).await.expect(200);
    // The network is known for one account only.
    for _ in 0..2 {
        let _ = forgot(&app.http, HOME, "bob@example.com").await.expect(200);
    }
    refused(&forgot(&app.http, HOME, "bob@example.com").await);
}

#[tokio::test]
async fn an_unconfirmed_address_has_no_known_network() {
    const STRANGER: &str = "198.51.100.1";
    let app = Fixture::start_with(&[
        ("EMAIL_VERIFICATION", "required"),
        ("FORGOT_PASSWORD_LOG", "true"),
        ("FORGOT_PASSWORD_PER_ACCOUNT", "2"),
    ])
    .await;
    let _ = app.sign_up(ADA).await;
    sign_in(&app.http, STRANGER, ADA).await;
    for _ in 0..2 {
        let _ = forgot(&app.http, STRANGER, ADA).await.expect(200);
    }
    refused(&forgot(&app.http, STRANGER, ADA).await);
}

#[tokio::test]
async fn a_known_network_has_three_times_the_limit_of_an_address() {
    const STRANGER: &str = "198.51.100.1";
    let app = with_limits("2", "0").await;
    let _ = app.sign_up(ADA).await;
    sign_in(&app.http, STRANGER, ADA).await;
    for _ in 0..6 {
        let _ = forgot(&app.http, STRANGER, ADA).await.expect(200);
    }
    refused(&forgot(&app.http, STRANGER, ADA).await);
    let _ = forgot(&app.http, "198.51.100.2", ADA).await.expect(200);
}

#[tokio::test]
async fn sign_ups_that_cause_codes_count_and_over_the_limit_cause_none() {
    const STRANGER: &str = "198.51.100.1";
    let app = Fixture::start_with(&[
        ("EMAIL_VERIFICATION", "required"),
        ("FORGOT_PASSWORD_LOG", "true"),
        ("FORGOT_PASSWORD_PER_CLIENT", "2"),
    ])
    .await;
    let admin = app.admin().await;
    for number in 0..4 {
        let body = json!({"email": format!("ada+{number}@example.com"), "password": PASSWORD});
        let sign_up = app.http.post("/user").header("X-Forwarded-For", STRANGER);
        let _ = sign_up.json(&body).send().await.expect(200);
    }
    assert_eq!(count(&app, "users.notifications"), 2);
    refused(&forgot(&app.http, STRANGER, ADA).await);
    // Those that were over the limit do not count, nor does who an administrator signs up.
    backdate_requests(&app, 30);
    let _ = forgot(&app.http, STRANGER, ADA).await.expect(200);
    let create = app.http.post("/user").bearer(&admin.token);
    let create = create.header("X-Forwarded-For", STRANGER);
    let body = json!({"email": ADA, "password": PASSWORD});
    let _ = create.json(&body).send().await.expect(200);
    assert_eq!(count(&app, "users.notifications"), 4);
}
