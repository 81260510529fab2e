use reqwest::Method;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn problems_of_the_gateway_have_stable_bodies() {
    let fixture = Fixture::start().await;
    fixture.tasks.stop().await;
    let long = format!("/users?pattern={}", "x".repeat(16 * 1024));
    let large = vec![b'x'; 256 * 1024 + 1];
    let request = |method, path: &str| fixture.http.request(method, path);
    let mut bodies = Vec::new();
    for request in [
        request(Method::GET, "/nothing"),
        request(Method::DELETE, "/user/auth"),
        request(Method::GET, "/users"),
        request(Method::GET, "/users").bearer("no.token"),
        request(Method::GET, &long).bearer(&fixture.token()),
        request(Method::POST, "/user").body(large),
        request(Method::GET, "/people-task/tasks"),
    ] {
        let mut body = request.send().await.json;
        body["requestId"] = json!("[request id]");
        bodies.push(body);
    }
    insta::assert_json_snapshot!(bodies);
}
