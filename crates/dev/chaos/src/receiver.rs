//! The receivers of webhooks: some are fast, some slow, some fail at first, some respond with 410. Each one
//! can be made to refuse connections or to hang.

use std::iter::repeat_n;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use chrono::Utc;
use rand::RngExt as _;
use rig::{Reply, Request, Watch};
use serde_json::Value;

use crate::history::{Arrival, History, Outcome};
use crate::rng;
use crate::signature::{Keys, secret_of};

const MIN_DELAY: Duration = Duration::from_millis(300);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// How a receiver behaves while no fault hits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Fast,
    /// Responds after 300 ms to 2 s.
    Slow,
    /// Fails the first one to three attempts of each webhook.
    Failing,
    /// Responds with 410 for half of the webhooks and with 200 for the others.
    Gone,
}

/// The receivers of a run, in this order.
pub(crate) fn behaviours() -> impl Iterator<Item = Behaviour> {
    use Behaviour::{Failing, Fast, Gone, Slow};
    let counts = [(Fast, 3), (Slow, 2), (Failing, 3), (Gone, 1)].into_iter();
    counts.flat_map(|(behaviour, count)| repeat_n(behaviour, count))
}

pub(crate) struct Receiver {
    pub(crate) name: String,
    pub(crate) handler: Arc<Handler>,
    receiver: rig::Receiver,
}

pub(crate) struct Handler {
    pub(crate) behaviour: Behaviour,
    seed: u64,
    keys: Keys,
    hanging: Watch<bool>,
    history: Arc<History>,
}

impl Receiver {
    pub(crate) fn open(
        number: usize,
        behaviour: Behaviour,
        seed: u64,
        keys: &Keys,
        history: &Arc<History>,
    ) -> anyhow::Result<Self> {
        let handler = Arc::new(Handler {
            behaviour,
            seed,
            keys: keys.clone(),
            hanging: Watch::new(false),
            history: Arc::clone(history),
        });
        let behaviour_name = format!("{behaviour:?}").to_lowercase();
        let responding = Arc::clone(&handler);
        Ok(Self {
            name: format!("receiver {number} ({behaviour_name})"),
            handler,
            receiver: rig::Receiver::open(move |request| responding.respond(request))?,
        })
    }

    pub(crate) fn url(&self, key: &str) -> String {
        let path = format!("/hooks/{key}?correlationId={key}");
        self.receiver.url(&path)
    }

    /// Refuses new connections and keeps serving open ones.
    pub(crate) fn refuse(&self) {
        self.receiver.listener.close();
    }

    /// Accepts requests without responding.
    pub(crate) fn hang(&self) {
        self.handler.hanging.set(true);
    }

    pub(crate) fn restore(&self) {
        self.handler.hanging.set(false);
        self.receiver.listener.reopen();
    }
}

impl Handler {
    /// Whether the response for this webhook is always 410.
    pub(crate) fn is_gone(&self, key: &str) -> bool {
        let mut rng = rng::for_subject(self.seed, &format!("gone {key}"));
        self.behaviour == Behaviour::Gone && rng.random_bool(0.5)
    }

    fn respond(&self, request: &Request<'_>) -> Reply {
        let key = request.key();
        let number = self.history.record_arrival(key, self.arrival(request));
        if self.hanging.get() {
            self.hanging.wait_while(|hanging| *hanging);
            return Reply::Close;
        }
        let (outcome, reply) = self.choose_reply(key, number);
        self.history.record_reply(key, number, outcome);
        reply
    }

    fn arrival(&self, request: &Request<'_>) -> Arrival {
        let body: Value = serde_json::from_slice(request.body).unwrap_or_default();
        let field = |name: &str| body.get(name).and_then(Value::as_str);
        let secret = secret_of(self.seed, request.key());
        let now = Instant::now();
        Arrival {
            webhook_id: request.header("webhook-id").unwrap_or_default().to_owned(),
            task: field("id").unwrap_or_default().to_owned(),
            status: field("status").unwrap_or_default().to_owned(),
            signature_error: self.keys.find_error(request, secret.as_deref()),
            at: now,
            received: Utc::now(),
            outcome: Outcome::None,
            replied_at: now,
        }
    }

    /// Chooses the reply to the request of this number, after a delay if the receiver is slow.
    fn choose_reply(&self, key: &str, number: usize) -> (Outcome, Reply) {
        let mut rng = rng::for_subject(self.seed, key);
        match self.behaviour {
            Behaviour::Failing if number <= rng.random_range(0..3) => {
                return failure(rng.random_range(0..6), key);
            }
            Behaviour::Slow => thread::sleep(rng.random_range(MIN_DELAY..=MAX_DELAY)),
            Behaviour::Gone if self.is_gone(key) => {
                let gone = reply("410 Gone", String::new());
                return (Outcome::Failed(Duration::ZERO), gone);
            }
            _ => {}
        }
        (Outcome::Accepted, reply("200 OK", String::new()))
    }
}

/// One of several failures. A redirect leads to a webhook that was never registered.
fn failure(which: usize, key: &str) -> (Outcome, Reply) {
    let retry_after = |seconds: u64| format!("retry-after: {seconds}\r\n");
    let (pause, reply) = match which {
        0 => (0, Reply::Close),
        1 => (1, reply("503 Service Unavailable", retry_after(1))),
        2 => (3, reply("429 Too Many Requests", retry_after(3))),
        3 => {
            let location = format!("location: /hooks/redirected-{key}\r\n");
            (0, reply("307 Temporary Redirect", location))
        }
        4 => (0, reply("404 Not Found", String::new())),
        _ => (0, reply("500 Internal Server Error", String::new())),
    };
    (Outcome::Failed(Duration::from_secs(pause)), reply)
}

fn reply(status: &'static str, head: String) -> Reply {
    Reply::Send(status, head, "ok")
}
