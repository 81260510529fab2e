//! A worker with everything around it: database, broker, flow engine, and a stand-in for the
//! people-task service.

use std::collections::{HashMap, VecDeque};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use actix_web::web::{Data, Json, Path, post, put};
use actix_web::{App, HttpRequest, HttpResponse};
use app_config::{Reader, Settings as _};
use auth::{ServiceCaller, SigningKey, Verifier};
use demo_engine::{Control, Server};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Jsonb, Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use serde_json::{Value, json};
use server::{HttpServerSettings, Running};
use sha2::{Digest as _, Sha256};
use testkit::{TestBroker, TestDatabase, eventually};
use user_service::deletions::Step;
use user_service::{DeletionWorkerSettings, MIGRATIONS, run_deletion_worker};
use values::{DeletionId, Names as _, Secret, UserId};

pub(crate) const REQUEST_ID: &str = "request-7";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A job as the database has it.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub(crate) struct Job {
    #[diesel(sql_type = Text)]
    pub(crate) status: String,
    #[diesel(sql_type = Integer)]
    pub(crate) steps_done: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) steps_total: i32,
    #[diesel(sql_type = Nullable<Jsonb>)]
    pub(crate) failure: Option<Value>,
    /// Whether the revocation feed has the user.
    #[diesel(sql_type = Bool)]
    pub(crate) is_revoked: bool,
    #[diesel(sql_type = BigInt)]
    pub(crate) failed_attempts: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) deleted_tasks: i64,
}

pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    pub(crate) broker: TestBroker,
    pub(crate) engine: Server,
    pub(crate) people_tasks: PeopleTasks,
    key: Secret,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with_engine(Control::default()).await
    }

    pub(crate) async fn with_engine(control: Control) -> Self {
        let settings = demo_engine::Settings {
            control,
            token: Some(Secret::new("engine-token")),
            ..demo_engine::Settings::default()
        };
        let key = testkit::ed25519_pem();
        Self {
            database: TestDatabase::users(MIGRATIONS),
            broker: TestBroker::new(),
            engine: demo_engine::run(settings).await.unwrap(),
            people_tasks: PeopleTasks::start(&key),
            key,
        }
    }

    /// The environment of the process; `changes` override it.
    pub(crate) fn environment(&self, changes: &[(&str, &str)]) -> HashMap<String, String> {
        let secret = |secret: &Secret| secret.expose().to_owned();
        let people_tasks = format!("http://{}", self.people_tasks.running.address.unwrap());
        let (url, owner) = (self.database.users_url(), self.database.users_owner_url());
        let pairs = [
            ("DATABASE_URL", secret(&url)),
            ("DATABASE_OWNER_URL", secret(&owner)),
            ("DATABASE_TIMEOUT", "30s".to_owned()),
            ("AMQP_URL", secret(&self.broker.url())),
            ("FLOW_ENGINE_URL", self.engine.url()),
            ("FLOW_ENGINE_TOKEN", "engine-token".to_owned()),
            ("PEOPLE_TASK_SERVICE_URL", people_tasks),
            ("TOKEN_SIGNING_KEY", secret(&self.key)),
            ("DELETE_RETRY_PAUSE", "20ms".to_owned()),
            ("DELETE_SETTLE_TIME", "0s".to_owned()),
        ];
        let changes = changes.iter().map(|(n, v)| (*n, (*v).to_owned()));
        let all = pairs.into_iter().chain(changes);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Starts a worker inside the test.
    pub(crate) async fn worker(&self, changes: &[(&str, &str)]) -> Running {
        let mut reader = Reader::from_pairs(self.environment(changes)).unwrap();
        let settings = DeletionWorkerSettings::read(&mut reader).unwrap();
        run_deletion_worker(settings).await.unwrap()
    }

    /// Starts the worker's real process, which can be killed.
    pub(crate) fn process(&self, changes: &[(&str, &str)]) -> WorkerProcess {
        let child = Command::new(env!("CARGO_BIN_EXE_deletion-worker"))
            .env_clear()
            .envs(self.environment(changes))
            .stdout(Stdio::null())
            .spawn();
        WorkerProcess(child.unwrap())
    }

    /// A user with codes, a notification, failed sign-ins and requests for codes.
    pub(crate) fn user(&self, email: &str) -> UserId {
        let (id, key) = (UserId::generate(), email.to_lowercase());
        let bytes = format!("decode('{id}', 'hex')");
        let account = hex::encode(Sha256::digest(&key));
        self.sql(&format!(
            "INSERT INTO users.users (id, username, email, username_key, email_key, password_hash,
                plan, scope, email_confirmed)
             VALUES ({bytes}, '{email}', '{email}', '{key}', '{key}', 'x', 'free', '{{user}}', now());
             INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires)
             SELECT sha256(convert_to('{id}' || n, 'utf8')), {bytes}, 'forgot-password', 0, now() + interval '1 hour'
             FROM generate_series(1, 3) AS n;
             INSERT INTO users.notifications (id, user_id, kind, channel, request_id, traceparent, republish_at)
             VALUES ({bytes}, {bytes}, 'forgot-password', 'log', 'r', 't', now() + interval '1 hour');
             INSERT INTO users.sign_in_failures (account, client_address, failures)
             SELECT decode('{account}', 'hex'), '10.0.0.' || n, 7 FROM generate_series(1, 3) AS n;
             INSERT INTO users.known_networks (user_id, network_hash)
             SELECT {bytes}, sha256(n::text::bytea) FROM generate_series(1, 3) AS n;
             INSERT INTO users.code_requests (counted, subject, forgotten_at)
             SELECT 'account', subject, now() + interval '1 hour'
             FROM unnest(ARRAY[decode('{account}', 'hex'), sha256('verify-email {key}')]) AS subject;"
        ));
        id
    }

    /// A job of all steps that is due now.
    pub(crate) fn delete(&self, user: UserId) -> DeletionId {
        self.delete_by(user, &Step::for_new_deletion(true))
    }

    pub(crate) fn delete_by(&self, user: UserId, steps: &[Step]) -> DeletionId {
        let (id, total) = (DeletionId::generate(), steps.len());
        let bytes = format!("decode('{id}', 'hex')");
        let steps = steps.iter().zip(1..);
        let rows =
            steps.map(|(step, position)| format!("({bytes}, {position}, '{}')", step.name()));
        let rows = rows.collect::<Vec<_>>().join(", ");
        self.sql(&format!(
            "BEGIN;
             INSERT INTO users.deletions (id, ticket, user_id, steps_total, request_id, traceparent, republish_at,
                email_trusted)
             SELECT {bytes}, 'ticket-{id}', decode('{user}', 'hex'), {total}, '{REQUEST_ID}', '{TRACEPARENT}', now(),
                EXISTS (SELECT FROM users.users WHERE id = decode('{user}', 'hex') AND email_confirmed IS NOT NULL);
             INSERT INTO users.deletion_steps (deletion_id, position, name) VALUES {rows};
             COMMIT;"
        ));
        id
    }

    /// The rows that contain the identifier of a user, except the one that revokes a deleted user's tokens.
    pub(crate) fn rows_of(&self, user: &str) -> Vec<String> {
        let mut rows = self.database.rows_that_hold("users", user);
        rows.retain(|row| !row.starts_with("deleted_users: "));
        rows
    }

    /// Runs statements as the superuser.
    pub(crate) fn sql(&self, statements: &str) {
        self.database.admin().batch_execute(statements).unwrap();
    }

    pub(crate) fn job(&self, id: DeletionId) -> Job {
        diesel::sql_query(
            "SELECT d.*, coalesce(sum(s.attempts), 0)::bigint AS failed_attempts, \
                EXISTS (SELECT FROM users.deleted_users AS gone WHERE gone.user_id = d.user_id) AS is_revoked \
             FROM users.deletions AS d \
             LEFT JOIN users.deletion_steps AS s ON s.deletion_id = d.id WHERE d.id = $1 GROUP BY d.id",
        )
        .bind::<Binary, _>(id.as_bytes().as_slice())
        .get_result(&mut self.database.admin())
        .unwrap()
    }

    /// Waits until the job meets a condition.
    pub(crate) async fn job_that(
        &self,
        id: DeletionId,
        what: &str,
        wanted: impl Fn(&Job) -> bool,
    ) -> Job {
        eventually(what, || async { Some(self.job(id)).filter(&wanted) }).await
    }

    pub(crate) async fn ended(&self, id: DeletionId) -> Job {
        let ended = |job: &Job| job.status != "in-progress";
        self.job_that(id, "the end of the job", ended).await
    }

    /// Whether a worker has claimed the job.
    pub(crate) fn is_claimed(&self, id: DeletionId) -> bool {
        #[derive(QueryableByName)]
        struct Claimed {
            #[diesel(sql_type = Bool)]
            claimed: bool,
        }
        let claimed: Claimed = diesel::sql_query(
            "SELECT lease_until IS NOT NULL AS claimed FROM users.deletions WHERE id = $1",
        )
        .bind::<Binary, _>(id.as_bytes().as_slice())
        .get_result(&mut self.database.admin())
        .unwrap();
        claimed.claimed
    }

    /// The engine's operations for the user so far: step and status.
    pub(crate) async fn engine_calls(&self, user: UserId) -> Vec<(String, u64)> {
        let url = format!("{}/users/{user}", self.engine.url());
        let user: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        let calls = user.get("calls").and_then(Value::as_array).unwrap().iter();
        calls
            .map(|call| {
                let step = call.get("step").and_then(Value::as_str).unwrap();
                let status = call.get("status").and_then(Value::as_u64);
                (step.to_owned(), status.unwrap())
            })
            .collect()
    }
}

/// A worker in a separate process; dropping it sends SIGKILL.
pub(crate) struct WorkerProcess(Child);

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// One call of the people-task service's internal endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Erasure {
    pub(crate) user: String,
    pub(crate) emails: Value,
    pub(crate) former_emails: Value,
}

