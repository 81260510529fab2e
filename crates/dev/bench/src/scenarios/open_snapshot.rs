//! Another session of the database holds a snapshot, so no old row version can be removed.

use crate::context::Context;
use crate::decisions::{Decided, HOST, decide, prepare, start_afresh};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::report::{Figures, Limit};

/// Measures decisions without the snapshot, then with it.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    let without = measure_burst(context, false).await?;
    let with = measure_burst(context, true).await?;
    let of = "without it";
    let limit = [Limit::new(of, without.delivered())];
    let name = "webhooks with an open snapshot, end to end";
    figures.add_beside(name, with.delivered(), "/s", &limit);
    let limit = [Limit::new(of, without.accepted())];
    let name = "decisions accepted with an open snapshot";
    figures.add_beside(name, with.accepted(), "/s", &limit);
    let (times, before) = (with.latencies(), without.latencies());
    figures.add_spread_beside("decision to receiver", times, of, before);
    with.add_repeated(figures);
    Ok(())
}

async fn measure_burst(context: &mut Context, open: bool) -> anyhow::Result<Decided> {
    start_afresh(context).await?;
    let snapshot = if open {
        Some(context.system.database.open_snapshot().await?)
    } else {
        None
    };
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(10_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    let decided = decide(context, &tasks, &receiver, Pace::FULL).await;
    drop(snapshot);
    decided
}
