//! A running service, and what the tests do with it.

use std::collections::BTreeMap;

use app_config::{Reader, Settings as _};
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use people_task_service::{MIGRATIONS, PeopleTaskServiceSettings, run};
use serde_json::{Value, json};
use server::Running;
use testkit::{
    Http, Reply, Request, TestBroker, TestDatabase, ed25519_pem, eventually, shared_broker,
};
use values::{Secret, UserId};

use crate::token_authority::TokenAuthority;
use crate::webhook_worker::fixture::STOP_TIMEOUT;

/// The default fields of a task, sorted.
pub(crate) const DEFAULT_FIELDS: [&str; 7] = [
    "approver",
    "decisionBy",
    "description",
    "id",
    "requester",
    "status",
    "title",
];

/// A running service with everything around it.
pub(crate) struct Fixture {
    pub(crate) http: Http,
    pub(crate) database: TestDatabase,
    broker: Option<TestBroker>,
    pub(crate) authority: TokenAuthority,
    running: Running,
}

/// A user with a token.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) id: UserId,
    pub(crate) email: String,
    pub(crate) token: String,
}

/// A new task with its secrets.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) approver_secret: String,
    pub(crate) requester_secret: String,
}

impl Fixture {
    /// Starts the service and waits until it is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts the service with some settings replaced.
    pub(crate) async fn start_with(overrides: &[(&str, &str)]) -> Self {
        Self::start_on(TestDatabase::people_task(MIGRATIONS), overrides).await
    }

    /// Starts the service on a prepared database, with some settings replaced. It shares its vhost with those of other tests.
    pub(crate) async fn start_on(database: TestDatabase, overrides: &[(&str, &str)]) -> Self {
        Self::start_between(database, None, overrides).await
    }

    /// Starts the service with a [broker](Self::broker) of its own, and with some settings replaced.
    pub(crate) async fn start_with_broker(overrides: &[(&str, &str)]) -> Self {
        let database = TestDatabase::people_task(MIGRATIONS);
        Self::start_between(database, Some(TestBroker::new()), overrides).await
    }

    /// Starts the service on a prepared database and with a broker, if it has one of its own.
    pub(crate) async fn start_between(
        database: TestDatabase,
        broker: Option<TestBroker>,
        overrides: &[(&str, &str)],
    ) -> Self {
        let authority = TokenAuthority::start();
        let amqp = url_of(broker.as_ref());
        let (running, http) = start_service(&database, &amqp, &authority, overrides).await;
        Self {
            http,
            database,
            broker,
            authority,
            running,
        }
    }

    /// Stops the service, and starts it on the same database with some settings replaced.
    pub(crate) async fn restart_with(&mut self, overrides: &[(&str, &str)]) {
        assert!(self.stop().await, "the service did not stop in time");
        let (database, authority) = (&self.database, &self.authority);
        let amqp = url_of(self.broker.as_ref());
        (self.running, self.http) = start_service(database, &amqp, authority, overrides).await;
    }

    /// Stops the service; `false` if it did not end in time.
    pub(crate) async fn stop(&self) -> bool {
        self.running.stop(STOP_TIMEOUT).await
    }

    /// The broker for a worker, or to be cut off.
    pub(crate) fn broker(&self) -> &TestBroker {
        let hint = "the service shares its vhost: start it with `start_with_broker`";
        assert!(self.broker.is_some(), "{hint}");
        self.broker.as_ref().unwrap()
    }

    /// A new user.
    pub(crate) fn user(&self, email: &str) -> User {
        let (id, token) = self.authority.user(email);
        User {
            id,
            email: email.to_owned(),
            token,
        }
    }

    /// A new user of a group of accounts that count as one.
    pub(crate) fn member(&self, email: &str, group: UserId) -> User {
        let (id, token) = self.authority.member(email, group);
        User {
            id,
            email: email.to_owned(),
            token,
        }
    }

    /// A new administrator.
    pub(crate) fn admin(&self) -> User {
        let email = "root@example.com";
        let (id, token) = self.authority.admin(email);
        User {
            id,
            email: email.to_owned(),
            token,
        }
    }

