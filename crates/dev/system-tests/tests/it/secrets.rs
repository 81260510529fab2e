//! Secrets do not leak: after a run with trace logs, everything that the system logs, returns, queues and
//! stores is searched for every password, token, code, secret and key that was used.

mod leaks;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use telemetry::TraceExport;
use testkit::{MailServer, eventually};
use tokio::runtime::Runtime;

use self::leaks::{Leaks, Log};
use crate::harness::{System, Task};
use crate::task_mails::bring_nearer;
use crate::trace_collector::Collector;

const ADA: &str = "ada@example.com";
const GRACE: &str = "grace@example.com";
const WHSEC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ENGINE_TOKEN: &str = "the-engine-token-b1946ac92492d234";
const WRONG_SECRET: &str = "4f53cda18c2baa0c0354bb5f9a3ecbe5";
const URL_PASSWORD: &str = "url-password-591785b794601e21";
const HEADER: &str = "Bearer engine-header-3c59dc048e885024";
const URL_QUERY: &str = "url-query-secret-2c6ee24b09816a6f";

#[test]
fn no_secret_is_in_logs_metrics_traces_queues_errors_or_tables() {
    let collector = Collector::start();
    let export = TraceExport::start("countersign", &collector.settings("always_on")).unwrap();
    let export = export.unwrap();
    let log = Log::start(&export);
    let leaks = Runtime::new().unwrap().block_on(use_system(&log));
    drop(export);
    let traces = format!("{:?}", collector.spans());
    for expected in ["db.query.text", "INSERT INTO", "webhook.attempt"] {
        assert!(traces.contains(expected), "the traces lack {expected}");
    }
    leaks.check("the traces", &traces);
}

/// Uses every secret, and searches everything but the traces for them.
async fn use_system(log: &Log) -> Leaks {
    let metrics = telemetry::metrics_recorder();
    let (mut system, mails) = System::start_with_mail(&[
        ("FORGOT_PASSWORD_LOG", "false"),
        ("FLOW_ENGINE_TOKEN", ENGINE_TOKEN),
        ("WEBHOOK_RETRY_SCHEDULE", "200ms,200ms"),
        ("WEBHOOK_TIMEOUT", "1s"),
        ("TASK_REMINDERS", "0s"),
        ("NOTIFICATION_RETRY_SCHEDULE", "10ms"),
    ])
    .await;
    let mut leaks = Leaks::default();
    add_settings(&system, &mut leaks);
    let queued = use_secrets(&mut system, &mut leaks).await;
    use_mails(&system, &mails, &mut leaks).await;

    let log = log.text();
    for expected in [
        "TRACE",
        "hyper",
        "/people-task/tasks/{id}/approve",
        "new connection",
    ] {
        assert!(log.contains(expected), "the log lacks {expected}");
    }
    leaks.check("the log", &log);
    let metrics = metrics.render();
    assert!(metrics.contains("revocation_feed_age_seconds"), "{metrics}");
    leaks.check("the metrics", &metrics);
    assert!(queued.len() >= 3, "a queue was empty: {queued:?}");
    leaks.check("a queue", &json!(queued).to_string());
    leaks.check("an error", &leaks.refusals);
    for (name, secret, allowed) in &leaks.secrets {
        assert_eq!(
            system.database.columns_that_hold(secret),
            *allowed,
            "{name}"
        );
    }
    system.stop().await;
    leaks
}

/// Adds the secrets in the settings.
fn add_settings(system: &System, leaks: &mut Leaks) {
    leaks.add("the administrator's password", System::PASSWORD);
    leaks.add("the administrator's token", system.admin.as_str());
    leaks.add("the engine's token", ENGINE_TOKEN);
    leaks.add("the mail key", System::MAIL_KEY);
    leaks.add("the key of headers", System::HEADER_KEY);
    for (secret, name) in [
        ("the token key", "TOKEN_SIGNING_KEY"),
        ("the webhook key", "WEBHOOK_SIGNING_KEY"),
    ] {
        let pem = system.setting(name);
        leaks.add(secret, pem.lines().nth(1).unwrap());
    }
    let urls = &system.database.urls;
    for url in [
        system.setting("AMQP_URL"),
        urls.users_service.clone(),
        urls.users_owner.clone(),
        urls.people_task_service.clone(),
        urls.people_task_owner.clone(),
    ] {
        let password = url.split(['@', ':']).nth(2).unwrap();
        leaks.add("a password of the database or the broker", password);
    }
}

