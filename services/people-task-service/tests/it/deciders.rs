//! Who decides a task whose creator restricts that: `deciders` and `selfApproval`.

use serde_json::{Value, json};
use testkit::{Reply, Request};

use crate::audit::rows;
use crate::fixture::{Fixture, Task, User, WithSecret as _};
use crate::mails::{KEY, claim};

const SETTINGS: [(&str, &str); 2] = [("EMAIL_VERIFICATION", "required"), ("TASK_MAIL_KEY", KEY)];

/// Carol creates the tasks that ada requests and grace approves.
struct People {
    app: Fixture,
    carol: User,
    ada: User,
    grace: User,
    root: User,
}

impl People {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let app = Fixture::start_with(&[&SETTINGS, settings].concat()).await;
        let [carol, ada, grace] = ["carol@example.com", "ada@example.com", "grace@example.com"]
            .map(|email| app.user(email));
        let root = app.admin();
        Self {
            app,
            carol,
            ada,
            grace,
            root,
        }
    }

    async fn create(&self, fields: Value) -> Task {
        self.app.create(&self.carol, fields).await
    }

    fn approval(&self, task: &Task, query: &str) -> Request {
        self.app.http.put(&format!("{}/approve{query}", task.path))
    }

    async fn approve(&self, by: &User, task: &Task) -> Reply {
        self.approval(task, "?include=decidedVia")
            .bearer(&by.token)
            .send()
            .await
    }

    /// The secret of the link that was mailed to the approver.
    async fn mailed_secret(&self, task: &Task) -> String {
        let mails = claim(&self.app).await;
        let asked = mails.iter().filter(|mail| mail["kind"] == "asked");
        let mut links = asked.map(|mail| mail["taskLink"].as_str().unwrap());
        let link = links.find(|link| link.contains(&task.id)).unwrap();
        link.split_once("secret=").unwrap().1.to_owned()
    }

    async fn entry(&self, task: &Task) -> Value {
        let query = format!("?filter=subject:{}&filter=action:task-approved", task.id);
        rows(&self.app, &self.root, &query).await.remove(0)
    }
}

fn only_approver() -> Value {
    json!({"deciders": "approver", "notify": true})
}

#[tokio::test]
async fn only_the_approver_decides_if_the_creator_says_so() {
    let all = People::start(&[]).await;
    let task = all.create(only_approver()).await;
    for other in [&all.carol, &all.ada, &all.root] {
        all.approve(other, &task)
            .await
            .expect_problem(403, "forbidden");
    }
    let reply = all.approve(&all.grace, &task).await.expect(200);
    assert_eq!(reply.json["decidedVia"], json!({"type": "token"}));
}

#[tokio::test]
async fn the_secret_that_the_creator_is_told_only_opens_the_task() {
    let all = People::start(&[]).await;
    for fields in [
        only_approver(),
        json!({"deciders": "signed-in"}),
        json!({"selfApproval": false}),
    ] {
        let task = all.create(fields.clone()).await;
        let with_secret = |request: Request| request.secret(&task.approver_secret).send();
        let read = all.app.http.get(&format!(
            "{}?include=canDecide,isApprover,deciders,selfApproval",
            task.path
        ));
        let read = with_secret(read).await.expect(200);
        assert_eq!(
            (&read.json["canDecide"], &read.json["isApprover"]),
            (&json!(false), &json!(false))
        );
        assert_eq!(read.json["deciders"], fields["deciders"]);
        assert_eq!(
            read.json["selfApproval"],
            fields.get("selfApproval").cloned().unwrap_or(json!(true))
        );
        let list = with_secret(all.app.http.get("/people-task/tasks"))
            .await
            .expect(200);
        assert_eq!(list.json[0]["id"], task.id);
        with_secret(all.approval(&task, ""))
            .await
            .expect_problem(403, "forbidden");
        let edit = all
            .app
            .http
            .put(&task.path)
            .json(&json!({"approver": "eve@example.com"}));
        with_secret(edit).await.expect_problem(403, "forbidden");
    }
}

