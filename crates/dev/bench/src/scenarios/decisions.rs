//! Decisions as fast as possible, with what they cost.

use crate::context::Context;
use crate::decisions::{Decided, HOST, decide, measure, prepare, start_afresh};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::limits::pgbench::Script;
use crate::report::Figures;

/// Measures tasks with one webhook.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(10_000, 2_000);
    let (_, before) = measure(context).await?;
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    let (_, prepared) = measure(context).await?;
    let decided = decide(context, &tasks, &receiver, Pace::FULL).await?;
    let limit = [context.limit(Script::Write).await?];
    figures.add_beside("decisions accepted", decided.accepted(), "/s", &limit);
    figures.add_beside("webhooks, end to end", decided.delivered(), "/s", &limit);
    figures.add_spread("duration of a call", decided.calls());
    figures.add_spread("decision to receiver", decided.latencies());
    figures.add_shares("decisions and webhooks", decided.shares());
    decided.add_repeated(figures);
    let wal = (prepared.wal - before.wal) / count as f64;
    figures.add("log of a task with a webhook", wal, "bytes");
    let wal = decided.wal_per_decision();
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
