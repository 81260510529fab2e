//! `countersign deliveries`.

use serde_json::{Value, json};
use testkit::eventually;

use super::{APPROVER, CommandLine, REQUESTER};
use crate::harness::{System, Task};

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_listed_and_sent_again() {
    let system = System::start_with(&[("WEBHOOK_RETRY_SCHEDULE", "50ms")]).await;
    let cli = CommandLine::of(&system);
    let token = system.sign_up(REQUESTER).await;
    let task = decide(&system, &token, "status=500&correlationId=again").await;
    let list = [
        "deliveries",
        "list",
        "--task",
        &task.id,
        "--failed",
        "--host",
        "0x7f.1",
    ];
    let failed = eventually("the delivery to fail", || async {
        let failed = cli.json(&list).await;
        failed.get(0).cloned()
    })
    .await;
    assert_eq!(failed["taskStatus"], "approved");
    let table = cli.run(&list).await.stdout;
    assert!(table.trim_end().ends_with(" 500"), "{table}");
    let other = [&list[..6], &["other.example"]].concat();
    assert_eq!(cli.json(&other).await, json!([]));

    let received = system.received("correlationId=again").await.len();
    let retry = ["deliveries", "retry", "--task", &task.id, "--failed"];
    let sent = cli.json(&retry).await;
    assert_eq!(sent[0]["id"], failed["id"]);
    eventually("the delivery to arrive again", || async {
        let calls = system.received("correlationId=again").await;
        (calls.len() > received).then_some(())
    })
    .await;
    system.stop().await;
}

/// Approves a task that has a webhook with these options, and returns it.
async fn decide(system: &System, token: &str, options: &str) -> Task {
    let task = system.create_task(token, REQUESTER, APPROVER).await;
    let url = format!("{}?{options}", system.webhook_url());
    let body = json!({"url": url, "taskId": task.id});
    let _ = system.post("/people-task/webhooks", token, &body).await;
    let path = format!(
        "/people-task/tasks/{}/approve?secret={}",
        task.id, task.approver_secret
    );
    let _ = system.http.put(&path).send().await.expect(200);
    task
}

async fn wait_for_calls(system: &System, correlation: &str, number: usize) {
    let query = format!("correlationId={correlation}");
    eventually("the webhook to be called", || async {
        (system.received(&query).await.len() == number).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deliveries_of_a_host_are_cancelled_while_one_is_under_way() {
    let system = System::start_with(&[("WEBHOOK_RETRY_SCHEDULE", "50ms,50ms,50ms")]).await;
    let cli = CommandLine::of(&system);
    let token = system.sign_up(REQUESTER).await;
    let _ = decide(&system, &token, "correlationId=slow&delay=6s&status=500").await;
    wait_for_calls(&system, "slow", 1).await;

    let host = ["--host", "127.0.0.1"];
    let cancel = [&["deliveries", "cancel", "--yes"][..], &host].concat();
    let cancelled = cli.json(&cancel).await;
    assert_eq!(cancelled, json!({"cancelled": 1, "remaining": 0}));
    let failed = [&["deliveries", "list", "--failed"][..], &host].concat();
    let failed = cli.json(&failed).await;
    let attempts = failed[0]["attempts"].as_array().unwrap();
    let last = attempts.last().unwrap();
    assert_eq!(last["error"], "cancelled by an administrator");
    let id = failed[0]["id"].as_str().unwrap();
    let ended = cli.run(&["deliveries", "cancel", "--yes", id]).await;
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("nothing to cancel"),
        "{}",
        ended.stderr
    );

    // The attempt that was under way ends before the third one of this delivery.
    let _ = decide(
        &system,
        &token,
        "correlationId=later&delay=3200ms&failFirst=2",
    )
    .await;
    wait_for_calls(&system, "later", 3).await;
    assert_eq!(system.received("correlationId=slow").await.len(), 1);

    let retry = [&["deliveries", "retry", "--failed"][..], &host].concat();
    let retried = cli.json(&retry).await;
    assert_eq!(retried, json!({"redelivered": 1, "remaining": 0}));
    wait_for_calls(&system, "slow", 2).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_paused_and_resumed() {
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let token = system.sign_up(REQUESTER).await;
    let paused = cli.run(&["deliveries", "pause", "127.0.0.1"]).await;
    assert_eq!((paused.code, paused.stderr.as_str()), (0, ""));
    assert!(paused.stdout.contains("127.0.0.1 are paused"));
    let _ = decide(&system, &token, "correlationId=waits").await;
    let listed = cli
        .json(&["deliveries", "hosts", "--status", "paused"])
        .await;
    assert_eq!(listed[0]["host"], "127.0.0.1");
    assert_eq!(
        (&listed[0]["pending"], listed.as_array().unwrap().len()),
        (&json!(1), 1)
    );
    eventually("the status to show the paused host", || async {
        let status = cli.run(&["status"]).await.stdout;
        let row = status
            .lines()
            .find(|line| line.contains("deliveries that wait for them"));
        row?.trim_end().ends_with('1').then_some(())
    })
    .await;
    assert!(system.received("correlationId=waits").await.is_empty());
    let resumed = cli.json(&["deliveries", "resume", "127.0.0.1"]).await;
    assert_eq!(resumed[0]["paused"], Value::Null);
    wait_for_calls(&system, "waits", 1).await;
    system.stop().await;
}
