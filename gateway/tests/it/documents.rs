use std::time::Instant;

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use testkit::eventually;

use crate::fixture::Fixture;

/// A document with a `POST` for each path.
fn document(paths: &[&str]) -> Value {
    let operation = json!({"post": {"responses": {"200": {"description": "Done."}}}});
    let paths: Map<_, _> = paths
        .iter()
        .map(|path| ((*path).to_owned(), operation.clone()))
        .collect();
    json!({"openapi": "3.1.0", "info": {"title": "", "version": ""}, "paths": paths})
}

#[tokio::test]
async fn the_document_needs_both_services_once_and_is_then_cached() {
    let fixture = Fixture::start().await;
    // The services return `null`, which is not a document.
    let reply = fixture.http.get("/openapi.json").send().await;
    reply.expect_problem(503, "not-ready");

    fixture.users.with(|state| {
        state.document = document(&["/user/auth", "/internal/revocations"]);
    });
    fixture.tasks.with(|state| {
        let plugin = "/plugins/appmixer/utils/tasks/tasks";
        state.document = document(&["/people-task/tasks", plugin]);
    });
    let reply = eventually("the document", || async {
        let reply = fixture.http.get("/openapi.json").send().await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json["info"]["title"], "Countersign");
    let paths = reply.json["paths"].as_object().unwrap();
    assert!(paths.contains_key("/user/auth") && paths.contains_key("/people-task/tasks"));
    assert!(paths.contains_key("/plugins/appmixer/utils/tasks/tasks"));
    assert!(!reply.text.contains("/internal/"));

    fixture.users.stop().await;
    let again = fixture.http.get("/openapi.json").send().await.expect(200);
    assert_eq!(again.text, reply.text);
}

#[tokio::test]
async fn callers_do_not_wait_one_after_the_other_for_a_service_that_hangs() {
    let fixture = Fixture::start().await;
    fixture.users.with(|state| state.document_hangs = true);
    let started = Instant::now();
    let asked = (0..8).map(|_| fixture.http.get("/openapi.json").send());
    for reply in join_all(asked).await {
        reply.expect_problem(503, "not-ready");
    }
    // A service has three seconds to respond, and is asked again a second later.
    let most = usize::try_from(started.elapsed().as_secs() / 4).unwrap() + 1;
    let asked = fixture.users.with(|state| state.document_requests);
    assert!((1..=most).contains(&asked), "{asked}");
}
