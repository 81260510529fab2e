//! Repeats of requests with the same `Idempotency-Key`.

use diesel::connection::SimpleConnection as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{INCARNATION, Reply, ed25519_pem, eventually};

use crate::erasure::service_token;
use crate::fixture::{Fixture, User, WithSecret as _};
use crate::mails::KEY as MAIL_KEY;

const TASKS: &str = "/people-task/tasks";
const WEBHOOKS: &str = "/people-task/webhooks";

fn task() -> Value {
    json!({"title": "Buy a printer", "requester": "ada@example.com", "approver": "grace@example.com"})
}

async fn post(app: &Fixture, by: &User, path: &str, key: &str, body: &Value) -> Reply {
    let request = app.http.post(path).bearer(&by.token);
    request
        .header("Idempotency-Key", key)
        .json(body)
        .send()
        .await
}

fn is_replay(reply: &Reply) -> bool {
    reply.header("idempotent-replayed") == Some("true")
}

#[tokio::test]
async fn a_repeat_gets_the_answer_of_the_first_request_with_its_secrets() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let mut body = task();
    body["metadata"] = json!({"run": 1.0});
    body["webhooks"] = json!([{"url": "http://127.0.0.1:9/"}]);
    let path = "/people-task/tasks?include=created,metadata";
    let first = post(&app, &ada, path, "run-1", &body).await.expect(200);
    assert!(!is_replay(&first));
    // The task changes meanwhile, and the same body comes in another order, with another notation.
    let task_path = format!("{TASKS}/{}", first.text_of("id"));
    let edit = json!({"title": "Buy two", "approver": "linus@example.com"});
    let _ = app.put(&ada, &task_path, &edit).await.expect(200);
    let text = format!(
        r#"{{"webhooks": {}, "approver": "grace@example.com", "requester": "ada@example.com", "metadata": {{"run": 1}},
            "title": "Buy a printer"}}"#,
        body["webhooks"]
    );
    let request = app
        .http
        .post(path)
        .bearer(&ada.token)
        .header("Idempotency-Key", "\"run-1\"");
    let request = request
        .header("content-type", "application/json")
        .body(text);
    let again = request.send().await.expect(200);
    assert!(is_replay(&again));
    assert_eq!(again.text, first.text);
    assert_eq!(again.header("etag"), first.header("etag"));
    assert_eq!((app.count("tasks"), app.count("webhooks")), (1, 1));
    assert_eq!(app.count("audit_log WHERE action = 'task-created'"), 1);
    // The secret of the requester, who is the same, still opens the task.
    let read = app
        .http
        .get(&task_path)
        .secret(&again.text_of("requesterSecret"));
    let _ = read.send().await.expect(200);
}

#[tokio::test]
async fn another_body_is_refused_and_another_user_operation_or_key_is_another_request() {
    let app = Fixture::start().await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let first = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    let mut other = task();
    other["title"] = json!("Buy two");
    let refused = post(&app, &ada, TASKS, "k", &other).await;
    refused.expect_problem(422, "idempotency-key-reused");
    for (by, key) in [(&eve, "k"), (&ada, "l")] {
        let reply = post(&app, by, TASKS, key, &task()).await.expect(200);
        assert!(!is_replay(&reply));
        assert_ne!(reply.json["id"], first.json["id"]);
    }
    let webhook = json!({"taskId": first.json["id"], "url": "http://127.0.0.1:9/"});
    let registered = post(&app, &ada, WEBHOOKS, "k", &webhook).await.expect(200);
    assert!(!is_replay(&registered));
    let again = post(&app, &ada, WEBHOOKS, "k", &webhook).await.expect(200);
    assert!(is_replay(&again));
    assert_eq!(again.text, registered.text);
    let other = json!({"taskId": first.json["id"], "url": "http://127.0.0.1:9/other"});
    let refused = post(&app, &ada, WEBHOOKS, "k", &other).await;
    refused.expect_problem(422, "idempotency-key-reused");
    assert_eq!((app.count("tasks"), app.count("webhooks")), (3, 1));
}

