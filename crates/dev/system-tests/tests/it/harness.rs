//! The whole system, started separately for each test: every process, a database, a vhost, free ports.

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Description, Reader, Settings, describe};
use serde_json::{Value, json};
use server::{ProcessSettings, Running, serve_metrics};
use testkit::{Http, MailServer, Reply, TestBroker, TestDatabase, eventually};

const GRACE: Duration = Duration::from_secs(20);
const ADMIN: &str = "admin@countersign.local";

/// A running system.
pub(crate) struct System {
    /// Requests through the gateway.
    pub(crate) http: Http,
    /// The administrator's token.
    pub(crate) admin: String,
    /// The system's database.
    pub(crate) database: TestDatabase,
    engine: demo_engine::Server,
    environment: Vec<(String, String)>,
    running: Vec<Running>,
    broker: TestBroker,
}

/// A created task.
pub(crate) struct Task {
    /// Its identifier.
    pub(crate) id: String,
    /// The secret of its approver.
    pub(crate) approver_secret: String,
    /// The secret of its requester.
    pub(crate) requester_secret: String,
}

impl System {
    /// The key of the headers of webhooks.
    pub(crate) const HEADER_KEY: &str =
        "6512bd43d9caa6e02c990b0a82652dca6512bd43d9caa6e02c990b0a82652dcb";

    /// The key of mail about tasks.
    pub(crate) const MAIL_KEY: &str = "the-mail-key-5f4dcc3b5aa765d61d8327deb882cf99";

    /// The password of every user.
    pub(crate) const PASSWORD: &str = "correct horse";

    /// Starts everything and signs the administrator in.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts everything with additional settings.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        let database =
            TestDatabase::migrated(user_service::MIGRATIONS, people_task_service::MIGRATIONS);
        let broker = TestBroker::new();
        let engine = demo_engine::run(demo_engine::Settings::default())
            .await
            .unwrap();
        let mut environment = environment(&broker, &engine.url());
        for (name, value) in settings {
            set(&mut environment, name, value);
        }