#[tokio::test]
async fn the_link_that_is_mailed_decides_unless_an_account_is_needed() {
    let all = People::start(&[]).await;
    let task = all.create(only_approver()).await;
    let secret = all.mailed_secret(&task).await;
    let approve = all
        .approval(&task, "?include=decidedVia,decidedBy")
        .secret(&secret);
    let reply = approve.send().await.expect(200);
    assert_eq!(reply.json["decidedVia"], json!({"type": "task-secret"}));
    assert_eq!(reply.json["decidedBy"], "grace@example.com");

    let task = all
        .create(json!({"deciders": "signed-in", "notify": true}))
        .await;
    let secret = all.mailed_secret(&task).await;
    let approve = all.approval(&task, "").secret(&secret);
    approve.send().await.expect_problem(403, "forbidden");
    // Nor with an account that is not the approver's.
    let approve = all
        .approval(&task, "")
        .secret(&secret)
        .bearer(&all.carol.token);
    approve.send().await.expect_problem(403, "forbidden");
    let _ = all.approve(&all.grace, &task).await.expect(200);
}

#[tokio::test]
async fn administrators_override_only_if_they_say_so_and_that_is_recorded() {
    let all = People::start(&[]).await;
    let task = all.create(only_approver()).await;
    let overriding = |by: &User| {
        all.approval(&task, "?override=true&include=decidedVia")
            .bearer(&by.token)
            .send()
    };
    for other in [&all.carol, &all.ada] {
        overriding(other).await.expect_problem(403, "forbidden");
    }
    let reply = all
        .approval(&task, "?override=yes")
        .bearer(&all.root.token)
        .send()
        .await;
    assert_eq!(reply.bad_fields(), ["override"]);
    let reply = overriding(&all.root).await.expect(200);
    assert_eq!(
        reply.json["decidedVia"],
        json!({"type": "token", "override": true})
    );
    assert_eq!(all.entry(&task).await["detail"]["override"], true);
    // Where nothing has to be overridden, nothing is.
    let task = all.create(json!({})).await;
    let approve = all
        .approval(&task, "?override=true&include=decidedVia")
        .bearer(&all.root.token);
    let reply = approve.send().await.expect(200);
    assert_eq!(reply.json["decidedVia"], json!({"type": "token"}));
    assert!(all.entry(&task).await["detail"].get("override").is_none());
}

#[tokio::test]
async fn who_created_or_requested_a_task_does_not_decide_it_without_self_approval() {
    let all = People::start(&[]).await;
    let task = all.create(json!({"selfApproval": false})).await;
    for own in [&all.carol, &all.ada] {
        all.approve(own, &task)
            .await
            .expect_problem(403, "forbidden");
    }
    let _ = all.approve(&all.grace, &task).await.expect(200);
    let task = all.create(json!({"selfApproval": false})).await;
    let _ = all.approve(&all.root, &task).await.expect(200);
    // An administrator's own tasks are no exception.
    let created = json!({"selfApproval": false});
    let requested = json!({"selfApproval": false, "requester": all.root.email});
    for task in [
        all.app.create(&all.root, created).await,
        all.create(requested).await,
    ] {
        let approve = all
            .approval(&task, "?override=true")
            .bearer(&all.root.token);
        approve.send().await.expect_problem(403, "forbidden");
    }
    // Nor do they get rid of what bars them.
    let task = all
        .create(json!({"selfApproval": false, "requester": all.root.email}))
        .await;
    let to_ada = json!({"requester": all.ada.email});
    let edit = all.app.put(&all.root, &task.path, &to_ada).await;
    edit.expect_problem(403, "forbidden");
    let _ = all
        .app
        .put(&all.carol, &task.path, &to_ada)
        .await
        .expect(200);
    let _ = all.approve(&all.root, &task).await.expect(200);
}

