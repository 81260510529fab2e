//! `DELETE /users/:userId`, its delete status, cancelling, `GET /users/deletions`.

use diesel::RunQueryDsl as _;
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::Text;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{eventually, lines};

use crate::fixture::{Fixture, PASSWORD, Person};

const ENGINE: [(&str, &str); 1] = [("FLOW_ENGINE_URL", "http://127.0.0.1:9")];

async fn start(app: &Fixture, admin: &Person, id: &str) -> String {
    let reply = app.delete(admin, &format!("/users/{id}")).await.expect(200);
    assert_eq!(reply.fields(), ["ticket"]);
    let ticket = reply.text_of("ticket");
    assert_eq!(ticket.len(), 64);
    let location = status_path(id, &ticket);
    assert_eq!(reply.header("location"), Some(location.as_str()));
    ticket
}

fn status_path(id: &str, ticket: &str) -> String {
    format!("/users/{id}/delete-status/{ticket}")
}

#[derive(diesel::QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

#[tokio::test]
async fn the_list_shows_how_many_tasks_were_deleted_until_the_deletion_ends() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    let path = status_path(&ada.id, &ticket);
    let deleted = "UPDATE users.deletions SET deleted_tasks = 70000";
    app.admin_connection().batch_execute(deleted).unwrap();
    let listed = app.get(&admin, "/users/deletions").await.expect(200).json;
    assert_eq!(listed[0]["deletedTasks"], 70_000);
    let status = app.get(&admin, &path).await.expect(200);
    assert_eq!(status.fields(), ["status", "stepsDone", "stepsTotal"]);
    let _ = app.delete(&admin, &path).await.expect(200);
    let listed = app.get(&admin, "/users/deletions").await.expect(200).json;
    assert_eq!(listed[0]["status"], "cancelled");
    assert_eq!(listed[0].get("deletedTasks"), None);
}

#[tokio::test]
async fn deleting_deactivates_the_user_and_returns_a_ticket() {
    let app = Fixture::start_with(&ENGINE).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    app.assert_token(&ada, false).await;
    app.sign_in("ada@example.com", PASSWORD)
        .await
        .expect_problem(403, "account-inactive");
    let reply = app
        .get(&admin, &status_path(&ada.id, &ticket))
        .await
        .expect(200);
    let expected = json!({"status": "in-progress", "stepsDone": 0, "stepsTotal": 8});
    assert_eq!(reply.json, expected);
    let steps: Vec<Name> =
        diesel::sql_query("SELECT name FROM users.deletion_steps ORDER BY position")
            .load(&mut app.admin_connection())
            .unwrap();
    let steps: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
    let expected = [
        "stop-flows",
        "delete-flows",
        "delete-logs",
        "delete-accounts",
        "delete-tokens",
        "delete-people-tasks",
        "delete-sign-in-data",
        "delete-user",
    ];
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn without_an_engine_there_are_fewer_steps() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    let reply = app
        .get(&admin, &status_path(&ada.id, &ticket))
        .await
        .expect(200);
    assert_eq!(reply.json["stepsTotal"], 3);
}

#[tokio::test]
async fn repeating_the_request_returns_the_same_ticket_until_the_deletion_ends() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let first = start(&app, &admin, &ada.id).await;
    assert_eq!(start(&app, &admin, &ada.id).await, first);
    let path = format!("/users/{}", ada.id);
    let again = join_all((0..8).map(|_| app.delete(&admin, &path))).await;
    assert!(again.iter().all(|reply| reply.text_of("ticket") == first));
    let _ = app
        .delete(&admin, &status_path(&ada.id, &first))
        .await
        .expect(200);
    assert_ne!(start(&app, &admin, &ada.id).await, first);
}

