//! `POST /user/auth`.

use std::time::Instant;

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use futures_util::future::{join, join_all};
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use testkit::{Reply, eventually, lines};

use crate::fixture::{ADMIN, Fixture, PASSWORD, Person, redacted};

#[derive(QueryableByName)]
struct Hash {
    #[diesel(sql_type = Text)]
    password_hash: String,
}

pub(crate) async fn try_from(
    app: &Fixture,
    address: &str,
    username: &str,
    password: &str,
) -> Reply {
    let body = json!({"username": username, "password": password});
    let request = app
        .http
        .post("/user/auth")
        .header("X-Forwarded-For", address);
    request.json(&body).send().await
}

pub(crate) async fn fail(app: &Fixture, address: &str, username: &str, times: usize) {
    for _ in 0..times {
        let reply = try_from(app, address, username, "wrong").await;
        reply.expect_problem(401, "invalid-credentials");
    }
}

#[tokio::test]
async fn users_sign_in_by_username_or_email_in_any_case() {
    let app = Fixture::start().await;
    let body = json!({"username": "ada@example.com", "email": "Lovelace@example.com", "password": PASSWORD});
    let _ = app.http.post("/user").json(&body).send().await.expect(200);
    for name in [
        "ada@example.com",
        " ADA@Example.com ",
        "lovelace@example.com",
    ] {
        let reply = app.sign_in(name, PASSWORD).await.expect(200);
        assert_json_snapshot!("signed_in", redacted(&reply.json));
        app.assert_token(&Person::of(&reply), true).await;
    }
    let body = json!({"email": "lovelace@example.com", "password": PASSWORD});
    let _ = app
        .http
        .post("/user/auth")
        .json(&body)
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn of_a_username_and_an_email_the_username_counts() {
    let app = Fixture::start().await;
    let (ada, _eve) = (
        app.sign_up("ada@example.com").await,
        app.sign_up("eve@example.com").await,
    );
    let body =
        json!({"username": "ada@example.com", "email": "eve@example.com", "password": PASSWORD});
    let reply = app.http.post("/user/auth").json(&body).send().await;
    assert_eq!(Person::of(&reply.expect(200)).id, ada.id);
}

#[tokio::test]
async fn sign_in_ignores_tokens() {
    let app = Fixture::start().await;
    let body = json!({"username": ADMIN, "password": PASSWORD});
    let request = app.http.post("/user/auth").bearer("expired").json(&body);
    let _ = request.send().await.expect(200);
}

#[tokio::test]
async fn unknown_users_and_wrong_passwords_have_the_same_response() {
    let app = Fixture::start().await;
    let long = "a".repeat(73);
    for (username, password) in [
        (ADMIN, "wrong"),
        (ADMIN, long.as_str()),
        (ADMIN, ""),
        ("nobody@example.com", PASSWORD),
        ("no e-mail address", PASSWORD),
        ("", PASSWORD),
    ] {
        let reply = try_from(&app, "198.51.100.1", username, password).await;
        reply.expect_problem(401, "invalid-credentials");
        assert_eq!(
            reply.header("www-authenticate"),
            Some("Bearer realm=\"countersign\"")
        );
        assert_json_snapshot!("invalid_credentials", redacted(&reply.json));
    }
}

#[tokio::test]
async fn every_byte_of_a_password_of_72_bytes_counts() {
    let app = Fixture::start().await;
    let password = "é".repeat(36);
    let body = json!({"email": "ada@example.com", "password": password});
    let _ = app.http.post("/user").json(&body).send().await.expect(200);
    let _ = app.sign_in("ada@example.com", &password).await.expect(200);
    for wrong in [format!("{password}a"), format!("{}e", "é".repeat(35))] {
        let reply = app.sign_in("ada@example.com", &wrong).await;
        reply.expect_problem(401, "invalid-credentials");
    }
}

/// Two accents, in Unicode's forms C and D, and once in each.
const FORMS: [&str; 3] = [
    "passw\u{f6}rd \u{e9}",
    "passwo\u{308}rd e\u{301}",
    "passw\u{f6}rd e\u{301}",
];

fn stored_hash(app: &Fixture, email: &str) -> String {
    let hash: Hash = diesel::sql_query("SELECT password_hash FROM users.users WHERE email = $1")
        .bind::<Text, _>(email)
        .get_result(&mut app.admin_connection())
        .unwrap();
    hash.password_hash
}

#[tokio::test]
async fn a_password_is_the_same_in_every_form_of_unicode() {
    let app = Fixture::start().await;
    for (number, password) in FORMS.iter().enumerate() {
        let email = format!("ada{number}@example.com");
        let body = json!({"email": email, "password": password});
        let _ = app.http.post("/user").json(&body).send().await.expect(200);
        for form in FORMS {
            let _ = app.sign_in(&email, form).await.expect(200);
        }
        assert!(bcrypt::verify(FORMS[0], &stored_hash(&app, &email)).unwrap());
        let other = app.sign_in(&email, "password e").await;
        other.expect_problem(401, "invalid-credentials");
    }
    let new = json!({"oldPassword": FORMS[2], "newPassword": "e\u{301}".repeat(36)});
    let ada = Person::of(&app.sign_in("ada0@example.com", FORMS[0]).await.expect(200));
    let _ = app
        .post(&ada, "/user/change-password", &new)
        .await
        .expect(200);
    let _ = app
        .sign_in("ada0@example.com", &"\u{e9}".repeat(36))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_hash_of_a_password_that_was_not_normalised_works_and_is_renewed() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let store = |password: &str| {
        let hash = bcrypt::hash(password, 4).unwrap();
        diesel::sql_query("UPDATE users.users SET password_hash = $1 WHERE email = $2")
            .bind::<Text, _>(&hash)
            .bind::<Text, _>("ada@example.com")
            .execute(&mut app.admin_connection())
            .unwrap();
        hash
    };
    for (stored, typed) in [(1, 0), (1, 1), (1, 2), (2, 2)] {
        let before = store(FORMS[stored]);
        let _ = app
            .sign_in("ada@example.com", FORMS[typed])
            .await
            .expect(200);
        let renewed = stored_hash(&app, "ada@example.com");
        assert_ne!(renewed, before);
        assert!(bcrypt::verify(FORMS[0], &renewed).unwrap());
        // The token of before stays valid: the password is the same.
        app.assert_token(&ada, true).await;
        for form in FORMS {
            let _ = app.sign_in("ada@example.com", form).await.expect(200);
        }
        assert_eq!(stored_hash(&app, "ada@example.com"), renewed);
    }
    let _ = store(FORMS[2]);
    let unlike = app.sign_in("ada@example.com", FORMS[1]).await;
    unlike.expect_problem(401, "invalid-credentials");
    let change = json!({"oldPassword": FORMS[2], "newPassword": "battery staple"});
    let _ = app
        .post(&ada, "/user/change-password", &change)
        .await
        .expect(200);
}

#[tokio::test]
async fn the_status_of_a_failure_can_be_403() {
    let app = Fixture::start_with(&[("SIGN_IN_FAILURE_STATUS", "403")]).await;
    app.sign_in(ADMIN, "wrong")
        .await
        .expect_problem(403, "invalid-credentials");
}

#[tokio::test]
async fn missing_fields_are_listed() {
    let app = Fixture::start().await;
    let reply = app.http.post("/user/auth").json(&json!({})).send().await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.bad_fields(), ["password", "username"]);
}

