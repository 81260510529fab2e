//! Creators of tasks take turns when mails are claimed.

use std::collections::HashSet;

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use testkit::Reply;
use values::UserId;

use crate::fixture::{Fixture, User};
use crate::mails::{KEY, claim, create, start, worker_token};

pub(crate) const UNLIMITED: [(&str, &str); 2] = [
    ("TASK_MAIL_PER_RECIPIENT", "0"),
    ("TASK_MAIL_PER_CREATOR", "0"),
];

/// Lets a user cause very many mails, which are due before all others.
pub(crate) async fn flood(app: &Fixture, user: &User, mails: u32) {
    let task = create(app, user, json!({"requester": user.email})).await;
    app.execute(&format!(
        "INSERT INTO task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt)
        SELECT new_id(), task_id, creator, kind, recipient, at, at
        FROM task_mails CROSS JOIN generate_series(1, {mails}) AS number
            CROSS JOIN LATERAL (SELECT now() - number * interval '1 ms' AS at) AS due
        WHERE encode(task_id, 'hex') = '{}'",
        task.id
    ));
}

pub(crate) async fn ask(app: &Fixture, user: &User, approver: &str) {
    let changes = json!({"requester": user.email, "approver": approver});
    let _ = create(app, user, changes).await;
}

pub(crate) async fn claim_at_most(app: &Fixture, limit: usize) -> Reply {
    claim_for(app, json!({"limit": limit})).await
}

/// Claims mails for a worker that has this room.
async fn claim_for(app: &Fixture, room: Value) -> Reply {
    let request = app.http.post("/internal/mails/claim");
    let request = request.bearer(&worker_token(KEY));
    request.json(&room).send().await.expect(200)
}

/// Who asks in the mails of a claim.
pub(crate) fn requesters(reply: &Reply) -> Vec<String> {
    let mails = reply.json["mails"].as_array().unwrap().iter();
    let requester = |mail: &Value| mail["requester"].as_str().unwrap().to_owned();
    mails.map(requester).collect()
}

#[tokio::test]
async fn beside_thousands_of_mails_of_one_creator_another_ones_is_in_the_next_batch() {
    let (app, ada) = start(&UNLIMITED).await;
    flood(&app, &ada, 3_000).await;
    let bob = app.user("bob@example.com");
    for _ in 0..3 {
        ask(&app, &bob, "grace@example.com").await;
        let claimed = claim_at_most(&app, 16).await;
        let requesters = requesters(&claimed);
        assert_eq!(requesters.len(), 16);
        assert!(requesters.contains(&bob.email), "{requesters:?}");
        assert_eq!(claimed.json["more"], true);
    }
    ask(&app, &bob, "grace@example.com").await;
    let single = [claim_at_most(&app, 1).await, claim_at_most(&app, 1).await];
    let requesters: HashSet<_> = single.iter().flat_map(requesters).collect();
    assert_eq!(requesters, HashSet::from([ada.email, bob.email]));
}

#[tokio::test]
async fn each_creator_gets_a_turn_before_the_first_one_gets_another() {
    for mails in [3, 3_000] {
        let (app, ada) = start(&UNLIMITED).await;
        flood(&app, &ada, mails).await;
        let others = (0..20).map(|number| app.user(&format!("user-{number}@example.com")));
        let others: Vec<_> = others.collect();
        for other in &others {
            for number in 0..2 {
                ask(&app, other, &format!("approver-{number}@example.com")).await;
            }
        }
        let mut served = Vec::new();
        for limit in [8, 1, 5, 7] {
            let claimed = requesters(&claim_at_most(&app, limit).await);
            assert_eq!(claimed.len(), limit);
            served.extend(claimed);
        }
        let different: HashSet<_> = served.iter().collect();
        assert_eq!(different.len(), 21, "{served:?}");
        let rest = claim(&app).await.len();
        assert_eq!(rest, 100.min(mails as usize + 1 + 40 - 21));
    }
}

#[tokio::test]
async fn thousands_of_creators_whose_mails_are_not_due_yet_are_passed_over() {
    let (app, ada) = start(&UNLIMITED).await;
    flood(&app, &ada, 3_000).await;
    app.execute(
        "INSERT INTO task_mails (id, task_id, creator, kind, recipient, due_at, next_attempt)
        SELECT new_id(), task_id, substr(sha256(number::text::bytea), 1, 12), 'due', recipient, at, at
        FROM generate_series(1, 3000) AS number CROSS JOIN (SELECT * FROM task_mails LIMIT 1) AS mail
            CROSS JOIN LATERAL (SELECT now() + number * interval '1 hour' AS at) AS due",
    );
    let bob = app.user("bob@example.com");
    for _ in 0..3 {
        ask(&app, &bob, "grace@example.com").await;
        let mut served = Vec::new();
        // Each looks at 1,024 creators.
        for _ in 0..4 {
            served.extend(requesters(&claim_at_most(&app, 16).await));
        }
        assert!(served.contains(&bob.email), "{served:?}");
    }
}

#[tokio::test]
async fn a_claim_says_whether_more_is_due() {
    // Creators who ask for a mail that is not sent are refused.
    let (app, ada) = start(&[("TASK_MAIL_PER_CREATOR", "3"), ("TASK_MAIL", "on")]).await;
    for number in 0..40 {
        let approver = format!("someone-{number}@example.com");
        let task = json!({"requester": ada.email, "approver": approver});
        let _ = app.create(&ada, task).await;
    }
    let bob = app.user("bob@example.com");
    ask(&app, &bob, "grace@example.com").await;
    let mut claimed = claim_at_most(&app, 4).await;
    let mut all = requesters(&claimed);
    while claimed.json["more"] == true {
        claimed = claim_at_most(&app, 4).await;
        all.extend(requesters(&claimed));
    }
    assert_eq!(all.len(), 4);
    assert!(all.contains(&bob.email));
    // None of them was dropped.
    let waiting = "task_mails WHERE lease = 0 AND next_attempt > now()";
    assert_eq!(app.count(waiting), 37);
}