#[tokio::test]
async fn a_deletion_is_cancelled_once_and_the_account_stays_inactive() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    let path = status_path(&ada.id, &ticket);
    let expected = json!({"status": "cancelled", "stepsDone": 0, "stepsTotal": 3});
    let reply = app.delete(&admin, &path).await.expect(200);
    assert_eq!(reply.json, expected);
    assert_eq!(app.get(&admin, &path).await.expect(200).json, expected);
    app.delete(&admin, &path)
        .await
        .expect_problem(409, "deletion-ended");
    app.sign_in("ada@example.com", PASSWORD)
        .await
        .expect_problem(403, "account-inactive");
    let _ = app
        .update(&admin, &ada.id, &json!({"isActive": true}))
        .await
        .expect(200);
    let _ = app.sign_in("ada@example.com", PASSWORD).await.expect(200);
}

#[tokio::test]
async fn a_ticket_belongs_to_its_user() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    for path in [
        status_path(&admin.id, &ticket),
        status_path(&ada.id, &"0".repeat(64)),
        status_path(&ada.id, "%00"),
        status_path("unknown", &ticket),
    ] {
        app.get(&admin, &path)
            .await
            .expect_problem(404, "not-found");
        app.delete(&admin, &path)
            .await
            .expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn the_status_shows_the_failure_and_outlives_the_user() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    let path = status_path(&ada.id, &ticket);
    let sql = |text: &str| {
        diesel::sql_query(text)
            .execute(&mut app.admin_connection())
            .unwrap();
    };
    sql(
        "UPDATE users.deletions SET status = 'failed', finished = now(), steps_done = 1, failure = '{\"code\": \"step-failed\"}'",
    );
    let expected = json!({
        "status": "failed", "stepsDone": 1, "stepsTotal": 3, "failure": {"code": "step-failed"},
    });
    assert_eq!(app.get(&admin, &path).await.expect(200).json, expected);
    sql("DELETE FROM users.users WHERE username_key = 'ada@example.com'");
    let _ = app.get(&admin, &path).await.expect(200);
    app.delete(&admin, &format!("/users/{}", ada.id))
        .await
        .expect_problem(404, "not-found");
}

#[tokio::test]
async fn unknown_users_and_the_last_administrator_cannot_be_deleted() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    for id in ["unknown", "000000000000000000000000"] {
        app.delete(&admin, &format!("/users/{id}"))
            .await
            .expect_problem(404, "not-found");
    }
    let path = format!("/users/{}", admin.id);
    app.delete(&admin, &path)
        .await
        .expect_problem(409, "last-admin");
    app.assert_token(&admin, true).await;
    let other = app.make_admin("other@example.com").await;
    let _ = app.delete(&admin, &path).await.expect(200);
    app.delete(&other, &format!("/users/{}", other.id))
        .await
        .expect_problem(409, "last-admin");
}

#[tokio::test]
async fn concurrent_deletions_leave_one_administrator() {
    let app = Fixture::start().await;
    let mut admins = vec![app.admin().await];
    for number in 0..3 {
        admins.push(app.make_admin(&format!("admin{number}@example.com")).await);
    }
    // Each deletes the next one.
    let victims = admins.iter().cycle().skip(1);
    let paths: Vec<_> = victims
        .map(|victim| format!("/users/{}", victim.id))
        .take(admins.len())
        .collect();
    let deletions = admins
        .iter()
        .zip(&paths)
        .map(|(person, path)| app.delete(person, path));
    let replies = join_all(deletions).await;
    assert!(
        replies
            .iter()
            .all(|reply| [200, 401, 409].contains(&reply.status)),
        "{replies:?}"
    );
    assert!(replies.iter().filter(|reply| reply.status == 200).count() < admins.len());
}