/// Uses every secret, rightly and wrongly. Returns the messages that were in the queues.
async fn use_secrets(system: &mut System, leaks: &mut Leaks) -> Vec<Value> {
    let token = use_passwords_and_tokens(system, leaks).await;
    let task = create_task(system, leaks, &token).await;
    register_webhooks(system, leaks, &token, &task).await;
    register_headers(system, leaks, &token, &task).await;
    system.stop_workers().await;
    decide(system, leaks, &task).await;
    let email = json!({"email": ADA});
    let _ = system
        .post_anonymously("/user/forgot-password", &email)
        .await;
    let grace = format!("/users/{}", system.user_id(GRACE).await);
    let request = system.http.delete(&grace).bearer(&system.admin);
    let deleted = request.send().await.expect(200);
    // Only administrators can read a ticket, and its row outlives the user, so it is stored as it is.
    let columns = &["users.deletions.ticket"];
    let ticket = leaks.add_stored("a ticket", deleted.text_of("ticket"), columns);
    let queued = eventually("all three messages to be queued", || async {
        Some(system.queued()).filter(|queued| queued.len() >= 3)
    })
    .await;
    system.start_workers().await;
    reset_password(system, leaks).await;
    let status_path = format!("{grace}/delete-status/{ticket}");
    wait_until_finished(system, leaks, &task, &status_path).await;
    queued
}

/// Signs up, uses wrong, new and unacceptable passwords and a forged token. Returns a valid token.
async fn use_passwords_and_tokens(system: &System, leaks: &mut Leaks) -> String {
    let _ = leaks.add("a token", system.sign_up(GRACE).await);
    let first = leaks.add("a token", system.sign_up(ADA).await);
    let wrong = leaks.add("a wrong password", "wrong-password-8f14e45fceea167a");
    leaks.add_refusal(401, &system.sign_in(ADA, &wrong).await);
    let unknown = leaks.add(
        "a password of an unknown account",
        "unknown-account-c9f0f895fb98ab91",
    );
    let reply = system.sign_in("unknown@example.com", &unknown).await;
    leaks.add_refusal(401, &reply);
    let next = leaks.add("a new password", "new-password-45c48cce2e2d7fbd");
    let change = |old: &str| {
        let body = json!({"oldPassword": old, "newPassword": next});
        let post = system.http.post("/user/change-password").bearer(&first);
        post.json(&body).send()
    };
    leaks.add_refusal(400, &change(&wrong).await);
    let changed = change(System::PASSWORD).await.expect(200);
    let token = leaks.add("a token", changed.text_of("token"));
    let long = "too-long-d3d9446802a44259".repeat(4);
    let long = leaks.add("a password that is too long", long);
    let body = json!({"username": "long@example.com", "password": long});
    leaks.add_refusal(400, &system.http.post("/user").json(&body).send().await);

    let (head, signature) = token.rsplit_once('.').unwrap();
    let reversed: String = signature.chars().rev().collect();
    let forged = leaks.add("a forged token", format!("{head}.{reversed}"));
    for path in ["/user", "/people-task/tasks", "/users"] {
        let reply = system.http.get(path).bearer(&forged).send().await;
        leaks.add_refusal(401, &reply);
    }
    let reply = system.http.get("/users").bearer(&token).send().await;
    leaks.add_refusal(403, &reply);
    use_keys(system, leaks, &token).await;
    token
}

/// Uses an API key rightly, where it does not reach, after its end, and with a wrong checksum.
async fn use_keys(system: &System, leaks: &mut Leaks, token: &str) {
    let made = system
        .post("/user/keys", token, &json!({"name": "a"}))
        .await;
    let key = leaks.add("an API key", made.text_of("key"));
    let _ = system.get("/people-task/tasks", &key).await;
    for (path, status) in [("/users", 403), ("/user/keys", 403)] {
        let reply = system.http.get(path).bearer(&key).send().await;
        leaks.add_refusal(status, &reply);
    }
    let path = format!("/user/keys/{}", made.text_of("id"));
    let end = system.http.delete(&path).bearer(token);
    let _ = end.send().await.expect(200);
    let wrong = leaks.add("an API key with a wrong checksum", format!("{key}0"));
    eventually("the key to be refused", || async {
        let reply = system
            .http
            .get("/people-task/tasks")
            .bearer(&key)
            .send()
            .await;
        (reply.status == 401).then_some(())
    })
    .await;
    for key in [&key, &wrong] {
        let reply = system
            .http
            .get("/people-task/tasks")
            .bearer(key)
            .send()
            .await;
        leaks.add_refusal(401, &reply);
    }
}