        let (running, http) = start_processes(&mut environment, &database).await;
        let mut system = Self {
            http,
            admin: String::new(),
            database,
            engine,
            environment,
            running,
            broker,
        };
        system.admin = system
            .sign_in(ADMIN, Self::PASSWORD)
            .await
            .expect(200)
            .text_of("token");
        system
    }

    /// Restarts every process with additional settings. Database, broker and flow engine keep running.
    pub(crate) async fn restart_with(&mut self, settings: &[(&str, &str)]) {
        for running in &self.running {
            assert!(running.stop(GRACE).await, "a process did not stop in time");
        }
        for (name, value) in settings {
            set(&mut self.environment, name, value);
        }
        (self.running, self.http) = start_processes(&mut self.environment, &self.database).await;
    }

    /// Starts another replica of the gateway.
    pub(crate) async fn start_another_gateway(&self) -> Http {
        let gateway = gateway::run(read(&self.environment)).await.unwrap();
        wait_ready(&gateway).await
    }

    /// Stops the user service.
    pub(crate) async fn stop_user_service(&mut self) {
        let stopped = self.running.pop().unwrap().stop(GRACE).await;
        assert!(stopped, "the user service did not stop in time");
    }

    /// Stops the workers, so that messages wait in their queues.
    pub(crate) async fn stop_workers(&mut self) {
        // The gateway comes first and the services last.
        for worker in self.running.drain(1..4) {
            assert!(worker.stop(GRACE).await, "a worker did not stop in time");
        }
    }

    /// Restarts the workers.
    pub(crate) async fn start_workers(&mut self) {
        let workers = start_workers(&self.environment, &self.database).await;
        self.running.splice(1..1, workers);
    }

    /// The messages in all queues.
    pub(crate) fn queued(&self) -> Vec<Value> {
        self.broker.waiting()
    }

    /// The value of a setting.
    pub(crate) fn setting(&self, name: &str) -> String {
        let mut given = self.environment.iter().rev();
        given.find(|(n, _)| n == name).unwrap().1.clone()
    }

    /// Starts the internal port of every process. Returns their names and addresses.
    pub(crate) fn serve_metrics(&self) -> Vec<(&'static str, SocketAddr)> {
        let names = [
            "gateway",
            "deletion-worker",
            "notification-worker",
            "webhook-worker",
            "people-task-service",
            "user-service",
        ];
        let recorder = telemetry::metrics_recorder();
        let processes = self.running.iter().zip(names).map(|(running, name)| {
            telemetry::describe_metrics(name);
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let address = serve_metrics(running, address, recorder.clone()).unwrap();
            (name, address)
        });
        processes.collect()
    }

    /// What `/metrics` of every process responds. They run in one process here, so each response has the metrics of all.
    pub(crate) async fn metrics(&self) -> String {
        let mut responses = String::new();
        for (_, address) in self.serve_metrics() {
            let response = Http::to(address).get("/metrics").send().await;
            responses += &response.expect(200).text;
        }
        responses
    }

    /// Stops everything. Fails if a process does not stop in time.
    pub(crate) async fn stop(self) {
        for running in &self.running {
            assert!(running.stop(GRACE).await, "a process did not stop in time");
        }
        self.engine.running.stop(GRACE).await;
    }

    /// The flow engine's webhook URL.
    pub(crate) fn webhook_url(&self) -> String {
        format!("{}/webhooks/flow", self.engine.url())
    }

    /// Sends a `GET` with a token and expects 200.
    pub(crate) async fn get(&self, path: &str, token: &str) -> Reply {
        let request = self.http.get(path).bearer(token);
        request.send().await.expect(200)
    }

    /// Sends a `POST` with a token and expects 200.
    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Reply {
        let request = self.http.post(path).bearer(token).json(body);
        request.send().await.expect(200)
    }

    /// Sends a `POST` without a token and expects 200.
    pub(crate) async fn post_anonymously(&self, path: &str, body: &Value) -> Reply {
        self.http.post(path).json(body).send().await.expect(200)
    }

    /// Sends a `PUT` with a token and expects 200.
    pub(crate) async fn put(&self, path: &str, token: &str, body: &Value) -> Reply {
        let request = self.http.put(path).bearer(token).json(body);
        request.send().await.expect(200)
    }

    /// Signs a user up and returns the token.
    pub(crate) async fn sign_up(&self, email: &str) -> String {
        let body = json!({"username": email, "password": Self::PASSWORD});
        self.post_anonymously("/user", &body).await.text_of("token")
    }

    /// Makes a key for the user of a token. Returns its identifier and its text.
    pub(crate) async fn make_key(&self, token: &str, body: &Value) -> (String, String) {
        let made = self.post("/user/keys", token, body).await;
        (made.text_of("id"), made.text_of("key"))
    }

    /// Tries to sign a user in.
    pub(crate) async fn sign_in(&self, username: &str, password: &str) -> Reply {
        let body = json!({"username": username, "password": password});
        self.http.post("/user/auth").json(&body).send().await
    }

    /// Looks up the id of a user.
    pub(crate) async fn user_id(&self, email: &str) -> String {
        let path = format!("/users?filter=email:{email}");
        let found = self.get(&path, &self.admin).await;
        found.json[0]["id"].as_str().unwrap().to_owned()
    }

    /// Creates a task.
    pub(crate) async fn create_task(&self, token: &str, requester: &str, approver: &str) -> Task {
        let body = json!({"title": "A title", "requester": requester, "approver": approver});
        self.create_task_from(token, &body).await
    }

    /// Creates a task from a request body.
    pub(crate) async fn create_task_from(&self, token: &str, body: &Value) -> Task {
        let created = self.post("/people-task/tasks", token, body).await;
        Task {
            id: created.text_of("id"),
            approver_secret: created.text_of("approverSecret"),
            requester_secret: created.text_of("requesterSecret"),
        }
    }

    /// Registers a webhook with this correlation id, received by the flow engine.
    pub(crate) async fn register_webhook(&self, token: &str, task: &str, correlation: &str) {
        let url = format!("{}?correlationId={correlation}", self.webhook_url());
        let body = json!({"url": url, "taskId": task});
        let _ = self.post("/people-task/webhooks", token, &body).await;
    }

    /// Starts everything with mail about tasks, which a server receives.
    pub(crate) async fn start_with_mail(settings: &[(&str, &str)]) -> (Self, MailServer) {
        let server = MailServer::start().unwrap();
        let url = server.url();
        let mail = [
            ("SMTP_URL", url.as_str()),
            ("MAIL_FROM", "no-reply@example.org"),
            ("PUBLIC_URL", "https://countersign.example.com"),
            ("TASK_MAIL_KEY", Self::MAIL_KEY),
        ];
        (Self::start_with(&[&mail, settings].concat()).await, server)
    }

    /// The requests that the flow engine received, filtered by a query.
    pub(crate) async fn received(&self, query: &str) -> Vec<Value> {
        let engine = Http::to(self.engine.address);
        let reply = engine
            .get(&format!("/received?{query}"))
            .send()
            .await
            .expect(200);
        reply.json["items"].as_array().unwrap().clone()
    }

    /// Waits for a request to the flow engine.
    pub(crate) async fn wait_for_request(&self, query: &str) -> Value {
        eventually("the flow engine to receive a request", || async {
            self.received(query).await.into_iter().next()
        })
        .await
    }

    /// Waits for the webhook with this correlation id.
    pub(crate) async fn wait_for_webhook(&self, correlation: &str) -> Value {
        self.wait_for_request(&format!("kind=webhook&correlationId={correlation}"))
            .await
    }
}

