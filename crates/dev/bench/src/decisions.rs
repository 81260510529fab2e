//! Creates tasks with webhooks, decides them, and waits for the webhooks.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::context::{Context, DatabaseState};
use crate::http::{Behaviour, Call, Pace, Receiver, request, send};
use crate::report::{self, Figures, Spread, per_second};
use crate::usage::Usage;

/// The run fails if webhooks are missing and none arrives for this time. A killed worker's leases end sooner.
const MAX_SILENCE: Duration = Duration::from_secs(90);
/// How long the database may have waiting deliveries after the last webhook arrived.
const SETTLE_LIMIT: Duration = Duration::from_secs(60);
/// Webhooks that arrive within this time after the last one are counted, too.
const QUIET: Duration = Duration::from_secs(1);
const QUIET_LIMIT: Duration = Duration::from_secs(30);
const WARM_UP: usize = 200;

/// Pending tasks with the same number of webhooks each.
pub(crate) struct Tasks {
    pub(crate) ids: Vec<String>,
    webhooks: usize,
    pub(crate) created: Vec<Call>,
    pub(crate) registered: Vec<Call>,
}

pub(crate) struct Decided {
    /// The calls in the order of the tasks.
    pub(crate) calls: Vec<Call>,
    /// When each webhook arrived, with the moment when its decision was due.
    pub(crate) deliveries: Vec<(Instant, Instant)>,
    pub(crate) repeated: usize,
    pub(crate) before: (Usage, DatabaseState),
    pub(crate) after: (Usage, DatabaseState),
}

/// Creates tasks and registers webhooks with these URLs, as fast as possible.
pub(crate) async fn prepare(
    context: &Context,
    tasks: usize,
    webhooks: usize,
    url: impl Fn(u64) -> String,
) -> Result<Tasks> {
    let (gateway, user) = (context.gateway, &context.user);
    let token = Some(user.token.as_str());
    let task = json!({
        "title": "Buy a chair",
        "description": "The first one jams.",
        "requester": user.email,
        "approver": user.email,
    });
    let creation = request("POST", "/people-task/tasks", token, Some(&task));
    let created = send(gateway, &vec![creation; tasks], Pace::FULL).await?;
    let ids = created.iter().map(|call| {
        let body: Value = serde_json::from_slice(&call.body)?;
        let id = body.get("id").and_then(Value::as_str);
        anyhow::Ok(id.context("a created task has no id")?.to_owned())
    });
    let ids = ids.collect::<Result<Vec<String>>>()?;
    let requests: Vec<Vec<u8>> = (0..)
        .zip(ids.iter().flat_map(|id| std::iter::repeat_n(id, webhooks)))
        .map(|(seq, id)| {
            let webhook = json!({"taskId": id, "url": url(seq)});
            request("POST", "/people-task/webhooks", token, Some(&webhook))
        })
        .collect();
    let registered = send(gateway, &requests, Pace::FULL).await?;
    Ok(Tasks {
        ids,
        webhooks,
        created,
        registered,
    })
}

pub(crate) async fn approve(context: &Context, tasks: &Tasks, pace: Pace) -> Result<Vec<Call>> {
    let token = Some(context.user.token.as_str());
    let requests = tasks.ids.iter().map(|id| {
        let path = format!("/people-task/tasks/{id}/approve");
        request("PUT", &path, token, None)
    });
    send(context.gateway, &requests.collect::<Vec<_>>(), pace).await
}

/// Approves all tasks, and waits until every webhook has arrived and no more follow.
pub(crate) async fn decide(
    context: &Context,
    tasks: &Tasks,
    receiver: &Receiver,
    pace: Pace,
) -> Result<Decided> {
    let before = measure(context).await?;
    let calls = approve(context, tasks, pace).await?;
    finish(context, tasks, receiver, before, calls).await
}

