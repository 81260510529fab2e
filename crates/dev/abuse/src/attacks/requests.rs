//! Attacks by requests that are allowed one by one.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::attack::Attack;
use crate::client::Client;

/// Attacks without credentials.
pub(super) static ANONYMOUS: &[Attack] = &[
    attack("wrong passwords", 20, 50),
    attack("unknown paths", 4, 20),
    attack("documents", 4, 20),
];

/// Attacks with a token.
pub(super) static SIGNED_IN: &[Attack] = &[
    attack("large lists", 8, 20),
    attack("long filters", 4, 50),
    attack("searches", 8, 20),
    attack("deep offsets", 4, 20),
    attack("wrong old passwords", 8, 50),
    attack("large tasks", 4, 100),
];

const fn attack(name: &'static str, loops: usize, milliseconds: u64) -> Attack {
    Attack {
        name,
        loops,
        interval: Duration::from_millis(milliseconds),
    }
}

/// Sends one request of an attack. Returns its status or its error.
pub(super) async fn run(name: &str, client: &Client, round: usize) -> String {
    let (method, path, body) = request(name, client, round);
    outcome(client.status(method, &path, body.as_ref()).await)
}

/// The status of a response or its error.
pub(super) fn outcome(status: reqwest::Result<StatusCode>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(error) if error.is_timeout() => "no response in time".to_owned(),
        Err(_) => "connection failed".to_owned(),
    }
}

fn request(name: &str, client: &Client, round: usize) -> (Method, String, Option<Value>) {
    let tasks = "/people-task/tasks";
    let get = |path: String| (Method::GET, path, None);
    let post = |path: &str, body| (Method::POST, path.to_owned(), Some(body));
    match name {
        "wrong passwords" => {
            let account = json!({"username": format!("{round}@example.com"), "password": "wrong"});
            post("/user/auth", account)
        }
        "unknown paths" => get(format!("/unknown-{round}")),
        "documents" if round.is_multiple_of(2) => get("/openapi.json".to_owned()),
        "documents" => get("/readyz".to_owned()),
        "large lists" => get(format!("{tasks}?limit=1000")),
        "long filters" => get(format!("{tasks}?filter={}", "a,".repeat(6_000))),
        "searches" => get(format!("{tasks}-count?pattern=arge%20{round}")),
        "deep offsets" => get(format!("{tasks}?limit=1&offset={}", 9_000_000 + round)),
        "wrong old passwords" => {
            let passwords = json!({"oldPassword": "wrong", "newPassword": "another password"});
            post("/user/change-password", passwords)
        }
        _ => {
            let description = "\u{1F4A3}".repeat(20_000);
            let email = &client.email;
            let task = json!({"title": "Large", "description": description, "requester": email, "approver": email});
            post(tasks, task)
        }
    }
}