#[tokio::test]
async fn a_service_account_with_the_address_of_the_approver_does_not_decide_a_restricted_task() {
    let all = People::start(&[]).await;
    let bot = all.app.authority.service_account("grace@example.com");
    for fields in [
        json!({"deciders": "approver", "notify": true}),
        json!({"deciders": "signed-in"}),
        json!({"selfApproval": false}),
    ] {
        let hands_over = fields.get("deciders").is_none();
        let task = all.create(fields).await;
        let refused = all.approval(&task, "").bearer(&bot).send().await;
        refused.expect_problem(403, "forbidden");
        if !hands_over {
            let edit = all.app.http.put(&task.path).bearer(&bot);
            let edit = edit.json(&json!({"approver": "eve@example.com"}));
            edit.send().await.expect_problem(403, "forbidden");
        }
        let _ = all.approve(&all.grace, &task).await.expect(200);
    }
    let task = all.create(json!({})).await;
    let _ = all
        .approval(&task, "")
        .bearer(&bot)
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn only_the_approver_hands_a_restricted_task_over() {
    let all = People::start(&[]).await;
    let eve = all.app.user("eve@example.com");
    let task = all.create(only_approver()).await;
    let to_eve = json!({"approver": "eve@example.com"});
    for other in [&all.carol, &all.ada, &all.root] {
        all.app
            .put(other, &task.path, &to_eve)
            .await
            .expect_problem(403, "forbidden");
    }
    let title = json!({"title": "Buy a chair"});
    let _ = all
        .app
        .put(&all.carol, &task.path, &title)
        .await
        .expect(200);
    let old = all.mailed_secret(&task).await;
    let _ = all
        .app
        .put(&all.grace, &task.path, &to_eve)
        .await
        .expect(200);
    for old in [&old, &task.approver_secret] {
        all.approval(&task, "")
            .secret(old)
            .send()
            .await
            .expect_problem(404, "not-found");
    }
    all.approve(&all.grace, &task)
        .await
        .expect_problem(404, "not-found");
    // An administrator overrides, and is told a secret that only opens the task.
    let to_grace = json!({"approver": "grace@example.com"});
    let path = format!("{}?override=true", task.path);
    let told = all
        .app
        .put(&all.root, &path, &to_grace)
        .await
        .expect(200)
        .text_of("approverSecret");
    let _ = all
        .app
        .http
        .get(&task.path)
        .secret(&told)
        .send()
        .await
        .expect(200);
    all.approval(&task, "")
        .secret(&told)
        .send()
        .await
        .expect_problem(403, "forbidden");
    all.approve(&eve, &task)
        .await
        .expect_problem(404, "not-found");
    let _ = all.approve(&all.grace, &task).await.expect(200);
}

#[tokio::test]
async fn approver_and_requester_stay_different_people_without_self_approval() {
    let all = People::start(&[]).await;
    let task = all.create(json!({"selfApproval": false})).await;
    for edit in [
        json!({"approver": "ada@example.com"}),
        json!({"requester": "grace@example.com"}),
    ] {
        all.app
            .put(&all.carol, &task.path, &edit)
            .await
            .expect_problem(403, "forbidden");
    }
    let edit = json!({"approver": "carol@example.com"});
    all.app
        .put(&all.carol, &task.path, &edit)
        .await
        .expect_problem(403, "forbidden");
    for own in ["ada@example.com", "carol@example.com"] {
        let fields = json!({"selfApproval": false, "approver": own});
        let reply = all.app.try_create(&all.carol, fields).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["selfApproval"], "{own}");
    }
}

#[tokio::test]
async fn restrictions_that_could_not_hold_are_refused() {
    let all = People::start(&[("EMAIL_VERIFICATION", "off")]).await;
    for (fields, field) in [
        (only_approver(), "deciders"),
        (json!({"deciders": "signed-in"}), "deciders"),
        (json!({"selfApproval": false}), "selfApproval"),
    ] {
        let reply = all.app.try_create(&all.carol, fields).await;
        assert_eq!(reply.bad_fields(), [field]);
        assert!(reply.text.contains("EMAIL_VERIFICATION"), "{}", reply.text);
    }
    let all = People::start(&[]).await;
    for notify in [json!(false), json!(null)] {
        let reply = all
            .app
            .try_create(
                &all.carol,
                json!({"deciders": "approver", "notify": notify}),
            )
            .await;
        assert_eq!(reply.bad_fields(), ["deciders"]);
        assert!(reply.text.contains("TASK_MAIL_KEY"), "{}", reply.text);
    }
    let reply = all
        .app
        .try_create(
            &all.carol,
            json!({"deciders": "anyone", "selfApproval": "no"}),
        )
        .await;
    assert_eq!(reply.bad_fields(), ["deciders", "selfApproval"]);
    assert_eq!(all.app.count("tasks"), 0);
}

