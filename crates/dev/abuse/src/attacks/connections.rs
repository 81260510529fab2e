//! Attacks on single connections, with requests that no HTTP library sends.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::attack::Attack;
use crate::client::Client;

const BODY: usize = 250_000;

/// Attacks without credentials.
pub(super) static ATTACKS: &[Attack] = &[
    Attack {
        name: "stalled bodies",
        loops: 400,
        interval: Duration::from_secs(2),
    },
    Attack {
        name: "unfinished heads",
        loops: 200,
        interval: Duration::from_secs(2),
    },
    Attack {
        name: "pipelined requests",
        loops: 50,
        interval: Duration::from_secs(2),
    },
    Attack {
        name: "tiny chunks",
        loops: 200,
        interval: Duration::from_secs(2),
    },
    Attack {
        name: "long methods",
        loops: 4,
        interval: Duration::from_millis(100),
    },
];

/// Attacks with a token.
pub(super) static SIGNED_IN: &[Attack] = &[Attack {
    name: "unread responses",
    loops: 50,
    interval: Duration::from_secs(2),
}];

/// One round of an attack on a connection, or `None` if the attack is not one of this file.
pub(super) async fn run(name: &str, client: &Client) -> Option<String> {
    let request = match name {
        "stalled bodies" => {
            let head =
                "POST /user/auth HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n";
            let body = "x".repeat(BODY - 1);
            format!("{head}Content-Length: {BODY}\r\n\r\n{body}")
        }
        "pipelined requests" => "GET / HTTP/1.1\r\nHost:a\r\n\r\n".repeat(5_000),
        "tiny chunks" => {
            let path = format!("/people-task/tasks/{:024x}/approve?secret={:064x}", 1, 1);
            let head = format!("PUT {path} HTTP/1.1\r\nHost: gateway\r\n");
            let chunks = "1\r\nx\r\n".repeat(20_000);
            format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}")
        }
        "unfinished heads" => "GET /user HTTP/1.1\r\nHost: gateway\r\nX-Wait".to_owned(),
        "long methods" => {
            let method = "M".repeat(60_000);
            format!("{method} / HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
        }
        "unread responses" => {
            let token = client.token.as_deref().unwrap_or_default();
            let path = "/people-task/tasks?limit=1000";
            format!("GET {path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n\r\n")
        }
        _ => return None,
    };
    let read = !matches!(name, "unread responses" | "pipelined requests");
    Some(
        exchange(client, &request, read)
            .await
            .unwrap_or_else(|error| format!("{error:#}")),
    )
}

/// Sends `request` and waits for the end of the connection. Returns the first line of the response.
async fn exchange(client: &Client, request: &str, read: bool) -> anyhow::Result<String> {
    let mut stream = client.connect().await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = vec![0; 4096];
    if !read {
        // One part of the response arrives, and the rest is left unread.
        let length = stream.read(&mut response).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        return Ok(first_line(response.get(..length).unwrap_or_default()));
    }
    let mut length = 0;
    while let Some(rest) = response.get_mut(length..)
        && !rest.is_empty()
    {
        match stream.read(rest).await {
            Ok(0) | Err(_) => break,
            Ok(count) => length += count,
        }
    }
    Ok(first_line(response.get(..length).unwrap_or_default()))
}

fn first_line(response: &[u8]) -> String {
    let text = String::from_utf8_lossy(response);
    match text.lines().next() {
        Some(line) => line.to_owned(),
        None => "closed without a response".to_owned(),
    }
}
