//! Writes that come before a decision.

use crate::context::Context;
use crate::decisions::{HOST, prepare, start_afresh};
use crate::http::load::Call;
use crate::http::receiver::{Behaviour, Receiver};
use crate::limits::pgbench::Script;
use crate::report::Figures;
use crate::report::statistics::{Spread, rate};

/// Measures creating tasks.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let count = context.size(10_000, 2_000);
    let before = context.system.usage();
    let tasks = prepare(context, count, 0, |_| String::new()).await?;
    figures.add_shares("tasks", context.system.usage().shares_since(&before));
    add(context, figures, "tasks created", &tasks.created).await
}

/// Measures registering webhooks.
pub(crate) async fn run_register(
    context: &mut Context,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(10_000, 2_000);
    let before = context.system.usage();
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    let shares = context.system.usage().shares_since(&before);
    figures.add_shares("tasks, then webhooks", shares);
    add(context, figures, "webhooks registered", &tasks.registered).await
}

async fn add(
    context: &mut Context,
    figures: &mut Figures,
    name: &str,
    calls: &[Call],
) -> anyhow::Result<()> {
    let limit = [context.limit(Script::Write).await?];
    figures.add_beside(name, rate(calls), "/s", &limit);
    let durations = Spread::of(calls.iter().map(Call::latency));
    figures.add_spread("duration of a call", durations);
    Ok(())
}