/// Creates a task and uses its secret and a wrong one, in the query and in a header.
async fn create_task(system: &System, leaks: &mut Leaks, token: &str) -> Task {
    let body = json!({"title": "t", "requester": ADA, "approver": "b@example.com"});
    let created = system.post("/people-task/tasks", token, &body).await;
    let secret = leaks.add("the approver's secret", created.text_of("approverSecret"));
    let requester_secret = leaks.add("the requester's secret", created.text_of("requesterSecret"));
    let wrong = leaks.add("a wrong secret", WRONG_SECRET.repeat(2));
    let task = Task {
        id: created.text_of("id"),
        approver_secret: secret.clone(),
        requester_secret,
    };
    let path = format!("/people-task/tasks/{}", task.id);
    for (secret, status) in [(&secret, 200), (&wrong, 404)] {
        let query = system.http.get(&format!("{path}?secret={secret}")).send();
        let header = system
            .http
            .get(&path)
            .header("X-Task-Secret", secret)
            .send();
        for reply in [query.await, header.await] {
            assert_eq!(reply.status, status);
            if status != 200 {
                leaks.add_refusal(status, &reply);
            }
        }
    }
    task
}

/// Has a mail sent about a task, opens its links, and lets another one fail.
async fn use_mails(system: &System, mails: &MailServer, leaks: &mut Leaks) {
    let columns = &[
        "people_task.task_states.approver_key",
        "people_task.tasks.approver",
        "people_task.tasks.approver_key",
    ];
    let approver = leaks.add_stored("an address", "approver-of-mails@example.com", columns);
    let ada = system.sign_up("ada-of-mails@example.com").await;
    let due = chrono::Utc::now() + chrono::Duration::hours(1);
    let body = json!({
        "title": "t", "requester": ADA, "approver": approver, "notify": true, "decisionBy": due.to_rfc3339(),
    });
    let created = system.post("/people-task/tasks", &ada, &body).await;
    let secret = leaks.add("a mailed secret", created.text_of("approverSecret"));
    leaks.add("a mailed secret", created.text_of("requesterSecret"));
    bring_nearer(system, 61);
    let reminder = eventually("the reminder", || async {
        let mut mails = mails.mails().into_iter();
        mails.find(|mail| mail.text.contains("\nSubject: Due now"))
    })
    .await;
    assert!(reminder.text.contains(&secret));
    let (_, token) = reminder.text.split_once("unsubscribe?token=").unwrap();
    let token = token.split_once('>').unwrap().0;
    leaks.add("the token of an unsubscribe link", token);
    let path = format!("/people-task/reminders/unsubscribe?token={token}");
    let _ = system.http.post(&path).send().await.expect(200);
    let wrong = leaks.add(
        "a forged token of an unsubscribe link",
        format!("{token}forged"),
    );
    let path = format!("/people-task/reminders/unsubscribe?token={wrong}");
    leaks.add_refusal(400, &system.http.get(&path).send().await);

    // The server repeats the address in its error.
    mails.refuse(1);
    let before = mails.mails().len();
    let _ = system.post("/people-task/tasks", &ada, &body).await;
    eventually("the mail to be sent again", || async {
        (mails.mails().len() > before).then_some(())
    })
    .await;
}

/// The URL of a server that repeats what it got, as some do when they refuse it.
fn echoing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), [0; 8192]);
            let length = stream.read(&mut head).unwrap();
            let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
            answer.extend_from_slice(&head[..length]);
            stream.write_all(&answer).unwrap();
        }
    });
    url
}

/// Registers webhooks with headers: one whose receiver repeats them, one that is refused. Lists and tries the first.
async fn register_headers(system: &System, leaks: &mut Leaks, token: &str, task: &Task) {
    let _ = leaks.add("a header", HEADER);
    let echo = json!({
        "url": echoing(), "taskId": task.id, "headers": {"Authorization": HEADER}, "method": "PUT",
        "success": {"status": [599]},
    });
    let registered = system.post("/people-task/webhooks", token, &echo).await;
    let id = registered.text_of("id");
    let list = format!("/people-task/tasks/{}/webhooks", task.id);
    let list = system.http.get(&list).bearer(token).send().await;
    let test = system
        .http
        .post(&format!("/people-task/webhooks/{id}/test"));
    let tried = test.bearer(token).send().await.expect(200);
    // Its URLs may be told, and the header may not.
    assert!(list.text.contains("authorization") && !list.text.contains(HEADER));
    for reply in [&registered, &tried] {
        leaks.refusals += &format!("{:?} {}\n", reply.headers, reply.text);
    }
    let refused = json!({
        "url": "http://8.8.8.8/", "taskId": task.id, "headers": {"Authorization": HEADER, "Host": HEADER},
    });
    let post = system.http.post("/people-task/webhooks").bearer(token);
    leaks.add_refusal(400, &post.json(&refused).send().await);
}

