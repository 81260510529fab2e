//! Comments with decisions, and who decided.

use serde_json::{Value, json};
use testkit::{Reply, Request};

use crate::erasure::service_token;
use crate::fixture::{Fixture, Task, User, WithSecret as _};

const INCLUDE: &str = "include=comment,decidedBy,commentRequired";

fn decision(app: &Fixture, task: &Task, decision: &str, body: &Value) -> Request {
    app.http
        .put(&format!("{}/{decision}?{INCLUDE}", task.path))
        .json(body)
}

async fn decide(app: &Fixture, by: &User, task: &Task, how: &str, body: &Value) -> Reply {
    decision(app, task, how, body)
        .bearer(&by.token)
        .send()
        .await
}

/// The token of a user whose e-mail address is not confirmed.
fn unconfirmed(app: &Fixture, user: &User) -> String {
    let address = |text: &str| values::FromText::from_text(text).unwrap();
    let subject = auth::Subject {
        id: user.id,
        email: address(&user.email),
        username: values::FromText::from_text(&user.email).unwrap(),
        scope: vec!["user".to_owned()],
        epoch: 0,
        incarnation: testkit::INCARNATION.to_owned(),
        email_verified: false,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    };
    let token = app.authority.signer().sign(subject);
    token.expose().to_owned()
}

#[tokio::test]
async fn a_comment_is_kept_with_the_decision() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    for how in ["approve", "reject"] {
        let task = app.create(&ada, json!({})).await;
        let path = format!("{}?{INCLUDE}", task.path);
        let before = app.get(&ada, &path).await.expect(200).json;
        assert_eq!(before["comment"], Value::Null);
        assert_eq!(before["decidedBy"], Value::Null);
        let body = json!({"comment": " Not this year.\nAsk again. \n"});
        let decided = decide(&app, &grace, &task, how, &body).await.expect(200);
        assert_eq!(decided.json["comment"], "Not this year.\nAsk again.");
        let list = format!("/people-task/tasks?{INCLUDE}&limit=1");
        let list = app.get(&ada, &list).await.expect(200).json;
        let read = app.get(&ada, &path).await.expect(200).json;
        for task in [&read, &list[0]] {
            assert_eq!(task["comment"], "Not this year.\nAsk again.");
            assert_eq!(task["decidedBy"], "grace@example.com");
        }
        // It is not one of the default fields.
        let plain = app.get(&ada, &task.path).await.expect(200);
        assert_eq!(plain.json.get("comment"), None);
    }
}

#[tokio::test]
async fn an_empty_comment_is_none_and_a_long_one_is_refused() {
    let app = Fixture::start().await;
    let grace = app.user("grace@example.com");
    for none in [
        json!({}),
        json!({"comment": null}),
        json!({"comment": " \n"}),
        json!({"comment": "\u{200b}\u{3164}"}),
    ] {
        let task = app.create(&grace, json!({})).await;
        let reply = decide(&app, &grace, &task, "reject", &none).await;
        assert_eq!(reply.expect(200).json["comment"], Value::Null, "{none}");
    }
    let task = app.create(&grace, json!({})).await;
    for (comment, code) in [
        (json!("é".repeat(2_001)), "too-long"),
        (json!("a\0b"), "nul-character"),
        (json!(5), "invalid-type"),
    ] {
        let body = json!({"comment": comment});
        let reply = decide(&app, &grace, &task, "reject", &body).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["comment"]);
        assert_eq!(reply.json["errors"][0]["code"], code);
    }
    let longest = json!({"comment": "é".repeat(2_000)});
    let reply = decide(&app, &grace, &task, "reject", &longest).await;
    assert_eq!(reply.expect(200).json["comment"], longest["comment"]);
}

