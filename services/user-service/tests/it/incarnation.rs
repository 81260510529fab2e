//! Restores of the database, and other events that revoke the tokens of all users.

use std::collections::BTreeSet;
use std::time::Duration;

use app_config::{Reader, Settings as _};
use auth::{RevocationFeed, Signer, SigningKey, Subject};
use database::DatabaseSettings;
use diesel::connection::SimpleConnection as _;
use local_stack::client;
use serde_json::json;
use testkit::{Http, eventually};
use values::{EmailAddress, FromText as _, RevocableId, Secret, UserId};

use crate::fixture::{ADMIN, Fixture, PASSWORD, Person};

async fn incarnation(app: &Fixture) -> String {
    let feed = app.http.get("/internal/revocations").send().await;
    feed.expect(200).text_of("incarnation")
}

/// A token of any user, as the service under test would sign it.
fn sign(app: &Fixture, id: &str, epoch: i64, incarnation: &str) -> Person {
    let key = SigningKey::from_pem(&Secret::new(app.key())).unwrap();
    let name = || "countersign".to_owned();
    let signer = Signer::new(&key, &[], name(), name(), Duration::from_secs(3600));
    let email = EmailAddress::from_text("ada@example.com").unwrap();
    let token = signer.sign(Subject {
        id: UserId::from_text(id).unwrap(),
        username: email.clone(),
        email,
        scope: vec!["user".to_owned()],
        epoch,
        incarnation: incarnation.to_owned(),
        email_verified: true,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    });
    Person {
        id: id.to_owned(),
        token: token.expose().to_owned(),
    }
}

async fn eventually_revoked(replica: &Http, person: &Person) {
    eventually("a refused token", async || {
        let reply = replica.get("/user").bearer(&person.token).send().await;
        (reply.status == 401).then(|| reply.expect_problem(401, "token-revoked"))
    })
    .await;
}

/// A fresh sign-in, once the service has noticed the restore.
async fn signed_in(app: &Fixture, username: &str, password: &str) -> Person {
    eventually("a sign-in", async || {
        let reply = app.sign_in(username, password).await;
        let person = (reply.status == 200).then(|| Person::of(&reply))?;
        (app.get(&person, "/user").await.status == 200).then_some(person)
    })
    .await
}

/// Changes that a dump from before does not have. Returns everyone who has a token of that time.
async fn lost_time(app: &Fixture, admin: &Person, ada: &Person, bob: &Person) -> Vec<Person> {
    let new_password = json!({"oldPassword": PASSWORD, "newPassword": "battery staple"});
    let reply = app.post(ada, "/user/change-password", &new_password).await;
    let ada = Person {
        id: ada.id.clone(),
        token: reply.expect(200).text_of("token"),
    };
    let scope = json!({"scope": ["user", "admin"]});
    let _ = app.update(admin, &bob.id, &scope).await.expect(200);
    let bob = Person::of(&app.sign_in("bob@example.com", PASSWORD).await.expect(200));
    let _ = app.get(&bob, "/users").await.expect(200);
    let carol = app.sign_up("carol@example.com").await;
    vec![ada, bob, carol]
}

/// Restores a dump into the running system's database, and checks that nothing of the lost time is left.
async fn check_restore(options: &[&str]) {
    let app = Fixture::start().await;
    let replica = app.replica(&[]).await;
    let admin = app.admin().await;
    let ada = app.sign_up("ada@example.com").await;
    let bob = app.sign_up("bob@example.com").await;
    let dump = client::dump(&app.database.admin_url()).unwrap();
    let mut earlier = lost_time(&app, &admin, &ada, &bob).await;
    earlier.extend([admin, ada, bob]);
    client::restore(&app.database.admin_url(), &dump, options).unwrap();
    for person in &earlier {
        eventually_revoked(&app.http, person).await;
        eventually_revoked(&replica, person).await;
    }
    // Passwords and scopes are those of the dump, and revocation works.
    let ada = signed_in(&app, "ada@example.com", PASSWORD).await;
    let bob = signed_in(&app, "bob@example.com", PASSWORD).await;
    assert_eq!(app.get(&bob, "/users").await.status, 403);
    let admin = signed_in(&app, ADMIN, PASSWORD).await;
    let inactive = json!({"isActive": false});
    let _ = app.update(&admin, &ada.id, &inactive).await.expect(200);
    eventually_revoked(&replica, &ada).await;
}

#[tokio::test]
async fn a_restore_into_the_same_database_revokes_every_earlier_token() {
    check_restore(&["--clean", "--if-exists"]).await;
}

#[tokio::test]
async fn a_restore_in_one_transaction_revokes_every_earlier_token() {
    check_restore(&["--clean", "--if-exists", "--single-transaction"]).await;
}

