//! `GET /internal/revocations`, and its effect on other replicas.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use diesel::Connection as _;
use diesel::RunQueryDsl as _;
use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::{Http, eventually};

use crate::fixture::{Fixture, PASSWORD, Person};

async fn feed(app: &Fixture, cursor: Option<i64>) -> Value {
    let path = match cursor {
        Some(cursor) => format!("/internal/revocations?cursor={cursor}"),
        None => "/internal/revocations".to_owned(),
    };
    app.http.get(&path).send().await.expect(200).json
}

fn cursor(feed: &Value) -> i64 {
    feed["next"].as_str().unwrap().parse().unwrap()
}

fn epoch_of(feed: &Value, person: &Person) -> Option<i64> {
    let epochs = feed["epochs"].as_array().unwrap();
    let found = epochs.iter().find(|entry| entry[0] == person.id.as_str());
    found.map(|entry| entry[1].as_i64().unwrap())
}

#[tokio::test]
async fn the_feed_lists_epochs_raised_since_the_cursor() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let before = feed(&app, None).await;
    assert_eq!(epoch_of(&before, &ada), None);
    let _ = app
        .update(&admin, &ada.id, &json!({"isActive": false}))
        .await
        .expect(200);
    let after = feed(&app, Some(cursor(&before))).await;
    assert_eq!(epoch_of(&after, &ada), Some(1));
    // The entry repeats while an older transaction of the server runs, including those of other tests.
    let last = AtomicI64::new(cursor(&after));
    eventually("the feed to move on", async || {
        let later = feed(&app, Some(last.load(Ordering::Relaxed))).await;
        last.store(cursor(&later), Ordering::Relaxed);
        epoch_of(&later, &ada).is_none().then_some(())
    })
    .await;
    assert_eq!(
        epoch_of(&feed(&app, None).await, &ada),
        Some(1),
        "a full read includes it"
    );
    let reply = app.http.get("/internal/revocations?cursor=x").send().await;
    reply.expect_problem(400, "validation-failed");
}

/// A page of changes, after waiting for some for at most this many milliseconds.
async fn wait_for_changes(app: &Fixture, cursor: i64, wait: u64) -> Value {
    let path = format!("/internal/revocations?cursor={cursor}&wait={wait}");
    app.http.get(&path).send().await.expect(200).json
}

#[tokio::test]
async fn a_reader_waits_until_an_epoch_is_raised() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let last = AtomicI64::new(cursor(&feed(&app, None).await));
    // A response comes at once while an older transaction of the server runs, including those of other tests.
    eventually("a response after the whole time", async || {
        let asked = Instant::now();
        let page = wait_for_changes(&app, last.load(Ordering::Relaxed), 700).await;
        last.store(cursor(&page), Ordering::Relaxed);
        assert_eq!(page["incarnation"], feed(&app, None).await["incarnation"]);
        (asked.elapsed() >= Duration::from_millis(700)).then_some(())
    })
    .await;
    let deactivate = async {
        let change = json!({"isActive": false});
        app.update(&admin, &ada.id, &change).await.expect(200)
    };
    let waiting = eventually("the raised epoch", async || {
        let page = wait_for_changes(&app, last.load(Ordering::Relaxed), 1_000).await;
        epoch_of(&page, &ada)
    });
    let (_, epoch) = tokio::join!(deactivate, waiting);
    assert_eq!(epoch, 1);
    let path = "/internal/revocations?cursor=1&wait=1001";
    let reply = app.http.get(path).send().await;
    reply.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn a_slow_commit_is_not_skipped() {
    let app = Fixture::start().await;
    let (admin, ada, bob) = (
        app.admin().await,
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    let start = cursor(&feed(&app, None).await);
    let mut slow = app.admin_connection();
    slow.batch_execute("BEGIN").unwrap();
    diesel::sql_query(
        "UPDATE users.users SET epoch = epoch + 1 WHERE username_key = 'ada@example.com'",
    )
    .execute(&mut slow)
    .unwrap();
    // A later transaction commits first, and a poll reads it.
    let _ = app
        .update(&admin, &bob.id, &json!({"isActive": false}))
        .await
        .expect(200);
    let early = feed(&app, Some(start)).await;
    assert_eq!(
        (epoch_of(&early, &bob), epoch_of(&early, &ada)),
        (Some(1), None)
    );
    slow.batch_execute("COMMIT").unwrap();
    let next = feed(&app, Some(cursor(&early))).await;
    assert_eq!(epoch_of(&next, &ada), Some(1));
}

#[tokio::test]
async fn epochs_raised_before_any_unexpired_token_are_omitted() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let _ = app
        .update(&admin, &ada.id, &json!({"isActive": false}))
        .await
        .expect(200);
    let mut connection = app.admin_connection();
    connection
        .transaction::<_, diesel::result::Error, _>(|connection| {
            diesel::sql_query(
                "UPDATE users.users SET epoch_raised = now() - interval '25 hours 2 minutes'",
            )
            .execute(connection)
        })
        .unwrap();
    assert_eq!(epoch_of(&feed(&app, None).await, &ada), None);
}

