//! Users who are active again after their deletion was cancelled or has failed.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use testkit::INCARNATION;

use crate::erasure::service_token;
use crate::erasure_batches::deleted;
use crate::fixture::{Fixture, User};

/// Erases a user whose deletion follows the user's change at this time.
async fn erase(app: &Fixture, user: &User, changed: DateTime<Utc>) -> Value {
    let request = app.http.post(&format!("/internal/users/{}/erase", user.id));
    let body = json!({"emails": [user.email], "incarnation": INCARNATION, "changed": changed});
    let reply = request.bearer(&service_token(app)).json(&body).send().await;
    reply.expect(200).json
}

/// Reports whether a user is active since this time.
async fn report(app: &Fixture, user: &User, is_active: bool, changed: DateTime<Utc>) {
    let request = app.http.put(&format!("/internal/users/{}", user.id));
    let body = json!({
        "changed": changed, "isActive": is_active, "isAdmin": false, "email": user.email,
    });
    let reply = request.bearer(&service_token(app)).json(&body).send().await;
    let _ = reply.expect(200);
}

fn after(seconds: i64) -> DateTime<Utc> {
    Utc::now() + TimeDelta::seconds(seconds)
}

#[tokio::test]
async fn a_user_who_is_active_again_after_an_erasure_adds_tasks_and_is_known() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    // The clocks of the two databases may differ.
    let (earlier, changed, later) = (after(-7300), after(-7200), after(-7100));
    report(&app, &me, false, changed).await;
    assert_eq!(erase(&app, &me, changed).await, deleted(0, false));
    // Reports from before the erasure arrive late.
    report(&app, &me, true, earlier).await;
    report(&app, &me, false, changed).await;
    let reply = app.try_create(&me, json!({})).await;
    reply.expect_problem(401, "token-revoked");
    assert_eq!(app.count("changed_users"), 0);

    report(&app, &me, true, later).await;
    let _ = app.create(&me, json!({})).await;
    assert_eq!(app.count("changed_users WHERE is_active"), 1);

    // The next deletion is one of its own.
    assert_eq!(erase(&app, &me, after(-7000)).await, deleted(1, false));
    report(&app, &me, true, later).await;
    let reply = app.try_create(&me, json!({})).await;
    reply.expect_problem(401, "token-revoked");
    assert_eq!(app.count("changed_users"), 0);
}

#[tokio::test]
async fn a_user_who_is_inactive_after_an_erasure_is_known_and_adds_nothing() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let _ = erase(&app, &me, after(-20)).await;
    report(&app, &me, false, after(-10)).await;
    assert_eq!(app.count("changed_users WHERE NOT is_active"), 1);
    let reply = app.try_create(&me, json!({})).await;
    reply.expect_problem(401, "token-revoked");
}

#[tokio::test]
async fn an_erasure_that_comes_after_the_user_is_active_again_deletes_nothing() {
    let app = Fixture::start().await;
    let me = app.user("me@example.com");
    let _ = app.create(&me, json!({})).await;
    report(&app, &me, true, after(-10)).await;
    let refused = json!({"deleted": 0, "deletedTasks": 0, "more": true, "blocked": true});
    assert_eq!(erase(&app, &me, after(-20)).await, refused);
    assert_eq!((app.count("tasks"), app.count("erased_users")), (1, 0));
    let _ = app.create(&me, json!({})).await;

    assert_eq!(erase(&app, &me, after(-5)).await, deleted(2, false));
}
