//! The attacks, each a bounded number of loops that end at the same time.

mod attack;
mod connections;
mod requests;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Method;
use rig::outln;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, timeout_at};

use crate::client::Client;
use attack::Attack;
use webhooks::Webhooks;

/// Tasks with the longest description, in four-byte characters, which the attacker then lists.
const LARGE_TASKS: usize = 300;

/// How often each attack met each outcome.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes(Arc<Mutex<BTreeMap<(&'static str, String), u64>>>);

impl Outcomes {
    fn count(&self, attack: &'static str, outcome: String) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((attack, outcome)).or_default() += 1;
    }
}

/// The running attacks.
#[derive(Debug)]
pub(crate) struct Attacks {
    loops: JoinSet<()>,
    outcomes: Outcomes,
}

impl Attacks {
    /// Waits for the attacks' end and prints what they met.
    pub(crate) async fn finish_and_print(mut self) {
        while self.loops.join_next().await.is_some() {}
        let counts = self
            .outcomes
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for ((attack, outcome), count) in counts.iter() {
            outln!("  {attack:<22} {count:>7} times {outcome}");
        }
    }
}

/// Starts the attacks whose names `include` accepts.
pub(crate) fn start(
    anonymous: &Client,
    signed_in: &Client,
    include: impl Fn(&str) -> bool,
    end: Instant,
    runtime: &Handle,
) -> Attacks {
    let mut attacks = Attacks {
        loops: JoinSet::new(),
        outcomes: Outcomes::default(),
    };
    let _runtime = runtime.enter();
    let by_anonymous = connections::ATTACKS.iter().chain(requests::ANONYMOUS);
    let by_signed_in = connections::SIGNED_IN.iter().chain(requests::SIGNED_IN);
    let by_signed_in = by_signed_in.chain([&webhooks::ATTACK]);
    let all = by_anonymous.map(|attack| (attack, anonymous));
    let all = all.chain(by_signed_in.map(|attack| (attack, signed_in)));
    for (attack, client) in all.filter(|(attack, _)| include(attack.name)) {
        attacks.add(attack, client, end);
    }
    attacks
}

impl Attacks {
    fn add(&mut self, attack: &'static Attack, client: &Client, end: Instant) {
        for number in 0..attack.loops {
            let (client, outcomes) = (client.clone(), self.outcomes.clone());
            self.loops.spawn(async move {
                // A round that is still waiting at the end is given up.
                let _ = timeout_at(end, repeat(attack, number, &client, &outcomes)).await;
            });
        }
    }
}

async fn repeat(attack: &Attack, number: usize, client: &Client, outcomes: &Outcomes) {
    // The loops start one after the other, because the burst of all of them would keep this machine busy.
    let offset = attack.interval.mul_f64(number as f64 / attack.loops as f64);
    let mut tick = interval_at(Instant::now() + offset, attack.interval);
    let mut webhooks = Webhooks::default();
    for round in 0.. {
        tick.tick().await;
        let outcome = if attack.name == webhooks::ATTACK.name {
            webhooks.run(client, number, round).await
        } else if let Some(outcome) = connections::run(attack.name, client).await {
            outcome
        } else {
            requests::run(attack.name, client, number + round).await
        };
        outcomes.count(attack.name, outcome);
    }
}

/// Creates the tasks that the signed-in attacker lists.
pub(crate) async fn prepare(attacker: &Client) -> anyhow::Result<()> {
    let description = "\u{1F4A3}".repeat(20_000);
    let email = &attacker.email;
    for number in 0..LARGE_TASKS {
        let task = json!({
            "title": format!("Large {number}"),
            "description": description,
            "requester": email,
            "approver": email,
        });
        attacker
            .json(Method::POST, "/people-task/tasks", Some(&task))
            .await?;
    }
    Ok(())
}
