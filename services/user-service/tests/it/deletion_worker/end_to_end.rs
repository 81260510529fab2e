//! The user service and both workers together.

use std::time::{Duration, Instant};

use app_config::{Reader, Settings as _};
use chrono::{DateTime, Utc};
use demo_engine::{Control, ControlChange};
use serde_json::{Value, json};
use server::Running;
use testkit::{Http, Reply, eventually, lines};
use user_service::{NotificationWorkerSettings, UserServiceSettings, run, run_notification_worker};

use crate::deletion_worker::fixture::Fixture;

const ADMIN: &str = "admin@example.org";
const ADA: &str = "Ada.Lovelace@Example.com";
const PASSWORD: &str = "correct horse";
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// The user service and its workers.
pub(crate) struct System {
    pub(crate) fixture: Fixture,
    pub(crate) http: Http,
    running: Vec<Running>,
}

impl System {
    pub(crate) async fn start(control: Control) -> Self {
        Self::start_with(control, &[]).await
    }

    /// Starts with additional settings of the deletion worker.
    pub(crate) async fn start_with(control: Control, worker: &[(&str, &str)]) -> Self {
        let fixture = Fixture::with_engine(control).await;
        let webhook = format!("{}/forgot-password", fixture.engine.url());
        let environment = fixture.environment(&[
            ("LISTEN_ADDRESS", "127.0.0.1:0"),
            ("ADMIN_USERNAME", ADMIN),
            ("ADMIN_PASSWORD", PASSWORD),
            ("BCRYPT_COST", "4"),
            ("WEBHOOK_USER_FORGOT_PASSWORD", &webhook),
            ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8"),
        ]);
        let mut reader = Reader::from_pairs(environment).unwrap();
        let service = UserServiceSettings::read(&mut reader).unwrap();
        let notifications = NotificationWorkerSettings::read(&mut reader).unwrap();
        let service = run(service).await.unwrap();
        let http = Http::to(service.address.unwrap());
        let running = vec![
            service,
            fixture.worker(worker).await,
            run_notification_worker(notifications).await.unwrap(),
        ];
        Self {
            fixture,
            http,
            running,
        }
    }

    async fn sign_in(&self, username: &str, password: &str) -> Reply {
        let body = json!({"username": username, "password": password});
        self.http.post("/user/auth").json(&body).send().await
    }

    /// The administrator's token.
    pub(crate) async fn admin(&self) -> String {
        text(
            &self.sign_in(ADMIN, PASSWORD).await.expect(200).json,
            "/token",
        )
    }

    /// Ada's id and token.
    pub(crate) async fn sign_up(&self) -> (String, String) {
        let body = json!({"email": ADA, "password": PASSWORD});
        let reply = self.http.post("/user").json(&body).send().await.expect(200);
        (text(&reply.json, "/user/id"), text(&reply.json, "/token"))
    }

    async fn get(&self, path: &str, token: &str) -> Reply {
        self.http.get(path).bearer(token).send().await
    }

    /// Deletes a user; returns the response and the path of the deletion's status.
    pub(crate) async fn delete(&self, admin: &str, user: &str) -> (Reply, String) {
        let reply = self.http.delete(user).bearer(admin).send().await;
        let reply = reply.expect(200);
        let ticket = text(&reply.json, "/ticket");
        (reply, format!("{user}/delete-status/{ticket}"))
    }

    /// Waits until a deletion has completed all its 8 steps; returns every `stepsDone` until then.
    async fn progress(&self, admin: &str, status: &str) -> Vec<i64> {
        let mut progress = Vec::new();
        let started = Instant::now();
        loop {
            let status = self.get(status, admin).await.expect(200).json;
            if text(&status, "/status") != "in-progress" {
                let completed = json!({"status": "completed", "stepsDone": 8, "stepsTotal": 8});
                assert_eq!(status, completed);
                return progress;
            }
            let number = |pointer| status.pointer(pointer).and_then(Value::as_i64).unwrap();
            assert_eq!(number("/stepsTotal"), 8);
            assert!(started.elapsed() < Duration::from_secs(60), "{status}");
            progress.push(number("/stepsDone"));
        }
    }

    /// Waits until a deletion has ended, and returns its status.
    pub(crate) async fn ended(&self, admin: &str, status: &str) -> Value {
        eventually("the end of the deletion", || async {
            let status = self.get(status, admin).await.expect(200).json;
            (text(&status, "/status") != "in-progress").then_some(status)
        })
        .await
    }

