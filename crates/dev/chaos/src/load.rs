//! The callers: they create tasks, register webhooks and decide, all the time, and retry nothing.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use local_stack::random;
use serde_json::{Value, json};

use xtask::{
    demo::client::{Call, Client},
    interrupt::Interrupt,
};

use crate::{
    caller::Caller,
    dice::Dice,
    door::locked,
    journal::{Decision, Hook, Journal, Task, Told},
    receiver::{Manner, Receiver},
    signature::secret_of,
};

/// Callers at the same time. When each of them waits for an answer, the load is lower than wished.
pub(crate) const CALLERS: usize = 64;
/// Tasks of one run: everything that happens to them is remembered until its end.
const MOST_TASKS: u64 = 50_000;
const LONGEST_THOUGHT: Duration = Duration::from_secs(2);
/// How many of a hundred tasks two people decide at the same time.
const RACES: usize = 10;

/// Somebody with an account.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) email: String,
    pub(crate) token: String,
}

impl Person {
    /// Signs somebody up, patiently.
    pub(crate) fn sign_up(gateway: &str, name: &str) -> anyhow::Result<Self> {
        let mut client = Client::new(gateway);
        client.quiet = true;
        let unique = random::password()?;
        let email = format!("{name}.{}@example.com", unique.get(..8).unwrap_or_default());
        let body = json!({"email": email, "password": unique});
        let answer = client
            .call(&Call::new("POST", "/user").body(body))?
            .expect(200)?;
        let token = answer.text("/token").context("signing up")?.to_owned();
        Ok(Self { email, token })
    }
}

/// What all callers share.
pub(crate) struct Load<'run> {
    seed: u64,
    interval: Duration,
    end: Instant,
    next: Mutex<Instant>,
    count: AtomicU64,
    caller: &'run Caller,
    creator: Person,
    approver: Person,
    receivers: &'run [Receiver],
    journal: &'run Journal,
    interrupt: &'run Interrupt,
}

/// How a run loads the system.
pub(crate) struct Pace {
    pub(crate) seed: u64,
    /// Tasks a second.
    pub(crate) rate: u32,
    pub(crate) end: Instant,
}

/// Tasks a second in a run of this duration: those that were wished for, unless they would be too many.
pub(crate) fn rate_within(wish: u32, duration: Duration) -> u32 {
    let most = MOST_TASKS / duration.as_secs().max(1);
    u32::try_from(most)
        .unwrap_or(u32::MAX)
        .clamp(1, wish.max(1))
}

impl<'run> Load<'run> {
    /// `people` are the creator and the approver.
    pub(crate) fn new(
        pace: &Pace,
        caller: &'run Caller,
        people: [Person; 2],
        receivers: &'run [Receiver],
        journal: &'run Journal,
        interrupt: &'run Interrupt,
    ) -> Self {
        let [creator, approver] = people;
        Self {
            seed: pace.seed,
            interval: Duration::from_secs(1) / pace.rate,
            end: pace.end,
            next: Mutex::new(Instant::now()),
            count: AtomicU64::new(0),
            caller,
            creator,
            approver,
            receivers,
            journal,
            interrupt,
        }
    }

    /// One caller, until the load ends.
    pub(crate) fn call_on(&self) {
        loop {
            let turn = self.turn();
            if turn >= self.end || self.interrupt.came() {
                return;
            }
            thread::sleep(turn.saturating_duration_since(Instant::now()));
            self.one_task(self.count.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// When this caller's next task begins. Turns that nobody could take are skipped.
    fn turn(&self) -> Instant {
        let mut next = locked(&self.next);
        let turn = (*next).max(Instant::now());
        *next = turn + self.interval;
        turn
    }

    fn one_task(&self, number: u64) {
        let mut dice = Dice::of(self.seed, &format!("task {number}"));
        let body = json!({
            "title": format!("Task {number}"),
            "requester": self.creator.email,
            "approver": self.approver.email,
        });
        let create = Call::new("POST", "/people-task/tasks")
            .token(&self.creator.token)
            .body(body);
        let (told, body) = self.caller.tell(&create, number);
        let field = |name: &str| body.get(name).and_then(Value::as_str);
        let (Told::Done, Some(id), Some(secret)) = (&told, field("id"), field("approverSecret"))
        else {
            return self.journal.uncreated(match told {
                Told::Done => Told::Unexpected("200 without identifier and secret".to_owned()),
                other => other,
            });
        };
        let hooks = (0..=dice.below(3))
            .map(|place| self.register(id, format!("{number}-{place}"), number, &mut dice))
            .collect();
        thread::sleep(dice.between(Duration::ZERO, LONGEST_THOUGHT));
        let decisions = self.decide(id, secret, number, &mut dice);
        self.journal.task(Task {
            id: id.to_owned(),
            hooks,
            decisions,
        });
    }

    fn register(&self, task: &str, key: String, number: u64, dice: &mut Dice) -> Hook {
        let receiver = dice.choose(self.receivers);
        let url = receiver
            .map(|receiver| receiver.url(&key))
            .unwrap_or_default();
        let call = Call::new("POST", "/people-task/webhooks")
            .token(&self.creator.token)
            .body(match secret_of(self.seed, &key) {
                Some(secret) => json!({"taskId": task, "url": url, "secret": secret}),
                None => json!({"taskId": task, "url": url}),
            });
        let gone = receiver.is_some_and(|receiver| receiver.is_gone(&key));
        Hook {
            key,
            told: self.caller.tell(&call, number).0,
            fast: receiver.is_some_and(|receiver| receiver.manner == Manner::Fast),
            gone,
        }
    }

    fn decide(&self, task: &str, secret: &str, number: u64, dice: &mut Dice) -> Vec<Decision> {
        let wishes = if dice.chance(50) {
            [("approve", "approved"), ("reject", "rejected")]
        } else {
            [("reject", "rejected"), ("approve", "approved")]
        };
        let [ours, theirs] = wishes.map(|(verb, wish)| {
            let path = format!("/people-task/tasks/{task}/{verb}");
            let call = match dice.below(3) {
                0 => Call::new("PUT", format!("{path}?secret={secret}")),
                1 => Call::new("PUT", path).token(&self.approver.token),
                _ => Call::new("PUT", path).token(&self.creator.token),
            };
            (call, wish)
        });
        let make = |(call, wish): (Call<'_>, &'static str)| {
            let (told, body) = self.caller.tell(&call, number);
            let says = body.get("status").and_then(Value::as_str);
            let told = match told {
                Told::Done if says != Some(wish) => {
                    Told::Unexpected(format!("200 as {wish}, and the body says {says:?}"))
                }
                other => other,
            };
            let at = Instant::now();
            Decision { wish, told, at }
        };
        if !dice.chance(RACES) {
            return vec![make(ours)];
        }
        thread::scope(|scope| {
            let other = scope.spawn(|| make(theirs));
            let mut decisions = vec![make(ours)];
            decisions.extend(other.join());
            decisions
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_a_slow_one() {
        assert_eq!(rate_within(10, Duration::from_secs(600)), 10);
        assert_eq!(rate_within(1000, Duration::from_secs(500)), 100);
        assert_eq!(rate_within(10, Duration::from_secs(86_400)), 1);
    }
}
