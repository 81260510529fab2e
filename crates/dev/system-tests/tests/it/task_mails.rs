//! Mails about tasks, from the request that creates a task to the mail server.

use std::time::{Duration, Instant, SystemTime};

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

#[tokio::test(flavor = "multi_thread")]
async fn an_undecided_task_reminds_its_approver_before_and_at_the_due_date() {
    let (system, server) = System::start_with_mail(&[("TASK_REMINDERS", "2s,0s")]).await;
    let token = system.sign_up(ADA).await;
    let changes = json!({"decisionBy": in_seconds(4), "language": "de", "title": "Stuhl für Ada"});
    let _ = create(&system, &token, changes).await;
    for subject in ["Bitte entscheiden", "Erinnerung", "Jetzt"] {
        let mail = wait_for(&server, subject).await;
        let is_reminder = subject != "Bitte entscheiden";
        let one_click = "List-Unsubscribe-Post: List-Unsubscribe=One-Click\n";
        assert_eq!(mail.text.contains(one_click), is_reminder, "{}", mail.text);
    }
    wait_until_sent(&system).await;
    assert_eq!(server.mails().len(), 3);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decided_task_and_a_later_due_date_send_no_reminder() {
    let (system, server) = System::start_with_mail(&[("TASK_REMINDERS", "0s")]).await;
    let token = system.sign_up(ADA).await;
    let decided = create(
        &system,
        &token,
        json!({"title": "First", "decisionBy": in_seconds(5)}),
    )
    .await;
    let moved = create(
        &system,
        &token,
        json!({"title": "Second", "decisionBy": in_seconds(5)}),
    )
    .await;
    let _ = create(
        &system,
        &token,
        json!({"title": "Third", "decisionBy": in_seconds(5)}),
    )
    .await;
    for title in ["First", "Second"] {
        let _ = wait_for(&server, &format!("Please decide: {title}")).await;
    }
    let path = format!("/people-task/tasks/{}", moved.id);
    let later = json!({"decisionBy": in_seconds(3_600)});
    let _ = system.put(&path, &token, &later).await;
    let path = format!(
        "/people-task/tasks/{}/approve?secret={}",
        decided.id, decided.approver_secret
    );
    let _ = system.http.put(&path).send().await.expect(200);
    let _ = wait_for(&server, "Due now: Third").await;
    let mut sent = subjects(&server);
    sent.sort_unstable();
    assert_eq!(
        sent,
        [
            "Approved: First",
            "Due now: Third",
            "Please decide: First",
            "Please decide: Second",
            "Please decide: Third",
        ]
    );
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_click_in_a_mail_program_ends_reminders() {
    let (system, server) = System::start_with_mail(&[("TASK_REMINDERS", "0s")]).await;
    let token = system.sign_up(ADA).await;
    let _ = create(
        &system,
        &token,
        json!({"title": "First", "decisionBy": in_seconds(3)}),
    )
    .await;
    let reminder = wait_for(&server, "Due now: First").await;
    let mut lines = reminder.text.lines();
    let url = lines
        .find_map(|line| line.strip_prefix("List-Unsubscribe: <"))
        .unwrap();
    let path = url
        .strip_suffix('>')
        .unwrap()
        .strip_prefix(PUBLIC_URL)
        .unwrap();
    let click = system
        .http
        .post(path)
        .header("Content-Type", "application/x-www-form-urlencoded");
    let page = click
        .body("List-Unsubscribe=One-Click")
        .send()
        .await
        .expect(200);
    assert!(
        page.text.contains("You will get no more reminders"),
        "{}",
        page.text
    );
    assert!(page.header("content-security-policy").is_some());

    let _ = create(
        &system,
        &token,
        json!({"title": "Second", "decisionBy": in_seconds(1)}),
    )
    .await;
    wait_until_sent(&system).await;
    let sent = subjects(&server);
    assert!(
        sent.contains(&"Please decide: Second".to_owned()),
        "{sent:?}"
    );
    assert!(!sent.contains(&"Due now: Second".to_owned()), "{sent:?}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_refused_or_whose_worker_stops_is_sent_later() {
    let settings = [("NOTIFICATION_RETRY_SCHEDULE", "10ms,10ms,10ms")];
    let (mut system, server) = System::start_with_mail(&settings).await;
    let token = system.sign_up(ADA).await;
    server.refuse(2);
    let _ = create(&system, &token, json!({"title": "First"})).await;
    let _ = wait_for(&server, "Please decide: First").await;
    wait_until_sent(&system).await;

    system.stop_workers().await;
    let _ = create(&system, &token, json!({"title": "Second"})).await;
    system.start_workers().await;
    let _ = wait_for(&server, "Please decide: Second").await;
    wait_until_sent(&system).await;
    assert_eq!(server.mails().len(), 2);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_waits_for_a_mail_server_that_is_away_for_longer_than_the_schedule() {
    let settings = [("NOTIFICATION_RETRY_SCHEDULE", "10ms,10ms")];
    let (system, server) = System::start_with_mail(&settings).await;
    let token = system.sign_up(ADA).await;
    server.refuse_with("220", "421 closed for today", 8);
    let _ = create(&system, &token, json!({"title": "First"})).await;
    let _ = wait_for(&server, "Please decide: First").await;
    wait_until_sent(&system).await;
    // It may have been sent each time.
    server.refuse_with(".", "no SMTP", u32::MAX);
    let _ = create(&system, &token, json!({"title": "Second"})).await;
    wait_until_sent(&system).await;
    assert_eq!(server.texts().len(), 1 + 3);
    server.refuse_with("RCPT", "550 no such user", u32::MAX);
    let _ = create(&system, &token, json!({"title": "Third"})).await;
    wait_until_sent(&system).await;
    assert_eq!(server.mails().len(), 1);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_title_adds_no_header() {
    let (system, server) = System::start_with_mail(&[]).await;
    let token = system.sign_up(ADA).await;
    let title = "Hi\r\nBcc: eve@example.com\r\n\r\n<script>\u{202e}";
    let _ = create(&system, &token, json!({"title": title})).await;
    let mail = wait_for(&server, "Please decide: Hi Bcc: eve@example.com <script>").await;
    assert_eq!(mail.to, [GRACE]);
    assert!(
        !mail.text.lines().any(|line| line.starts_with("Bcc:")),
        "{}",
        mail.text
    );
    let html = mail.text.split("text/html").nth(1).unwrap();
    assert!(!html.contains("<script>"), "{html}");
    system.stop().await;
}

/// Beside thousands of mails of one user, those of another one arrive within two seconds.
async fn check_that_others_do_not_wait(settings: &[(&str, &str)]) {
    let (system, server) = System::start_with_mail(settings).await;
    let [ada, bob] = [
        system.sign_up(ADA).await,
        system.sign_up("bob@example.com").await,
    ];
    let _ = create(&system, &ada, json!({"title": "Flood"})).await;
    let flood = "INSERT INTO people_task.task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt)
        SELECT people_task.new_id(), id, creator, 'asked', people_task.mail_recipient(approver_key), at, at
        FROM people_task.tasks CROSS JOIN generate_series(1, 3000) AS number
            CROSS JOIN LATERAL (SELECT now() - number * interval '1 ms' AS at) AS due
        RETURNING kind AS line";
    let _ = lines(&mut system.database.admin(), flood);
    let _ = wait_for(&server, "Please decide: Flood").await;
    for number in 0..5 {
        let title = format!("Mine {number}");
        let mail = json!({"title": title, "approver": "other@example.com"});
        let _ = create(&system, &bob, mail).await;
        let created = Instant::now();
        let _ = wait_for(&server, &format!("Please decide: {title}")).await;
        let waited = created.elapsed();
        assert!(waited < Duration::from_secs(2), "{waited:?}");
    }
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_mails_of_one_user_keep_no_other_waiting() {
    let unlimited = [
        ("TASK_MAIL_PER_RECIPIENT", "0"),
        ("TASK_MAIL_PER_CREATOR", "0"),
    ];
    check_that_others_do_not_wait(&unlimited).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_beyond_the_limit_of_their_creator_keep_no_other_waiting() {
    check_that_others_do_not_wait(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_for_which_the_mail_server_is_slow_delay_no_mail_of_another_creator() {
    let (system, server) = System::start_with_mail(&[]).await;
    server.be_silent_for(Some("slow"));
    let asked_slowly = || {
        let commands = server.commands().into_iter();
        let slow =
            commands.filter(|command| command.starts_with("RCPT") && command.contains("slow"));
        slow.count()
    };
    // Another account that signs up here would count as one with the first.
    let (ada, other) = (system.sign_up(ADA).await, system.admin.clone());
    for number in 0..20 {
        let approver = format!("slow-{number}@example.com");
        let _ = create(&system, &ada, json!({"approver": approver})).await;
    }
    eventually("all of one creator's places to be taken", || async {
        (asked_slowly() >= 12).then_some(())
    })
    .await;
    for _ in 0..3 {
        let before = server.mails().len();
        let started = Instant::now();
        let _ = create(&system, &other, json!({"requester": "bob@example.com"})).await;
        eventually("another creator's mail", || async {
            (server.mails().len() > before).then_some(())
        })
        .await;
        let time = started.elapsed();
        assert!(time < Duration::from_secs(2), "{time:?}");
    }
    assert_eq!(asked_slowly(), 12);
    server.be_silent_for(None);
    system.stop().await;
}