#[tokio::test]
async fn the_feed_covers_the_longest_lifetime_of_any_token() {
    let app = Fixture::start_with(&[("TOKEN_TTL", "48h")]).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let inactive = json!({"isActive": false});
    let _ = app.update(&admin, &ada.id, &inactive).await.expect(200);
    let execute = |sql: &str| app.admin_connection().batch_execute(sql).unwrap();
    execute("UPDATE users.users SET epoch_raised = now() - interval '30 hours' WHERE epoch > 0");
    // A new version with shorter tokens replaces the old one.
    let replica = app.replica(&[("TOKEN_TTL", "1h")]).await;
    let read = async || {
        let reply = replica.get("/internal/revocations").send().await;
        let feed = reply.expect(200).json;
        (epoch_of(&feed, &ada), feed["maxTokenLifetime"].clone())
    };
    assert_eq!(read().await, (Some(1), json!(48 * 3600)));
    let last_use = "UPDATE users.token_lifetimes SET last_used = now() - interval '50 hours' \
        WHERE seconds = 48 * 3600";
    execute(last_use);
    assert_eq!(read().await, (None, json!(3600)));
}

#[tokio::test]
async fn the_feed_lists_deleted_users_without_their_deletion() {
    let app = Fixture::start().await;
    let (ada, bob) = (
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    let before = cursor(&feed(&app, None).await);
    let execute = |sql: &str| app.admin_connection().batch_execute(sql).unwrap();
    execute(
        "DELETE FROM users.users WHERE username_key LIKE '%@example.com' AND username_key <> 'admin@example.com'",
    );
    for cursor in [None, Some(before)] {
        let feed = feed(&app, cursor).await;
        for person in [&ada, &bob] {
            assert_eq!(epoch_of(&feed, person), Some(i64::MAX), "{cursor:?}");
        }
    }
    // A user that a restore of rows brings back is not deleted.
    execute(&format!(
        "INSERT INTO users.users (id, username, email, username_key, email_key, password_hash, plan, scope)
        SELECT decode('{}', 'hex'), a, a, a, a, '', 'free', '{{user}}'
        FROM (VALUES ('ada@example.com')) AS addresses (a)",
        ada.id
    ));
    assert_eq!(epoch_of(&feed(&app, None).await, &ada), None);
}

#[tokio::test]
async fn rows_of_another_cluster_are_listed_whatever_their_transaction() {
    let app = Fixture::start().await;
    let (admin, ada, bob) = (
        app.admin().await,
        app.sign_up("ada@example.com").await,
        app.sign_up("bob@example.com").await,
    );
    app.admin_connection()
        .batch_execute(
            "SET session_replication_role = replica;
            UPDATE users.users SET epoch = 1, epoch_raised = now(), epoch_transaction = 9000000000000000
            WHERE username_key = 'ada@example.com';
            UPDATE users.users SET epoch = 1, epoch_raised = now(), epoch_transaction = 1
            WHERE username_key = 'bob@example.com'",
        )
        .unwrap();
    let all = feed(&app, None).await;
    for person in [&ada, &bob] {
        assert_eq!(epoch_of(&all, person), Some(1));
    }
    // Ada is not repeated for ever, but a later raise is listed.
    let changes = feed(&app, Some(cursor(&all))).await;
    assert_eq!(epoch_of(&changes, &ada), None);
    for person in [&ada, &bob] {
        let inactive = json!({"isActive": false});
        let _ = app.update(&admin, &person.id, &inactive).await.expect(200);
    }
    let changes = feed(&app, Some(cursor(&all))).await;
    for person in [&ada, &bob] {
        assert_eq!(epoch_of(&changes, person), Some(2));
    }
}

async fn refused(replica: &Http, person: &Person) -> Option<()> {
    let reply = replica.get("/user").bearer(&person.token).send().await;
    (reply.status == 401).then(|| reply.expect_problem(401, "token-revoked"))
}

#[tokio::test]
async fn another_replica_refuses_revoked_tokens_within_a_second() {
    let app = Fixture::start().await;
    let replica = app.replica(&[]).await;
    let (admin, _) = (app.admin().await, app.sign_up("ada@example.com").await);
    let mut attempt = 0;
    // A slow machine may need several attempts. All but the first begin when the replica has just read the feed.
    let ada = eventually("a token to be refused in time", async || {
        let ada = Person::of(&app.sign_in("ada@example.com", PASSWORD).await.expect(200));
        let request = replica.get("/user").bearer(&ada.token);
        let _ = request.send().await.expect(200);
        attempt += 1;
        let change = json!({"scope": ["user", format!("x{attempt}")]});
        let _ = app.update(&admin, &ada.id, &change).await.expect(200);
        let revoked = Instant::now();
        eventually("the replica to refuse the token", async || {
            refused(&replica, &ada).await
        })
        .await;
        (revoked.elapsed() < Duration::from_millis(1_500)).then_some(ada)
    })
    .await;
    // A replica that starts later refuses the token from the start.
    let late = app.replica(&[]).await;
    assert!(refused(&late, &ada).await.is_some());
}

#[tokio::test]
async fn the_token_of_a_deleted_user_is_refused() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    diesel::sql_query("DELETE FROM users.users WHERE username_key = 'ada@example.com'")
        .execute(&mut app.admin_connection())
        .unwrap();
    app.assert_token(&ada, false).await;
    let body = json!({"oldPassword": "correct horse", "newPassword": "battery staple"});
    let reply = app.post(&ada, "/user/change-password", &body).await;
    reply.expect_problem(401, "token-revoked");
}

#[tokio::test]
async fn tokens_of_the_previous_key_are_accepted() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let new = testkit::ed25519_pem();
    let old = app.key().to_owned();
    let rotated = app
        .replica(&[
            ("TOKEN_SIGNING_KEY", new.expose()),
            ("TOKEN_PREVIOUS_KEY", &old),
        ])
        .await;
    let _ = rotated
        .get("/user")
        .bearer(&ada.token)
        .send()
        .await
        .expect(200);
    let keys = rotated
        .get("/.well-known/jwks.json")
        .send()
        .await
        .expect(200);
    assert_eq!(keys.json["keys"].as_array().unwrap().len(), 2);
}
