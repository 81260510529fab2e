//! Mails about tasks: which are planned, handed over to the notification worker, and dropped.

use app_config::Reader;
use auth::MailKeys;
use chrono::{Duration, Utc};
use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::{Reply, eventually, lines};

use crate::erasure::service_token;
use crate::fixture::{Fixture, Task, User, WithSecret as _};

pub(crate) const KEY: &str = "the-mail-key-5f4dcc3b5aa765d61d8327deb882cf99";
const OTHER_KEY: &str = "another-key-7c6a180b36896a0a8c02787eeafb0e4c";
const GRACE: &str = "grace@example.com";

/// Starts in the next hour if this one is nearly over: mails are counted by the hour.
pub(crate) async fn start(settings: &[(&str, &str)]) -> (Fixture, User) {
    eventually("an hour that lasts", async || {
        (Utc::now().timestamp() % 3_600 < 3_580).then_some(())
    })
    .await;
    let settings = [&[("TASK_MAIL_KEY", KEY)], settings].concat();
    let app = Fixture::start_with(&settings).await;
    let ada = app.user("ada@example.com");
    (app, ada)
}

pub(crate) fn in_hours(hours: i64) -> String {
    (Utc::now() + Duration::hours(hours)).to_rfc3339()
}

pub(crate) async fn create(app: &Fixture, by: &User, mut changes: Value) -> Task {
    changes["notify"] = json!(true);
    app.create(by, changes).await
}

pub(crate) fn worker_token(key: &str) -> String {
    let mut reader = Reader::from_pairs([("TASK_MAIL_KEY", key)]).unwrap();
    let keys = MailKeys::read(&mut reader).unwrap().unwrap();
    keys.worker_token().expose().to_owned()
}

async fn try_claim(app: &Fixture, token: &str) -> Reply {
    let request = app.http.post("/internal/mails/claim").bearer(token);
    request.json(&json!({"limit": 100})).send().await
}

/// Claims all mails that are due.
pub(crate) async fn claim_all(app: &Fixture) -> Value {
    try_claim(app, &worker_token(KEY)).await.expect(200).json
}

/// Claims all mails that are due, and returns those about tasks that were not withdrawn.
pub(crate) async fn claim(app: &Fixture) -> Vec<Value> {
    claim_all(app).await["mails"].as_array().unwrap().clone()
}

pub(crate) async fn claimed_kinds(app: &Fixture) -> Vec<String> {
    let mails = claim(app).await;
    let kinds = mails.iter().map(|mail| mail["kind"].as_str().unwrap());
    kinds.map(str::to_owned).collect()
}

pub(crate) async fn report(app: &Fixture, mail: &Value, mut body: Value) {
    body["attempt"] = mail["attempt"].clone();
    let path = format!("/internal/mails/{}/report", mail["id"].as_str().unwrap());
    let request = app.http.post(&path).bearer(&worker_token(KEY));
    let _ = request.json(&body).send().await.expect(204);
}

/// The mails that wait, as `kind hours-from-now`, in order.
fn planned(app: &Fixture) -> Vec<String> {
    let sql = "SELECT kind || ' ' || round(extract(epoch FROM due_at - now()) / 3600) AS line
        FROM people_task.task_mails ORDER BY due_at, kind";
    lines(&mut app.database.admin(), sql)
}

/// Moves all mails into the past, and the due dates of their tasks.
fn pass(app: &Fixture, hours: u32) {
    let by = format!("interval '{hours} hours'");
    let sql = format!(
        "UPDATE people_task.task_mails SET due_at = due_at - {by}, next_attempt = next_attempt - {by};
        UPDATE people_task.tasks SET decision_by = decision_by - {by};
        UPDATE people_task.task_states SET decision_by = decision_by - {by};"
    );
    app.database.admin().batch_execute(&sql).unwrap();
}