/// Starts every process. Returns them and a client of the gateway.
async fn start_processes(
    environment: &mut Vec<(String, String)>,
    database: &TestDatabase,
) -> (Vec<Running>, Http) {
    let users = user_service::run(read_for(environment, "users", database))
        .await
        .unwrap();
    set(environment, "USER_SERVICE_URL", &url_of(&users));
    let tasks = people_task_service::run(read_for(environment, "tasks", database))
        .await
        .unwrap();
    set(environment, "PEOPLE_TASK_SERVICE_URL", &url_of(&tasks));
    let mut running = start_workers(environment, database).await;
    running.extend([tasks, users]);
    let gateway = gateway::run(read(environment)).await.unwrap();
    let http = wait_ready(&gateway).await;
    running.insert(0, gateway);
    (running, http)
}

async fn start_workers(environment: &[(String, String)], database: &TestDatabase) -> Vec<Running> {
    let deleting = user_service::run_deletion_worker(read_for(environment, "users", database));
    let notifying = user_service::run_notification_worker(read_for(environment, "users", database));
    let delivering =
        people_task_service::run_webhook_worker(read_for(environment, "tasks", database));
    let (deleting, notifying, delivering) = (deleting.await, notifying.await, delivering.await);
    vec![deleting.unwrap(), notifying.unwrap(), delivering.unwrap()]
}

async fn wait_ready(gateway: &Running) -> Http {
    let http = Http::to(gateway.address.unwrap());
    eventually("the gateway to be ready", || async {
        (http.get("/readyz").send().await.status == 200).then_some(())
    })
    .await;
    http
}

/// The settings that all processes share. The database URLs differ: each service has its own role.
fn environment(broker: &TestBroker, engine: &str) -> Vec<(String, String)> {
    let key = testkit::ed25519_pem();
    let webhook_key = testkit::ed25519_pem();
    let forgot = format!("{engine}/forgot-password");
    [
        ("LISTEN_ADDRESS", "127.0.0.1:0"),
        ("AMQP_URL", broker.url().expose()),
        ("TOKEN_SIGNING_KEY", key.expose()),
        ("WEBHOOK_SIGNING_KEY", webhook_key.expose()),
        ("BCRYPT_COST", "4"),
        ("ADMIN_USERNAME", ADMIN),
        ("ADMIN_PASSWORD", System::PASSWORD),
        ("FLOW_ENGINE_URL", engine),
        ("WEBHOOK_USER_FORGOT_PASSWORD", &forgot),
        ("FORGOT_PASSWORD_LOG", "true"),
        ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8"),
        ("WEBHOOK_ENGINE_ORIGINS", "http://127.0.0.1:*"),
        ("WEBHOOK_HEADER_KEYS", System::HEADER_KEY),
        ("RATE_LIMIT", "off"),
        ("DATABASE_POOL_SIZE", "4"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn set(environment: &mut Vec<(String, String)>, name: &str, value: &str) {
    environment.push((name.to_owned(), value.to_owned()));
}

fn url_of(running: &Running) -> String {
    let address: SocketAddr = running.address.unwrap();
    format!("http://{address}")
}

fn read<S: Settings>(environment: &[(String, String)]) -> S {
    let mut reader = Reader::from_pairs(environment.iter().cloned()).unwrap();
    S::read(&mut reader).unwrap()
}

/// The settings of a process with the database URLs of one service.
fn read_for<S: Settings>(
    environment: &[(String, String)],
    schema: &str,
    database: &TestDatabase,
) -> S {
    let (url, owner) = match schema {
        "users" => (database.users_url(), database.users_owner_url()),
        _ => (database.people_task_url(), database.people_task_owner_url()),
    };
    let mut environment = environment.to_vec();
    set(&mut environment, "DATABASE_URL", url.expose());
    set(&mut environment, "DATABASE_OWNER_URL", owner.expose());
    read(&environment)
}

/// The settings that each process reads.
pub(crate) fn described_settings() -> Vec<(&'static str, Vec<Description>)> {
    fn both<S: Settings>() -> Vec<Description> {
        let mut all = describe::<ProcessSettings>().unwrap();
        all.extend(describe::<S>().unwrap());
        all
    }
    vec![
        ("gateway", both::<gateway::GatewaySettings>()),
        ("user-service", both::<user_service::UserServiceSettings>()),
        (
            "deletion-worker",
            both::<user_service::DeletionWorkerSettings>(),
        ),
        (
            "notification-worker",
            both::<user_service::NotificationWorkerSettings>(),
        ),
        (
            "people-task-service",
            both::<people_task_service::PeopleTaskServiceSettings>(),
        ),
        (
            "webhook-worker",
            both::<people_task_service::WebhookWorkerSettings>(),
        ),
        ("demo-engine", both::<demo_engine::Settings>()),
    ]
}
