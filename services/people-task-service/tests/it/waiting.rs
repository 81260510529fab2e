//! What the gateway needs of the service so that callers can wait for the end of a task.

use serde_json::{Value, json};
use testkit::Reply;

use crate::fixture::{Fixture, Task, User, WithSecret as _};

async fn get(app: &Fixture, by: &User, task: &Task, query: &str) -> Reply {
    app.get(by, &format!("{}?{query}", task.path)).await
}

/// A response of the feed.
struct Feed {
    response: reqwest::Response,
    unread: String,
}

impl Feed {
    async fn open(app: &Fixture, query: &str) -> Self {
        let path = format!("/internal/tasks/ended{query}");
        Self {
            response: app.http.get(&path).open().await,
            unread: String::new(),
        }
    }

    /// The next line; `None` when the response is over.
    async fn line(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.unread.split_once('\n') {
                let line = serde_json::from_str(line).unwrap();
                self.unread = rest.to_owned();
                return Some(line);
            }
            let piece = self.response.chunk().await.unwrap()?;
            self.unread.push_str(str::from_utf8(&piece).unwrap());
        }
    }

    /// Reads until a number of tasks were told and one more line came. Returns them and the last cursor.
    async fn tasks(&mut self, number: usize) -> (Vec<String>, String) {
        let mut all = Vec::new();
        loop {
            let was_complete = all.len() >= number;
            let line = self.line().await.unwrap();
            let tasks = line["tasks"].as_array().unwrap().iter();
            all.extend(tasks.map(|id| id.as_str().unwrap().to_owned()));
            if was_complete {
                return (all, line["cursor"].as_str().unwrap().to_owned());
            }
        }
    }
}

#[tokio::test]
async fn only_a_pending_task_is_waited_for() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for (query, expected) in [
        ("wait=50", Some("50")),
        ("wait=1", Some("1")),
        ("wait=0", None),
        ("wait=", None),
        ("", None),
    ] {
        let reply = get(&app, &ada, &task, query).await.expect(200);
        assert_eq!(reply.header("x-may-wait"), expected, "{query}");
    }
    let _ = app.approve(&ada, &task).await.expect(200);
    let reply = get(&app, &ada, &task, "wait=50").await.expect(200);
    assert_eq!(reply.header("x-may-wait"), None);
}

#[tokio::test]
async fn other_times_are_an_invalid_field() {
    let app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let task = app.create(&ada, json!({})).await;
    for wait in ["51", "-1", "1.5", "30s", "+"] {
        let reply = get(&app, &ada, &task, &format!("wait={wait}")).await;
        reply.expect_problem(400, "validation-failed");
        assert_eq!(reply.bad_fields(), ["wait"], "{wait}");
    }
    let reply = get(&app, &ada, &task, "wait=51&include=x").await;
    assert_eq!(reply.bad_fields(), ["include", "wait"]);
}

#[tokio::test]
async fn the_feed_tells_each_task_that_ends_once_and_goes_on_at_a_cursor() {
    let mut app = Fixture::start().await;
    let ada = app.user("ada@example.com");
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(app.create(&ada, json!({})).await);
    }
    let mut feed = Feed::open(&app, "").await;
    let begun = feed.line().await.unwrap();
    assert_eq!(begun["tasks"], json!([]));
    let _ = app.approve(&ada, &tasks[0]).await.expect(200);
    let reject = app.http.put(&format!("{}/reject", tasks[1].path));
    let reject = reject.secret(&tasks[1].approver_secret);
    let _ = reject.send().await.expect(200);
    let edit = json!({"title": "Buy a chair"});
    let _ = app.put(&ada, &tasks[2].path, &edit).await.expect(200);
    let (mut told, cursor) = feed.tasks(2).await;
    told.sort();
    let mut ended = [tasks[0].id.clone(), tasks[1].id.clone()];
    ended.sort();
    assert_eq!(told, ended, "each once");

    app.restart_with(&[]).await;
    while feed.line().await.is_some() {}
    let _ = app.approve(&ada, &tasks[3]).await.expect(200);
    let mut feed = Feed::open(&app, &format!("?cursor={cursor}")).await;
    let (told, _) = feed.tasks(1).await;
    assert!(told.contains(&tasks[3].id), "{told:?}");
    assert!(!told.contains(&tasks[2].id), "{told:?}");
    assert!(app.stop().await);
    while feed.line().await.is_some() {}
}