#[tokio::test]
async fn a_schema_that_was_dropped_and_restored_has_another_incarnation() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let dump = client::dump(&app.database.admin_url()).unwrap();
    let mut connection = app.admin_connection();
    connection
        .batch_execute("DROP SCHEMA users CASCADE; CREATE SCHEMA users AUTHORIZATION users_owner; GRANT USAGE ON SCHEMA users TO users_service")
        .unwrap();
    client::restore(&app.database.admin_url(), &dump, &["--schema=users"]).unwrap();
    eventually_revoked(&app.http, &ada).await;
    let _ = signed_in(&app, "ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn maintenance_and_a_new_start_revoke_nothing() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let before = incarnation(&app).await;
    for statement in [
        "VACUUM FULL users.users",
        "REINDEX SCHEMA users",
        "CLUSTER users.users USING users_pkey",
        "ALTER TABLE users.users ADD COLUMN added timestamptz NOT NULL DEFAULT clock_timestamp()",
        "CHECKPOINT",
    ] {
        app.admin_connection().batch_execute(statement).unwrap();
        assert_eq!(incarnation(&app).await, before, "{statement}");
    }
    // It migrates again.
    let replica = app.replica(&[]).await;
    let reply = replica.get("/user").bearer(&ada.token).send().await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn an_operator_can_revoke_all_tokens() {
    let app = Fixture::start().await;
    let replica = app.replica(&[]).await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    let url = app.database.users_url();
    let pairs = [("DATABASE_URL", url.expose()), ("DATABASE_TIMEOUT", "30s")];
    let mut reader = Reader::from_pairs(pairs).unwrap();
    let settings = DatabaseSettings::read(&mut reader).unwrap();
    user_service::revoke_all_tokens(&settings).await.unwrap();
    for person in [&admin, &ada] {
        eventually_revoked(&app.http, person).await;
        eventually_revoked(&replica, person).await;
    }
    let again = signed_in(&app, ADMIN, PASSWORD).await;
    let reply = app.get(&again, "/audit?filter=action:tokens-revoked").await;
    let entries = reply.expect(200).json;
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(entries[0]["actorKind"], "service");
    assert_eq!(entries[0]["subject"], json!(null));
}

#[tokio::test]
async fn a_token_of_another_incarnation_is_refused() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let current = incarnation(&app).await;
    for (incarnation, is_valid) in [(current.as_str(), true), ("another", false)] {
        let person = sign(&app, &ada.id, 0, incarnation);
        app.assert_token(&person, is_valid).await;
    }
}

/// Inserts users with the identifiers 1 to `count`, whose epochs were raised to 1.
fn insert_raised_users(app: &Fixture, count: usize) {
    let insert = format!(
        "SET session_replication_role = replica;
        INSERT INTO users.users (id, username, email, username_key, email_key, password_hash, plan, scope,
            epoch, epoch_raised, epoch_transaction)
        SELECT decode(lpad(to_hex(n), 24, '0'), 'hex'), n || '@example.com', n || '@example.com',
            n || '@example.com', n || '@example.com', '', 'free', '{{user}}', 1,
            now() - n * interval '1 millisecond', 3 + n / 1000
        FROM generate_series(1, {count}) AS n"
    );
    app.admin_connection().batch_execute(&insert).unwrap();
}

/// The users of all pages of a full read.
async fn read_pages(app: &Fixture) -> BTreeSet<RevocableId> {
    let first = "/internal/revocations?limit=10000";
    let (mut users, mut path) = (BTreeSet::new(), first.to_owned());
    loop {
        let page = app.http.get(&path).send().await.expect(200).json;
        let page: RevocationFeed = serde_json::from_value(page).unwrap();
        assert!(page.epochs.len() <= 10_000);
        users.extend(page.epochs.iter().map(|(user, _)| *user));
        if !page.more {
            return users;
        }
        path = format!("{first}&cursor={}", page.next);
    }
}

#[tokio::test]
async fn a_feed_of_many_users_is_read_in_pages() {
    const USERS: usize = 100_000;
    let app = Fixture::start().await;
    insert_raised_users(&app, USERS);
    assert_eq!(read_pages(&app).await.len(), USERS);
    // A process that starts knows all of them before it accepts a token.
    let replica = app.replica(&[]).await;
    let current = incarnation(&app).await;
    for n in [1, USERS / 2, USERS] {
        let id = format!("{n:024x}");
        for (epoch, status) in [(0, 401), (1, 200)] {
            let token = sign(&app, &id, epoch, &current).token;
            let reply = replica.get("/user").bearer(&token).send().await;
            assert_eq!(reply.status, status, "{n} {epoch}");
        }
    }
}