#[tokio::test]
async fn only_successes_are_remembered() {
    let app = Fixture::start_with(&[("QUOTA_USER_TASKS_PER_MINUTE", "2")]).await;
    let ada = app.user("ada@example.com");
    let invalid = json!({"title": ""});
    let refused = post(&app, &ada, TASKS, "k", &invalid).await;
    refused.expect_problem(400, "validation-failed");
    let first = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    app.create(&ada, json!({})).await;
    let refused = post(&app, &ada, TASKS, "l", &task()).await;
    refused.expect_problem(429, "rate-limited");
    assert_eq!(app.count("idempotency_keys"), 1);
    // A repeat adds nothing, so no limit refuses it.
    let again = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    assert_eq!(again.text, first.text);
    let unknown = json!({"taskId": "0123456789abcdef01234567", "url": "http://127.0.0.1:9/"});
    let refused = post(&app, &ada, WEBHOOKS, "w", &unknown).await;
    refused.expect_problem(404, "not-found");
    assert_eq!(app.count("idempotency_keys"), 1);
}

#[tokio::test]
async fn a_key_that_is_no_printable_text_is_refused() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let long = "k".repeat(256);
    for key in ["", "\"", "\"\"", &long] {
        for path in [TASKS, WEBHOOKS] {
            let reply = post(&app, &ada, path, key, &json!({})).await;
            reply.expect_problem(400, "validation-failed");
            assert!(
                reply.bad_fields().contains(&"Idempotency-Key".to_owned()),
                "{key}"
            );
        }
    }
    let request = app.http.post(TASKS).bearer(&ada.token).json(&task());
    let request = request
        .header("Idempotency-Key", "a")
        .header("Idempotency-Key", "b");
    request
        .send()
        .await
        .expect_problem(400, "validation-failed");
    let _ = post(&app, &ada, TASKS, &"k".repeat(255), &task())
        .await
        .expect(200);
    assert_eq!(app.count("tasks"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_simultaneous_requests_one_creates_and_the_others_wait_or_get_its_answer() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for round in 0..10 {
        let key = format!("run-{round}");
        let body = task();
        let replies = join_all((0..12).map(|_| post(&app, &ada, TASKS, &key, &body))).await;
        let made: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        let fresh = made.iter().filter(|reply| !is_replay(reply)).count();
        assert_eq!(fresh, 1);
        assert!(made.iter().all(|reply| reply.text == made[0].text));
        for busy in replies.iter().filter(|reply| reply.status != 200) {
            busy.expect_problem(409, "idempotency-key-in-use");
            assert_eq!(busy.header("retry-after"), Some("1"));
        }
        assert_eq!(app.count("tasks"), round + 1);
    }
    let first = app.create(&ada, json!({})).await;
    let body = json!({"taskId": first.id, "url": "http://127.0.0.1:9/"});
    let replies = join_all((0..12).map(|_| post(&app, &ada, WEBHOOKS, "w", &body))).await;
    assert!(
        replies
            .iter()
            .all(|reply| [200, 409].contains(&reply.status))
    );
    assert_eq!(app.count("webhooks"), 1);
}

#[tokio::test]
async fn a_request_is_in_use_while_another_transaction_handles_it() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let _ = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    // As if the transaction of another replica were not committed yet.
    let mut other = app.database.admin();
    other
        .batch_execute(
            "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended(encode(key, 'hex'), 1)) FROM people_task.idempotency_keys",
        )
        .unwrap();
    app.execute("DELETE FROM idempotency_keys");
    let refused = post(&app, &ada, TASKS, "k", &task()).await;
    refused.expect_problem(409, "idempotency-key-in-use");
    // It keeps no other request waiting.
    let _ = post(&app, &ada, TASKS, "l", &task()).await.expect(200);
    other.batch_execute("ROLLBACK").unwrap();
    let _ = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    assert_eq!(app.count("tasks"), 3);
}

#[tokio::test]
async fn neither_the_database_nor_the_key_opens_an_answer() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let reply = post(&app, &ada, TASKS, "guessable-run-17", &task())
        .await
        .expect(200);
    for secret in ["approverSecret", "requesterSecret"] {
        let secret = reply.text_of(secret);
        for part in [secret.as_str(), &secret[24..]] {
            assert!(app.database.rows_that_hold("people_task", part).is_empty());
        }
    }
    let kept = app
        .database
        .rows_that_hold("people_task", "guessable-run-17");
    assert!(kept.is_empty(), "{kept:?}");
}

