//! Codes for a forgotten password while processes of the version before run, and after them.

use diesel::connection::SimpleConnection as _;

use crate::fixture::{Fixture, Person};
use crate::passwords::{reset_forgotten, store_code};

/// Executes an update as a process of that version does.
pub(crate) fn update(app: &Fixture, person: &Person, columns: &str) {
    let update = format!(
        "UPDATE users.users SET code_generation = code_generation + 1{columns} WHERE encode(id, 'hex') = '{}'",
        person.id
    );
    app.admin_connection().batch_execute(&update).unwrap();
}

#[tokio::test]
async fn a_change_by_the_version_before_ends_codes_and_a_request_does_not() {
    let app = Fixture::start().await;
    for (number, columns, status) in [
        (1, "", 200),
        (
            2,
            ", password_hash = 'x', epoch = epoch + 1, mtime = now()",
            400,
        ),
        (
            3,
            ", email = 'new@example.com', email_key = 'new@example.com', mtime = now()",
            400,
        ),
    ] {
        let person = app.sign_up(&format!("user-{number}@example.com")).await;
        let code = format!("code-{number}");
        store_code(&app, &person, &code, "1 hour");
        update(&app, &person, columns);
        let reset = reset_forgotten(&app, &code, "battery staple").await;
        assert_eq!(reset.status, status, "{columns}");
    }
}

#[tokio::test]
async fn codes_that_were_invalid_in_the_version_before_are_deleted() {
    const DELETE: &str = include_str!("../../migrations/00000000000030_invalid_codes/up.sql");
    let app = Fixture::start().await;
    let ada = app.sign_up("ada@example.com").await;
    store_code(&app, &ada, "outdated", "1 hour");
    update(&app, &ada, "");
    store_code(&app, &ada, "latest", "1 hour");
    let mut admin = app.admin_connection();
    admin.batch_execute("SET search_path = users").unwrap();
    admin.batch_execute(DELETE).unwrap();
    let outdated = reset_forgotten(&app, "outdated", "battery staple").await;
    outdated.expect_problem(400, "invalid-code");
    let _ = reset_forgotten(&app, "latest", "battery staple")
        .await
        .expect(200);
}