#[tokio::test]
async fn no_mail_is_planned_unless_the_creator_or_the_setting_says_so() {
    let (app, ada) = start(&[]).await;
    for changes in [json!({}), json!({"notify": false})] {
        let _ = app.create(&ada, changes).await;
    }
    assert_eq!((app.count("task_mails"), app.count("mailed_tasks")), (0, 0));
    let (app, ada) = start(&[("TASK_MAIL", "on")]).await;
    let _ = app.create(&ada, json!({"notify": false})).await;
    assert_eq!(app.count("task_mails"), 0);
    let _ = app.create(&ada, json!({})).await;
    assert_eq!(planned(&app), ["asked 0"]);

    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let reply = app.try_create(&ada, json!({"notify": true})).await;
    reply.expect_problem(400, "validation-failed");
    assert_eq!(reply.json["errors"][0]["field"], "notify");
    let _ = app.create(&ada, json!({"notify": false})).await;
    let reply = app.try_create(&ada, json!({"language": "fr"})).await;
    reply.expect_problem(400, "validation-failed");
}

#[tokio::test]
async fn only_the_notification_worker_claims_mails() {
    let (app, ada) = start(&[]).await;
    let _ = create(&app, &ada, json!({})).await;
    let service = service_token(&app);
    let other = worker_token(OTHER_KEY);
    for token in [&ada.token, &service, &other, KEY] {
        let reply = try_claim(&app, token).await;
        reply.expect_problem(401, "invalid-token");
    }
    let path = format!("/internal/mails/{}/report", "0".repeat(24));
    for token in [&ada.token, &service, &other] {
        let report = app
            .http
            .post(&path)
            .bearer(token)
            .json(&json!({"attempt": 1}));
        report.send().await.expect_problem(401, "invalid-token");
    }
    assert_eq!(claimed_kinds(&app).await, ["asked"]);

    let off = Fixture::start().await;
    let reply = try_claim(&off, &worker_token(KEY)).await;
    reply.expect_problem(401, "invalid-token");
}

#[tokio::test]
async fn a_mail_has_the_secret_of_its_recipient_and_is_claimed_once() {
    let (app, ada) = start(&[
        ("MAIL_LANGUAGE", "de"),
        ("PUBLIC_URL", "https://c.example.com/"),
    ])
    .await;
    let task = create(&app, &ada, json!({"description": "Why not?"})).await;
    let mails = claim(&app).await;
    let base = format!(
        "https://c.example.com/tasks?taskId={}&version=1&secret={}",
        task.id, task.approver_secret
    );
    let mail = &mails[0];
    for (field, value) in [
        ("kind", "asked"),
        ("language", "de"),
        ("to", GRACE),
        ("title", "Buy a second printer"),
        ("description", "Why not?"),
        ("taskLink", &base),
        ("approveLink", &format!("{base}&action=approve")),
        ("rejectLink", &format!("{base}&action=reject")),
    ] {
        assert_eq!(mail[field], value, "{field}");
    }
    assert_eq!(mail["unsubscribeLink"], Value::Null);
    // The secret is not in the database.
    let held = app.database.columns_that_hold(&task.approver_secret);
    assert_eq!(held, Vec::<String>::new());
    assert!(claim(&app).await.is_empty(), "it is claimed");

    report(&app, mail, json!({"retryAfterMs": 1})).await;
    let again = eventually("the pause to end", || async {
        Some(claim(&app).await).filter(|mails| !mails.is_empty())
    })
    .await;
    assert_eq!(again[0]["attempt"], 2);
    // The report of a lost claim changes nothing.
    report(&app, mail, json!({"retryAfterMs": 1})).await;
    assert!(claim(&app).await.is_empty());
    // An attempt at which the mail server failed does not count, also if it is reported twice.
    for _ in 0..2 {
        report(&app, &again[0], json!({"retryAfterMs": 1, "outage": true})).await;
    }
    let again = eventually("the second pause to end", || async {
        Some(claim(&app).await).filter(|mails| !mails.is_empty())
    })
    .await;
    assert_eq!(again[0]["attempt"], 2);
    report(&app, &again[0], json!({})).await;
    assert_eq!(app.count("task_mails"), 0);

    let english = create(&app, &ada, json!({"language": "en"})).await;
    assert_eq!(claim(&app).await[0]["language"], "en");
    let reject = format!("{}/reject", english.path);
    let request = app.http.put(&reject).secret(&english.approver_secret);
    let _ = request
        .json(&json!({"comment": "No."}))
        .send()
        .await
        .expect(200);
    let decided = &claim(&app).await[0];
    let link = format!(
        "https://c.example.com/tasks?taskId={}&version=1&secret={}&role=requester",
        english.id, english.requester_secret
    );
    for (field, value) in [
        ("kind", "decided"),
        ("to", "ada@example.com"),
        ("status", "rejected"),
        ("decidedBy", GRACE),
        ("comment", "No."),
        ("taskLink", &link),
    ] {
        assert_eq!(decided[field], value, "{field}");
    }
    assert_eq!(decided["approveLink"], Value::Null);
}