/// Registers webhooks with secrets in their URLs: one that succeeds, three that fail, four that are refused.
async fn register_webhooks(system: &System, leaks: &mut Leaks, token: &str, task: &Task) {
    // The worker needs the URL and the signing secret, so both are stored as they are.
    let url = &["people_task.webhooks.url"];
    leaks.add_stored("a secret in a URL's query", URL_QUERY, url);
    let _ = leaks.add("a password in a URL", URL_PASSWORD);
    let secret = &["people_task.webhooks.secret"];
    leaks.add_stored("a webhook's signing secret", WHSEC, secret);
    let receiver = system.webhook_url();
    let authority = receiver.strip_prefix("http://").unwrap();
    for url in [
        format!("http://{authority}?correlationId=right&key={URL_QUERY}"),
        format!("http://{authority}?status=500&key={URL_QUERY}"),
        format!("http://127.0.0.1:9/?key={URL_QUERY}"),
        format!("https://{authority}?key={URL_QUERY}"),
    ] {
        let body = json!({"url": url, "taskId": task.id, "secret": WHSEC});
        let _ = system.post("/people-task/webhooks", token, &body).await;
    }
    let link_local = format!("http://[fe80::1]/?key={URL_QUERY}");
    let credentials = format!("http://user:{URL_PASSWORD}@{authority}?key={URL_QUERY}");
    let ftp = format!("ftp://user:{URL_PASSWORD}@host/?key={URL_QUERY}");
    let wrong = WRONG_SECRET.repeat(2);
    for (url, secret) in [
        (link_local, WHSEC),
        (credentials, WHSEC),
        (ftp, WHSEC),
        (receiver, &wrong),
    ] {
        let body = json!({"url": url, "taskId": task.id, "secret": secret});
        let post = system.http.post("/people-task/webhooks").bearer(token);
        leaks.add_refusal(400, &post.json(&body).send().await);
    }
}

async fn decide(system: &System, leaks: &mut Leaks, task: &Task) {
    let path = format!("/people-task/tasks/{}/approve", task.id);
    let wrong = json!({"secret": WRONG_SECRET.repeat(2)});
    leaks.add_refusal(404, &system.http.put(&path).json(&wrong).send().await);
    let right = json!({"secret": task.approver_secret});
    let _ = system.http.put(&path).json(&right).send().await.expect(200);
    leaks.add_refusal(409, &system.http.put(&path).json(&right).send().await);
}

/// Resets a forgotten password with wrong and right codes.
async fn reset_password(system: &System, leaks: &mut Leaks) {
    let message = system.wait_for_request("kind=forgot-password").await;
    let code = leaks.add("a code", message["body"]["code"].as_str().unwrap());
    let wrong = leaks.add("a wrong code", "6512bd43d9caa6e02c990b0a82652dca".repeat(2));
    let password = leaks.add("a password by a code", "recovered-c20ad4d76fe97759");
    for (code, status) in [(&wrong, 400), (&code, 200), (&code, 400)] {
        let body = json!({"code": code, "password": password});
        let post = system.http.post("/user/forgot-password/reset").json(&body);
        let reply = post.send().await;
        if status == 200 {
            let _ = reply.expect(200);
        } else {
            leaks.add_refusal(status, &reply);
        }
    }
    let signed_in = system.sign_in(ADA, &password).await.expect(200);
    let _ = leaks.add("a token", signed_in.text_of("token"));
}

/// Waits until every delivery and the deletion have finished.
async fn wait_until_finished(system: &System, leaks: &mut Leaks, task: &Task, ticket: &str) {
    let _ = system.wait_for_webhook("right").await;
    let path = format!("/people-task/tasks/{}/deliveries", task.id);
    let deliveries = eventually("every delivery to finish", || async {
        let deliveries = system.http.get(&path).bearer(&system.admin).send().await;
        let deliveries = deliveries.json.as_array().unwrap().clone();
        let finished = deliveries.iter().filter(|one| one["status"] != "pending");
        (finished.count() == 5).then_some(deliveries)
    })
    .await;
    let deliveries = json!(deliveries).to_string();
    assert!(
        deliveries.contains("no success") && !deliveries.contains(HEADER),
        "{deliveries}"
    );
    eventually("the deletion to finish", || async {
        let status = system.http.get(ticket).bearer(&system.admin).send().await;
        (status.json["status"] == "completed").then_some(())
    })
    .await;
    let gone = system.http.get("/users/000000000000000000000000");
    leaks.add_refusal(404, &gone.bearer(&system.admin).send().await);
}
