//! The attacks, each a bounded number of loops that end at the same time.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use rig::{Person, lock, outln, say};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::time::{Instant, interval_at, timeout_at};

use super::{ANONYMOUS, SIGNED_IN};
use crate::context::Context;
use crate::http::{Connection, Response, connect, request};

/// Usually attackers have a machine of their own, and here their work must not take the cores from the system.
const NICENESS: i32 = 15;
/// Tasks with the longest description, in four-byte characters, which the attacker then lists.
const LARGE_TASKS: usize = 300;
const LONGEST: usize = 20_000;
const STALLED_BODY: usize = 250_000;
/// A task can have 20.
const WEBHOOKS_PER_TASK: usize = 10;
const TASKS: &str = "/people-task/tasks";
/// The rest of a request line, and the header that each request needs.
const HOST: &str = "HTTP/1.1\r\nHost: gateway\r\n";
/// How many bytes of a response are read at most, after its first part.
const MAX_RESPONSE: u64 = 4096;

/// One attack: its name, the parallel loops, the shortest time from one round of a loop to the next in milliseconds, and
/// what the attacker sends in a round.
type Attack = (&'static str, usize, u64, fn(&Person, usize) -> Payload);

/// What is sent in one round.
enum Payload {
    /// A request that is allowed.
    Request(Vec<u8>),
    /// Bytes that no HTTP library sends, on a new connection, whose response is read to its end.
    Bytes(String),
    /// Bytes on a new connection, whose response is left unread.
    Unread(Vec<u8>),
    /// The next step of a task with webhooks.
    Webhooks,
}

static ANONYMOUS_ATTACKS: [Attack; 8] = [
    ("stalled bodies", 400, 2_000, |_, _| {
        let head = format!("POST /user/auth {HOST}Content-Type: application/json\r\n");
        let body = "x".repeat(STALLED_BODY - 1);
        Payload::Bytes(format!(
            "{head}Content-Length: {STALLED_BODY}\r\n\r\n{body}"
        ))
    }),
    ("unfinished heads", 200, 2_000, |_, _| {
        Payload::Bytes(format!("GET /user {HOST}X-Wait"))
    }),
    ("pipelined requests", 50, 2_000, |_, _| {
        Payload::Unread(b"GET / HTTP/1.1\r\nHost:a\r\n\r\n".repeat(5_000))
    }),
    ("tiny chunks", 200, 2_000, |_, _| {
        let path = format!("{TASKS}/{:024x}/approve?secret={:064x}", 1, 1);
        let chunks = "1\r\nx\r\n".repeat(20_000);
        let head = format!("PUT {path} {HOST}Transfer-Encoding: chunked\r\n\r\n");
        Payload::Bytes(head + &chunks)
    }),
    ("long methods", 4, 100, |_, _| {
        let method = "M".repeat(60_000);
        Payload::Bytes(format!("{method} / {HOST}Connection: close\r\n\r\n"))
    }),
    ("wrong passwords", 20, 50, |_, round| {
        let account = json!({"username": format!("{round}@example.com"), "password": "wrong"});
        Payload::Request(request("POST", "/user/auth", None, Some(&account)))
    }),
    ("unknown paths", 4, 20, |_, round| {
        Payload::Request(request("GET", &format!("/unknown-{round}"), None, None))
    }),
    ("documents", 4, 20, |_, round| {
        let is_even = round.is_multiple_of(2);
        let path = if is_even { "/openapi.json" } else { "/readyz" };
        Payload::Request(request("GET", path, None, None))
    }),
];
static SIGNED_IN_ATTACKS: [Attack; 8] = [
    ("unread responses", 50, 2_000, |attacker, _| {
        Payload::Unread(list(attacker, "?limit=1000"))
    }),
    ("large lists", 8, 20, |attacker, _| {
        Payload::Request(list(attacker, "?limit=1000"))
    }),
    ("long filters", 4, 50, |attacker, _| {
        let filter = "a,".repeat(6_000);
        Payload::Request(list(attacker, &format!("?filter={filter}")))
    }),
    ("searches", 8, 20, |attacker, round| {
        Payload::Request(list(attacker, &format!("-count?pattern=arge%20{round}")))
    }),
    ("deep offsets", 4, 20, |attacker, round| {
        let offset = 9_000_000 + round;
        Payload::Request(list(attacker, &format!("?limit=1&offset={offset}")))
    }),
    ("wrong old passwords", 8, 50, |attacker, _| {
        let passwords = json!({"oldPassword": "wrong", "newPassword": "another password"});
        let (path, token) = ("/user/change-password", Some(&*attacker.token));
        Payload::Request(request("POST", path, token, Some(&passwords)))
    }),
    ("large tasks", 4, 100, |attacker, _| {
        let (token, task) = (Some(&*attacker.token), large_task(attacker));
        Payload::Request(request("POST", TASKS, token, Some(&task)))
    }),
    ("webhooks to nowhere", 16, 100, |_, _| Payload::Webhooks),
];

/// A request for tasks of the attacker.
fn list(attacker: &Person, query: &str) -> Vec<u8> {
    let path = format!("{TASKS}{query}");
    request("GET", &path, Some(&attacker.token), None)
}

fn large_task(attacker: &Person) -> Value {
    let (email, description) = (&attacker.email, "\u{1F4A3}".repeat(LONGEST));
    json!({"title": "Large", "description": description, "requester": email, "approver": email})
}

/// Creates the tasks that the signed-in attacker lists.
pub(super) fn prepare(context: &Context, attacker: &Person) -> Result<()> {
    let client = context.rig.client();
    for _ in 0..LARGE_TASKS {
        client.post(TASKS, &attacker.token, large_task(attacker))?;
    }
    Ok(())
}

/// How often each attack met each outcome.
type Outcomes = Arc<Mutex<BTreeMap<(&'static str, String), u64>>>;

pub(super) struct Attackers {
    /// `None` at the end.
    runtime: Option<Runtime>,
    outcomes: Outcomes,
}

impl Attackers {
    /// Starts all attacks, on threads of a low priority.
    pub(super) fn start(
        gateway: SocketAddr,
        attacker: &Person,
        duration: Duration,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(|| {
                if let Err(error) = rustix::process::nice(NICENESS) {
                    say(&format!("the attackers keep the usual priority: {error}"));
                }
            })
            .enable_all()
            .build()?;
        let outcomes = Outcomes::default();
        let end = Instant::now() + duration;
        let anonymous = ANONYMOUS_ATTACKS.iter().map(|attack| (ANONYMOUS, attack));
        let signed_in = SIGNED_IN_ATTACKS.iter().map(|attack| (SIGNED_IN, attack));
        for (from, attack) in anonymous.chain(signed_in) {
            for number in 0..attack.1 {
                let round = Round {
                    gateway,
                    from,
                    attack,
                    attacker: attacker.clone(),
                    number,
                    connection: None,
                    task: None,
                };
                let outcomes = Arc::clone(&outcomes);
                // A round that is still waiting at the end is given up.
                runtime.spawn(async move { timeout_at(end, round.repeat(&outcomes)).await });
            }
        }
        Ok(Self {
            runtime: Some(runtime),
            outcomes,
        })
    }

    pub(super) fn print(&self) {
        for ((attack, outcome), count) in lock(&self.outcomes).iter() {
            outln!("  {attack:<22} {count:>7} times {outcome}");
        }
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// One loop of an attack.
struct Round {
    gateway: SocketAddr,
    from: Ipv4Addr,
    attack: &'static Attack,
    attacker: Person,
    number: usize,
    connection: Option<Connection>,
    /// A task and how many webhooks it has.
    task: Option<(String, usize)>,
}

impl Round {
    async fn repeat(mut self, outcomes: &Outcomes) {
        let (name, loops, interval, _) = self.attack;
        let interval = Duration::from_millis(*interval);
        // The loops start one after the other, because the burst of all of them would keep this machine busy.
        let offset = interval.mul_f64(self.number as f64 / *loops as f64);
        let mut tick = interval_at(Instant::now() + offset, interval);
        for round in 0.. {
            tick.tick().await;
            let outcome = self.run(round).await;
            let outcome = outcome.unwrap_or_else(|error| format!("{error:#}"));
            let mut counts = lock(outcomes);
            *counts.entry((name, outcome)).or_default() += 1;
        }
    }

    async fn run(&mut self, round: usize) -> Result<String> {
        let (.., payload) = self.attack;
        match payload(&self.attacker, self.number + round) {
            Payload::Request(bytes) => Ok(self.call(&bytes).await?.status.to_string()),
            Payload::Bytes(text) => self.exchange(text.as_bytes(), true).await,
            Payload::Unread(bytes) => self.exchange(&bytes, false).await,
            Payload::Webhooks => self.use_webhooks(round).await,
        }
    }

    async fn call(&mut self, bytes: &[u8]) -> Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open_from(self.from, self.gateway).await?,
        };
        let response = connection.call(bytes).await?;
        self.connection = Some(connection);
        Ok(response)
    }

    /// Sends `request` and waits for the end of the connection. Returns the first line of the response.
    async fn exchange(&self, request: &[u8], read: bool) -> Result<String> {
        let mut stream = connect(self.from, self.gateway).await?;
        stream.write_all(request).await?;
        let mut response = Vec::with_capacity(4096);
        stream.read_buf(&mut response).await?;
        if read {
            // What arrived before an error counts, too.
            let _ = stream.take(MAX_RESPONSE).read_to_end(&mut response).await;
        } else {
            // One part of the response has arrived, and the rest is left unread.
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        let text = String::from_utf8_lossy(&response);
        let line = text.lines().next();
        Ok(line.unwrap_or("closed without a response").to_owned())
    }

    /// Creates a task, registers a webhook for it or, after some webhooks, approves it.
    async fn use_webhooks(&mut self, round: usize) -> Result<String> {
        let Person { email, token, .. } = self.attacker.clone();
        let (what, method, path, body) = match self.task.take() {
            None => {
                let task = json!({"title": "Nowhere", "requester": email, "approver": email});
                ("create", "POST", TASKS.to_owned(), Some(task))
            }
            Some((id, WEBHOOKS_PER_TASK)) => {
                ("approve", "PUT", format!("{TASKS}/{id}/approve"), None)
            }
            Some((id, count)) => {
                // No earlier lookup asked for this domain. Resolvers send questions about `.example` to the name servers,
                // unlike those about `.invalid`.
                let account = email.split('@').next().unwrap_or_default();
                let domain = format!("{account}-{}-{round}.example", self.number);
                let webhook = json!({"taskId": id, "url": format!("https://hooks.{domain}/")});
                self.task = Some((id, count + 1));
                let path = "/people-task/webhooks".to_owned();
                ("register", "POST", path, Some(webhook))
            }
        };
        let bytes = request(method, &path, Some(&token), body.as_ref());
        let response = self.call(&bytes).await?;
        if what == "create" {
            let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            let id = body.get("id").and_then(Value::as_str);
            self.task = id.map(|id| (id.to_owned(), 0));
        }
        Ok(format!("{what}: {}", response.status))
    }
}