#[tokio::test]
async fn the_list_of_deletions_is_newest_first_and_paged() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let mut expected = Vec::new();
    for number in 0..3 {
        let person = app.sign_up(&format!("user{number}@example.com")).await;
        let ticket = start(&app, &admin, &person.id).await;
        expected.insert(0, (ticket, person.id));
    }
    let reply = app
        .get(&admin, "/users/deletions?limit=2")
        .await
        .expect(200);
    assert_eq!(
        reply.header("link"),
        Some("</users/deletions?limit=2&offset=2>; rel=\"next\"")
    );
    let mut rows: Vec<Value> = reply.json.as_array().unwrap().clone();
    let reply = app
        .get(&admin, "/users/deletions?limit=2&offset=2")
        .await
        .expect(200);
    assert_eq!(reply.header("link"), None);
    rows.extend(reply.json.as_array().unwrap().clone());
    assert_eq!(rows.len(), 3);
    for (row, (ticket, id)) in rows.iter().zip(expected) {
        let expected = json!({
            "ticket": ticket, "userId": id, "status": "in-progress", "stepsDone": 0,
            "stepsTotal": 3, "created": row["created"], "finished": null,
        });
        assert_eq!(*row, expected);
    }
    let reply = app.get(&admin, "/users/deletions?limit=0").await;
    reply.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn the_list_of_deletions_can_be_filtered_by_one_status() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let mut tickets = Vec::new();
    for number in 0..2 {
        let person = app.sign_up(&format!("user{number}@example.com")).await;
        tickets.push((start(&app, &admin, &person.id).await, person.id));
    }
    let (cancelled, user) = &tickets[1];
    let path = format!("/users/{user}/delete-status/{cancelled}");
    let _ = app.delete(&admin, &path).await.expect(200);
    for (status, ticket) in [
        ("in-progress", Some(&tickets[0].0)),
        ("cancelled", Some(cancelled)),
        ("failed", None),
    ] {
        let path = format!("/users/deletions?filter=status:{status}");
        let rows = app.get(&admin, &path).await.expect(200).json;
        let listed: Vec<_> = rows.as_array().unwrap().iter().collect();
        let listed = listed.iter().map(|row| row["ticket"].as_str().unwrap());
        assert!(listed.eq(ticket.map(String::as_str)), "{status}: {rows}");
    }
    for query in [
        "filter=status:lost",
        "filter=user:1",
        "filter=status:failed,status:cancelled",
        "pattern=a",
    ] {
        let refused = app.get(&admin, &format!("/users/deletions?{query}")).await;
        refused.expect_problem(400, "validation-failed");
    }
}

async fn retry(app: &Fixture, admin: &Person) -> Value {
    let request = app.http.post("/users/deletions/retry").bearer(&admin.token);
    request.send().await.expect(200).json
}

fn fail_all(app: &Fixture) {
    diesel::sql_query(
        "UPDATE users.deletions SET status = 'failed', finished = now(), failure = '{}' WHERE status = 'in-progress'",
    )
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn failed_deletions_are_started_again_under_their_tickets() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let ticket = start(&app, &admin, &ada.id).await;
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 0, "more": false})
    );
    fail_all(&app);
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 1, "more": false})
    );
    let status = app.get(&admin, &status_path(&ada.id, &ticket)).await;
    let expected = json!({"status": "in-progress", "stepsDone": 0, "stepsTotal": 3});
    assert_eq!(status.expect(200).json, expected);
    let reply = app
        .update(&admin, &ada.id, &json!({"isActive": true}))
        .await;
    reply.expect_problem(409, "deletion-in-progress");
    let query = format!(
        "/audit?filter=subject:{},action:user-deletion-requested",
        ada.id
    );
    let entries = app.get(&admin, &query).await.expect(200).json;
    assert_eq!(entries[0]["detail"], json!({"retried": true}));
    assert_eq!(entries[0]["actor"], admin.id.as_str());
}

#[tokio::test]
async fn deletions_of_reactivated_users_and_older_failures_are_not_started_again() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let bob = app.sign_up("bob@example.com").await;
    let first = start(&app, &admin, &ada.id).await;
    start(&app, &admin, &bob.id).await;
    fail_all(&app);
    for is_active in [true, false] {
        let change = json!({"isActive": is_active});
        let _ = app.update(&admin, &bob.id, &change).await.expect(200);
    }
    let second = start(&app, &admin, &ada.id).await;
    let _ = app.delete(&admin, &status_path(&ada.id, &second)).await;
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 0, "more": false})
    );
    let status = app.get(&admin, &status_path(&ada.id, &first)).await;
    assert_eq!(status.expect(200).json["status"], "failed");
}