/// Waits until every webhook has arrived and no more follow.
pub(crate) async fn finish(
    context: &Context,
    tasks: &Tasks,
    receiver: &Receiver,
    before: (Usage, DatabaseState),
    calls: Vec<Call>,
) -> Result<Decided> {
    wait_for_arrivals(tasks, receiver).await?;
    let after = wait_until_settled(context).await?;
    wait_until_quiet(receiver).await?;
    let arrivals = receiver.arrivals();
    let due = calls.iter().map(|call| call.due);
    let due = due.flat_map(|due| std::iter::repeat_n(due, tasks.webhooks));
    let deliveries = (0..).zip(due);
    let deliveries = deliveries.filter_map(|(seq, due)| Some((due, *arrivals.first.get(&seq)?)));
    Ok(Decided {
        deliveries: deliveries.collect(),
        calls,
        repeated: arrivals.repeated,
        before,
        after,
    })
}

pub(crate) async fn measure(context: &Context) -> Result<(Usage, DatabaseState)> {
    let state = context.database_state().await?;
    Ok((context.usage(), state))
}

async fn wait_for_arrivals(tasks: &Tasks, receiver: &Receiver) -> Result<()> {
    let expected = tasks.ids.len() * tasks.webhooks;
    let (mut last, mut changed) = (0, Instant::now());
    loop {
        let arrived = receiver.arrivals().first.len();
        if arrived >= expected {
            return Ok(());
        }
        if arrived > last {
            (last, changed) = (arrived, Instant::now());
        }
        ensure!(
            changed.elapsed() < MAX_SILENCE,
            "{arrived} of {expected} webhooks arrived, and none in the last {} s",
            MAX_SILENCE.as_secs()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the result of every delivery is recorded.
async fn wait_until_settled(context: &Context) -> Result<(Usage, DatabaseState)> {
    let end = Instant::now() + SETTLE_LIMIT;
    loop {
        // Before the query, which takes processor time, too.
        let usage = context.usage();
        let state = context.database_state().await?;
        if state.waiting == 0 {
            return Ok((usage, state));
        }
        ensure!(
            Instant::now() < end,
            "{} deliveries still wait {} s after the last webhook arrived",
            state.waiting,
            SETTLE_LIMIT.as_secs()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn wait_until_quiet(receiver: &Receiver) -> Result<()> {
    let end = Instant::now() + QUIET_LIMIT;
    let last_arrival = || receiver.arrivals().last;
    while last_arrival().is_some_and(|last| last.elapsed() < QUIET) {
        ensure!(
            Instant::now() < end,
            "webhooks still arrive after all were delivered"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

impl Decided {
    /// Decisions accepted per second.
    pub(crate) fn accepted(&self) -> f64 {
        report::rate(&self.calls)
    }

    /// Webhooks per second, from the first decision to the last arrival.
    pub(crate) fn delivered(&self) -> f64 {
        let first = self.calls.iter().map(|call| call.due).min();
        let last = self.deliveries.iter().map(|(_, arrival)| *arrival).max();
        per_second(self.deliveries.len(), first, last)
    }

    /// The times from a decision's call to the receiver.
    pub(crate) fn latencies(&self) -> Spread {
        let times = self.deliveries.iter();
        Spread::of(times.map(|(due, arrival)| arrival.saturating_duration_since(*due)))
    }

    pub(crate) fn add_repeated(&self, figures: &mut Figures) {
        figures.add("webhooks that arrived twice", self.repeated as f64, "");
    }
}

/// Removes what earlier scenarios left, starts a new worker, and decides some tasks, so that connections are open and
/// statements planned.
pub(crate) async fn start_afresh(context: &mut Context) -> Result<()> {
    context.reset().await?;
    warm_up(context).await
}

pub(crate) async fn warm_up(context: &mut Context) -> Result<()> {
    let decided = burst(context, (WARM_UP, WARM_UP), 1, Pace::FULL).await;
    decided.map(drop)
}

/// Decides tasks with webhooks to one host that responds at once. `count` is how many, and how many in a quick run.
pub(crate) async fn burst(
    context: &mut Context,
    count: (usize, usize),
    webhooks: usize,
    pace: Pace,
) -> Result<Decided> {
    let receiver = Receiver::start(0, 1, Behaviour::Respond)?;
    let count = context.pick(count.0, count.1);
    let tasks = prepare(context, count, webhooks, |seq| receiver.url(seq)).await?;
    decide(context, &tasks, &receiver, pace).await
}
