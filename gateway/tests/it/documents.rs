use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn the_document_needs_both_services_once_and_is_then_cached() {
    let fixture = Fixture::start().await;
    // The services return `null`, which is not a document.
    let reply = fixture.http.get("/openapi.json").send().await;
    reply.expect_problem(503, "not-ready");

    let response = json!({"200": {"description": "Done."}});
    fixture.users.with(|state| {
        state.document = json!({"openapi": "3.1.0", "info": {}, "paths": {
            "/user/auth": {"post": {"operationId": "sign_in", "responses": response}},
            "/internal/revocations": {"get": {"responses": response}}
        }});
    });
    fixture.tasks.with(|state| {
        state.document = json!({"openapi": "3.1.0", "info": {}, "paths": {
            "/people-task/tasks": {"get": {"operationId": "list_tasks", "responses": response}}
        }});
    });
    let reply = fixture.http.get("/openapi.json").send().await.expect(200);
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