#[tokio::test]
async fn a_task_can_require_a_comment_for_its_rejection() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({"commentRequired": true})).await;
    for comment in [Value::Null, json!("  "), json!("\u{2800}\u{200d}")] {
        let body = json!({"comment": comment});
        let reply = decide(&app, &grace, &task, "reject", &body).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["comment"]);
        assert_eq!(reply.json["errors"][0]["code"], "required");
    }
    let by_secret = decision(&app, &task, "reject", &json!({}));
    let reply = by_secret.secret(&task.approver_secret).send().await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(app.get(&ada, &task.path).await.json["status"], "pending");
    assert_eq!(app.count("audit_log WHERE action = 'task-rejected'"), 0);
    // Who may not decide learns nothing of it.
    let eve = app.user("eve@example.com");
    let reply = decide(&app, &eve, &task, "reject", &json!({})).await;
    reply.expect_problem(404, "not-found");

    let body = json!({"comment": "Too expensive."});
    let rejected = decide(&app, &grace, &task, "reject", &body).await;
    assert_eq!(rejected.expect(200).json["status"], "rejected");
    let again = decide(&app, &grace, &task, "reject", &json!({})).await;
    again.expect_problem(409, "task-already-resolved");
    // An approval needs none.
    let task = app.create(&ada, json!({"commentRequired": true})).await;
    let approved = decide(&app, &grace, &task, "approve", &json!({})).await;
    assert_eq!(approved.expect(200).json["commentRequired"], true);
}

#[tokio::test]
async fn whether_a_comment_is_required_can_be_edited() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let path = format!("{}?include=commentRequired", task.path);
    let required = async || app.get(&ada, &path).await.expect(200).json["commentRequired"].clone();
    assert_eq!(required().await, false);
    let edit = json!({"commentRequired": true});
    let by_approver = app.put(&grace, &task.path, &edit).await;
    by_approver.expect_problem(403, "forbidden");
    for value in [true, false] {
        let edit = json!({"commentRequired": value});
        let _ = app.put(&ada, &task.path, &edit).await.expect(200);
        assert_eq!(required().await, value);
        let entry = app.value(
            "SELECT detail::text AS value FROM audit_log WHERE action = 'task-edited' ORDER BY id DESC LIMIT 1",
        );
        assert_eq!(entry.unwrap(), r#"{"fields": ["commentRequired"]}"#);
    }
    let edit = json!({"commentRequired": "yes"});
    let reply = app.put(&ada, &task.path, &edit).await;
    reply.expect_problem(400, "validation-failed");
    let reply = decide(&app, &grace, &task, "reject", &json!({})).await;
    let _ = reply.expect(200);
}

#[tokio::test]
async fn whether_the_page_asks_for_a_second_press_can_be_edited_and_stops_no_call() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app
        .create(&ada, json!({"confirmationRequired": true}))
        .await;
    let path = format!("{}?include=confirmationRequired", task.path);
    let required = async || {
        let reply = app.get(&ada, &path).await.expect(200);
        reply.json["confirmationRequired"].clone()
    };
    assert_eq!(required().await, true);
    for value in [false, true] {
        let edit = json!({"confirmationRequired": value});
        let by_approver = app.put(&grace, &task.path, &edit).await;
        by_approver.expect_problem(403, "forbidden");
        let _ = app.put(&ada, &task.path, &edit).await.expect(200);
        assert_eq!(required().await, value);
        let entry = app.value(
            "SELECT detail::text AS value FROM audit_log WHERE action = 'task-edited' ORDER BY id DESC LIMIT 1",
        );
        assert_eq!(entry.unwrap(), r#"{"fields": ["confirmationRequired"]}"#);
    }
    let edit = json!({"confirmationRequired": "yes"});
    let reply = app.put(&ada, &task.path, &edit).await;
    reply.expect_problem(400, "validation-failed");
    let reply = decide(&app, &grace, &task, "approve", &json!({})).await;
    let _ = reply.expect(200);
}

