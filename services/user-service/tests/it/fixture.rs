//! The running service of a test, and its users.

use std::time::Duration;

use app_config::{Reader, Settings as _};
use serde_json::{Value, json};
use server::Running;
use testkit::{Http, Reply, TestConnection, TestDatabase, ed25519_pem, shared_broker};
use user_service::{MIGRATIONS, UserServiceSettings, run};

/// The first administrator of every service of these tests.
pub(crate) const ADMIN: &str = "admin@example.com";
/// The password of every user by default.
pub(crate) const PASSWORD: &str = "correct horse";

/// A running user service. No worker runs beside it, so that it shares its vhost with those of other tests.
pub(crate) struct Fixture {
    pub(crate) http: Http,
    pub(crate) database: TestDatabase,
    key: String,
    running: Running,
}

/// A user who has signed in.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) token: String,
}

impl Fixture {
    /// Starts a service with the default settings, except for a low bcrypt cost.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a service with additional settings.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_on(TestDatabase::users(MIGRATIONS), settings).await
    }

    /// Starts a service on a database that the test has prepared.
    pub(crate) async fn start_on(database: TestDatabase, settings: &[(&str, &str)]) -> Self {
        let key = ed25519_pem().expose().to_owned();
        let running = run(settings_of(&database, &key, settings)).await;
        let running = running.unwrap();
        Self {
            http: Http::to(running.address.unwrap()),
            database,
            key,
            running,
        }
    }

    /// Starts another replica on the same database. It stops with the first one.
    pub(crate) async fn replica(&self, settings: &[(&str, &str)]) -> Http {
        let settings = settings_of(&self.database, &self.key, settings);
        let running = run(settings).await.unwrap();
        let (first, second) = (self.running.shutdown(), running.clone());
        tokio::spawn(async move {
            first.cancelled().await;
            second.stop(Duration::from_secs(5)).await;
        });
        Http::to(running.address.unwrap())
    }

    /// The key that signs tokens, PEM.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The superuser's connection.
    pub(crate) fn admin_connection(&self) -> TestConnection {
        self.database.admin()
    }

    /// Signs a new user up.
    pub(crate) async fn sign_up(&self, email: &str) -> Person {
        let body = json!({"email": email, "password": PASSWORD});
        let reply = self.http.post("/user").json(&body).send().await.expect(200);
        Person::of(&reply)
    }

    pub(crate) async fn sign_in(&self, username: &str, password: &str) -> Reply {
        let body = json!({"username": username, "password": password});
        self.http.post("/user/auth").json(&body).send().await
    }

    /// Signs the first administrator in.
    pub(crate) async fn admin(&self) -> Person {
        Person::of(&self.sign_in(ADMIN, PASSWORD).await.expect(200))
    }

    /// Signs a new user up and gives it the scope `admin`.
    pub(crate) async fn make_admin(&self, email: &str) -> Person {
        let person = self.sign_up(email).await;
        let admin = self.admin().await;
        let scope = json!({"scope": ["user", "admin"]});
        let _ = self.update(&admin, &person.id, &scope).await.expect(200);
        Person::of(&self.sign_in(email, PASSWORD).await.expect(200))
    }

    pub(crate) async fn update(&self, admin: &Person, id: &str, change: &Value) -> Reply {
        let request = self.http.put(&format!("/users/{id}"));
        request.bearer(&admin.token).json(change).send().await
    }

    pub(crate) async fn get(&self, person: &Person, path: &str) -> Reply {
        self.http.get(path).bearer(&person.token).send().await
    }

    pub(crate) async fn post(&self, person: &Person, path: &str, body: &Value) -> Reply {
        let request = self.http.post(path).bearer(&person.token);
        request.json(body).send().await
    }

    pub(crate) async fn delete(&self, person: &Person, path: &str) -> Reply {
        self.http.delete(path).bearer(&person.token).send().await
    }

    /// Asserts whether a user's token is accepted.
    pub(crate) async fn assert_token(&self, person: &Person, is_accepted: bool) {
        let reply = self.get(person, "/user").await;
        if is_accepted {
            let _ = reply.expect(200);
        } else {
            reply.expect_problem(401, "token-revoked");
        }
    }
}

impl Person {
    /// The user in a response of sign-in or sign-up.
    pub(crate) fn of(reply: &Reply) -> Self {
        let text = |path| {
            reply
                .json
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap()
                .to_owned()
        };
        Self {
            id: text("/user/id"),
            token: text("/token"),
        }
    }
}

/// Replaces ids, times and tokens, which differ from run to run, for snapshots.
pub(crate) fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| match name.as_str() {
                "token" | "requestId" => (name.clone(), json!(format!("[{name}]"))),
                _ => (name.clone(), redacted(value)),
            })
            .collect(),
        Value::Array(values) => values.iter().map(redacted).collect(),
        Value::String(text) if text.len() == 24 && text.ends_with('Z') => json!("[time]"),
        Value::String(text) if text.len() == 24 && hex::decode(text).is_ok() => json!("[id]"),
        other => other.clone(),
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.running.shutdown().cancel();
    }
}

fn settings_of(
    database: &TestDatabase,
    key: &str,
    settings: &[(&str, &str)],
) -> UserServiceSettings {
    let (url, owner, amqp) = (
        database.users_url(),
        database.users_owner_url(),
        shared_broker(),
    );
    let defaults = [
        ("LISTEN_ADDRESS", "127.0.0.1:0"),
        ("DATABASE_URL", url.expose()),
        ("DATABASE_OWNER_URL", owner.expose()),
        ("DATABASE_TIMEOUT", "30s"),
        ("AMQP_URL", amqp.expose()),
        ("TOKEN_SIGNING_KEY", key),
        ("BCRYPT_COST", "4"),
        ("ADMIN_USERNAME", ADMIN),
        ("ADMIN_PASSWORD", PASSWORD),
    ];
    let replaced = |name| settings.iter().any(|(given, _)| *given == name);
    let defaults = defaults.iter().filter(|(name, _)| !replaced(*name));
    let pairs = defaults.chain(settings).copied();
    let mut reader = Reader::from_pairs(pairs).unwrap();
    UserServiceSettings::read(&mut reader).unwrap()
}