#[tokio::test]
async fn mails_that_another_transaction_holds_are_not_asked_for_all_the_time() {
    let (app, ada) = start(&UNLIMITED).await;
    flood(&app, &ada, 300).await;
    let mut other = app.database.admin();
    other
        .batch_execute("BEGIN; SELECT FROM people_task.task_mails FOR UPDATE")
        .unwrap();
    let claimed = claim_at_most(&app, 16).await;
    assert_eq!(claimed.json, json!({"mails": [], "more": false}));
    other.batch_execute("ROLLBACK").unwrap();
    let claimed = claim_at_most(&app, 16).await;
    assert_eq!(requesters(&claimed).len(), 16);
}

#[tokio::test]
async fn mails_of_the_version_before_have_the_creator_of_their_task() {
    const BACKFILL: &str =
        include_str!("../../migrations/00000000000043_creators_of_waiting_mails/up.sql");
    let (app, ada) = start(&[]).await;
    ask(&app, &ada, "grace@example.com").await;
    // A process of that version adds a reminder.
    app.execute(
        "INSERT INTO task_mails (id, task_id, kind, recipient, due_at, next_attempt)
        SELECT new_id(), task_id, 'due', recipient, due_at, due_at FROM task_mails",
    );
    let of_ada = format!("task_mails WHERE creator = decode('{}', 'hex')", ada.id);
    assert_eq!(app.count(&of_ada), 2);
    app.execute("UPDATE task_mails SET creator = ''");
    let mut admin = app.database.admin();
    admin
        .batch_execute("SET search_path = people_task")
        .unwrap();
    admin.batch_execute(BACKFILL).unwrap();
    assert_eq!(app.count(&of_ada), 2);
}

#[tokio::test]
async fn a_worker_has_room_for_some_mails_of_each_creator_and_for_none_of_one_who_has_enough() {
    let (app, ada) = start(&UNLIMITED).await;
    flood(&app, &ada, 300).await;
    let bob = app.user("bob@example.com");
    ask(&app, &bob, "grace@example.com").await;
    let reply = claim_for(&app, json!({"limit": 8, "perCreator": 6})).await;
    let mut requesters = requesters(&reply);
    requesters.sort();
    assert_eq!(
        requesters,
        [vec![ada.email.as_str(); 6], vec![&bob.email]].concat()
    );
    let mails = reply.json["mails"].as_array().unwrap();
    let creators: HashSet<_> = mails
        .iter()
        .map(|mail| mail["creator"].to_string())
        .collect();
    let both = [ada.id, bob.id].map(|id| format!("\"{id}\""));
    assert_eq!(creators, HashSet::from(both));
    assert_eq!(reply.json["more"], true);

    let without_ada = json!({"limit": 2, "perCreator": 2, "exceptCreator": ada.id});
    let nothing = claim_for(&app, without_ada.clone()).await;
    assert_eq!(nothing.json, json!({"mails": [], "more": false}));
    ask(&app, &bob, "grace@example.com").await;
    let reply = claim_for(&app, without_ada).await;
    assert_eq!(self::requesters(&reply), [bob.email.as_str()]);
}

#[tokio::test]
async fn accounts_of_one_group_take_one_turn_and_one_share_of_the_mails_to_a_person() {
    let (app, ada) = start(&[("TASK_MAIL_PER_RECIPIENT", "6"), ("TASK_MAIL", "on")]).await;
    let group = UserId::generate();
    let members =
        [1, 2, 3, 4].map(|number| app.member(&format!("eve-{number}@example.com"), group));
    let bob = app.user("bob@example.com");
    let ask = async |user: &User, approver: &str| {
        let people = json!({"requester": user.email, "approver": approver});
        app.create(user, people).await
    };
    let mut tasks = Vec::new();
    for member in &members {
        tasks.push(ask(member, &member.email).await);
    }
    let _ = ask(&bob, &bob.email).await;
    let turn = claim_at_most(&app, 2).await;
    assert!(requesters(&turn).contains(&bob.email));
    let group_and_bob = HashSet::from([group, bob.id].map(|id| id.to_string()));
    let mails = turn.json["mails"].as_array().unwrap().iter();
    let creators: HashSet<_> = mails
        .map(|mail| mail["creator"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(creators, group_and_bob);
    let room = json!({"limit": 9, "perCreator": 9, "exceptCreator": group});
    assert_eq!(claim_for(&app, room).await.json["mails"], json!([]));
    assert_eq!(claim(&app).await.len(), 3);

    // A decision, and an edit, which asks another approver.
    let _ = app.approve(&members[0], &tasks[0]).await.expect(200);
    for (member, task) in members.iter().zip(&tasks).skip(1) {
        let edit = json!({"approver": "grace@example.com"});
        let _ = app.put(member, &task.path, &edit).await.expect(200);
    }
    let own = format!("task_mails WHERE lease = 0 AND creator = decode('{group}', 'hex')");
    assert_eq!(app.count(&own), 4);
    assert_eq!(claim(&app).await.len(), 1 + 2, "a third of 6 to one person");
    for user in [&ada, &bob] {
        let _ = ask(user, "grace@example.com").await;
        let _ = ask(user, "grace@example.com").await;
    }
    assert_eq!(claim(&app).await.len(), 4);
}
