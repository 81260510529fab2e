use serde_json::json;

use crate::fixture::{DEFAULT_FIELDS, Fixture, WithSecret as _, titles};

#[tokio::test]
async fn a_secret_in_query_or_header_gives_access_to_its_task() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let (task, other) = (
        app.create(&ada, json!({})).await,
        app.create(&ada, json!({})).await,
    );
    for secret in [&task.approver_secret, &task.requester_secret] {
        let in_query = format!("{}?secret={secret}", task.path);
        let reply = app.http.get(&in_query).send().await.expect(200);
        assert_eq!(reply.fields(), DEFAULT_FIELDS);
        let _ = app
            .http
            .get(&task.path)
            .secret(secret)
            .send()
            .await
            .expect(200);
        let reply = app.http.get(&other.path).secret(secret).send().await;
        reply.expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn an_unknown_secret_gives_no_access() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({"public": true})).await;
    let zeros = "0".repeat(64);
    for secret in [
        zeros.as_str(),
        "x",
        "' OR 1=1 --",
        &task.approver_secret.to_uppercase(),
    ] {
        let get = |path: &str| app.http.get(path).secret(secret).send();
        get(&task.path).await.expect_problem(404, "not-found");
        assert_eq!(get("/people-task/tasks").await.expect(200).text, "[]");
        assert_eq!(
            get("/people-task/tasks-count").await.expect(200).text,
            r#"{"count":0}"#
        );
        let approve = format!("{}/approve", task.path);
        let reply = app
            .http
            .put(&approve)
            .json(&json!({"secret": secret}))
            .send()
            .await;
        reply.expect_problem(404, "not-found");
        let edit = app
            .http
            .put(&task.path)
            .secret(secret)
            .json(&json!({"title": "x"}));
        edit.send().await.expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn without_token_and_secret_requests_get_401() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for path in ["/people-task/tasks", "/people-task/tasks-count", &task.path] {
        let reply = app.http.get(path).send().await;
        reply.expect_problem(401, "token-missing");
        let reply = app.http.get(&format!("{path}?secret=")).send().await;
        reply.expect_problem(401, "token-missing");
    }
    let edit = app.http.put(&task.path).json(&json!({"title": "x"}));
    edit.send().await.expect_problem(401, "token-missing");
    for decision in ["approve", "reject"] {
        let path = format!("{}/{decision}", task.path);
        app.http
            .put(&path)
            .send()
            .await
            .expect_problem(401, "token-missing");
        // An invalid body is reported only to callers with credentials.
        let reply = app
            .http
            .put(&path)
            .header("content-type", "application/json")
            .body("{");
        reply.send().await.expect_problem(401, "token-missing");
        let reply = app.http.put(&format!("{path}?include=colour"));
        reply.send().await.expect_problem(401, "token-missing");
    }
}

#[tokio::test]
async fn an_invalid_token_gets_401_even_with_a_secret() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let request = app.http.get(&task.path).secret(&task.approver_secret);
    request
        .bearer("nonsense")
        .send()
        .await
        .expect_problem(401, "invalid-token");
}

#[tokio::test]
async fn a_list_by_secret_has_one_task() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let _ = app.create(&ada, json!({"title": "other"})).await;
    let task = app.create(&ada, json!({"title": "mine"})).await;
    let list = |query: &str| {
        let path = format!("/people-task/tasks?secret={}&{query}", task.approver_secret);
        app.http.get(&path).send()
    };
    assert_eq!(titles(&list("").await.expect(200)), ["mine"]);
    assert_eq!(titles(&list("role=approver").await.expect(200)), ["mine"]);
    assert!(titles(&list("role=requester").await.expect(200)).is_empty());
    assert!(titles(&list("role=creator").await.expect(200)).is_empty());
    assert!(titles(&list("filter=status:approved").await.expect(200)).is_empty());
    list("role=any")
        .await
        .expect_problem(403, "insufficient-scope");
    let count = format!("/people-task/tasks-count?secret={}", task.requester_secret);
    assert_eq!(
        app.http.get(&count).send().await.expect(200).text,
        r#"{"count":1}"#
    );
}

#[tokio::test]
async fn a_secret_of_0_1_still_opens_its_task() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    // It does not begin with the task's identifier.
    let secret = "5eed".repeat(16);
    app.execute(&format!(
        "UPDATE tasks SET has_random_secrets = true, approver_secret = sha256('{secret}')
         WHERE encode(id, 'hex') = '{}'",
        task.id
    ));
    let request = app.http.put(&format!("{}/approve", task.path));
    let decided = request.secret(&secret).send().await.expect(200);
    assert_eq!(decided.json["status"], "approved");
}

#[tokio::test]
async fn a_token_and_a_secret_are_combined() {
    let app = Fixture::start().await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let task = app.create(&ada, json!({"title": "shown"})).await;
    let own =
        json!({"title": "own", "requester": "eve@example.com", "approver": "eve@example.com"});
    let _ = app.create(&eve, own).await;
    let with_both = |path: &str| {
        let request = app.http.get(path).bearer(&eve.token);
        request.secret(&task.requester_secret).send()
    };
    let list = with_both("/people-task/tasks?sort=title:1")
        .await
        .expect(200);
    assert_eq!(titles(&list), ["own", "shown"]);
    let count = with_both("/people-task/tasks-count").await.expect(200);
    assert_eq!(count.json["count"], 2);
    let _ = with_both(&task.path).await.expect(200);
    // The requester's secret does not decide.
    let approve = app
        .http
        .put(&format!("{}/approve", task.path))
        .bearer(&eve.token);
    let reply = approve.secret(&task.requester_secret).send().await;
    reply.expect_problem(403, "forbidden");
}

#[tokio::test]
async fn the_approver_secret_decides_from_query_header_or_body() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    for place in ["query", "header", "body"] {
        let task = app.create(&ada, json!({})).await;
        let decide = |secret: &str| {
            let path = format!("{}/reject", task.path);
            match place {
                "query" => app.http.put(&format!("{path}?secret={secret}")),
                "header" => app.http.put(&path).secret(secret),
                _ => app.http.put(&path).json(&json!({"secret": secret})),
            }
        };
        let reply = decide(&task.requester_secret).send().await;
        reply.expect_problem(403, "forbidden");
        let reply = decide(&task.approver_secret).send().await.expect(200);
        assert_eq!(reply.json["status"], "rejected", "{place}");
    }
}

#[tokio::test]
async fn webhooks_and_creation_require_a_token() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let webhook = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    let (webhook, list, deliveries) = (
        format!("/people-task/webhooks/{webhook}"),
        format!("{}/webhooks", task.path),
        format!("{}/deliveries", task.path),
    );
    for request in [
        app.http.post("/people-task/tasks").json(&json!({})),
        app.http.post("/people-task/webhooks").json(&json!({})),
        app.http.get(&webhook),
        app.http.delete(&webhook),
        app.http.get(&list),
        app.http.get(&deliveries),
    ] {
        let reply = request.secret(&task.approver_secret).send().await;
        reply.expect_problem(401, "token-missing");
    }
    assert_eq!(app.count("webhooks"), 1);
}