    async fn forgot(&self) {
        let body = json!({"email": ADA});
        let reply = self.http.post("/user/forgot-password").json(&body);
        assert_eq!(reply.send().await.status, 200);
    }

    /// Waits until the engine has received at least `number` codes.
    async fn codes(&self, number: usize) -> Vec<String> {
        eventually("the codes", || async {
            let received = self.fixture.engine.received();
            let codes = received.iter().map(|one| text(&one.body, "/code"));
            Some(codes.collect::<Vec<_>>()).filter(|codes| codes.len() >= number)
        })
        .await
    }

    async fn reset(&self, code: &str, password: &str) -> Reply {
        let body = json!({"code": code, "password": password});
        let request = self.http.post("/user/forgot-password/reset");
        request.json(&body).send().await
    }

    pub(crate) async fn stop(self) {
        for running in self.running {
            assert!(running.stop(STOP_TIMEOUT).await);
        }
    }
}

pub(crate) fn text(json: &Value, pointer: &str) -> String {
    json.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap()
        .to_owned()
}

#[actix_web::test]
async fn deleting_a_user_removes_every_trace_and_shows_progress() {
    let system = System::start(Control {
        delay: Duration::from_millis(60),
        ..Control::default()
    })
    .await;
    let admin = system.admin().await;
    let (id, token) = system.sign_up().await;
    assert_eq!(system.sign_in(ADA, "wrong").await.status, 401);
    system.forgot().await;
    system.codes(1).await;

    let path = format!("/users/{id}");
    let (reply, status) = system.delete(&admin, &path).await;
    assert_eq!(reply.headers["location"], status);
    assert_eq!(system.get("/user", &token).await.status, 401);

    let mut progress = system.progress(&admin, &status).await;
    assert!(progress.is_sorted(), "{progress:?}");
    progress.dedup();
    assert!(progress.len() >= 4, "progress is visible: {progress:?}");

    assert_eq!(system.sign_in(ADA, PASSWORD).await.status, 401);
    assert_eq!(system.get("/user", &token).await.status, 401);
    assert_eq!(system.get(&path, &admin).await.status, 404);
    let again = system.http.delete(&path).bearer(&admin).send().await;
    assert_eq!(again.status, 404);
    assert_eq!(system.get(&status, &admin).await.status, 200);
    let left = system.fixture.database.rows_that_hold("users", "lovelace");
    assert_eq!(left, Vec::<String>::new());
    let left = system.fixture.rows_of(&id);
    assert_eq!(left.len(), 1, "only the job still has the id: {left:?}");
    system.stop().await;
}