#[tokio::test]
async fn a_claim_ends_by_itself() {
    let (app, ada) = start(&[]).await;
    let _ = create(&app, &ada, json!({})).await;
    let first = claim(&app).await;
    // Its worker was killed.
    app.execute("UPDATE task_mails SET next_attempt = now()");
    let second = claim(&app).await;
    assert_eq!(first[0]["id"], second[0]["id"]);
    assert_eq!(second[0]["attempt"], 2);
    // The first worker lives after all, and has sent it.
    report(&app, &first[0], json!({})).await;
    assert_eq!(app.count("task_mails"), 0);
}

#[tokio::test]
async fn reminders_are_planned_before_and_at_the_due_date_and_follow_it() {
    let (app, ada) = start(&[("TASK_REMINDERS", "48h,24h,0h")]).await;
    let task = create(&app, &ada, json!({"decisionBy": in_hours(30)})).await;
    assert_eq!(planned(&app), ["asked 0", "reminder 6", "due 30"]);
    let edit = |by: Value| {
        let body = json!({"decisionBy": by});
        let (app, ada, path) = (&app, &ada, &task.path);
        async move { app.put(ada, path, &body).await.expect(200) }
    };
    let _ = edit(json!(in_hours(60))).await;
    assert_eq!(
        planned(&app),
        ["asked 0", "reminder 12", "reminder 36", "due 60"]
    );
    let _ = edit(json!(null)).await;
    assert_eq!(planned(&app), ["asked 0"]);
    let _ = edit(json!(in_hours(-1))).await;
    assert_eq!(planned(&app), ["asked 0"]);
    let _ = edit(json!(in_hours(10))).await;
    assert_eq!(planned(&app), ["asked 0", "due 10"]);
    // Another field moves nothing.
    let _ = app
        .put(&ada, &task.path, &json!({"title": "New"}))
        .await
        .expect(200);
    assert_eq!(planned(&app), ["asked 0", "due 10"]);
    let mails = claim(&app).await;
    assert_eq!(mails[0]["title"], "New");
    report(&app, &mails[0], json!({})).await;

    pass(&app, 11);
    let due = &claim(&app).await[0];
    assert_eq!(due["kind"], "due");
    assert!(due["unsubscribeLink"].is_string());
}

#[tokio::test]
async fn a_decided_task_sends_nothing_but_the_decision() {
    let (app, ada) = start(&[]).await;
    let task = create(&app, &ada, json!({"decisionBy": in_hours(30)})).await;
    let _ = app.approve(&app.user(GRACE), &task).await.expect(200);
    assert_eq!(planned(&app), ["decided 0"]);
    // One that an earlier version has left.
    app.execute(
        "UPDATE task_mails SET kind = 'asked', recipient = mail_recipient('grace@example.com')",
    );
    assert!(claim(&app).await.is_empty());
    assert_eq!(app.count("task_mails"), 0);
}

