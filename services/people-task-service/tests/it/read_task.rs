use serde_json::json;

use crate::fixture::{DEFAULT_FIELDS, Fixture};

#[tokio::test]
async fn a_task_has_the_default_fields() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({"public": true})).await;
    let reply = app.get(&ada, &task.path).await.expect(200);
    assert_eq!(reply.fields(), DEFAULT_FIELDS);
    assert_eq!(reply.json["id"], task.id);
}

#[tokio::test]
async fn a_stranger_cannot_see_my_task_unless_it_is_public() {
    let app = Fixture::start().await;
    let (ada, eve) = (app.user("ada@example.com"), app.user("eve@example.com"));
    let (hidden, public) = (
        app.create(&ada, json!({})).await,
        app.create(&ada, json!({"public": true})).await,
    );
    let reply = app.get(&eve, &hidden.path).await;
    reply.expect_problem(404, "not-found");
    let unknown = app
        .get(&eve, "/people-task/tasks/0123456789abcdef01234567")
        .await;
    assert_eq!(unknown.json["detail"], reply.json["detail"]);
    let _ = app.get(&eve, &public.path).await.expect(200);
    // Public means every signed-in user, not everyone.
    let reply = app.http.get(&public.path).send().await;
    reply.expect_problem(401, "token-missing");
}

#[tokio::test]
async fn a_malformed_id_is_not_found() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for id in [
        "x",
        "0123456789ABCDEF01234567",
        &task.id.to_uppercase(),
        "%00",
        "%ff",
    ] {
        let reply = app.get(&ada, &format!("/people-task/tasks/{id}")).await;
        reply.expect_problem(404, "not-found");
    }
}

#[tokio::test]
async fn is_approver_is_true_for_the_approver() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("GRACE@example.com"));
    let task = app.create(&ada, json!({})).await;
    let path = format!("{}?include=isApprover", task.path);
    // The creator may decide, but is not the approver.
    assert_eq!(
        app.get(&ada, &path).await.expect(200).json["isApprover"],
        false
    );
    assert_eq!(
        app.get(&grace, &path).await.expect(200).json["isApprover"],
        true
    );
    let by_secret = format!("{path}&secret={}", task.approver_secret);
    let reply = app.http.get(&by_secret).send().await.expect(200);
    assert_eq!(reply.json["isApprover"], true);
}

#[tokio::test]
async fn an_unconfirmed_email_address_gives_no_access() {
    let app = Fixture::start().await;
    let (ada, grace) = (app.user("ada@example.com"), app.user("grace@example.com"));
    let task = app.create(&ada, json!({})).await;
    let mut subject = auth::Subject {
        id: grace.id,
        email: values::FromText::from_text(&grace.email).unwrap(),
        username: values::FromText::from_text(&grace.email).unwrap(),
        scope: vec!["user".to_owned()],
        epoch: 0,
        incarnation: testkit::INCARNATION.to_owned(),
        email_verified: false,
        group: None,
        credential: None,
        key_scopes: None,
        service: false,
    };
    let sign = |subject: auth::Subject| {
        let token = app.authority.signer().sign(subject);
        token.expose().to_owned()
    };
    let unconfirmed = sign(subject.clone());
    let get = |path: &str| app.http.get(path).bearer(&unconfirmed).send();
    get(&task.path).await.expect_problem(404, "not-found");
    assert_eq!(get("/people-task/tasks").await.expect(200).json, json!([]));
    // A secret still gives access.
    let by_secret = format!("{}?secret={}", task.path, task.approver_secret);
    let _ = get(&by_secret).await.expect(200);
    subject.email_verified = true;
    let reply = app.http.get(&task.path).bearer(&sign(subject)).send().await;
    let _ = reply.expect(200);
}

#[tokio::test]
async fn a_revoked_token_is_rejected() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    app.authority.raise(ada.id, 1);
    let reply = testkit::eventually("the revocation to arrive", async || {
        let reply = app.get(&ada, &task.path).await;
        (reply.status == 401).then_some(reply)
    })
    .await;
    reply.expect_problem(401, "token-revoked");
}
