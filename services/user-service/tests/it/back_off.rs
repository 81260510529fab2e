//! The back-off beyond sign-in itself: known networks, and passwords that are checked elsewhere.

use diesel::RunQueryDsl as _;
use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::Reply;

use crate::audit::rows;
use crate::fixture::{ADMIN, Fixture, PASSWORD, Person};
use crate::revoke_tokens::raise_epochs_unnoticed;
use crate::sign_in::{end_pauses, fail, hold_pauses, try_from};
use crate::verify_email;

const NEW: &str = "battery staple";
/// Networks from which a user signed in.
const HOME: &str = "203.0.113.1";
const OFFICE: &str = "203.0.113.2";
/// A network from which no user signed in.
const ELSEWHERE: &str = "203.0.113.99";

async fn post_from(app: &Fixture, address: &str, token: &str, path: &str, body: &Value) -> Reply {
    let request = app.http.post(path).header("X-Forwarded-For", address);
    request.bearer(token).json(body).send().await
}

async fn change_from(app: &Fixture, address: &str, person: &Person, old: &str) -> Reply {
    let body = json!({"oldPassword": old, "newPassword": NEW});
    post_from(app, address, &person.token, "/user/change-password", &body).await
}

async fn sign_in_from(app: &Fixture, address: &str, username: &str, password: &str) -> Person {
    Person::of(&try_from(app, address, username, password).await.expect(200))
}

/// Fails as often as it takes to make every network wait that is not exempt.
async fn fail_from_everywhere(app: &Fixture, username: &str) {
    for host in 1..=50 {
        fail(app, &format!("198.51.100.{host}"), username, 1).await;
    }
    hold_pauses(app);
}

