//! The table of permissions over HTTP: every kind of caller against every operation.

use serde_json::json;
use testkit::Request;

use crate::fixture::{Fixture, Task, User, WithSecret as _};

/// The kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Creator,
    Approver,
    Requester,
    Admin,
    Stranger,
    ApproverSecret,
    RequesterSecret,
    StrangerWithApproverSecret,
    StrangerWithRequesterSecret,
}

/// The operation, which each case tries on a new task and webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Read,
    EditTitle,
    HandOver,
    Approve,
    Reject,
    Register,
    ListWebhooks,
    DeleteWebhook,
    DeleteWebhookByGet,
    ListDeliveries,
    Redeliver,
}

const ALL: [What; 11] = [
    What::Read,
    What::EditTitle,
    What::HandOver,
    What::Approve,
    What::Reject,
    What::Register,
    What::ListWebhooks,
    What::DeleteWebhook,
    What::DeleteWebhookByGet,
    What::ListDeliveries,
    What::Redeliver,
];

struct People {
    carol: User,
    grace: User,
    ada: User,
    root: User,
    eve: User,
}

/// A new task with a webhook, and with a delivery if the operation needs one.
async fn arrange(app: &Fixture, people: &People, what: What, public: bool) -> (Task, String) {
    let task = app.create(&people.carol, json!({"public": public})).await;
    let webhook = app
        .register(&people.carol, &task, "http://127.0.0.1:9/")
        .await;
    if what != What::Redeliver {
        return (task, webhook);
    }
    let _ = app.approve(&people.carol, &task).await.expect(200);
    let deliveries = app
        .get(&people.carol, &format!("{}/deliveries", task.path))
        .await;
    let delivery = deliveries.json[0]["id"].as_str().unwrap().to_owned();
    (task, delivery)
}

fn request(app: &Fixture, what: What, task: &Task, other: &str) -> Request {
    let (http, path) = (&app.http, task.path.as_str());
    let webhook = format!("/people-task/webhooks/{other}");
    match what {
        What::Read => http.get(path),
        What::EditTitle => http.put(path).json(&json!({"title": "Another title"})),
        What::HandOver => http.put(path).json(&json!({"approver": "new@example.com"})),
        What::Approve => http.put(&format!("{path}/approve")),
        What::Reject => http.put(&format!("{path}/reject")),
        What::Register => http
            .post("/people-task/webhooks")
            .json(&json!({"taskId": task.id, "url": "http://127.0.0.1:9/"})),
        What::ListWebhooks => http.get(&format!("{path}/webhooks")),
        What::DeleteWebhook => http.delete(&webhook),
        What::DeleteWebhookByGet => http.get(&webhook),
        What::ListDeliveries => http.get(&format!("{path}/deliveries")),
        What::Redeliver => http.post(&format!("/people-task/deliveries/{other}/redeliver")),
    }
}

fn as_whom(request: Request, who: Who, people: &People, task: &Task) -> Request {
    let eve = &people.eve.token;
    match who {
        Who::Creator => request.bearer(&people.carol.token),
        Who::Approver => request.bearer(&people.grace.token),
        Who::Requester => request.bearer(&people.ada.token),
        Who::Admin => request.bearer(&people.root.token),
        Who::Stranger => request.bearer(eve),
        Who::ApproverSecret => request.secret(&task.approver_secret),
        Who::RequesterSecret => request.secret(&task.requester_secret),
        Who::StrangerWithApproverSecret => request.bearer(eve).secret(&task.approver_secret),
        Who::StrangerWithRequesterSecret => request.bearer(eve).secret(&task.requester_secret),
    }
}

async fn check(public: bool, table: &[(Who, [u16; 11])]) {
    let app = Fixture::start().await;
    let people = People {
        carol: app.user("carol@example.com"),
        grace: app.user("Grace@example.com"),
        ada: app.user("ADA@example.com"),
        root: app.admin(),
        eve: app.user("eve@example.com"),
    };
    let mut wrong = Vec::new();
    for (who, row) in table {
        for (what, expected) in ALL.into_iter().zip(row) {
            let (task, other) = arrange(&app, &people, what, public).await;
            let request = as_whom(request(&app, what, &task, &other), *who, &people, &task);
            let reply = request.send().await;
            if reply.status != *expected {
                wrong.push(format!(
                    "{who:?} {what:?}: {} and not {expected}",
                    reply.status
                ));
            }
            if reply.status >= 400 {
                let code = reply.text_of("code");
                reply.expect_problem(*expected, &code);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn permissions_on_a_private_task() {
    // Read, EditTitle, HandOver, Approve, Reject, Register, ListWebhooks, DeleteWebhook (twice),
    // ListDeliveries, Redeliver
    #[rustfmt::skip]
    let table = [
        (Who::Creator,                     [200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200]),
        (Who::Approver,                    [200, 403, 200, 200, 200, 200, 200, 403, 403, 403, 403]),
        (Who::Requester,                   [200, 200, 200, 403, 403, 200, 200, 403, 403, 403, 403]),
        (Who::Admin,                       [200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200]),
        (Who::Stranger,                    [404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404]),
        (Who::ApproverSecret,              [200, 403, 200, 200, 200, 401, 401, 401, 401, 401, 401]),
        (Who::RequesterSecret,             [200, 200, 200, 403, 403, 401, 401, 401, 401, 401, 401]),
        (Who::StrangerWithApproverSecret,  [200, 403, 200, 200, 200, 200, 200, 403, 403, 403, 403]),
        (Who::StrangerWithRequesterSecret, [200, 200, 200, 403, 403, 200, 200, 403, 403, 403, 403]),
    ];
    check(false, &table).await;
}

#[tokio::test]
async fn every_signed_in_user_may_only_read_a_public_task() {
    #[rustfmt::skip]
    let table = [
        (Who::Stranger,                    [200, 403, 403, 403, 403, 403, 200, 403, 403, 403, 403]),
        (Who::Approver,                    [200, 403, 200, 200, 200, 200, 200, 403, 403, 403, 403]),
        (Who::Requester,                   [200, 200, 200, 403, 403, 200, 200, 403, 403, 403, 403]),
    ];
    check(true, &table).await;
}
