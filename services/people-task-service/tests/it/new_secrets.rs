//! Which caller sees which new secret, on both paths of the API.

use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{Fixture, Task, User, WithSecret as _};

const PREFIXES: [&str; 2] = ["/people-task", "/plugins/appmixer/utils/tasks"];

#[derive(Debug, Clone, Copy)]
enum Who {
    Creator,
    CreatorWithApproverSecret,
    Admin,
    ApproverByEmail,
    ApproverBySecret,
    RequesterByEmail,
    RequesterBySecret,
    RequesterWithApproverSecret,
    HolderOfBothSecrets,
    Stranger,
}

struct People {
    carol: User,
    root: User,
    grace: User,
    ada: User,
    eve: User,
}

impl People {
    fn of(app: &Fixture) -> Self {
        Self {
            carol: app.user("carol@example.com"),
            root: app.admin(),
            grace: app.user("grace@example.com"),
            ada: app.user("ada@example.com"),
            eve: app.user("eve@example.com"),
        }
    }
}

async fn edit(
    app: &Fixture,
    people: &People,
    who: Who,
    (prefix, task): (&str, &Task),
    body: &Value,
) -> Reply {
    let path = format!("{prefix}/tasks/{}", task.id);
    let (approver, requester) = (&task.approver_secret, &task.requester_secret);
    let request = match who {
        Who::HolderOfBothSecrets => app.http.put(&format!("{path}?secret={requester}")),
        _ => app.http.put(&path),
    };
    let request = match who {
        Who::Creator => request.bearer(&people.carol.token),
        Who::CreatorWithApproverSecret => request.bearer(&people.carol.token).secret(approver),
        Who::Admin => request.bearer(&people.root.token),
        Who::ApproverByEmail => request.bearer(&people.grace.token),
        Who::ApproverBySecret | Who::HolderOfBothSecrets => request.secret(approver),
        Who::RequesterByEmail => request.bearer(&people.ada.token),
        Who::RequesterBySecret => request.secret(requester),
        Who::RequesterWithApproverSecret => request.bearer(&people.ada.token).secret(approver),
        Who::Stranger => request.bearer(&people.eve.token),
    };
    request.json(body).send().await
}

/// The status and the secrets of a response.
fn outcome(reply: &Reply) -> String {
    let secrets = ["approverSecret", "requesterSecret"];
    let shown = secrets
        .into_iter()
        .filter(|name| reply.text.contains(name))
        .map(|name| format!(" {name}"));
    format!("{}{}", reply.status, shown.collect::<String>())
}