/// What the internal endpoint responds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ErasureResponse {
    /// A batch was deleted, and there are more tasks.
    More,
    /// Other transactions hold the tasks that are left.
    Blocked,
    /// The service is broken.
    Failure,
}

#[derive(Debug, Default)]
struct Tasks {
    calls: Vec<Erasure>,
    /// The `changed` of each call.
    changes_of_erasures: Vec<String>,
    /// The next responses. After them there are no more tasks.
    responses: VecDeque<ErasureResponse>,
    /// `X-Request-Id` and `traceparent` of the latest call.
    context: Option<(String, String)>,
    /// The states of users that were told, in order.
    changes: Vec<(String, Value)>,
    change_response: ChangeResponse,
}

/// What the internal operation about a changed user does after it took the state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum ChangeResponse {
    #[default]
    Success,
    Failure,
    /// It never responds, so that the worker can be killed before it knows.
    Never,
}

/// Replaces the people-task service: it checks the caller and records the calls.
pub(crate) struct PeopleTasks {
    running: Running,
    tasks: Arc<Mutex<Tasks>>,
}

impl PeopleTasks {
    fn start(key: &Secret) -> Self {
        let key = SigningKey::from_pem(key).unwrap();
        let verifier = Verifier::new("countersign", "countersign");
        verifier.set_keys(&auth::JwkSet {
            keys: vec![key.public().jwk()],
        });
        let verifier = Data::from(Arc::new(verifier));
        let tasks = Arc::<Mutex<Tasks>>::default();
        let shared = Data::from(Arc::clone(&tasks));
        let (listener, address) = server::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let mut running = Running::new();
        running.address = Some(address);
        let settings = HttpServerSettings {
            max_connections: 100,
            ..HttpServerSettings::single_threaded()
        };
        server::serve(&running, listener, settings, move || {
            App::new()
                .app_data(Data::clone(&verifier))
                .app_data(Data::clone(&shared))
                .route("/internal/users/{id}/erase", post().to(erase))
                .route("/internal/users/{id}", put().to(change))
        })
        .unwrap();
        Self { running, tasks }
    }

    /// Sets the next responses.
    pub(crate) fn will_respond(&self, responses: &[ErasureResponse]) {
        self.tasks.lock().unwrap().responses = responses.iter().copied().collect();
    }

    /// `X-Request-Id` and `traceparent` of the latest call.
    pub(crate) fn context(&self) -> Option<(String, String)> {
        self.tasks.lock().unwrap().context.clone()
    }

    pub(crate) fn will_respond_to_changes(&self, response: ChangeResponse) {
        self.tasks.lock().unwrap().change_response = response;
    }

    /// The states that were told of a user, in order.
    pub(crate) fn changes(&self, user: UserId) -> Vec<Value> {
        let tasks = self.tasks.lock().unwrap();
        let of_user = tasks
            .changes
            .iter()
            .filter(|(id, _)| *id == user.to_string());
        of_user.map(|(_, state)| state.clone()).collect()
    }

    pub(crate) fn changes_of_erasures(&self) -> Vec<String> {
        self.tasks.lock().unwrap().changes_of_erasures.clone()
    }

    pub(crate) fn calls(&self) -> Vec<Erasure> {
        self.tasks.lock().unwrap().calls.clone()
    }
}

async fn change(
    _caller: ServiceCaller,
    user: Path<String>,
    body: Json<Value>,
    tasks: Data<Mutex<Tasks>>,
) -> HttpResponse {
    let response = {
        let mut tasks = tasks.lock().unwrap();
        tasks.changes.push((user.into_inner(), body.into_inner()));
        tasks.change_response
    };
    match response {
        ChangeResponse::Success => HttpResponse::Ok().json(json!({})),
        ChangeResponse::Failure => HttpResponse::ServiceUnavailable().finish(),
        ChangeResponse::Never => std::future::pending().await,
    }
}

async fn erase(
    _caller: ServiceCaller,
    request: HttpRequest,
    user: Path<String>,
    body: Json<Value>,
    tasks: Data<Mutex<Tasks>>,
) -> HttpResponse {
    let header = |name: &str| {
        let value = request.headers().get(name);
        value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    };
    let mut tasks = tasks.lock().unwrap();
    tasks.context = Some((header("x-request-id"), header("traceparent")));
    let changed = body.get("changed").and_then(Value::as_str).unwrap();
    tasks.changes_of_erasures.push(changed.to_owned());
    tasks.calls.push(Erasure {
        user: user.into_inner(),
        emails: body.get("emails").cloned().unwrap_or_default(),
        former_emails: body.get("formerEmails").cloned().unwrap_or_default(),
    });
    let body = match tasks.responses.pop_front() {
        Some(ErasureResponse::Failure) => return HttpResponse::InternalServerError().finish(),
        Some(ErasureResponse::Blocked) => json!({"deletedTasks": 0, "more": true, "blocked": true}),
        Some(ErasureResponse::More) => json!({"deletedTasks": 2, "more": true, "blocked": false}),
        None => json!({"deletedTasks": 2, "more": false, "blocked": false}),
    };
    HttpResponse::Ok().json(body)
}
