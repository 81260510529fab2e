//! The user service and both workers together.

use std::time::Duration;

use app_config::{Reader, Settings as _};
use demo_engine::{Control, ControlChange};
use serde_json::{Value, json};
use service_runtime::Running;
use testkit::{Http, Reply, eventually};
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
            fixture.worker(&[]).await,
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
    async fn sign_up(&self) -> (String, String) {
        let body = json!({"email": ADA, "password": PASSWORD});
        let reply = self.http.post("/user").json(&body).send().await.expect(200);
        (text(&reply.json, "/user/id"), text(&reply.json, "/token"))
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
    let reply = system
        .http
        .delete(&path)
        .bearer(&admin)
        .send()
        .await
        .expect(200);
    let ticket = text(&reply.json, "/ticket");
    let status = format!("{path}/delete-status/{ticket}");
    assert_eq!(reply.headers["location"], status);
    assert_eq!(
        system.http.get("/user").bearer(&token).send().await.status,
        401
    );

    let mut seen = Vec::new();
    let ended = eventually("the end of the deletion", || {
        let request = system.http.get(&status).bearer(&admin);
        async { Some(request.send().await.expect(200).json) }
    });
    let mut ended = ended.await;
    while ended["status"] == "in-progress" {
        assert_eq!(ended["stepsTotal"], 8);
        seen.push(ended["stepsDone"].as_i64().unwrap());
        ended = system
            .http
            .get(&status)
            .bearer(&admin)
            .send()
            .await
            .expect(200)
            .json;
    }
    assert_eq!(
        ended,
        json!({"status": "completed", "stepsDone": 8, "stepsTotal": 8})
    );
    assert!(seen.is_sorted(), "{seen:?}");
    seen.dedup();
    assert!(seen.len() >= 4, "progress is visible: {seen:?}");

    assert_eq!(system.sign_in(ADA, PASSWORD).await.status, 401);
    assert_eq!(
        system.http.get("/user").bearer(&token).send().await.status,
        401
    );
    assert_eq!(
        system.http.get(&path).bearer(&admin).send().await.status,
        404
    );
    assert_eq!(
        system.http.delete(&path).bearer(&admin).send().await.status,
        404
    );
    assert_eq!(
        system.http.get(&status).bearer(&admin).send().await.status,
        200
    );
    let left = system.fixture.database.rows_that_hold("users", "lovelace");
    assert_eq!(left, Vec::<String>::new());
    let left = system.fixture.rows_of(&id);
    assert_eq!(left.len(), 1, "only the job itself knows the id: {left:?}");
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
    let start = || system.http.delete(&path).bearer(&admin).send();
    let ticket = text(&start().await.expect(200).json, "/ticket");
    assert_eq!(
        text(&start().await.expect(200).json, "/ticket"),
        ticket,
        "one job at a time"
    );
    let status = format!("{path}/delete-status/{ticket}");
    let ask = || async {
        system
            .http
            .get(&status)
            .bearer(&admin)
            .send()
            .await
            .expect(200)
            .json
    };
    eventually("the first step", || async {
        (ask().await["stepsDone"].as_i64().unwrap() >= 1).then_some(())
    })
    .await;
    let cancelled = system
        .http
        .delete(&status)
        .bearer(&admin)
        .send()
        .await
        .expect(200)
        .json;
    assert_eq!(cancelled["status"], "cancelled");

    let again = text(&start().await.expect(200).json, "/ticket");
    assert_ne!(again, ticket);
    let again = format!("{path}/delete-status/{again}");
    eventually("the end of the second deletion", || async {
        let reply = system
            .http
            .get(&again)
            .bearer(&admin)
            .send()
            .await
            .expect(200);
        (reply.json["status"] == "completed").then_some(())
    })
    .await;
    assert_eq!(ask().await, cancelled, "the first one did not go on");
    system.stop().await;
}

#[actix_web::test]
async fn only_the_newest_code_works_and_only_once() {
    let system = System::start(Control::default()).await;
    let (_, token) = system.sign_up().await;
    system.forgot().await;
    let first = system.codes(1).await.remove(0);
    system.forgot().await;
    let second = system.codes(2).await.remove(1);

    assert_eq!(system.reset(&first, "another horse").await.status, 400);
    assert_eq!(system.reset(&second, "another horse").await.status, 200);
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
    tokio::time::sleep(Duration::from_millis(300)).await;
    system.fixture.engine.change_control(&up);
    let code = system.codes(1).await.remove(0);
    assert_eq!(system.reset(&code, "another horse").await.status, 200);
    assert_eq!(system.sign_in(ADA, "another horse").await.status, 200);
    system.stop().await;
}
