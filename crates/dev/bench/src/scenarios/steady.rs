//! Decisions at a rate that the system handles easily.

use crate::context::Context;
use crate::decisions::{HOST, decide, prepare, start_afresh};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::limits::pgbench::Script;
use crate::report::Figures;

/// Decisions a second.
pub(crate) const RATE: f64 = 20.0;

/// Measures the time from a call to the receiver.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(1_200, 200);
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    let pace = Pace::Open { rate: RATE };
    let decided = decide(context, &tasks, &receiver, pace).await?;
    let limit = [context.latency_limit(Script::Write).await?];
    let (calls, latencies) = (decided.calls(), decided.latencies());
    figures.add_beside("duration of a call, p50", calls.p50, "ms", &limit);
    figures.add_beside("duration of a call, p99", calls.p99, "ms", &limit);
    figures.add_beside("call to receiver, p50", latencies.p50, "ms", &limit);
    figures.add_beside("call to receiver, p99", latencies.p99, "ms", &limit);
    decided.add_repeated(figures);
    Ok(())
}