#[tokio::test]
async fn answers_survive_restarts_and_the_replacement_of_keys() {
    let mut app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let (old, new) = (ed25519_pem(), ed25519_pem());
    let (old, new) = (old.expose(), new.expose());
    app.restart_with(&[("WEBHOOK_SIGNING_KEY", old)]).await;
    let first = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    let both = [
        ("WEBHOOK_SIGNING_KEY", new),
        ("WEBHOOK_PREVIOUS_SIGNING_KEY", old),
    ];
    app.restart_with(&both).await;
    let again = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    assert_eq!(again.text, first.text);
    let second = post(&app, &ada, TASKS, "l", &task()).await.expect(200);
    // A replica that does not know the new key yet makes no second task.
    app.restart_with(&[("WEBHOOK_SIGNING_KEY", old)]).await;
    let refused = post(&app, &ada, TASKS, "l", &task()).await;
    refused.expect_problem(409, "idempotency-key-in-use");
    app.restart_with(&[("WEBHOOK_SIGNING_KEY", new)]).await;
    let again = post(&app, &ada, TASKS, "l", &task()).await.expect(200);
    assert_eq!(again.text, second.text);
    assert_eq!(app.count("tasks"), 2);
}

#[tokio::test]
async fn a_task_with_mails_has_the_same_secrets_in_the_answers_and_in_the_mails() {
    let app = Fixture::start_with(&[("TASK_MAIL_KEY", MAIL_KEY)]).await;
    let ada = app.user("ada@example.com");
    let mut body = task();
    body["notify"] = json!(true);
    let first = post(&app, &ada, TASKS, "k", &body).await.expect(200);
    let again = post(&app, &ada, TASKS, "k", &body).await.expect(200);
    assert_eq!(again.text, first.text);
    let mails = crate::mails::claim(&app).await;
    assert_eq!(mails.len(), 1);
    let link = mails[0]["taskLink"].as_str().unwrap();
    assert!(link.contains(&first.text_of("approverSecret")));
}

#[tokio::test]
async fn a_key_can_be_used_again_after_a_day_and_old_answers_are_deleted() {
    let mut app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let first = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    app.execute("UPDATE idempotency_keys SET created = now() - interval '23 hours 59 minutes'");
    assert!(is_replay(
        &post(&app, &ada, TASKS, "k", &task()).await.expect(200)
    ));
    app.execute("UPDATE idempotency_keys SET created = now() - interval '24 hours'");
    let second = post(&app, &ada, TASKS, "k", &task()).await.expect(200);
    assert!(!is_replay(&second));
    assert_ne!(second.json["id"], first.json["id"]);
    app.execute("UPDATE idempotency_keys SET created = now() - interval '25 hours'");
    app.restart_with(&[]).await;
    eventually("old answers to be deleted", async || {
        (app.count("idempotency_keys") == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn answers_count_as_bytes_and_are_erased_with_their_user_and_their_task() {
    let app = Fixture::start().await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let first = post(&app, &eve, TASKS, "k", &task()).await.expect(200);
    let webhook = json!({"taskId": first.json["id"], "url": "http://127.0.0.1:9/", "secret": null});
    let request = app.http.post(WEBHOOKS).bearer(&ada.token).json(&webhook);
    let _ = request
        .header("Idempotency-Key", "w")
        .send()
        .await
        .expect(200);
    assert_eq!(app.count("idempotency_keys"), 2);
    let erase = async |user: &User, emails: Value| {
        let request = app.http.post(&format!("/internal/users/{}/erase", user.id));
        let body = json!({"emails": emails, "incarnation": INCARNATION});
        let request = request.bearer(&service_token(&app)).json(&body);
        let _ = request.send().await.expect(200);
    };
    // Only the registration, because another address requested the task.
    erase(&ada, json!([])).await;
    assert_eq!((app.count("idempotency_keys"), app.count("tasks")), (1, 1));
    erase(&eve, json!([])).await;
    assert_eq!((app.count("idempotency_keys"), app.count("tasks")), (0, 0));
    let body = task();
    let reply = post(&app, &ada, TASKS, "k", &body).await;
    assert_eq!(reply.status, 401, "an erased user adds nothing");
    let kim = app.user("kim@example.com");
    let _ = post(&app, &kim, TASKS, "k", &body).await.expect(200);
    assert!(app.stop().await);
    let stored = "stored_bytes JOIN people_task.idempotency_keys USING (user_id)
        WHERE bytes = octet_length('Buy a printer') + octet_length(answer)";
    assert_eq!(app.count(stored), 1);
    app.execute("DELETE FROM idempotency_keys");
    assert_eq!(
        app.count("stored_bytes WHERE bytes = octet_length('Buy a printer')"),
        1
    );
}
