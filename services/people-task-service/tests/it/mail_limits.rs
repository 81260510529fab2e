//! How many mails about tasks are sent to one person, for one creator, and by edits of others.

use serde_json::json;
use testkit::{eventually, lines};

use crate::mails::{claim, claimed_kinds, create, in_hours, report, start};

#[tokio::test]
async fn a_flood_of_tasks_is_no_flood_of_mails() {
    let limits = [
        ("TASK_MAIL_PER_RECIPIENT", "6"),
        ("TASK_MAIL_PER_CREATOR", "3"),
        // Creators who ask for a mail that is not sent are refused.
        ("TASK_MAIL", "on"),
    ];
    let (app, ada) = start(&limits).await;
    for _ in 0..3 {
        let _ = app.create(&ada, json!({})).await;
    }
    assert_eq!(
        claim(&app).await.len(),
        2,
        "as many as the recipient gets of one creator"
    );
    let _ = app
        .create(&ada, json!({"approver": "GRACE@example.com"}))
        .await;
    assert!(claim(&app).await.is_empty());
    for (approver, mails) in [("else@example.com", 1), ("third@example.com", 0)] {
        let _ = app.create(&ada, json!({"approver": approver})).await;
        assert_eq!(claim(&app).await.len(), mails, "the creator may cause 3");
    }
    let bob = app.user("bob@example.com");
    for approver in ["grace@example.com", "third@example.com"] {
        let _ = app.create(&bob, json!({"approver": approver})).await;
        assert_eq!(claim(&app).await.len(), 1, "others can write to {approver}");
    }
    // Nobody else tells the approver of the others, so they wait for the next hour.
    let waiting = "SELECT kind AS line FROM people_task.task_mails WHERE lease = 0
        AND next_attempt >= date_trunc('hour', now()) + interval '1 hour'";
    assert_eq!(lines(&mut app.database.admin(), waiting), ["asked"; 3]);
    app.execute("UPDATE mail_counts SET hour = hour - interval '1 hour'");
    app.execute("UPDATE task_mails SET next_attempt = now() WHERE lease = 0");
    assert_eq!(claim(&app).await.len(), 3);
}

#[tokio::test]
async fn a_few_creators_keep_no_other_one_from_writing_to_a_person() {
    let (app, _) = start(&[("TASK_MAIL_PER_RECIPIENT", "3"), ("TASK_MAIL", "on")]).await;
    // A third is one mail, and the first of a creator is sent until there are twice as many.
    for (number, mails) in [1, 1, 1, 1, 1, 1, 0].into_iter().enumerate() {
        let creator = app.user(&format!("creator-{number}@example.com"));
        for _ in 0..2 {
            let _ = app.create(&creator, json!({})).await;
        }
        assert_eq!(claim(&app).await.len(), mails, "creator {number}");
    }
}

#[tokio::test]
async fn a_mail_that_meets_an_outage_at_its_first_attempt_is_counted_once() {
    let (app, ada) = start(&[("TASK_MAIL_PER_CREATOR", "1")]).await;
    let _ = create(&app, &ada, json!({})).await;
    let first = claim(&app).await.remove(0);
    let outage = json!({"retryAfterMs": 1, "outage": true});
    report(&app, &first, outage).await;
    let again = eventually("the pause to end", async || claim(&app).await.pop()).await;
    assert_eq!(again["attempt"], 2);
}

#[tokio::test]
async fn edits_of_one_task_use_up_no_mails_of_its_creator() {
    let (app, ada) = start(&[("TASK_MAIL_PER_CREATOR", "30")]).await;
    let requester = app.user("requester@example.com");
    let task = create(&app, &ada, json!({"requester": requester.email})).await;
    let mut kinds = Vec::new();
    for number in 0..20 {
        let approver = format!("approver-{number}@example.com");
        let edit = json!({"approver": approver, "decisionBy": in_hours(1)});
        let _ = app.put(&requester, &task.path, &edit).await.expect(200);
        app.execute("UPDATE task_mails SET next_attempt = now() WHERE kind = 'due'");
        app.execute("UPDATE tasks SET decision_by = now()");
        kinds.extend(claimed_kinds(&app).await);
    }
    kinds.sort();
    assert_eq!(kinds, [["asked"; 5], ["due"; 5]].concat());
    // The newest approver is asked in the next hour.
    let waiting = "SELECT kind AS line FROM people_task.task_mails
        WHERE lease = 0 AND recipient = people_task.mail_recipient('approver-19@example.com')";
    assert_eq!(lines(&mut app.database.admin(), waiting), ["asked"]);

    for number in 0..20 {
        let approver = format!("other-{number}@example.com");
        let _ = create(&app, &ada, json!({"approver": approver})).await;
    }
    assert_eq!(claimed_kinds(&app).await, ["asked"; 20]);
}

#[tokio::test]
async fn by_edits_others_than_the_creator_use_up_a_third_of_the_creators_mails() {
    let (app, ada) = start(&[("TASK_MAIL_PER_CREATOR", "12")]).await;
    let requester = app.user("requester@example.com");
    let (mut tasks, mut sent) = (Vec::new(), Vec::new());
    for number in 0..6 {
        let approver = format!("approver-{number}@example.com");
        let changes = json!({"requester": requester.email, "approver": approver});
        tasks.push(create(&app, &ada, changes).await);
    }
    sent.push(claim(&app).await.len());
    for editor in [&requester, &ada] {
        for (number, task) in tasks.iter().enumerate() {
            let approver = format!("{number}-of-{}", editor.email);
            let edit = json!({"approver": approver});
            let _ = app.put(editor, &task.path, &edit).await.expect(200);
        }
        sent.push(claim(&app).await.len());
    }
    assert_eq!(sent, [6, 4, 2]);
}

#[tokio::test]
async fn a_creator_who_asks_for_too_many_mails_is_refused() {
    let (app, ada) = start(&[("TASK_MAIL_PER_CREATOR", "1")]).await;
    let _ = create(&app, &ada, json!({})).await;
    let refused = app.try_create(&ada, json!({"notify": true})).await;
    refused.expect_problem(429, "rate-limited");
    assert_eq!(refused.json["resource"], "mails");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(wait <= 3_600, "{wait}");
    let _ = app.create(&ada, json!({})).await;
}

#[tokio::test]
async fn mails_that_are_not_sent_hold_up_no_others() {
    let (app, ada) = start(&[("TASK_MAIL_PER_CREATOR", "3"), ("TASK_MAIL", "on")]).await;
    for number in 0..60 {
        let approver = format!("someone-{number}@example.com");
        let _ = app.create(&ada, json!({"approver": approver})).await;
    }
    let bob = app.user("bob@example.com");
    let _ = app.create(&bob, json!({})).await;
    assert_eq!(claim(&app).await.len(), 4);
}
