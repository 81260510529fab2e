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

/// Brings the due dates of all tasks and their reminders this much nearer.
pub(crate) fn bring_nearer(system: &System, minutes: u32) {
    let nearer = format!(
        "WITH tasks AS (UPDATE people_task.tasks SET decision_by = decision_by - interval '{minutes} minutes'),
            states AS (UPDATE people_task.task_states SET decision_by = decision_by - interval '{minutes} minutes')
        UPDATE people_task.task_mails SET next_attempt = next_attempt - interval '{minutes} minutes'
        WHERE kind IN ('reminder', 'due') AND lease = 0 RETURNING kind AS line"
    );
    assert!(!lines(&mut system.database.admin(), &nearer).is_empty());
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
    let base = format!("{PUBLIC_URL}/tasks?taskId={id}&version=1&secret={secret}");
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
    let base = format!("{PUBLIC_URL}/tasks?taskId={id}&version=1&secret={secret}");
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
    let (system, server) = System::start_with_mail(&[("TASK_REMINDERS", "30m,0s")]).await;
    let token = system.sign_up(ADA).await;
    let due = in_seconds(3_600);
    let changes = json!({"decisionBy": due, "language": "de", "title": "Stuhl für Ada"});
    let _ = create(&system, &token, changes).await;
    // It is 20 minutes before the due date when it reminds for the first time.
    for (subject, nearer) in [("Bitte entscheiden", 40), ("Erinnerung", 30), ("Jetzt", 0)] {
        let mail = wait_for(&server, subject).await;
        let is_reminder = subject != "Bitte entscheiden";
        let one_click = "List-Unsubscribe-Post: List-Unsubscribe=One-Click\n";
        assert_eq!(mail.text.contains(one_click), is_reminder, "{}", mail.text);
        if nearer > 0 {
            bring_nearer(&system, nearer);
        }
    }
    wait_until_sent(&system).await;
    assert_eq!(server.mails().len(), 3);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decided_task_and_a_later_due_date_send_no_reminder() {
    let (system, server) = System::start_with_mail(&[("TASK_REMINDERS", "0s")]).await;
    let token = system.sign_up(ADA).await;
    let mut tasks = Vec::new();
    for title in ["First", "Second", "Third"] {
        let body = json!({"title": title, "decisionBy": in_seconds(3_600)});
        tasks.push(create(&system, &token, body).await);
    }
    for title in ["First", "Second", "Third"] {
        let _ = wait_for(&server, &format!("Please decide: {title}")).await;
    }
    let (decided, moved) = (&tasks[0], &tasks[1]);
    let path = format!("/people-task/tasks/{}", moved.id);
    let later = json!({"decisionBy": in_seconds(7_200)});
    let _ = system.put(&path, &token, &later).await;
    let path = format!(
        "/people-task/tasks/{}/approve?secret={}",
        decided.id, decided.approver_secret
    );
    let _ = system.http.put(&path).send().await.expect(200);
    let _ = wait_for(&server, "Approved: First").await;
    bring_nearer(&system, 61);
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
    let body = |title| json!({"title": title, "decisionBy": in_seconds(3_600)});
    let _ = create(&system, &token, body("First")).await;
    bring_nearer(&system, 61);
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

    let _ = create(&system, &token, body("Second")).await;
    bring_nearer(&system, 61);
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
async fn a_mail_outlasts_four_claims_without_a_report_and_no_more() {
    let settings = [("NOTIFICATION_RETRY_SCHEDULE", "10ms,10ms")];
    let (mut system, server) = System::start_with_mail(&settings).await;
    let token = system.sign_up(ADA).await;
    system.stop_workers().await;
    for (title, claims) in [("First", 6), ("Second", 7)] {
        let _ = create(&system, &token, json!({"title": title})).await;
        let claim = format!(
            "UPDATE people_task.task_mails SET lease = {claims} WHERE lease = 0 RETURNING kind AS line"
        );
        assert_eq!(lines(&mut system.database.admin(), &claim), ["asked"]);
    }
    system.start_workers().await;
    wait_until_sent(&system).await;
    assert_eq!(subjects(&server), ["Please decide: First"]);
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

/// How many mails wait for the next hour, of those before the mail to this address was claimed. Claims are in the order of their
/// transactions.
fn put_off(system: &System, before: &str) -> usize {
    let put_off = format!(
        "WITH mine AS (SELECT xmin::text::bigint AS claim FROM people_task.mail_counts
            WHERE counted = people_task.mail_recipient('{before}'))
        SELECT kind AS line FROM people_task.task_mails WHERE lease = 0 AND next_attempt > now()
            AND NOT EXISTS (SELECT FROM mine WHERE claim <= task_mails.xmin::text::bigint)"
    );
    lines(&mut system.database.admin(), &put_off).len()
}

/// Beside thousands of mails of one user, few are sent or put off before one of another user is sent.
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
        let to = format!("other-{number}@example.com");
        let _ = create(&system, &bob, json!({"title": to, "approver": to})).await;
        let earlier = server.mails().len() + put_off(&system, &to);
        let _ = wait_for(&server, &format!("Please decide: {to}")).await;
        let mut mails = server.mails().into_iter();
        let sent = mails.position(|mail| mail.to[0] == to).unwrap();
        let before = (sent + put_off(&system, &to)).saturating_sub(earlier);
        assert!(before < 300, "{before}");
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
    // Until then, the worker gives up no mail whose place another one could take.
    let given_up = Instant::now() + Duration::from_secs(20);
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
        let (time, asked) = (started.elapsed(), asked_slowly());
        assert!(time < Duration::from_secs(10), "{time:?}");
        assert!(asked == 12 || Instant::now() > given_up, "{asked}");
    }
    server.be_silent_for(None);
    system.stop().await;
}
