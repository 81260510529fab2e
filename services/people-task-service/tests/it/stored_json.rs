//! JSON that an earlier version stored, with a member whose name the parser reserves for itself.

use serde_json::json;

use crate::due_dates::{accepting, worker_with};
use crate::fixture::Fixture;
use crate::webhook_calls::{approve_with, delivery};
use crate::webhook_options::ENGINES;

const RESERVED: &str = r#"{"$serde_json::private::RawValue": "1"}"#;

#[tokio::test]
async fn a_body_that_would_be_made_of_it_is_not_sent() {
    for change in [
        format!(r#"UPDATE webhooks SET options = '{{"version": 1, "body": {RESERVED}}}'"#),
        format!("UPDATE tasks SET metadata = '{RESERVED}'"),
    ] {
        let (app, receiver) = (Fixture::start_with_broker(&ENGINES).await, accepting());
        let ada = app.user("ada@example.com");
        let options = json!({"body": {"run": "{{metadata}}"}});
        let task = approve_with(&app, &ada, &receiver.url("/"), options).await;
        app.execute(&change);
        let _worker = worker_with(&app, &ENGINES).await;
        let delivery = delivery(&app, &ada, &task, 1).await;
        let error = &delivery["attempts"][0]["error"];
        assert_eq!(error, "the body cannot be made", "{change}");
        assert_eq!(receiver.calls().len(), 0, "{change}");
    }
}