    /// Creates a task that ada requests and grace approves, with some fields replaced.
    pub(crate) async fn create(&self, by: &User, overrides: Value) -> Task {
        let reply = self.try_create(by, overrides).await.expect(200);
        Task {
            id: reply.text_of("id"),
            path: format!("/people-task/tasks/{}", reply.text_of("id")),
            approver_secret: reply.text_of("approverSecret"),
            requester_secret: reply.text_of("requesterSecret"),
        }
    }

    /// Tries to create a task.
    pub(crate) async fn try_create(&self, by: &User, overrides: Value) -> Reply {
        let mut body = json!({
            "title": "Buy a second printer",
            "requester": "ada@example.com",
            "approver": "grace@example.com",
        });
        merge(&mut body, overrides);
        let request = self.http.post("/people-task/tasks").bearer(&by.token);
        request.json(&body).send().await
    }

    /// Registers a webhook and returns its identifier.
    pub(crate) async fn register(&self, by: &User, task: &Task, url: &str) -> String {
        let body = json!({"taskId": task.id, "url": url});
        let reply = self.try_register(by, &body).await.expect(200);
        reply.text_of("id")
    }

    /// Tries to register a webhook.
    pub(crate) async fn try_register(&self, by: &User, body: &Value) -> Reply {
        let request = self.http.post("/people-task/webhooks").bearer(&by.token);
        request.json(body).send().await
    }

    /// The tasks of a list, by title, in their order.
    pub(crate) async fn titles(&self, by: &User, query: &str) -> Vec<String> {
        let reply = self.get(by, &format!("/people-task/tasks?{query}")).await;
        titles(&reply.expect(200))
    }

    /// `GET` with a user's token.
    pub(crate) async fn get(&self, by: &User, path: &str) -> Reply {
        self.http.get(path).bearer(&by.token).send().await
    }

    /// `PUT` with a user's token and a body.
    pub(crate) async fn put(&self, by: &User, path: &str, body: &Value) -> Reply {
        self.http
            .put(path)
            .bearer(&by.token)
            .json(body)
            .send()
            .await
    }

    /// Approves with a user's token.
    pub(crate) async fn approve(&self, by: &User, task: &Task) -> Reply {
        self.http
            .put(&format!("{}/approve", task.path))
            .bearer(&by.token)
            .send()
            .await
    }

    /// Counts the rows of a table, with an optional condition.
    pub(crate) fn count(&self, table_and_condition: &str) -> i64 {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            count: i64,
        }
        let sql = format!("SELECT count(*) AS count FROM people_task.{table_and_condition}");
        let count: Count = diesel::sql_query(sql)
            .get_result(&mut self.database.admin())
            .unwrap();
        count.count
    }

    /// Runs a statement as the superuser.
    pub(crate) fn execute(&self, sql: &str) {
        let connection: &mut PgConnection = &mut self.database.admin();
        diesel::sql_query("SET search_path = people_task, public")
            .execute(connection)
            .unwrap();
        diesel::sql_query(sql).execute(connection).unwrap();
    }

    /// Adds what the service keeps of each task in another table, for tasks that a test has inserted.
    pub(crate) fn add_states(&self) {
        self.execute(
            "INSERT INTO task_states (task_id, public, creator, created, decision_by, approver_key, requester_key, title_key)
            SELECT id, public, creator, created, decision_by, approver_key, requester_key, lower(title) FROM tasks
            ON CONFLICT DO NOTHING",
        );
    }

    /// The text column `value` of a query, which runs as the superuser.
    pub(crate) fn value(&self, sql: &str) -> Option<String> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Nullable<Text>)]
            value: Option<String>,
        }
        let connection: &mut PgConnection = &mut self.database.admin();
        diesel::sql_query("SET search_path = people_task, public")
            .execute(connection)
            .unwrap();
        let row: Row = diesel::sql_query(sql).get_result(connection).unwrap();
        row.value
    }

    /// Why the service does not start with some settings replaced.
    pub(crate) fn start_error(&self, overrides: &[(&str, &str)]) -> String {
        let given = given(&self.database, &shared_broker(), &self.authority);
        let read = PeopleTaskServiceSettings::read(&mut reader(given, overrides));
        read.err().unwrap().to_string()
    }
}