#[tokio::test]
async fn a_new_approver_is_asked_and_the_old_one_is_not_reminded() {
    let (app, ada) = start(&[]).await;
    let task = create(&app, &ada, json!({"decisionBy": in_hours(30)})).await;
    assert_eq!(claimed_kinds(&app).await, ["asked"]);
    let body = json!({"approver": "new@example.com", "requester": "other@example.com"});
    let edited = app.put(&ada, &task.path, &body).await.expect(200);
    assert_eq!(planned(&app), ["asked 0", "reminder 6", "due 30"]);
    let mails = claim(&app).await;
    assert_eq!(
        (mails.len(), &mails[0]["to"]),
        (1, &json!("new@example.com"))
    );
    let link = mails[0]["taskLink"].as_str().unwrap();
    assert!(
        link.ends_with(&edited.text_of("approverSecret")),
        "the new secret"
    );
    assert!(link.contains("&version=2&"), "what the mail tells of");
    report(&app, &mails[0], json!({})).await;

    let request = app.http.put(&format!("{}/approve", task.path));
    let request = request.secret(&edited.text_of("approverSecret"));
    let _ = request.send().await.expect(200);
    let decided = &claim(&app).await[0];
    assert_eq!(decided["to"], "other@example.com");
    let link = decided["taskLink"].as_str().unwrap();
    assert!(link.contains(&edited.text_of("requesterSecret")));
}

#[tokio::test]
async fn mails_that_are_late_or_whose_key_is_gone_are_dropped() {
    let (app, ada) = start(&[("TASK_REMINDERS", "1h")]).await;
    let _ = create(&app, &ada, json!({})).await;
    pass(&app, 25);
    assert!(claim(&app).await.is_empty());
    let _ = create(&app, &ada, json!({"decisionBy": in_hours(2)})).await;
    // The reminder was due two hours ago, but the due date has passed as well.
    app.execute("DELETE FROM task_mails WHERE kind <> 'reminder'");
    assert_eq!(planned(&app), ["reminder 1"]);
    pass(&app, 3);
    assert!(claim(&app).await.is_empty());
    let _ = create(&app, &ada, json!({})).await;
    app.execute("UPDATE mailed_tasks SET approver_seed = requester_seed");
    assert!(claim(&app).await.is_empty());
    assert_eq!(app.count("task_mails"), 0);
}

#[tokio::test]
async fn who_turned_reminders_off_gets_none_before_the_due_date() {
    let (app, ada) = start(&[("TASK_REMINDERS", "2h")]).await;
    app.execute(
        "INSERT INTO mail_opt_outs (recipient) VALUES (mail_recipient('grace@example.com'))",
    );
    let _ = create(&app, &ada, json!({"decisionBy": in_hours(3)})).await;
    assert_eq!(planned(&app), ["asked 0", "reminder 1"]);
    pass(&app, 2);
    assert_eq!(claimed_kinds(&app).await, ["asked"]);
    assert_eq!(app.count("task_mails WHERE kind = 'reminder'"), 0);
}

#[tokio::test]
async fn one_click_ends_reminders_and_nothing_else() {
    let (app, ada) = start(&[("TASK_REMINDERS", "0h")]).await;
    let remind = async || {
        let _ = create(&app, &ada, json!({"decisionBy": in_hours(1)})).await;
        pass(&app, 2);
        let mails = claim(&app).await;
        for mail in &mails {
            report(&app, mail, json!({})).await;
        }
        mails
    };
    let mails = remind().await;
    assert_eq!(mails.len(), 2);
    let due = mails.iter().find(|mail| mail["kind"] == "due").unwrap();
    let link = due["unsubscribeLink"].as_str().unwrap();
    let path = link.strip_prefix("http://localhost:8080").unwrap();
    assert!(!link.contains("grace"), "{link}");

    // A scanner opens the link.
    let german = app
        .http
        .get(path)
        .header("Accept-Language", "de-AT,en;q=0.5");
    let page = german.send().await.expect(200);
    assert!(
        page.text.contains("Erinnerungen abschalten"),
        "{}",
        page.text
    );
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(remind().await.len(), 2);

    // A mail program unsubscribes.
    let click = async |path: &str| app.http.post(path).send().await;
    let page = click(path).await.expect(200);
    assert!(
        page.text.contains("You will get no more reminders"),
        "{}",
        page.text
    );
    let mails = remind().await;
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0]["kind"], "asked");
    let _ = click(path).await.expect(200);
    // The button of the page turns them on again.
    let _ = click(&format!("{path}&reminders=on")).await.expect(200);
    assert_eq!(remind().await.len(), 2);

    let forged = path.replace("token=", "token=A");
    for wrong in ["/people-task/reminders/unsubscribe", &forged] {
        click(wrong).await.expect_problem(400, "validation-failed");
        app.http
            .get(wrong)
            .send()
            .await
            .expect_problem(400, "validation-failed");
    }
}

