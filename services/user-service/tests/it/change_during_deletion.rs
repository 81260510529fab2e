//! What a user cannot do, and what cannot be done to a user, while a deletion is in progress.

use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use diesel::{QueryableByName, RunQueryDsl as _};
use serde_json::{Value, json};
use testkit::{Reply, eventually};

use crate::fixture::{Fixture, PASSWORD, Person};

const LOG: [(&str, &str); 1] = [("FORGOT_PASSWORD_LOG", "true")];

/// A user whose deletion is in progress, and the path of the deletion's status.
async fn deleting(app: &Fixture, admin: &Person) -> (Person, String) {
    let ada = app.sign_up("ada@example.com").await;
    let reply = app.delete(admin, &format!("/users/{}", ada.id)).await;
    let path = reply.expect(200).header("location").unwrap().to_owned();
    (ada, path)
}

async fn user(app: &Fixture, admin: &Person, id: &str) -> Value {
    let reply = app.get(admin, &format!("/users/{id}")).await;
    reply.expect(200).json
}

async fn reset_password(app: &Fixture, admin: &Person) -> Reply {
    let body = json!({"email": "ada@example.com", "password": "battery staple"});
    app.post(admin, "/user/reset-password", &body).await
}

#[tokio::test]
async fn administrators_cannot_change_a_user_who_is_being_deleted() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let (ada, _) = deleting(&app, &admin).await;
    let before = user(&app, &admin, &ada.id).await;
    for change in [
        json!({"isActive": true}),
        json!({"plan": "gold"}),
        json!({"email": "new@example.com"}),
        json!({"password": "battery staple"}),
        before.clone(),
    ] {
        let reply = app.update(&admin, &ada.id, &change).await;
        reply.expect_problem(409, "deletion-in-progress");
    }
    let reply = reset_password(&app, &admin).await;
    reply.expect_problem(409, "deletion-in-progress");
    assert_eq!(user(&app, &admin, &ada.id).await, before);
}

#[tokio::test]
async fn a_user_can_be_reactivated_after_the_deletion_was_cancelled_or_has_failed() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let (ada, path) = deleting(&app, &admin).await;
    let active = json!({"isActive": true});
    let _ = app.delete(&admin, &path).await.expect(200);
    let _ = app.update(&admin, &ada.id, &active).await.expect(200);
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);

    let reply = app.delete(&admin, &format!("/users/{}", ada.id)).await;
    let _ = reply.expect(200);
    let reply = app.update(&admin, &ada.id, &active).await;
    reply.expect_problem(409, "deletion-in-progress");
    let fail = "UPDATE users.deletions SET status = 'failed', finished = now(), failure = '{}'
        WHERE status = 'in-progress'";
    app.admin_connection().batch_execute(fail).unwrap();
    let _ = app.update(&admin, &ada.id, &active).await.expect(200);
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
}

#[tokio::test]
async fn a_deletion_that_is_started_again_erases_tasks_of_a_new_address_if_it_is_confirmed() {
    let required = [("EMAIL_VERIFICATION", "required")];
    let app = Fixture::start_with(&[&LOG[..], &required].concat()).await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let confirm = "UPDATE users.users SET email_confirmed = now()";
    app.admin_connection().batch_execute(confirm).unwrap();
    let reply = app.delete(&admin, &format!("/users/{}", ada.id)).await;
    let _ = reply.expect(200);
    let fail = "UPDATE users.deletions SET status = 'failed', finished = now(), failure = '{}'";
    app.admin_connection().batch_execute(fail).unwrap();
    let trusted = "SELECT status || ' ' || email_trusted || ' ' || (SELECT count(*) FROM users.former_emails) \
        AS line FROM users.deletions";
    let trusted = || testkit::lines(&mut app.admin_connection(), trusted);
    for (change, expected) in [
        (json!({"email": "ADA@example.com"}), "failed true 0"),
        (json!({"email": "bob@example.com"}), "failed false 1"),
    ] {
        let _ = app.update(&admin, &ada.id, &change).await.expect(200);
        assert_eq!(trusted(), [expected]);
    }
    for (change, expected) in [
        ("SELECT", "in-progress false 1"),
        (&*format!("{fail}; {confirm}"), "in-progress true 1"),
    ] {
        app.admin_connection().batch_execute(change).unwrap();
        let retried = app.post(&admin, "/users/deletions/retry", &json!({})).await;
        assert_eq!(retried.expect(200).json["retried"], 1);
        assert_eq!(trusted(), [expected]);
    }
}

#[tokio::test]
async fn codes_do_not_work_during_a_deletion_and_none_are_sent() {
    let app = Fixture::start_with(&LOG).await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let store_codes = format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, email_key, expires)
         SELECT sha256(purpose::bytea), id, purpose, code_generation, email_key, now() + interval '1 hour'
         FROM users.users, unnest(ARRAY['forgot-password', 'verify-email']) AS purpose
         WHERE encode(id, 'hex') = '{}'",
        ada.id
    );
    app.admin_connection().batch_execute(&store_codes).unwrap();
    let reply = app.delete(&admin, &format!("/users/{}", ada.id)).await;
    let _ = reply.expect(200);

    let post = async |path: &str, body: Value| app.http.post(path).json(&body).send().await;
    let reset = json!({"code": "forgot-password", "password": "battery staple"});
    let reply = post("/user/forgot-password/reset", reset).await;
    reply.expect_problem(400, "invalid-code");
    let reply = post(
        "/user/verify-email",
        json!({"code": "verify-email", "password": PASSWORD}),
    )
    .await;
    reply.expect_problem(400, "invalid-code");
    let email = json!({"email": "ada@example.com"});
    let _ = post("/user/forgot-password", email).await.expect(200);
    let rows = app.database.rows_that_hold("users", &ada.id);
    let notifications = rows.iter().filter(|row| row.starts_with("notifications:"));
    assert_eq!(notifications.count(), 0, "{rows:?}");
}

#[tokio::test]
async fn a_change_that_waits_for_the_start_of_a_deletion_is_refused() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let mut deletion = app.admin_connection();
    let start = format!(
        "BEGIN;
         UPDATE users.users SET is_active = false, epoch = epoch + 1 WHERE encode(id, 'hex') = '{id}';
         INSERT INTO users.deletions (id, ticket, user_id, steps_total, request_id, traceparent, republish_at)
         VALUES (decode('{id}', 'hex'), 't', decode('{id}', 'hex'), 1, 'r', 't', now());",
        id = ada.id
    );
    deletion.batch_execute(&start).unwrap();
    let active = json!({"isActive": true});
    let commit = async {
        eventually("both changes to wait", async || {
            (waiting(&app) == 2).then_some(())
        })
        .await;
        deletion.batch_execute("COMMIT").unwrap();
    };
    let (update, reset, ()) = tokio::join!(
        app.update(&admin, &ada.id, &active),
        reset_password(&app, &admin),
        commit
    );
    update.expect_problem(409, "deletion-in-progress");
    reset.expect_problem(409, "deletion-in-progress");
    assert_eq!(user(&app, &admin, &ada.id).await["isActive"], false);
}

/// How many statements wait for a lock.
fn waiting(app: &Fixture) -> i64 {
    #[derive(QueryableByName)]
    struct Waiting {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let waiting: Waiting = diesel::sql_query(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    .get_result(&mut app.admin_connection())
    .unwrap();
    waiting.count
}
