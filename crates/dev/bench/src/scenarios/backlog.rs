//! Deliveries that wait for the worker.

use std::time::Instant;

use crate::context::Context;
use crate::decisions::{HOST, approve, expect, finish, measure, prepare, start_afresh};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::limits::pgbench::Script;
use crate::report::Figures;
use crate::report::statistics::per_second;
use crate::system::Worker;

/// Stops the worker, decides, and starts it again.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(10_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    expect(&receiver, &tasks);
    context.system.stop_worker(Worker::First).await?;
    let before = measure(context).await?;
    let calls = approve(context, &tasks, Pace::FULL).await?;
    let started = Instant::now();
    context.system.start_worker(Worker::First).await?;
    let decided = finish(context, &tasks, &receiver, before, calls).await?;
    let limit = [context.limit(Script::Write).await?];
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