#[tokio::test]
async fn only_the_right_password_reveals_an_inactive_account() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let _ = app
        .update(&admin, &ada.id, &json!({"isActive": false}))
        .await
        .expect(200);
    app.sign_in("ada@example.com", "wrong")
        .await
        .expect_problem(401, "invalid-credentials");
    app.sign_in("ada@example.com", PASSWORD)
        .await
        .expect_problem(403, "account-inactive");
}

#[tokio::test]
async fn sign_in_changes_last_sign_in_but_not_mtime() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let path = format!("/users/{}", ada.id);
    let before = app.get(&admin, &path).await.expect(200).json;
    assert_eq!(before["lastSignIn"], Value::Null);
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
    let after = app.get(&admin, &path).await.expect(200).json;
    assert!(after["lastSignIn"].as_str().unwrap() >= before["created"].as_str().unwrap());
    assert_eq!(after["mtime"], before["mtime"]);
}

#[tokio::test]
async fn a_sign_in_makes_no_new_version_of_the_users_row() {
    let app = Fixture::start().await;
    let _ = app.sign_up("ada@example.com").await;
    let version = || {
        let sql = "SELECT ctid::text AS line FROM users.users WHERE email_key = 'ada@example.com'";
        lines(&mut app.admin_connection(), sql)
    };
    let before = version();
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
    assert_eq!(version(), before);
}