#[tokio::test]
async fn decided_by_is_the_address_of_the_person_who_decided() {
    let app = Fixture::start().await;
    let (carol, root) = (app.user("Carol@example.com"), app.admin());
    let (grace, eve) = (app.user("Grace@example.com"), app.user("eve@example.com"));
    let create = async || {
        app.create(&carol, json!({"approver": "GRACE@example.com"}))
            .await
    };
    for (token, with_secret, expected) in [
        (Some(carol.token.clone()), false, json!("Carol@example.com")),
        (Some(root.token.clone()), false, json!("root@example.com")),
        (Some(grace.token.clone()), false, json!("Grace@example.com")),
        (Some(grace.token.clone()), true, json!("Grace@example.com")),
        (Some(eve.token.clone()), true, json!("eve@example.com")),
        (None, true, json!("GRACE@example.com")),
        // A stranger could sign up with any address.
        (Some(unconfirmed(&app, &carol)), false, Value::Null),
        (
            Some(unconfirmed(&app, &eve)),
            true,
            json!("GRACE@example.com"),
        ),
    ] {
        let task = create().await;
        let mut request = decision(&app, &task, "approve", &json!({}));
        if let Some(token) = &token {
            request = request.bearer(token);
        }
        if with_secret {
            request = request.secret(&task.approver_secret);
        }
        let reply = request.send().await.expect(200);
        assert_eq!(reply.json["decidedBy"], expected);
    }
}

#[tokio::test]
async fn responses_say_what_the_caller_is_and_may_do() {
    let app = Fixture::start().await;
    let carol = app.user("carol@example.com");
    let (ada, grace) = (app.user("ADA@example.com"), app.user("grace@example.com"));
    let (root, eve) = (app.admin(), app.user("eve@example.com"));
    let task = app.create(&carol, json!({"public": true})).await;
    let path = format!("{}?include=isRequester,isApprover,canDecide", task.path);
    let get = || app.http.get(&path);
    let cases = |task: &Task| {
        [
            ("creator", get().bearer(&carol.token), [false, false, true]),
            ("requester", get().bearer(&ada.token), [true, false, false]),
            ("approver", get().bearer(&grace.token), [false, true, true]),
            ("admin", get().bearer(&root.token), [false, false, true]),
            ("reader", get().bearer(&eve.token), [false, false, false]),
            (
                "their secret",
                get().secret(&task.requester_secret),
                [true, false, false],
            ),
            (
                "the other one",
                get().secret(&task.approver_secret),
                [false, true, true],
            ),
        ]
    };
    let check = async |task: &Task| {
        for (who, request, expected) in cases(task) {
            let reply = request.send().await.expect(200).json;
            let fields = ["isRequester", "isApprover", "canDecide"];
            assert_eq!(fields.map(|field| reply[field] == true), expected, "{who}");
        }
    };
    check(&task).await;
    // Permissions do not depend on the status.
    let _ = app.approve(&grace, &task).await.expect(200);
    check(&task).await;
    // A secret lists exactly its task, with the same fields.
    let list = "/people-task/tasks?include=isRequester,canDecide";
    let by_secret = app.http.get(list).secret(&task.requester_secret);
    let list = by_secret.send().await.expect(200).json;
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(list[0]["id"], task.id);
    assert_eq!(list[0]["isRequester"], true);
    assert_eq!(list[0]["canDecide"], false);
}

#[tokio::test]
async fn the_audit_log_says_that_there_is_a_comment_and_not_which() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    for body in [json!({"comment": "Confidential."}), json!({})] {
        let task = app.create(&ada, json!({})).await;
        let _ = decide(&app, &grace, &task, "reject", &body)
            .await
            .expect(200);
    }
    let entries = "SELECT string_agg(coalesce(detail->>'fields', 'none'), ' ' ORDER BY id) AS value
        FROM audit_log WHERE action = 'task-rejected'";
    let entries = app.value(entries).unwrap();
    assert_eq!(entries, r#"["comment"] none"#);
    let rows = app.database.rows_that_hold("people_task", "confidential.");
    let tables: Vec<_> = rows.iter().map(|row| row.split(':').next()).collect();
    assert_eq!(tables, [Some("task_states")]);
}

#[tokio::test]
async fn the_comment_of_an_erased_users_task_is_deleted() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let body = json!({"comment": "Confidential."});
    let _ = decide(&app, &grace, &task, "approve", &body)
        .await
        .expect(200);
    let request = app.http.post(&format!("/internal/users/{}/erase", ada.id));
    let request = request.bearer(&service_token(&app));
    let body = json!({"emails": ["ada@example.com"], "incarnation": testkit::INCARNATION});
    let _ = request.json(&body).send().await.expect(200);
    let left = app.database.rows_that_hold("people_task", "confidential");
    assert_eq!(left, Vec::<String>::new());
}
