//! Writes, decisions and their webhooks, all to one host that responds at once.

use std::time::Instant;

use anyhow::Result;
use rig::HeldLock;

use crate::context::{Context, WORKER, WRITE};
use crate::decisions::{Decided, approve, burst, finish, measure, prepare, start_afresh};
use crate::http::{Behaviour, Pace, Receiver};
use crate::report::{Figures, Limit, durations, per_second, rate};

/// Decisions a second that the system handles easily.
pub(crate) const RATE: f64 = 20.0;
const FAN_OUT: usize = 10;
const DECISIONS: &str = "decisions and webhooks";
/// What a report or a dump does to see the same rows all the time.
const SNAPSHOT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1;";

/// Decisions as fast as possible, with what they cost.
pub(super) async fn decisions(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let count = context.pick(10_000, 2_000);
    let receiver = Receiver::start(0, 1, Behaviour::Respond)?;
    let (_, before) = measure(context).await?;
    let tasks = prepare(context, count, 1, |seq| receiver.url(seq)).await?;
    let (_, prepared) = measure(context).await?;
    let decided = crate::decisions::decide(context, &tasks, &receiver, Pace::FULL).await?;
    let limit = [context.limit(WRITE).await?];
    figures.add_beside("decisions accepted", decided.accepted(), "/s", &limit);
    figures.add_beside("webhooks, end to end", decided.delivered(), "/s", &limit);
    figures.add_spread("duration of a call", durations(&decided.calls), &[]);
    figures.add_spread("decision to receiver", decided.latencies(), &[]);
    figures.add_shares(DECISIONS, &decided.before.0, &decided.after.0);
    decided.add_repeated(figures);
    let wal = (prepared.wal - before.wal) / count as f64;
    figures.add("log of a task with a webhook", wal, "bytes");
    let wal = (decided.after.1.wal - decided.before.1.wal) / count as f64;
    figures.add("log of a decision with its delivery", wal, "bytes");
    add_processor_time(&decided, figures);
    Ok(())
}

fn add_processor_time(decided: &Decided, figures: &mut Figures) {
    let count = decided.calls.len() as f64;
    let cpu = decided.after.0.cpu_since(&decided.before.0);
    for (name, seconds) in &cpu {
        figures.add(format!("processor, {name}"), *seconds, "s");
    }
    for (name, seconds) in &cpu {
        let each = seconds / count * 1e6;
        figures.add(format!("processor for each decision, {name}"), each, "µs");
    }
}

pub(super) async fn fan_out(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let decided = burst(context, (2_000, 300), FAN_OUT, Pace::FULL).await?;
    let limit = [context.limit(WRITE).await?];
    figures.add_beside("webhooks, end to end", decided.delivered(), "/s", &limit);
    figures.add_beside("decisions accepted", decided.accepted(), "/s", &limit);
    figures.add_shares(DECISIONS, &decided.before.0, &decided.after.0);
    decided.add_repeated(figures);
    add_processor_time(&decided, figures);
    Ok(())
}

/// The time from a call to the receiver, at a rate that the system handles easily.
pub(super) async fn steady(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let decided = measure_steady(context).await?;
    let limit = [context.latency_limit(WRITE).await?];
    let (calls, latencies) = (durations(&decided.calls), decided.latencies());
    figures.add_beside("duration of a call, p50", calls.p50, "ms", &limit);
    figures.add_beside("duration of a call, p99", calls.p99, "ms", &limit);
    figures.add_beside("call to receiver, p50", latencies.p50, "ms", &limit);
    figures.add_beside("call to receiver, p99", latencies.p99, "ms", &limit);
    decided.add_repeated(figures);
    Ok(())
}

pub(super) async fn measure_steady(context: &mut Context) -> Result<Decided> {
    burst(context, (1_200, 200), 1, Pace::Open { rate: RATE }).await
}

/// Tasks that are created or, with one webhook for each, webhooks that are registered then.
pub(super) async fn writes(
    context: &mut Context,
    figures: &mut Figures,
    webhooks: usize,
) -> Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(0, 1, Behaviour::Respond)?;
    let count = context.pick(10_000, 2_000);
    let before = context.usage();
    let tasks = prepare(context, count, webhooks, |seq| receiver.url(seq)).await?;
    let (shares, name, calls) = match webhooks {
        0 => ("tasks", "tasks created", tasks.created),
        _ => (
            "tasks, then webhooks",
            "webhooks registered",
            tasks.registered,
        ),
    };
    figures.add_shares(shares, &before, &context.usage());
    let limit = [context.limit(WRITE).await?];
    figures.add_beside(name, rate(&calls), "/s", &limit);
    figures.add_spread("duration of a call", durations(&calls), &[]);
    Ok(())
}

/// Deliveries that wait for the worker, which is stopped while tasks are decided.
pub(super) async fn backlog(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(0, 1, Behaviour::Respond)?;
    let count = context.pick(10_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(seq)).await?;
    context.stop(WORKER)?;
    let before = measure(context).await?;
    let calls = approve(context, &tasks, Pace::FULL).await?;
    let started = Instant::now();
    context.rig.start_process(WORKER, &[])?;
    let decided = finish(context, &tasks, &receiver, before, calls).await?;
    let limit = [context.limit(WRITE).await?];
    let arrivals = || decided.deliveries.iter().map(|(_, arrival)| *arrival);
    let drained = per_second(count, arrivals().min(), arrivals().max());
    figures.add_beside("webhooks of a backlog", drained, "/s", &limit);
    let first = arrivals().min().map(|first| first - started);
    let first = first.unwrap_or_default().as_secs_f64();
    figures.add("start of the worker to the first webhook", first, "s");
    let alone = decided.accepted();
    figures.add_beside("decisions accepted without a worker", alone, "/s", &limit);
    decided.add_repeated(figures);
    Ok(())
}

/// Decisions without a snapshot, then while another session of the database holds one, so no old row version can be
/// removed.
pub(super) async fn open_snapshot(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let without = burst(context, (10_000, 2_000), 1, Pace::FULL).await?;
    start_afresh(context).await?;
    let snapshot = HeldLock::acquire(&context.rig, SNAPSHOT)?;
    let with = burst(context, (10_000, 2_000), 1, Pace::FULL).await?;
    drop(snapshot);
    let of = "without it";
    let limit = [Limit::new(of, without.delivered())];
    let name = "webhooks with an open snapshot, end to end";
    figures.add_beside(name, with.delivered(), "/s", &limit);
    let limit = [Limit::new(of, without.accepted())];
    let name = "decisions accepted with an open snapshot";
    figures.add_beside(name, with.accepted(), "/s", &limit);
    let (times, before) = (with.latencies(), without.latencies());
    figures.add_spread("decision to receiver", times, &[(of, before)]);
    with.add_repeated(figures);
    Ok(())
}