#[tokio::test]
async fn a_user_who_resets_the_password_is_still_deleted() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    start(&app, &admin, &ada.id).await;
    fail_all(&app);
    diesel::sql_query(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires)
        SELECT sha256('code'), id, 'forgot-password', code_generation, now() + interval '1 hour'
        FROM users.users WHERE email = 'ada@example.com'",
    )
    .execute(&mut app.admin_connection())
    .unwrap();
    let reset = app.http.post("/user/forgot-password/reset");
    let reset = reset.json(&json!({"code": "code", "password": "battery staple"}));
    let _ = reset.send().await.expect(200);
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 1, "more": false})
    );
}

#[tokio::test]
async fn deletions_that_other_transactions_hold_are_left() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    start(&app, &admin, &ada.id).await;
    fail_all(&app);
    let mut other = app.admin_connection();
    other
        .batch_execute("BEGIN; SELECT FROM users.deletions FOR UPDATE")
        .unwrap();
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 0, "more": true})
    );
    other.batch_execute("COMMIT").unwrap();
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 1, "more": false})
    );
}

#[tokio::test]
async fn a_failed_deletion_that_is_requested_again_meanwhile_is_not_started_again() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    start(&app, &admin, &ada.id).await;
    fail_all(&app);
    // The statement that finds the deletion waits after its snapshot.
    let mut other = app.admin_connection();
    let pause = "SET search_path = users;
        CREATE POLICY readable ON deletions USING (pg_advisory_xact_lock_shared(7) IS NOT NULL);
        ALTER TABLE deletions ENABLE ROW LEVEL SECURITY;
        SELECT pg_advisory_lock(7)";
    other.batch_execute(pause).unwrap();
    let requesting = async {
        eventually("the retry to wait", async || {
            let waiting = "SELECT l.pid::text AS line FROM pg_locks l
                JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
                WHERE l.locktype = 'advisory' AND NOT l.granted";
            (lines(&mut app.admin_connection(), waiting).len() == 1).then_some(())
        })
        .await;
        // The trigger says in the user's row that a deletion is in progress.
        let request = "INSERT INTO deletions (id, ticket, user_id, steps_total, request_id, traceparent, republish_at)
                SELECT decode('0000000000000000000000aa', 'hex'), 'newer', user_id, steps_total, request_id,
                    traceparent, republish_at FROM deletions";
        other.batch_execute(request).unwrap();
        other.batch_execute("SELECT pg_advisory_unlock(7)").unwrap();
    };
    let (retried, ()) = tokio::join!(retry(&app, &admin), requesting);
    assert_eq!(retried, json!({"retried": 0, "more": false}));
}

#[tokio::test]
async fn deletions_that_would_skip_the_engine_are_not_started_again() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    start(&app, &admin, &ada.id).await;
    fail_all(&app);
    let with_engine = [("FLOW_ENGINE_URL", "http://127.0.0.1:9")];
    let replica = app.replica(&with_engine).await;
    let request = replica.post("/users/deletions/retry").bearer(&admin.token);
    let reply = request.send().await.expect(200);
    assert_eq!(reply.json, json!({"retried": 0, "more": false}));
}

#[tokio::test]
async fn many_failed_deletions_are_started_again_in_batches() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    let insert = "WITH made AS (
            INSERT INTO users.users (id, username, email, username_key, email_key, password_hash, plan, scope,
                is_active)
            SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), n || '@a', n || '@a', n || '@a', n || '@a', 'x', 'free',
                '{user}', false
            FROM generate_series(1, 1250) AS n
            RETURNING id
        )
        INSERT INTO users.deletions (id, ticket, user_id, steps_total, request_id, traceparent, republish_at,
            status, failure, finished)
        SELECT id, encode(id, 'hex'), id, 1, 'r', 't', now(), 'failed', '{}', now() FROM made";
    diesel::sql_query(insert)
        .execute(&mut app.admin_connection())
        .unwrap();
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 1000, "more": true})
    );
    assert_eq!(
        retry(&app, &admin).await,
        json!({"retried": 250, "more": false})
    );
}