#[tokio::test]
async fn erasure_deletes_the_mails_that_the_user_would_get() {
    let since_others = json!({"email": "Grace@example.com", "since": in_hours(0), "until": "9999-12-31T23:59:59Z"});
    for body in [
        json!({"emails": ["Grace@example.com"], "incarnation": testkit::INCARNATION}),
        json!({"emails": [], "formerEmails": [since_others], "incarnation": testkit::INCARNATION}),
    ] {
        let (app, ada) = start(&[]).await;
        let grace = app.user(GRACE);
        let _ = create(&app, &ada, json!({"decisionBy": in_hours(30)})).await;
        let _ = create(&app, &ada, json!({"approver": "else@example.com"})).await;
        let _ = create(&app, &grace, json!({"approver": "else@example.com"})).await;
        assert_eq!((app.count("task_mails"), app.count("mailed_tasks")), (5, 3));
        let request = app
            .http
            .post(&format!("/internal/users/{}/erase", grace.id));
        let request = request.bearer(&service_token(&app));
        let reply = request.json(&body).send().await.expect(200);
        assert_eq!(reply.json["more"], false);
        assert_eq!((app.count("task_mails"), app.count("mailed_tasks")), (1, 2));
        assert_eq!(claim(&app).await[0]["to"], "else@example.com");
    }
}

#[tokio::test]
async fn erasure_leaves_the_mails_to_a_former_address_that_was_given_up_by_a_faster_clock() {
    let (app, ada) = start(&[]).await;
    let _ = create(&app, &ada, json!({})).await;
    let former = json!([{"email": GRACE, "until": in_hours(1)}]);
    let body = json!({"emails": [], "formerEmails": former, "incarnation": testkit::INCARNATION});
    let user = app.user("grace@new.example");
    let erase = app.http.post(&format!("/internal/users/{}/erase", user.id));
    let erase = erase.bearer(&service_token(&app)).json(&body);
    let _ = erase.send().await.expect(200);
    assert_eq!(app.count("task_mails"), 1);
}

#[tokio::test]
async fn links_work_while_the_key_is_replaced() {
    let (mut app, ada) = start(&[]).await;
    let task = create(&app, &ada, json!({})).await;
    let keys = [
        ("TASK_MAIL_KEY", OTHER_KEY),
        ("TASK_MAIL_PREVIOUS_KEY", KEY),
    ];
    app.restart_with(&keys).await;
    let reply = try_claim(&app, &worker_token(OTHER_KEY)).await.expect(200);
    let link = reply.json["mails"][0]["taskLink"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        link.contains(&task.approver_secret),
        "made with the earlier key"
    );
}

#[tokio::test]
async fn mails_that_wait_while_none_are_sent_are_no_backlog() {
    let metrics = telemetry::metrics_recorder();
    let (mut app, ada) = start(&[]).await;
    let _ = create(&app, &ada, json!({})).await;
    let oldest = || {
        let metrics = metrics.render();
        let mut lines = metrics.lines();
        let oldest = lines.find_map(|line| line.strip_prefix("task_mails_oldest_due_seconds "));
        oldest.unwrap().parse::<f64>().unwrap()
    };
    assert!(app.stop().await);
    pass(&app, 1);
    app.restart_with(&[("TASK_MAIL_KEY", KEY)]).await;
    eventually("the mail to be overdue", async || {
        (oldest() > 3_000.0).then_some(())
    })
    .await;
    assert!(app.stop().await);
    app.restart_with(&[]).await;
    assert!(oldest() < 1.0);
}