#[actix_web::test]
async fn a_new_deletion_can_start_after_a_cancelled_one() {
    let system = System::start(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let admin = system.admin().await;
    let (id, _) = system.sign_up().await;
    let path = format!("/users/{id}");
    let (_, first) = system.delete(&admin, &path).await;
    let (_, same) = system.delete(&admin, &path).await;
    assert_eq!(same, first, "a user has one deletion at a time");
    eventually("the first step", || async {
        let status = system.get(&first, &admin).await.expect(200).json;
        (status["stepsDone"].as_i64().unwrap() >= 1).then_some(())
    })
    .await;
    let cancelled = system.http.delete(&first).bearer(&admin).send().await;
    let cancelled = cancelled.expect(200).json;
    assert_eq!(cancelled["status"], "cancelled");

    let (_, second) = system.delete(&admin, &path).await;
    assert_ne!(second, first);
    system.progress(&admin, &second).await;
    let first = system.get(&first, &admin).await.expect(200).json;
    assert_eq!(first, cancelled, "the cancelled deletion must not continue");
    system.stop().await;
}

#[actix_web::test]
async fn the_codes_of_the_last_requests_work_until_one_is_used() {
    let system = System::start(Control::default()).await;
    let (_, token) = system.sign_up().await;
    system.forgot().await;
    let first = system.codes(1).await.remove(0);
    system.forgot().await;
    let second = system.codes(2).await.remove(1);

    assert_eq!(system.reset(&first, "another horse").await.status, 200);
    assert_eq!(system.reset(&first, "a third horse").await.status, 400);
    assert_eq!(system.reset(&second, "a third horse").await.status, 400);
    assert_eq!(system.sign_in(ADA, "another horse").await.status, 200);
    assert_eq!(system.sign_in(ADA, PASSWORD).await.status, 401);
    assert_eq!(
        system.http.get("/user").bearer(&token).send().await.status,
        401
    );
    system.stop().await;
}

#[actix_web::test]
async fn a_code_sent_after_an_outage_works() {
    let system = System::start(Control {
        down: true,
        ..Control::default()
    })
    .await;
    system.sign_up().await;
    system.forgot().await;
    let up = ControlChange {
        down: Some(false),
        ..ControlChange::default()
    };
    eventually("an attempt that failed", || async {
        let failed =
            "SELECT last_error AS line FROM users.notifications WHERE last_error IS NOT NULL";
        lines(&mut system.fixture.database.admin(), failed).pop()
    })
    .await;
    system.fixture.engine.change_control(&up);
    let code = system.codes(1).await.remove(0);
    assert_eq!(system.reset(&code, "another horse").await.status, 200);
    assert_eq!(system.sign_in(ADA, "another horse").await.status, 200);
    system.stop().await;
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

#[actix_web::test]
async fn tasks_requested_under_former_addresses_are_erased() {
    let system = System::start(Control::default()).await;
    let admin = system.admin().await;
    let (id, _) = system.sign_up().await;
    let user = format!("/users/{id}");
    for email in ["second@example.com", ADA, "third@example.com"] {
        let change = system.http.put(&user).bearer(&admin);
        let change = change.json(&json!({"email": email, "username": email}));
        let _ = change.send().await.expect(200);
    }
    // Another user has the second address now.
    let body = json!({"email": "second@example.com", "password": PASSWORD});
    let reply = system.http.post("/user").json(&body).send().await;
    let _ = reply.expect(200);
    let (_, status) = system.delete(&admin, &user).await;
    assert_eq!(
        text(&system.ended(&admin, &status).await, "/status"),
        "completed"
    );

    let calls = system.fixture.people_tasks.calls();
    assert_eq!(calls[0].emails, json!(["third@example.com"]));
    let former = calls[0].former_emails.as_array().unwrap();
    let (ada, second) = (ADA.to_lowercase(), "second@example.com");
    let emails: Vec<_> = former.iter().map(|one| text(one, "/email")).collect();
    assert_eq!(emails, [&ada, second, &ada]);
    let times = former
        .iter()
        .flat_map(|one| [text(one, "/since"), text(one, "/until")])
        .map(|text| time(&text));
    assert!(times.is_sorted(), "{former:?}");
    assert_eq!(text(&former[1], "/since"), text(&former[0], "/until"));
    assert_eq!(text(&former[2], "/since"), text(&former[1], "/until"));
    let left = system.fixture.database.rows_that_hold("users", &ada);
    assert_eq!(left, Vec::<String>::new());
    system.stop().await;
}

#[actix_web::test]
async fn tasks_requested_while_another_user_had_the_address_are_not_erased() {
    let system = System::start(Control::default()).await;
    let admin = system.admin().await;
    let (other, _) = system.sign_up().await;
    let change = json!({"email": "fourth@example.com", "username": "fourth@example.com"});
    let change = system.http.put(&format!("/users/{other}")).json(&change);
    let _ = change.bearer(&admin).send().await.expect(200);
    let (id, _) = system.sign_up().await;
    let (_, status) = system.delete(&admin, &format!("/users/{id}")).await;
    let ended = system.ended(&admin, &status).await;
    assert_eq!(text(&ended, "/status"), "completed");
    let call = system.fixture.people_tasks.calls().pop().unwrap();
    assert_eq!(call.emails, json!([]));
    let times = format!(
        "SELECT unnest(ARRAY[since, until])::timestamptz AS at FROM users.former_emails WHERE encode(user_id, 'hex') = '{other}'"
    );
    let times = format!(
        "SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') AS line FROM ({times}) AS times"
    );
    let times = lines(&mut system.fixture.database.admin(), &times);
    let [before, after] = [0, 1].map(|index| {
        let one = &call.former_emails[index];
        assert_eq!(one["email"], ADA);
        ["since", "until"].map(|name| time(one[name].as_str().unwrap()))
    });
    assert_eq!(before, [DateTime::UNIX_EPOCH, time(&times[0])]);
    assert_eq!(after, [time(&times[1]), time("9999-12-31T23:59:59Z")]);
    assert_eq!(call.former_emails.as_array().unwrap().len(), 2);
    system.stop().await;
}