#[tokio::test]
async fn a_sign_in_waits_for_a_concurrent_revocation_and_does_not_use_the_earlier_epoch() {
    let app = Fixture::start().await;
    let _ = app.sign_up("ada@example.com").await;
    for (change, status) in [
        ("epoch = epoch + 1", 200),
        ("epoch = epoch + 1, is_active = false", 403),
    ] {
        let mut concurrent = app.admin_connection();
        let revoke =
            format!("BEGIN; UPDATE users.users SET {change} WHERE email_key = 'ada@example.com'");
        concurrent.batch_execute(&revoke).unwrap();
        let commit = async {
            eventually("the sign-in to wait", async || {
                let waiting = "SELECT 'waits' AS line FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
                (!lines(&mut app.admin_connection(), waiting).is_empty()).then_some(())
            })
            .await;
            concurrent.batch_execute("COMMIT").unwrap();
        };
        let (reply, ()) = join(app.sign_in("ada@example.com", PASSWORD), commit).await;
        let reply = reply.expect(status);
        if status == 200 {
            app.assert_token(&Person::of(&reply), true).await;
        }
    }
}

#[tokio::test]
async fn a_hash_of_another_cost_is_replaced() {
    let app = Fixture::start().await;
    let _ = app.sign_up("ada@example.com").await;
    let replica = app.replica(&[("BCRYPT_COST", "5")]).await;
    let body = json!({"username": "ada@example.com", "password": PASSWORD});
    let reply = replica
        .post("/user/auth")
        .json(&body)
        .send()
        .await
        .expect(200);
    let hashes = app.database.rows_that_hold("users", "$2b$05$");
    assert_eq!(hashes.len(), 1, "{hashes:?}");
    // The token and the password are still accepted.
    app.assert_token(&Person::of(&reply), true).await;
    let _ = replica
        .post("/user/auth")
        .json(&body)
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn an_unknown_name_takes_as_much_work_as_the_costliest_hash() {
    let app = Fixture::start().await;
    let _ = app.sign_up("ada@example.com").await;
    // bcrypt refuses this cost at once, so that the failure shows that it was asked for.
    let hash =
        "UPDATE users.users SET password_hash = '$2b$99$x' WHERE email_key = 'ada@example.com'";
    app.admin_connection().batch_execute(hash).unwrap();
    let reply = app.sign_in("unknown@example.com", PASSWORD).await;
    reply.expect_problem(500, "internal-error");
}

#[tokio::test]
async fn after_five_failures_from_one_address_even_the_right_password_must_wait() {
    let app = Fixture::start().await;
    let _ = app.sign_up("ada@example.com").await;
    for username in ["ada@example.com", "nobody@example.com"] {
        fail(&app, "198.51.100.1", username, 5).await;
        hold_pauses(&app);
        let reply = try_from(&app, "198.51.100.1", username, PASSWORD).await;
        reply.expect_problem(429, "too-many-attempts");
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    // Entries before the gateway's are the caller's own claim.
    let reply = try_from(
        &app,
        "203.0.113.9, 198.51.100.1",
        "ada@example.com",
        PASSWORD,
    )
    .await;
    reply.expect_problem(429, "too-many-attempts");
    // Other addresses need not wait.
    let _ = try_from(&app, "198.51.100.2", "ada@example.com", PASSWORD)
        .await
        .expect(200);

    let right = || try_from(&app, "198.51.100.1", "ada@example.com", PASSWORD);
    end_pauses(&app);
    let _ = right().await.expect(200);
    // The failures no longer count.
    fail(&app, "198.51.100.1", "ada@example.com", 4).await;
    let _ = right().await.expect(200);
}

#[tokio::test]
async fn each_further_failure_doubles_the_pause() {
    #[derive(QueryableByName)]
    struct Pause {
        #[diesel(sql_type = BigInt)]
        seconds: i64,
    }
    let app = Fixture::start().await;
    fail(&app, "198.51.100.1", ADMIN, 4).await;
    for seconds in [1, 2, 4, 8] {
        end_pauses(&app);
        fail(&app, "198.51.100.1", ADMIN, 1).await;
        let pause: Pause = diesel::sql_query(
            "SELECT extract(epoch FROM blocked_until - last_failure)::bigint AS seconds \
             FROM users.sign_in_failures WHERE client_address = '198.51.100.1'",
        )
        .get_result(&mut app.admin_connection())
        .unwrap();
        assert_eq!(pause.seconds, seconds);
    }
}

#[tokio::test]
async fn after_fifty_failures_from_anywhere_every_address_must_wait() {
    let app = Fixture::start().await;
    for host in 1..=50 {
        fail(&app, &format!("198.51.100.{host}"), ADMIN, 1).await;
    }
    hold_pauses(&app);
    let reply = try_from(&app, "203.0.113.1", ADMIN, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    end_pauses(&app);
    let _ = try_from(&app, "203.0.113.1", ADMIN, PASSWORD)
        .await
        .expect(200);
}

#[tokio::test]
async fn concurrent_guesses_do_not_evade_the_back_off() {
    let app = Fixture::start().await;
    let guesses = (0..24).map(|_| try_from(&app, "198.51.100.1", ADMIN, "wrong"));
    let started = Instant::now();
    let replies = join_all(guesses).await;
    let checked = replies.iter().filter(|reply| reply.status == 401).count();
    // On a busy machine some may come after the first pauses, of 1, 2, 4 … seconds.
    let ended_pauses = (started.elapsed().as_secs() + 1).ilog2() as usize;
    assert!((5..=5 + ended_pauses).contains(&checked), "{checked}");
    for reply in replies.iter().filter(|reply| reply.status != 401) {
        reply.expect_problem(429, "too-many-attempts");
    }
    hold_pauses(&app);
    let right = try_from(&app, "198.51.100.1", ADMIN, PASSWORD).await;
    right.expect_problem(429, "too-many-attempts");
}

#[tokio::test]
async fn the_failures_of_one_name_do_not_reveal_the_users_other_name() {
    let app = Fixture::start().await;
    let body = json!({"username": "ada@example.com", "email": "lovelace@example.com", "password": PASSWORD});
    let _ = app.http.post("/user").json(&body).send().await.expect(200);
    for (one, other) in [
        ("ada@example.com", "lovelace@example.com"),
        ("unknown@example.com", "nobody@example.com"),
    ] {
        fail(&app, "198.51.100.1", one, 5).await;
        hold_pauses(&app);
        let reply = try_from(&app, "198.51.100.1", one, "wrong").await;
        reply.expect_problem(429, "too-many-attempts");
        fail(&app, "198.51.100.1", other, 1).await;
    }
}

#[tokio::test]
async fn a_flood_from_one_address_does_not_stop_sign_ins_from_others() {
    let app = Fixture::start_with(&[("BCRYPT_COST", "9")]).await;
    let users: Vec<_> = (0..8).map(|n| format!("user-{n}@example.com")).collect();
    for user in &users {
        let _ = app.sign_up(user).await;
    }
    // The queue for the threads that check passwords, of which each core has one, takes a third of them.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let unknown: Vec<_> = (0..50 * cores)
        .map(|n| format!("unknown-{n}@example.com"))
        .collect();
    let flood = unknown.iter();
    let flood = flood.map(|name| try_from(&app, "198.51.100.1", name, "wrong"));
    let right = users.iter();
    let right = right.map(|name| try_from(&app, "198.51.100.2", name, PASSWORD));
    let (flood, right) = tokio::join!(join_all(flood), join_all(right));
    for reply in right {
        let _ = reply.expect(200);
    }
    let refused = flood.iter().filter(|reply| reply.status != 401);
    let mut count = 0;
    for reply in refused {
        reply.expect_problem(429, "rate-limited");
        assert_eq!(reply.header("retry-after"), Some("2"));
        count += 1;
    }
    assert!(count > 0);
}

/// Makes every pause last for a minute from now, however slow the test is.
pub(crate) fn hold_pauses(app: &Fixture) {
    diesel::sql_query(
        "UPDATE users.sign_in_failures SET blocked_until = now() + interval '1 minute' \
         WHERE blocked_until IS NOT NULL",
    )
    .execute(&mut app.admin_connection())
    .unwrap();
}

/// Ends every pause, as if time had passed.
pub(crate) fn end_pauses(app: &Fixture) {
    diesel::sql_query("UPDATE users.sign_in_failures SET blocked_until = now()")
        .execute(&mut app.admin_connection())
        .unwrap();
}