#[tokio::test]
async fn strangers_do_not_lock_out_a_user_who_has_signed_in_from_the_same_network_before() {
    let app = Fixture::start().await;
    let _ = sign_in_from(&app, HOME, ADMIN, PASSWORD).await;
    fail_from_everywhere(&app, ADMIN).await;
    let reply = try_from(&app, ELSEWHERE, ADMIN, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    let _ = sign_in_from(&app, HOME, ADMIN, PASSWORD).await;
    // The strangers must go on waiting.
    let reply = try_from(&app, ELSEWHERE, ADMIN, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    // The known network's own failures still count.
    fail(&app, HOME, ADMIN, 5).await;
    hold_pauses(&app);
    let reply = try_from(&app, HOME, ADMIN, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
}

#[tokio::test]
async fn the_network_of_a_sign_up_is_known() {
    let app = Fixture::start().await;
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let request = app.http.post("/user").header("X-Forwarded-For", HOME);
    let _ = request.json(&body).send().await.expect(200);
    fail_from_everywhere(&app, "ada@example.com").await;
    let _ = sign_in_from(&app, HOME, "ada@example.com", PASSWORD).await;
}

#[tokio::test]
async fn only_the_networks_of_the_latest_sign_ins_are_known_and_no_address_is_stored() {
    let app = Fixture::start().await;
    for host in 1..=21 {
        let _ = sign_in_from(&app, &format!("203.0.113.{host}"), ADMIN, PASSWORD).await;
    }
    let rows = app.database.rows_that_hold("users", "");
    let known = rows.iter().filter(|row| row.starts_with("known_networks:"));
    assert_eq!(known.count(), 20);
    let holding = app.database.rows_that_hold("users", "203.0.113.21");
    assert!(
        holding.iter().all(|row| row.starts_with("audit_log:")),
        "{holding:?}"
    );
    fail_from_everywhere(&app, ADMIN).await;
    let reply = try_from(&app, "203.0.113.1", ADMIN, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    let _ = sign_in_from(&app, "203.0.113.2", ADMIN, PASSWORD).await;
}

/// How a user gets a new password.
#[derive(Debug, Clone, Copy)]
enum Way {
    OwnChange,
    Code,
    Reset,
    Update,
}

async fn set_password(app: &Fixture, way: Way, person: &Person) {
    let email = "ada@example.com";
    let reply = match way {
        Way::OwnChange => change_from(app, HOME, person, PASSWORD).await,
        Way::Code => {
            store_code(app, person);
            let body = json!({"code": "code", "password": NEW});
            post_from(app, HOME, "", "/user/forgot-password/reset", &body).await
        }
        Way::Reset => {
            let admin = app.admin().await;
            let body = json!({"email": email, "password": NEW});
            post_from(app, HOME, &admin.token, "/user/reset-password", &body).await
        }
        Way::Update => {
            let admin = app.admin().await;
            app.update(&admin, &person.id, &json!({"password": NEW}))
                .await
        }
    };
    let _ = reply.expect(200);
}

fn store_code(app: &Fixture, person: &Person) {
    diesel::sql_query(format!(
        "INSERT INTO users.codes (fingerprint, user_id, purpose, generation, expires) \
         SELECT sha256('code'), id, 'forgot-password', code_generation, now() + interval '1 hour' \
         FROM users.users WHERE encode(id, 'hex') = '{}'",
        person.id
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
}

#[tokio::test]
async fn a_new_password_ends_the_back_off_and_forgets_the_networks_of_others() {
    for (way, home_is_known) in [
        (Way::OwnChange, true),
        (Way::Code, true),
        (Way::Reset, false),
        (Way::Update, false),
    ] {
        let app = Fixture::start_with(&[("FORGOT_PASSWORD_LOG", "true")]).await;
        let ada = "ada@example.com";
        let _ = app.sign_up(ada).await;
        let _ = sign_in_from(&app, OFFICE, ada, PASSWORD).await;
        let person = sign_in_from(&app, HOME, ada, PASSWORD).await;
        fail_from_everywhere(&app, ada).await;
        set_password(&app, way, &person).await;

        if !matches!(way, Way::OwnChange) {
            fail(&app, ELSEWHERE, ada, 1).await;
        }
        end_pauses(&app);
        fail_until_everyone_waits(&app, ada).await;
        let reply = try_from(&app, OFFICE, ada, NEW).await;
        reply.expect_problem(429, "too-many-attempts");
        let reply = try_from(&app, HOME, ada, NEW).await;
        assert_eq!(reply.status == 200, home_is_known, "{way:?}");
    }
}

/// Fails until all networks must wait, whatever was counted before.
async fn fail_until_everyone_waits(app: &Fixture, username: &str) {
    let mut status = 401;
    for host in 51..=101 {
        if status == 401 {
            let address = format!("198.51.100.{host}");
            status = try_from(app, &address, username, "wrong").await.status;
        }
    }
    assert_eq!(status, 429);
    hold_pauses(app);
}

#[tokio::test]
async fn wrong_old_passwords_count_like_failed_sign_ins() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    for _ in 0..3 {
        let reply = change_from(&app, ELSEWHERE, &ada, "wrong").await;
        reply.expect_problem(400, "wrong-password");
    }
    fail(&app, ELSEWHERE, "ada@example.com", 2).await;
    hold_pauses(&app);
    // The right password must wait, too, for a change and for a sign-in.
    let reply = change_from(&app, ELSEWHERE, &ada, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    assert!(reply.header("retry-after").is_some());
    let reply = try_from(&app, ELSEWHERE, "ada@example.com", PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
    // Other networks need not wait.
    let _ = change_from(&app, HOME, &ada, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn wrong_old_passwords_from_anywhere_count_together() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    for host in 1..=50 {
        let reply = change_from(&app, &format!("198.51.100.{host}"), &ada, "wrong").await;
        reply.expect_problem(400, "wrong-password");
    }
    hold_pauses(&app);
    let reply = change_from(&app, ELSEWHERE, &ada, PASSWORD).await;
    reply.expect_problem(429, "too-many-attempts");
}

#[tokio::test]
async fn the_right_old_password_clears_the_failures() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    fail(&app, HOME, "ada@example.com", 4).await;
    let _ = change_from(&app, HOME, &ada, PASSWORD).await.expect(200);
    fail(&app, HOME, "ada@example.com", 4).await;
    let _ = sign_in_from(&app, HOME, "ada@example.com", NEW).await;
}

/// Repeats what has the right password while it cannot write a table, and once more when it can.
async fn repeat_in_an_outage(app: &Fixture, table: &str, attempt: impl AsyncFn() -> Reply) {
    let fail = format!(
        "CREATE FUNCTION users.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'a test'; END $$;
         CREATE TRIGGER fail BEFORE UPDATE ON users.{table} FOR EACH ROW EXECUTE FUNCTION users.fail()"
    );
    app.admin_connection().batch_execute(&fail).unwrap();
    for _ in 0..6 {
        assert_eq!(attempt().await.status, 500, "{table}");
        hold_pauses(app);
    }
    let end = "DROP FUNCTION users.fail CASCADE";
    app.admin_connection().batch_execute(end).unwrap();
    let _ = attempt().await.expect(200);
}

#[tokio::test]
async fn the_right_password_is_no_failure_if_the_database_fails_after_its_check() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    let sign_in = async || try_from(&app, ELSEWHERE, "ada@example.com", PASSWORD).await;
    repeat_in_an_outage(&app, "last_sign_ins", sign_in).await;
    verify_email::store_code(&app, &ada, "code");
    let body = json!({"code": "code", "password": PASSWORD});
    let verify = async || post_from(&app, ELSEWHERE, "", "/user/verify-email", &body).await;
    repeat_in_an_outage(&app, "users", verify).await;
    let change = async || change_from(&app, ELSEWHERE, &ada, PASSWORD).await;
    repeat_in_an_outage(&app, "users", change).await;
}

#[tokio::test]
async fn a_token_of_an_earlier_epoch_does_not_change_the_password() {
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    raise_epochs_unnoticed(&app);
    app.assert_token(&ada, true).await;
    for old in [PASSWORD, "wrong"] {
        let reply = change_from(&app, HOME, &ada, old).await;
        reply.expect_problem(401, "token-revoked");
    }
}

#[tokio::test]
async fn one_network_cannot_fill_the_audit_log_with_refused_sign_ins() {
    let app = Fixture::start().await;
    let admin = app.admin().await;
    // Next hour, too, in case it begins during the test.
    diesel::sql_query(format!(
        "INSERT INTO users.sign_in_refusals (client_network, known_user, hour, refusals) \
         SELECT '{ELSEWHERE}', is_known, date_trunc('hour', now()) + n * interval '1 hour', refusals \
         FROM (VALUES (false, 59), (true, 599)) AS counted (is_known, refusals), generate_series(0, 1) AS n"
    ))
    .execute(&mut app.admin_connection())
    .unwrap();
    for name in ["nobody@example.com", ADMIN] {
        fail(&app, ELSEWHERE, name, 4).await;
    }
    let logged = rows(&app.http, &admin.token, "?filter=action:sign-in-refused").await;
    // One row for each kind and hour.
    assert!([2, 3].contains(&logged.len()), "{logged:?}");
    for row in logged {
        assert_eq!(row["detail"]["limitReached"], true, "{row}");
    }
    // Other networks are logged.
    fail(&app, HOME, "nobody@example.com", 1).await;
    let logged = rows(&app.http, &admin.token, "?filter=action:sign-in-refused").await;
    assert_eq!(logged[0]["clientAddress"], HOME);
    assert_eq!(
        logged[0]["detail"],
        json!({"reason": "invalid-credentials"})
    );
}

#[tokio::test]
async fn failures_of_a_name_are_deleted_when_its_user_gives_it_up() {
    let app = Fixture::start().await;
    let (admin, ada) = (app.admin().await, app.sign_up("ada@example.com").await);
    fail(&app, ELSEWHERE, "ada@example.com", 1).await;
    for (change, expected) in [
        (json!({"email": "new@example.com"}), "2"),
        (json!({"username": "Ada@Example.com"}), "2"),
        (json!({"username": "new@example.com"}), "0"),
    ] {
        let _ = app.update(&admin, &ada.id, &change).await.expect(200);
        let failures = "SELECT count(*)::text AS line FROM users.sign_in_failures";
        let failures = testkit::lines(&mut app.admin_connection(), failures);
        assert_eq!(failures, [expected], "{change}");
    }
}