fn url_of(broker: Option<&TestBroker>) -> Secret {
    broker.map_or_else(shared_broker, TestBroker::url)
}

fn reader(given: Vec<(String, String)>, overrides: &[(&str, &str)]) -> Reader {
    let overrides = overrides
        .iter()
        .map(|(n, v)| (n.to_string(), v.to_string()));
    let pairs: BTreeMap<String, String> = given.into_iter().chain(overrides).collect();
    Reader::from_pairs(pairs).unwrap()
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.running.shutdown().cancel();
    }
}

async fn start_service(
    database: &TestDatabase,
    amqp: &Secret,
    authority: &TokenAuthority,
    overrides: &[(&str, &str)],
) -> (Running, Http) {
    let mut reader = reader(given(database, amqp, authority), overrides);
    let running = run(PeopleTaskServiceSettings::read(&mut reader).unwrap())
        .await
        .unwrap();
    let http = Http::to(running.address.unwrap());
    eventually("the service to be ready", async || {
        let reply = http.get("/readyz").send().await;
        (reply.status == 200).then_some(())
    })
    .await;
    (running, http)
}

fn given(
    database: &TestDatabase,
    amqp: &Secret,
    authority: &TokenAuthority,
) -> Vec<(String, String)> {
    let user_service = authority.url();
    [
        ("LISTEN_ADDRESS", "127.0.0.1:0"),
        ("DATABASE_URL", database.people_task_url().expose()),
        (
            "DATABASE_OWNER_URL",
            database.people_task_owner_url().expose(),
        ),
        ("AMQP_URL", amqp.expose()),
        ("USER_SERVICE_URL", &user_service),
        ("WEBHOOK_SIGNING_KEY", ed25519_pem().expose()),
        ("WEBHOOK_ALLOWED_NETWORKS", "127.0.0.0/8"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Replaces fields of an object.
pub(crate) fn merge(into: &mut Value, from: Value) {
    let Value::Object(from) = from else { return };
    for (name, value) in from {
        into[name] = value;
    }
}

/// The titles in a list.
pub(crate) fn titles(reply: &Reply) -> Vec<String> {
    let tasks = reply.json.as_array().unwrap();
    let titles = tasks.iter().map(|task| task["title"].as_str().unwrap());
    titles.map(str::to_owned).collect()
}

/// The path of the next page.
pub(crate) fn next_page(reply: &Reply) -> Option<String> {
    let link = reply.header("link")?;
    let (path, rest) = link.strip_prefix('<')?.split_once('>')?;
    assert_eq!(rest, "; rel=\"next\"");
    Some(path.to_owned())
}

/// A response body for a snapshot, without the values that differ in each run.
pub(crate) fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let redacted = fields.iter().map(|(name, value)| match name.as_str() {
                "requestId" => (name.clone(), json!("[request id]")),
                _ => (name.clone(), redacted(value)),
            });
            Value::Object(redacted.collect())
        }
        Value::Array(values) => values.iter().map(redacted).collect(),
        Value::String(text) => match placeholder(text) {
            Some(placeholder) => json!(placeholder),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

fn placeholder(text: &str) -> Option<&'static str> {
    let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match text.len() {
        24 if is_hex => Some("[id]"),
        64 if is_hex => Some("[secret]"),
        24 if chrono::DateTime::parse_from_rfc3339(text).is_ok() => Some("[time]"),
        _ => None,
    }
}

/// Adds a secret to a request by its header.
pub(crate) trait WithSecret {
    fn secret(self, secret: &str) -> Self;
}

impl WithSecret for Request {
    fn secret(self, secret: &str) -> Self {
        self.header("X-Task-Secret", secret)
    }
}
