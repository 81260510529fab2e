//! A token that was revoked ends at every gateway within a second.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Http;

use crate::world::World;

/// The last moment at which a gateway accepted the token, asking every 20 ms until it refuses.
async fn last_acceptance(gateway: Http, token: String) -> Instant {
    let mut last = Instant::now();
    loop {
        let asked = Instant::now();
        if gateway
            .get("/people-task/tasks-count")
            .bearer(&token)
            .send()
            .await
            .status
            != 200
        {
            return last;
        }
        last = asked;
        assert!(last.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_change_ends_tokens_at_every_gateway_within_a_second() {
    let world = World::start().await;
    let second = world.another_gateway().await;
    let token = world.sign_up("ada@example.com").await;
    let accepts = |gateway: Http| {
        let token = token.clone();
        async move { gateway.get("/user").bearer(&token).send().await.expect(200) }
    };
    let _ = accepts(world.http.clone()).await;
    let _ = accepts(second.clone()).await;

    let watching = [world.http.clone(), second.clone()]
        .map(|gateway| tokio::spawn(last_acceptance(gateway, token.clone())));
    let changed = world
        .http
        .post("/user/change-password")
        .bearer(&token)
        .json(&json!({"oldPassword": World::PASSWORD, "newPassword": "another password"}))
        .send()
        .await
        .expect(200);
    let committed = Instant::now();
    for watch in watching {
        let last = watch.await.unwrap();
        let late = last.saturating_duration_since(committed);
        assert!(
            late < Duration::from_secs(1),
            "accepted {late:?} after the commit"
        );
    }
    let fresh = changed.text_of("token");
    for gateway in [&world.http, &second] {
        let _ = gateway.get("/user").bearer(&fresh).send().await.expect(200);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_down_refuses_what_was_revoked_meanwhile() {
    let world = World::start().await;
    let token = world.sign_up("ada@example.com").await;
    let id = world.user_id("ada@example.com").await;
    let _ = world
        .http
        .put(&format!("/users/{id}"))
        .bearer(&world.admin)
        .json(&json!({"scope": ["user", "auditor"]}))
        .send()
        .await
        .expect(200);
    let late = world.another_gateway().await;
    late.get("/people-task/tasks")
        .bearer(&token)
        .send()
        .await
        .expect_problem(401, "token-revoked");
    world.stop().await;
}
