//! Webhooks end with the right of the user who registered them, and their URLs are shown to few.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use testkit::{Reply, eventually};

use crate::due_dates::{accepting, after, register, settled, statuses, worker};
use crate::erasure::service_token;
use crate::fixture::{Fixture, Task, User, WithSecret as _};

const PATH: &str = "/people-task/webhooks";

/// Reports a user as the user service does.
async fn report(app: &Fixture, user: &User, state: Value) -> Reply {
    let mut body = json!({
        "changed": Utc::now().to_rfc3339(), "isActive": true, "isAdmin": false, "email": user.email,
    });
    crate::fixture::merge(&mut body, state);
    let request = app.http.put(&format!("/internal/users/{}", user.id));
    let request = request.bearer(&service_token(app)).json(&body);
    request.send().await
}

async fn deliveries(app: &Fixture, by: &User, task: &Task) -> Vec<Value> {
    let list = app.get(by, &format!("{}/deliveries", task.path)).await;
    list.expect(200).json.as_array().unwrap().clone()
}

/// Waits until this many deliveries of a task wait for the right of a registrant. From then on they wait for an hour, unless
/// a change makes them due.
async fn wait_for_suspended(app: &Fixture, by: &User, task: &Task, number: usize) {
    eventually("deliveries to be suspended", async || {
        let list = deliveries(app, by, task).await;
        let suspended = list.iter().filter(|delivery| delivery["suspended"] == true);
        (suspended.count() == number).then_some(())
    })
    .await;
    // The other version drops a judgement that is under way.
    app.execute(
        "UPDATE deliveries SET next_attempt = now() + interval '1 hour', lease = lease + 1",
    );
}

#[tokio::test]
async fn a_former_approver_is_told_nothing_until_she_is_the_approver_again() {
    let (app, former, own) = (
        Fixture::start_with_broker(&[]).await,
        accepting(),
        accepting(),
    );
    let _worker = worker(&app).await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("Grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let due = json!({"url": former.url("/"), "events": ["due"]});
    let _ = register(&app, &grace, PATH, &task, due).await.expect(200);
    let _ = app.register(&grace, &task, &former.url("/")).await;
    let _ = app.register(&ada, &task, &own.url("/")).await;
    let confidential = json!({
        "approver": "linus@example.com",
        "description": "Confidential.",
        "decisionBy": after(-1),
    });
    let _ = app.put(&ada, &task.path, &confidential).await.expect(200);
    wait_for_suspended(&app, &ada, &task, 1).await;
    let list = deliveries(&app, &ada, &task).await;
    assert_eq!(list[0]["status"], "pending");
    assert_eq!(list[0]["attempts"], json!([]));
    let webhooks = app.get(&ada, &format!("{}/webhooks", task.path)).await;
    assert_eq!(webhooks.json[0]["status"], "pending");

    // The right returns, and with it what waited.
    let again = json!({"approver": "grace@example.com"});
    let _ = app.put(&ada, &task.path, &again).await.expect(200);
    let calls = former.wait_for_calls(1).await;
    assert_eq!(statuses(&calls), ["due"]);
    let other = json!({"approver": "linus@example.com"});
    let _ = app.put(&ada, &task.path, &other).await.expect(200);
    let _ = app.approve(&ada, &task).await.expect(200);
    let _ = own.wait_for_calls(1).await;
    wait_for_suspended(&app, &ada, &task, 1).await;
    assert_eq!(statuses(&former.calls()), ["due"]);
}

#[tokio::test]
async fn the_webhooks_of_a_deactivated_user_wait_until_the_user_is_active_again() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let _worker = worker(&app).await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let task = app.create(&ada, json!({})).await;
    let _ = app.register(&ada, &task, &receiver.url("/")).await;
    let before = Utc::now() - TimeDelta::seconds(1);
    let inactive = report(&app, &ada, json!({"isActive": false})).await;
    assert_eq!(inactive.expect(200).json, json!({}));
    // A report of an earlier state arrives late.
    let late = json!({"changed": before.to_rfc3339()});
    let _ = report(&app, &ada, late).await.expect(200);
    let _ = app.approve(&root, &task).await.expect(200);
    wait_for_suspended(&app, &root, &task, 1).await;
    assert_eq!(receiver.calls().len(), 0);

    for _ in 0..2 {
        let _ = report(&app, &ada, json!({})).await.expect(200);
    }
    let calls = receiver.wait_for_calls(1).await;
    assert_eq!(statuses(&calls), ["approved"]);
    assert_eq!(
        settled(&app, &root, &task, 1).await,
        ["sent", "approved sent"]
    );
}

