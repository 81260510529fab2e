//! Requests during outages.

use serde_json::json;
use testkit::eventually;

use crate::fixture::Fixture;

async fn readiness(app: &Fixture, status: u16) -> serde_json::Value {
    eventually("the readiness to change", async || {
        let reply = app.http.get("/readyz").send().await;
        (reply.status == status).then_some(reply.json)
    })
    .await
}

#[tokio::test]
async fn without_the_database_requests_get_503_until_it_is_back() {
    let app = Fixture::start_with(&[("DATABASE_TIMEOUT", "2s")]).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    app.database.set_reachable(false);
    let reply = eventually("a request to fail", async || {
        let reply = app.get(&ada, &task.path).await;
        (reply.status != 200).then_some(reply)
    })
    .await;
    reply.expect_problem(503, "database-unavailable");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(readiness(&app, 503).await["checks"]["database"], "failing");
    assert_eq!(
        app.http.get("/healthz").send().await.expect(200).text,
        r#"{"status":"ok"}"#
    );
    app.database.set_reachable(true);
    assert_eq!(readiness(&app, 200).await["status"], "ready");
    let _ = app.get(&ada, &task.path).await.expect(200);
}

/// Lets creations fail, under a condition, with what the server says when it cannot extend a table.
pub(crate) fn disk_is_full(app: &Fixture, condition: &str) {
    app.execute(
        "CREATE FUNCTION people_task.disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION USING ERRCODE = 'disk_full', HINT = 'Check free disk space.',
                MESSAGE = 'could not extend file \"base/16384/24591\": No space left on device';
        END $$",
    );
    app.execute(&format!(
        "CREATE TRIGGER disk_is_full BEFORE INSERT ON people_task.tasks FOR EACH ROW {condition} \
         EXECUTE FUNCTION people_task.disk_is_full()"
    ));
}

#[tokio::test]
async fn on_a_full_disk_changes_get_503_and_the_service_is_not_ready() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    disk_is_full(&app, "");
    let reply = app.try_create(&ada, json!({})).await;
    reply.expect_problem(503, "database-unavailable");
    assert!(reply.header("retry-after").is_some());
    let unready = readiness(&app, 503).await;
    assert_eq!(unready["checks"]["database"], "failing");
    assert_eq!(
        unready["reasons"]["database"],
        "the disk of the database is full"
    );
    let _ = app.get(&ada, &task.path).await.expect(200);
    app.execute("DROP TRIGGER disk_is_full ON people_task.tasks");
    let _ = app.create(&ada, json!({})).await;
    let ready = readiness(&app, 200).await;
    assert_eq!(ready["reasons"], json!(null));
}

#[tokio::test]
async fn without_the_broker_decisions_succeed_and_their_deliveries_are_kept() {
    let app = Fixture::start_with_broker(&[]).await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    let _ = app.register(&ada, &task, "http://127.0.0.1:9/").await;
    app.broker().set_reachable(false);
    let reply = eventually("the broker to be missed", async || {
        // The broker lists a new connection with a delay.
        app.broker().cut_connections();
        let reply = app.http.get("/readyz").send().await;
        (reply.status == 503).then_some(reply)
    })
    .await;
    assert_eq!(reply.json["checks"]["queue"], "failing");
    let reply = app.approve(&ada, &task).await.expect(200);
    assert_eq!(reply.json["status"], "approved");
    assert_eq!(app.count("deliveries"), 1);
    app.broker().set_reachable(true);
    let _ = readiness(&app, 200).await;
}

#[tokio::test]
async fn without_the_user_service_tokens_are_still_accepted() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    app.authority.stop().await;
    let _ = app.create(&ada, json!({})).await;
    let checks = eventually("the feed to be stale", async || {
        let reply = app.http.get("/readyz").send().await;
        let stale = reply.json["checks"]["revocations"] == "failing";
        stale.then_some(reply)
    })
    .await;
    assert_eq!(checks.status, 200);
}
