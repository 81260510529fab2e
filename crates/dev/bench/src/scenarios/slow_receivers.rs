//! Hosts that never respond beside a healthy one.

use std::net::Ipv4Addr;

use crate::context::Context;
use crate::decisions::{Decided, HOST, approve, decide, prepare, start_afresh, warm_up};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::report::{Figures, Limit};

const HANGING: usize = 60;
/// Twice as many as a host may have in flight at once.
const FOR_EACH: usize = 32;
const WEBHOOKS: usize = 10;

/// Measures the healthy host alone, and beside the others.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let alone = measure_healthy(context).await?;
    start_afresh(context).await?;
    let hosts = hanging_hosts();
    let behaviours: Vec<_> = hosts.iter().map(|host| (*host, Behaviour::Hang)).collect();
    let receiver = Receiver::start(&behaviours)?;
    let count = HANGING * FOR_EACH / WEBHOOKS;
    let tasks = prepare(context, count, WEBHOOKS, |seq| {
        receiver.unrecorded_url(host_of(seq, &hosts))
    });
    let tasks = tasks.await?;
    approve(context, &tasks, Pace::FULL).await?;
    let beside = measure_healthy(context).await?;
    // Nothing waits any more for the hosts that are about to disappear.
    context.system.reset().await?;
    add(figures, &alone, &beside);
    warm_up(context).await
}

async fn measure_healthy(context: &mut Context) -> anyhow::Result<Decided> {
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(2_000, 1_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    decide(context, &tasks, &receiver, Pace::FULL).await
}

fn add(figures: &mut Figures, alone: &Decided, beside: &Decided) {
    let limit = [Limit::new("without them", alone.delivered())];
    let name = format!("webhooks of a healthy host beside {HANGING} that hang");
    figures.add_beside(name, beside.delivered(), "/s", &limit);
    figures.add_spread_beside(
        "decision to receiver",
        beside.latencies(),
        "without them",
        alone.latencies(),
    );
    beside.add_repeated(figures);
}

/// Addresses of the network 127.0.1.0/24.
fn hanging_hosts() -> Vec<Ipv4Addr> {
    (1..=HANGING)
        .filter_map(|host| Some(Ipv4Addr::new(127, 0, 1, u8::try_from(host).ok()?)))
        .collect()
}

/// The host of a webhook: each gets as many as the others.
pub(crate) fn host_of(seq: u64, hosts: &[Ipv4Addr]) -> Ipv4Addr {
    let index = usize::try_from(seq).unwrap_or_default() % hosts.len().max(1);
    hosts.get(index).copied().unwrap_or(HOST)
}