#[tokio::test]
async fn only_the_creator_and_administrators_see_new_secrets() {
    const APPROVER: &str = "200 approverSecret";
    const REQUESTER: &str = "200 requesterSecret";
    const BOTH: &str = "200 approverSecret requesterSecret";
    let app = Fixture::start().await;
    let people = People::of(&app);
    let (approver, requester) = ("linus@example.com", "hedy@example.com");
    let edits = [
        json!({"approver": approver}),
        json!({"requester": requester}),
        json!({"approver": approver, "requester": requester}),
        json!({"title": "Another title"}),
    ];
    // The new approver, the new requester, both, neither.
    #[rustfmt::skip]
    let table = [
        (Who::Creator,                     [APPROVER, REQUESTER, BOTH, "200"]),
        (Who::CreatorWithApproverSecret,   [APPROVER, REQUESTER, BOTH, "200"]),
        (Who::Admin,                       [APPROVER, REQUESTER, BOTH, "200"]),
        (Who::ApproverByEmail,             ["200", "403", "403", "403"]),
        (Who::ApproverBySecret,            ["200", "403", "403", "403"]),
        (Who::RequesterByEmail,            ["200", "200", "200", "200"]),
        (Who::RequesterBySecret,           ["200", "200", "200", "200"]),
        (Who::RequesterWithApproverSecret, ["200", "200", "200", "200"]),
        (Who::HolderOfBothSecrets,         ["200", "200", "200", "200"]),
        (Who::Stranger,                    ["404", "404", "404", "404"]),
    ];
    let mut wrong = Vec::new();
    for prefix in PREFIXES {
        for (who, row) in table {
            for (body, expected) in edits.iter().zip(row) {
                let task = app.create(&people.carol, json!({})).await;
                let reply = edit(&app, &people, who, (prefix, &task), body).await;
                let outcome = outcome(&reply);
                if outcome != expected {
                    wrong.push(format!(
                        "{who:?} {prefix} {body}: {outcome}, not {expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_key_that_may_not_decide_sees_new_secrets_only_of_the_tasks_that_its_user_created() {
    use auth::KeyScope::{Admin, TasksDecide, TasksRead, TasksWrite};
    let app = Fixture::start().await;
    let people = People::of(&app);
    let key_of = |user: &User, scopes: &[auth::KeyScope]| {
        let scope = ["user", auth::ADMIN_SCOPE];
        app.authority.key_of(user.id, &user.email, &scope, scopes)
    };
    let root = |scopes: &[auth::KeyScope]| key_of(&people.root, scopes);
    let renew = json!({"renewApproverSecret": true});
    let (approver, own) = (
        json!({"approver": "linus@example.com"}),
        json!({"approver": "root@example.com"}),
    );
    // Renewing, another approver, and the key's own user as the approver.
    for (token, expected) in [
        (root(&[TasksWrite, Admin]), ["403", "200", "403"]),
        (
            root(&[TasksWrite, Admin, TasksDecide]),
            ["200 approverSecret"; 3],
        ),
        (
            key_of(&people.carol, &[TasksRead, TasksWrite]),
            ["200 approverSecret"; 3],
        ),
    ] {
        for (body, expected) in [&renew, &approver, &own].into_iter().zip(expected) {
            let task = app.create(&people.carol, json!({})).await;
            let edit = app.http.put(&format!("/people-task/tasks/{}", task.id));
            let reply = edit.bearer(&token).json(body).send().await;
            assert_eq!(outcome(&reply), expected, "{body}");
        }
    }
}

#[tokio::test]
async fn the_creator_sees_both_secrets_once() {
    let app = Fixture::start().await;
    // Also someone who is the approver and the requester of the task.
    for email in ["carol@example.com", "grace@example.com", "ada@example.com"] {
        for prefix in PREFIXES {
            let user = app.user(email);
            let tasks = format!("{prefix}/tasks");
            let body = json!({
                "title": "t", "requester": "ada@example.com", "approver": "grace@example.com",
            });
            let create = app.http.post(&tasks).bearer(&user.token).json(&body);
            let created = create.send().await;
            assert_eq!(outcome(&created), "200 approverSecret requesterSecret");
            let path = format!("{tasks}/{}", created.text_of("id"));
            assert_eq!(outcome(&app.get(&user, &path).await), "200");
            assert_eq!(outcome(&app.get(&user, &tasks).await), "200");
        }
    }
}

#[tokio::test]
async fn no_editor_keeps_the_power_to_decide_after_a_handover() {
    let app = Fixture::start().await;
    let people = People::of(&app);
    let to_linus = json!({"approver": "linus@example.com"});
    for prefix in PREFIXES {
        for who in [
            Who::ApproverByEmail,
            Who::ApproverBySecret,
            Who::RequesterByEmail,
            Who::RequesterBySecret,
            Who::HolderOfBothSecrets,
        ] {
            let task = app.create(&people.carol, json!({})).await;
            let reply = edit(&app, &people, who, (prefix, &task), &to_linus).await;
            let _ = reply.expect(200);
            let approve = format!("{prefix}/tasks/{}/approve", task.id);
            for (user, secret) in [
                (Some(&people.grace), &task.approver_secret),
                (Some(&people.ada), &task.requester_secret),
                (None, &task.approver_secret),
                (None, &task.requester_secret),
            ] {
                let request = app.http.put(&approve).secret(secret);
                let request = match user {
                    Some(user) => request.bearer(&user.token),
                    None => request,
                };
                let status = request.send().await.status;
                assert!([403, 404].contains(&status), "{who:?} {prefix}: {status}");
            }
        }
    }
}
