//! Mails about tasks, from the request that creates a task to the mail server.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use testkit::{Mail, MailServer, eventually, lines};

use crate::harness::{System, Task};

const ADA: &str = "ada@example.com";
const GRACE: &str = "grace@example.com";
const PUBLIC_URL: &str = "https://countersign.example.com";

/// A time from now in whole seconds, as the API takes it.
fn in_seconds(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    chrono::DateTime::<chrono::Utc>::from(at).to_rfc3339()
}

async fn create(system: &System, token: &str, changes: Value) -> Task {
    let mut body = json!({
        "title": "Buy a chair", "requester": ADA, "approver": GRACE, "notify": true,
    });
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    system.create_task_from(token, &body).await
}

/// Waits for a mail whose subject begins with a text.
async fn wait_for(server: &MailServer, subject: &str) -> Mail {
    let subject = format!("Subject: {subject}");
    eventually("a mail", || async {
        let mut mails = server.mails().into_iter();
        mails.find(|mail| mail.text.lines().any(|line| line.starts_with(&subject)))
    })
    .await
}

/// The first link of a mail that ends in a text, on a line of its own.
fn link(mail: &Mail, end: &str) -> String {
    let mut lines = mail.text.lines();
    let found = lines.find(|line| line.starts_with(PUBLIC_URL) && line.ends_with(end));
    found
        .unwrap_or_else(|| panic!("no link with {end} in {}", mail.text))
        .to_owned()
}

/// The subjects of all mails.
fn subjects(server: &MailServer) -> Vec<String> {
    let mails = server.mails();
    let subject = |mail: &Mail| {
        let mut lines = mail.text.lines();
        let subject = lines.find_map(|line| line.strip_prefix("Subject: "));
        subject.unwrap().to_owned()
    };
    mails.iter().map(subject).collect()
}

/// Waits until no mail is waiting or being sent.
async fn wait_until_sent(system: &System) {
    eventually("all mails to be sent", || async {
        let open = "SELECT kind AS line FROM people_task.task_mails";
        lines(&mut system.database.admin(), open)
            .is_empty()
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approver_is_asked_once_with_links_that_decide_and_the_requester_is_told() {
    let (system, server) = System::start_with_mail(&[]).await;
    let token = system.sign_up(ADA).await;
    let task = create(
        &system,
        &token,
        json!({"description": "The *old* one broke."}),
    )
    .await;
    let asked = wait_for(&server, "Please decide: Buy a chair").await;
    assert_eq!(asked.to, [GRACE]);
    let id = &task.id;
    let secret = &task.approver_secret;
    let base = format!("{PUBLIC_URL}/tasks?taskId={id}&secret={secret}");
    assert_eq!(
        link(&asked, "&action=approve"),
        format!("{base}&action=approve")
    );
    assert_eq!(
        link(&asked, "&action=reject"),
        format!("{base}&action=reject")
    );
    assert_eq!(link(&asked, secret), base);
    assert!(asked.text.contains("The old one broke."), "{}", asked.text);

    let path = format!("/people-task/tasks/{id}/approve?secret={secret}");
    let _ = system.http.put(&path).send().await.expect(200);
    let decided = wait_for(&server, "Approved: Buy a chair").await;
    assert_eq!(decided.to, [ADA]);
    let secret = &task.requester_secret;
    let base = format!("{PUBLIC_URL}/tasks?taskId={id}&secret={secret}");
    assert_eq!(
        link(&decided, "&role=requester"),
        format!("{base}&role=requester")
    );
    wait_until_sent(&system).await;
    assert_eq!(
        subjects(&server),
        ["Please decide: Buy a chair", "Approved: Buy a chair"]
    );
    system.stop().await;
}
