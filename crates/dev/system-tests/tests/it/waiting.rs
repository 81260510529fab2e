//! Callers that wait for a decision, through the gateway and the real service.

use std::time::Duration;

use serde_json::json;
use testkit::{Reply, eventually, lines};
use tokio::task::JoinHandle;

use crate::harness::System;

const REQUESTER: &str = "requester@example.com";
const APPROVER: &str = "approver@example.com";
/// Much less than the callers would wait.
const SOON: Duration = Duration::from_secs(10);

/// Starts to wait with a secret.
fn wait(system: &System, path: &str, secret: &str) -> JoinHandle<Reply> {
    let path = format!("{path}?wait=50&secret={secret}");
    tokio::spawn(system.http.get(&path).send())
}

async fn reply(waiting: JoinHandle<Reply>) -> Reply {
    let reply = tokio::time::timeout(SOON, waiting).await;
    reply.expect("no reply").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_waits_hears_of_the_decision_if_it_still_may() {
    let system = System::start().await;
    let requester = system.sign_up(REQUESTER).await;
    let task = system.create_task(&requester, REQUESTER, APPROVER).await;
    let path = format!("/people-task/tasks/{}", task.id);
    let by_requester = wait(&system, &path, &task.requester_secret);
    let by_approver = wait(&system, &path, &task.approver_secret);
    let reads = "SELECT 'read' AS line FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE '%array_agg(subject_id)%' AND pid <> pg_backend_pid()";
    eventually("the gateway to listen", || async {
        let reads = lines(&mut system.database.admin(), reads);
        (!reads.is_empty()).then_some(())
    })
    .await;
    assert!(!by_requester.is_finished() && !by_approver.is_finished());

    // From now on another approver has a secret.
    let other = json!({"approver": "other@example.com"});
    let edit = system.http.put(&path).bearer(&requester).json(&other);
    let secret = edit.send().await.expect(200).text_of("approverSecret");
    let approve = system.http.put(&format!("{path}/approve?secret={secret}"));
    let approved = approve.send().await.expect(200);
    let heard = reply(by_requester).await.expect(200);
    assert_eq!(heard.json, approved.json);
    reply(by_approver).await.expect_problem(404, "not-found");
    system.stop().await;
}