#[tokio::test]
async fn a_right_ends_with_what_gave_it() {
    let (app, receiver) = (Fixture::start_with_broker(&[]).await, accepting());
    let _worker = worker(&app).await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let (ada, root, eve) = (
        app.user("ada@example.com"),
        app.admin(),
        app.user("eve@example.com"),
    );
    let task = app.create(&carol, json!({})).await;
    for user in [&grace, &ada, &root, &carol] {
        let url = receiver.url(&format!("/{}", user.email));
        let _ = app.register(user, &task, &url).await;
    }
    // By the approver's secret.
    let body = json!({"taskId": task.id, "url": receiver.url("/eve@example.com")});
    let request = app.http.post(PATH).bearer(&eve.token);
    let request = request.secret(&task.approver_secret).json(&body);
    let _ = request.send().await.expect(200);
    let registered =
        "SELECT string_agg(registered_as, ' ' ORDER BY created) AS value FROM webhooks";
    assert_eq!(
        app.value(registered).unwrap(),
        "approver requester administrator creator approver"
    );

    let _ = report(&app, &grace, json!({"email": null}))
        .await
        .expect(200);
    let _ = report(&app, &ada, json!({"email": "ada@elsewhere.example"}))
        .await
        .expect(200);
    let _ = report(&app, &root, json!({"isAdmin": false}))
        .await
        .expect(200);
    let edit = json!({"approver": "Grace@example.com", "requester": "ada@example.com"});
    let _ = app.put(&carol, &task.path, &edit).await.expect(200);
    let _ = app.approve(&carol, &task).await.expect(200);
    let calls = receiver.wait_for_calls(2).await;
    wait_for_suspended(&app, &carol, &task, 3).await;
    let mut told: Vec<_> = calls.iter().map(|call| call.path.as_str()).collect();
    told.sort_unstable();
    // The secret is the same as long as the approver is.
    assert_eq!(told, ["/carol@example.com", "/eve@example.com"]);

    let _ = report(&app, &ada, json!({})).await.expect(200);
    let _ = report(&app, &root, json!({"isAdmin": true}))
        .await
        .expect(200);
    let _ = receiver.wait_for_calls(4).await;
    wait_for_suspended(&app, &carol, &task, 1).await;
}

#[tokio::test]
async fn reports_are_for_services_and_must_be_complete() {
    let app = Fixture::start().await;
    let (ada, root) = (app.user("ada@example.com"), app.admin());
    let path = format!("/internal/users/{}", ada.id);
    for token in [&ada.token, &root.token] {
        let request = app.http.put(&path).bearer(token).json(&json!({}));
        request.send().await.expect_problem(401, "invalid-token");
    }
    let request = app.http.put(&path).bearer(&service_token(&app));
    let reply = request
        .json(&json!({"changed": "now", "email": 1}))
        .send()
        .await;
    assert_eq!(reply.bad_fields(), ["body"]);
}

#[tokio::test]
async fn erasure_deletes_what_was_reported_and_a_late_report_adds_nothing() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let inactive = json!({"isActive": false, "changed": Utc::now().to_rfc3339()});
    let _ = report(&app, &ada, inactive.clone()).await.expect(200);
    assert_eq!(app.count("changed_users"), 1);
    let request = app.http.post(&format!("/internal/users/{}/erase", ada.id));
    let request = request.bearer(&service_token(&app));
    let body = json!({"emails": ["ada@example.com"], "incarnation": testkit::INCARNATION});
    let _ = request.json(&body).send().await.expect(200);
    assert_eq!(app.count("changed_users"), 0);
    let _ = report(&app, &ada, inactive).await.expect(200);
    assert_eq!(app.count("changed_users"), 0);
}

#[tokio::test]
async fn urls_are_shown_in_full_to_the_creator_to_the_registrant_and_to_administrators() {
    let app = Fixture::start().await;
    let (carol, grace) = (app.user("carol@example.com"), app.user("grace@example.com"));
    let (ada, root, eve) = (
        app.user("ada@example.com"),
        app.admin(),
        app.user("eve@example.com"),
    );
    let task = app.create(&carol, json!({"public": true})).await;
    let of_carol = "http://127.0.0.1:9/resume/token?key=1";
    let of_grace = "HTTP://127.0.0.2:9/grace";
    let _ = app.register(&carol, &task, of_carol).await;
    let _ = app.register(&grace, &task, of_grace).await;
    let (hidden, hidden_of_grace) = ("http://127.0.0.1", "http://127.0.0.2");
    for (who, expected) in [
        (&carol, [of_carol, of_grace]),
        (&root, [of_carol, of_grace]),
        (&grace, [hidden, of_grace]),
        (&ada, [hidden, hidden_of_grace]),
        (&eve, [hidden, hidden_of_grace]),
    ] {
        let list = app.get(who, &format!("{}/webhooks", task.path)).await;
        let list = list.expect(200).json;
        let urls: Vec<_> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w["url"].as_str())
            .collect();
        assert_eq!(urls, expected.map(Some), "{}", who.email);
    }
}
