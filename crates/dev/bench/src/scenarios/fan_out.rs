//! Decisions with many webhooks each.

use crate::context::Context;
use crate::decisions::{HOST, decide, prepare, start_afresh};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::limits::pgbench::Script;
use crate::report::Figures;

const WEBHOOKS: usize = 10;

/// Measures tasks with ten webhooks.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(2_000, 300);
    let tasks = prepare(context, count, WEBHOOKS, |seq| receiver.url(HOST, seq)).await?;
    let decided = decide(context, &tasks, &receiver, Pace::FULL).await?;
    let limit = [context.limit(Script::Write).await?];
    figures.add_beside("webhooks, end to end", decided.delivered(), "/s", &limit);
    figures.add_beside("decisions accepted", decided.accepted(), "/s", &limit);
    figures.add_shares("decisions and webhooks", decided.shares());
    decided.add_repeated(figures);
    Ok(())
}
