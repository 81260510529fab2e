use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn the_document_is_unavailable_until_both_services_gave_theirs_and_then_stays() {
    let world = World::start().await;
    // The services answer `null`, which is no document.
    let reply = world.http.get("/openapi.json").send().await;
    reply.expect_problem(503, "not-ready");

    let answer = json!({"200": {"description": "Done."}});
    world.users.with(|state| {
        state.document = json!({"openapi": "3.1.0", "info": {}, "paths": {
            "/user/auth": {"post": {"operationId": "sign_in", "responses": answer}},
            "/internal/revocations": {"get": {"responses": answer}}
        }});
    });
    world.tasks.with(|state| {
        state.document = json!({"openapi": "3.1.0", "info": {}, "paths": {
            "/people-task/tasks": {"get": {"operationId": "list_tasks", "responses": answer}}
        }});
    });
    let reply = world.http.get("/openapi.json").send().await.expect(200);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json["info"]["title"], "Countersign");
    let paths = reply.json["paths"].as_object().unwrap();
    assert!(paths.contains_key("/user/auth") && paths.contains_key("/people-task/tasks"));
    assert!(paths.contains_key("/plugins/appmixer/utils/tasks/tasks"));
    assert!(!reply.text.contains("/internal/"));

    world.users.stop().await;
    let again = world.http.get("/openapi.json").send().await.expect(200);
    assert_eq!(again.text, reply.text);
}
