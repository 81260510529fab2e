//! Secrets never leave: the whole job is done at the most talkative log level, and then everything that the
//! system says or keeps is searched for every password, token, code, secret and key that was in use.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{Reply, eventually};
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::System;

const ADA: &str = "ada@example.com";
const GRACE: &str = "grace@example.com";
const WHSEC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ENGINE_TOKEN: &str = "the-engine-token-b1946ac92492d234";
const URL_PASSWORD: &str = "url-password-591785b794601e21";
const URL_QUERY: &str = "url-query-secret-2c6ee24b09816a6f";

/// What was logged, by every process, span and library.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Logs everything from now on, in the form in which the processes log.
    fn everything() -> Self {
        let log = Self::default();
        tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
            .with_writer(log.clone())
            .init();
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'writer> MakeWriter<'writer> for Log {
    type Writer = Self;

    fn make_writer(&'writer self) -> Self {
        self.clone()
    }
}

/// Every secret that was in use, and everything that was said meanwhile.
#[derive(Default)]
struct Gathered {
    /// What it is, the text, and the columns in which it may stand.
    secrets: Vec<(&'static str, String, &'static [&'static str])>,
    /// The answers that were no success, with their headers.
    refusals: String,
}

impl Gathered {
    fn secret(&mut self, what: &'static str, text: impl Into<String>) -> String {
        self.secret_in(what, text, &[])
    }

    fn secret_in(
        &mut self,
        what: &'static str,
        text: impl Into<String>,
        columns: &'static [&'static str],
    ) -> String {
        let text = text.into();
        assert!(text.len() >= 9, "{what} is too short to be searched for");
        self.secrets.push((what, text.clone(), columns));
        text
    }

    fn refused(&mut self, status: u16, reply: &Reply) {
        assert_eq!(reply.status, status, "{}", reply.text);
        self.refusals += &format!("{:?} {}\n", reply.headers, reply.text);
    }

    fn check(&self, place: &str, text: &str) {
        for (what, secret, _) in &self.secrets {
            if let Some(at) = text.find(secret.as_str()) {
                let line = text[..at].rfind('\n').map_or(0, |start| start + 1);
                let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
                panic!("{what} stands in {place}: {}", &text[line..end]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_logged_counted_queued_answered_in_errors_or_kept_readable() {
    let log = Log::everything();
    let metrics = telemetry::metrics_recorder();
    let mut system = System::start_with(&[
        ("FORGOT_PASSWORD_LOG", "false"),
        ("FLOW_ENGINE_TOKEN", ENGINE_TOKEN),
        ("WEBHOOK_RETRY_SCHEDULE", "200ms,200ms"),
        ("WEBHOOK_TIMEOUT", "1s"),
    ])
    .await;
    let mut seen = Gathered::default();
    settings(&system, &mut seen);
    let queued = journey(&mut system, &mut seen).await;

    let log = log.text();
    for sign in [
        "TRACE",
        "hyper",
        "/people-task/tasks/{id}/approve",
        "new connection",
    ] {
        assert!(log.contains(sign), "the log is not talkative: no {sign}");
    }
    seen.check("the log", &log);
    let metrics = metrics.render();
    assert!(metrics.contains("revocation_feed_age_seconds"), "{metrics}");
    seen.check("the metrics", &metrics);
    assert!(queued.len() >= 3, "each queue had a message: {queued:?}");
    seen.check("a queue", &json!(queued).to_string());
    seen.check("an error", &seen.refusals);
    for (what, secret, allowed) in &seen.secrets {
        assert_eq!(
            system.database.columns_that_hold(secret),
            *allowed,
            "{what}"
        );
    }
    system.stop().await;
}

/// The secrets of the processes themselves.
fn settings(system: &System, seen: &mut Gathered) {
    seen.secret("the administrator's password", System::PASSWORD);
    seen.secret("the administrator's token", system.admin.as_str());
    seen.secret("the engine's token", ENGINE_TOKEN);
    for (what, name) in [
        ("the token key", "TOKEN_SIGNING_KEY"),
        ("the webhook key", "WEBHOOK_SIGNING_KEY"),
    ] {
        let pem = system.setting(name);
        seen.secret(what, pem.lines().nth(1).unwrap());
    }
    let urls = system.database.urls();
    for url in [
        system.setting("AMQP_URL"),
        urls.users_service.clone(),
        urls.users_owner.clone(),
        urls.people_task_service.clone(),
        urls.people_task_owner.clone(),
    ] {
        let password = url.split(['@', ':']).nth(2).unwrap();
        seen.secret("a password of the database or the broker", password);
    }
}

/// Everything that people do, right and wrong; answers with what waited in the queues.
async fn journey(system: &mut System, seen: &mut Gathered) -> Vec<Value> {
    let ada = people(system, seen).await;
    let task = task(system, seen, &ada).await;
    system.stop_workers().await;
    decide(system, seen, &task).await;
    let forgot = json!({"email": ADA});
    let forgot = system
        .http
        .post("/user/forgot-password")
        .json(&forgot)
        .send();
    let _ = forgot.await.expect(200);
    let grace = format!("/users/{}", system.user_id(GRACE).await);
    let deleted = system
        .http
        .delete(&grace)
        .bearer(&system.admin)
        .send()
        .await;
    // Whoever reads it is an administrator, and the row outlives the user, so it is kept as it is.
    let columns = &["users.deletions.ticket"];
    let ticket = seen.secret_in("a ticket", deleted.expect(200).text_of("ticket"), columns);
    let queued = eventually("all three messages to wait", || async {
        Some(system.queued()).filter(|queued| queued.len() >= 3)
    })
    .await;
    system.start_workers().await;
    recover(system, seen).await;
    finish(
        system,
        seen,
        &task,
        &format!("{grace}/delete-status/{ticket}"),
    )
    .await;
    queued
}

/// Sign-up, wrong passwords, changed passwords, forged tokens; answers with a token.
async fn people(system: &System, seen: &mut Gathered) -> String {
    let _ = seen.secret("a token", system.sign_up(GRACE).await);
    let first = seen.secret("a token", system.sign_up(ADA).await);
    let wrong = seen.secret("a wrong password", "wrong-password-8f14e45fceea167a");
    seen.refused(401, &system.sign_in(ADA, &wrong).await);
    let stranger = seen.secret(
        "a stranger's password",
        "stranger-password-c9f0f895fb98ab91",
    );
    seen.refused(401, &system.sign_in("nobody@example.com", &stranger).await);
    let next = seen.secret("a new password", "new-password-45c48cce2e2d7fbd");
    let change = |old: String, new: String| {
        let body = json!({"oldPassword": old, "newPassword": new});
        let post = system.http.post("/user/change-password").bearer(&first);
        post.json(&body).send()
    };
    seen.refused(400, &change(wrong.clone(), next.clone()).await);
    let changed = change(System::PASSWORD.to_owned(), next).await.expect(200);
    let token = seen.secret("a token", changed.text_of("token"));
    let long = seen.secret(
        "a password that is too long",
        "too-long-d3d9446802a44259".repeat(4),
    );
    let body = json!({"username": "long@example.com", "password": long});
    seen.refused(400, &system.http.post("/user").json(&body).send().await);

    let (head, signature) = token.rsplit_once('.').unwrap();
    let reversed: String = signature.chars().rev().collect();
    let forged = seen.secret("a forged token", format!("{head}.{reversed}"));
    for path in ["/user", "/people-task/tasks", "/users"] {
        let reply = system.http.get(path).bearer(&forged).send().await;
        seen.refused(401, &reply);
    }
    seen.refused(403, &system.http.get("/users").bearer(&token).send().await);
    token
}

/// A task with webhooks of every kind, its secrets used in every place, right and wrong.
async fn task(system: &System, seen: &mut Gathered, token: &str) -> crate::harness::Task {
    let body = json!({"title": "t", "requester": ADA, "approver": "b@example.com"});
    let post = system.http.post("/people-task/tasks").bearer(token);
    let created = post.json(&body).send().await.expect(200);
    let secret = seen.secret("the approver's secret", created.text_of("approverSecret"));
    let _ = seen.secret("the requester's secret", created.text_of("requesterSecret"));
    let task = crate::harness::Task {
        id: created.text_of("id"),
        approver_secret: secret.clone(),
    };
    let path = format!("/people-task/tasks/{}", task.id);
    let wrong = seen.secret(
        "a wrong secret",
        "4f53cda18c2baa0c0354bb5f9a3ecbe5".repeat(2),
    );
    for (secret, status) in [(&secret, 200), (&wrong, 404)] {
        let query = system
            .http
            .get(&format!("{path}?secret={secret}"))
            .send()
            .await;
        let header = system
            .http
            .get(&path)
            .header("X-Task-Secret", secret)
            .send()
            .await;
        assert_eq!([query.status, header.status], [status, status]);
        seen.refusals += &format!(
            "{} {}\n",
            if status == 200 { "" } else { &query.text },
            header.status
        );
    }

    // A caller may put what it likes into a url; it is kept to be called, and nobody else is told of it.
    seen.secret_in(
        "a password in a url",
        URL_PASSWORD,
        &["people_task.webhooks.url"],
    );
    seen.secret_in(
        "a secret in a url's query",
        URL_QUERY,
        &["people_task.webhooks.url"],
    );
    // It signs, so it has to be readable.
    seen.secret_in(
        "a webhook's signing secret",
        WHSEC,
        &["people_task.webhooks.secret"],
    );
    let receiver = system.webhook_url();
    let authority = receiver.strip_prefix("http://").unwrap();
    for url in [
        format!("http://user:{URL_PASSWORD}@{authority}?correlationId=right&key={URL_QUERY}"),
        format!("http://user:{URL_PASSWORD}@{authority}?status=500&key={URL_QUERY}"),
        format!("http://user:{URL_PASSWORD}@127.0.0.1:9/?key={URL_QUERY}"),
        format!("https://user:{URL_PASSWORD}@{authority}?key={URL_QUERY}"),
    ] {
        let body = json!({"url": url, "taskId": task.id, "secret": WHSEC});
        let post = system.http.post("/people-task/webhooks").bearer(token);
        let _ = post.json(&body).send().await.expect(200);
    }
    for (url, secret) in [
        (
            format!("http://user:{URL_PASSWORD}@[fe80::1]/?key={URL_QUERY}"),
            WHSEC,
        ),
        (
            format!("ftp://user:{URL_PASSWORD}@host/?key={URL_QUERY}"),
            WHSEC,
        ),
        (receiver.clone(), wrong.as_str()),
    ] {
        let body = json!({"url": url, "taskId": task.id, "secret": secret});
        let post = system.http.post("/people-task/webhooks").bearer(token);
        seen.refused(400, &post.json(&body).send().await);
    }
    task
}

async fn decide(system: &System, seen: &mut Gathered, task: &crate::harness::Task) {
    let path = format!("/people-task/tasks/{}/approve", task.id);
    let wrong = json!({"secret": "4f53cda18c2baa0c0354bb5f9a3ecbe5".repeat(2)});
    seen.refused(404, &system.http.put(&path).json(&wrong).send().await);
    let right = json!({"secret": task.approver_secret});
    let _ = system.http.put(&path).json(&right).send().await.expect(200);
    seen.refused(409, &system.http.put(&path).json(&right).send().await);
}

/// The forgotten password, with codes right and wrong.
async fn recover(system: &System, seen: &mut Gathered) {
    let message = system.wait_for_request("kind=forgot-password").await;
    let code = seen.secret("a code", message["body"]["code"].as_str().unwrap());
    let wrong = seen.secret("a wrong code", "6512bd43d9caa6e02c990b0a82652dca".repeat(2));
    let password = seen.secret("a password by a code", "recovered-c20ad4d76fe97759");
    for (code, status) in [(&wrong, 400), (&code, 200), (&code, 400)] {
        let body = json!({"code": code, "password": password});
        let post = system.http.post("/user/forgot-password/reset").json(&body);
        let reply = post.send().await;
        if status == 200 {
            let _ = reply.expect(200);
        } else {
            seen.refused(status, &reply);
        }
    }
    let signed_in = system.sign_in(ADA, &password).await.expect(200);
    let _ = seen.secret("a token", signed_in.text_of("token"));
}

/// Waits until every delivery and the deletion have ended.
async fn finish(system: &System, seen: &mut Gathered, task: &crate::harness::Task, ticket: &str) {
    let _ = system.wait_for_webhook("right").await;
    let path = format!("/people-task/tasks/{}/deliveries", task.id);
    eventually("every delivery to end", || async {
        let deliveries = system.http.get(&path).bearer(&system.admin).send().await;
        let deliveries = deliveries.json.as_array().unwrap().clone();
        let ended = deliveries.iter().filter(|one| one["status"] != "pending");
        (ended.count() == 4).then_some(())
    })
    .await;
    eventually("the deletion to end", || async {
        let status = system.http.get(ticket).bearer(&system.admin).send().await;
        (status.json["status"] == "completed").then_some(())
    })
    .await;
    let gone = system.http.get("/users/000000000000000000000000");
    seen.refused(404, &gone.bearer(&system.admin).send().await);
}