#[tokio::test]
async fn the_setting_restricts_every_task_and_needs_confirmed_addresses_and_mail() {
    let all = People::start(&[("TASK_DECIDERS", "approver"), ("TASK_MAIL", "on")]).await;
    let task = all.create(json!({})).await;
    all.approve(&all.carol, &task)
        .await
        .expect_problem(403, "forbidden");
    let _ = all.approve(&all.grace, &task).await.expect(200);
    let reply = all
        .app
        .try_create(&all.carol, json!({"notify": false}))
        .await;
    assert_eq!(reply.bad_fields(), ["deciders"]);

    for (missing, settings) in [
        (
            "EMAIL_VERIFICATION",
            vec![("TASK_MAIL", "on"), ("TASK_MAIL_KEY", KEY)],
        ),
        ("TASK_MAIL", SETTINGS.to_vec()),
    ] {
        let settings = [&settings[..], &[("TASK_DECIDERS", "approver")]].concat();
        let error = all.app.start_error(&settings);
        assert!(
            error.contains("TASK_DECIDERS") && error.contains(missing),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_process_that_does_not_know_of_restrictions_cannot_decide() {
    let all = People::start(&[]).await;
    let (task, usual) = (
        all.create(only_approver()).await,
        all.create(json!({})).await,
    );
    let decide = |task: &Task| {
        let sql = format!(
            "UPDATE people_task.task_states SET status = 'approved', decision_made = now() WHERE task_id = decode('{}', 'hex')",
            task.id
        );
        diesel::RunQueryDsl::execute(diesel::sql_query(sql), &mut all.app.database.admin())
    };
    let error = decide(&task).unwrap_err().to_string();
    assert!(
        error.contains("restricted_tasks_are_decided_knowingly"),
        "{error}"
    );
    assert_eq!(decide(&usual).unwrap(), 1);
}

#[tokio::test]
async fn a_repeat_is_told_the_same_secrets() {
    let all = People::start(&[]).await;
    for fields in [only_approver(), json!({"deciders": "signed-in"})] {
        let create = || {
            let mut body = json!({"title": "Buy", "requester": "ada@example.com", "approver": "grace@example.com"});
            crate::fixture::merge(&mut body, fields.clone());
            let request = all
                .app
                .http
                .post("/people-task/tasks")
                .bearer(&all.carol.token);
            request
                .header("Idempotency-Key", fields["deciders"].as_str().unwrap())
                .json(&body)
                .send()
        };
        let (first, again) = (create().await.expect(200), create().await.expect(200));
        assert_eq!(first.json, again.json);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
}

#[tokio::test]
async fn a_key_that_may_not_decide_overrides_nobody() {
    use auth::KeyScope::{Admin, TasksDecide, TasksWrite};
    let all = People::start(&[]).await;
    let scope = ["user", auth::ADMIN_SCOPE];
    let to_root = json!({"approver": all.root.email});
    for (scopes, status) in [
        (&[TasksWrite, Admin][..], 403),
        (&[TasksWrite, Admin, TasksDecide], 200),
    ] {
        let task = all.app.create(&all.root, only_approver()).await;
        let key = all
            .app
            .authority
            .key_of(all.root.id, &all.root.email, &scope, scopes);
        let edit = all.app.http.put(&format!("{}?override=true", task.path));
        let edit = edit.bearer(&key).json(&to_root).send().await;
        let _ = edit.expect(status);
    }
}

#[tokio::test]
async fn an_approvers_key_that_may_not_decide_hands_no_restricted_task_over() {
    use auth::KeyScope::{TasksDecide, TasksWrite};
    let all = People::start(&[]).await;
    for fields in [only_approver(), json!({"deciders": "signed-in"})] {
        let task = all.create(fields).await;
        for (scopes, status) in [(&[TasksWrite][..], 403), (&[TasksWrite, TasksDecide], 200)] {
            let grace = &all.grace;
            let key = all
                .app
                .authority
                .key_of(grace.id, &grace.email, &["user"], scopes);
            let edit = all.app.http.put(&task.path).bearer(&key);
            let edit = edit.json(&json!({"approver": "eve@example.com"}));
            let _ = edit.send().await.expect(status);
        }
    }
}
