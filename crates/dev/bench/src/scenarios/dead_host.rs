//! Many deliveries that wait for a host at which nothing listens.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::context::Context;
use crate::decisions::{Decided, HOST, approve, decide, prepare, start_afresh};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::report::{Figures, Limit};
use crate::scenarios::steady::RATE;

const DEAD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);
/// Nothing listens at the port for discarded data.
const PORT: u16 = 9;
const WEBHOOKS: usize = 10;
const FULL_IDLE: Duration = Duration::from_secs(10);
const QUICK_IDLE: Duration = Duration::from_secs(3);

/// Measures 20 decisions a second without the deliveries, then beside them.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let idle = postgres_idle(context).await;
    let steady = measure_steady(context).await?;
    let count = context.size(10_000, 1_000);
    let url = |_| format!("http://{DEAD}:{PORT}/");
    let tasks = prepare(context, count, WEBHOOKS, url).await?;
    approve(context, &tasks, Pace::FULL).await?;
    let beside = measure_steady(context).await?;
    let waiting = postgres_idle(context).await;
    let deliveries = count * WEBHOOKS;
    let when = format!("beside {deliveries} deliveries to a dead host");
    figures.add_spread_beside(
        &format!("call to receiver {when}"),
        beside.latencies(),
        "without them",
        steady.latencies(),
    );
    let unit = "% of a core";
    let limit = [Limit::new("idle", idle)];
    figures.add_beside("Postgres at 20 a second", postgres(&steady), unit, &limit);
    let name = format!("Postgres at 20 a second {when}");
    figures.add_beside(name, postgres(&beside), unit, &limit);
    let name = format!("Postgres without decisions {when}");
    figures.add_beside(name, waiting, unit, &limit);
    beside.add_repeated(figures);
    // Nothing waits any more for the dead host.
    context.system.reset().await
}

async fn measure_steady(context: &mut Context) -> anyhow::Result<Decided> {
    let receiver = Receiver::start(&[(HOST, Behaviour::Respond)])?;
    let count = context.size(1_200, 200);
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    decide(context, &tasks, &receiver, Pace::Open { rate: RATE }).await
}

/// The processor time of Postgres while 20 decisions a second were made.
fn postgres(decided: &Decided) -> f64 {
    let seconds = decided.calls.len() as f64 / RATE;
    decided.after.0.cpu_of("postgres", &decided.before.0) / seconds * 100.0
}

async fn postgres_idle(context: &Context) -> f64 {
    let time = if context.quick { QUICK_IDLE } else { FULL_IDLE };
    let before = context.system.usage();
    tokio::time::sleep(time).await;
    let used = context.system.usage().cpu_of("postgres", &before);
    used / time.as_secs_f64() * 100.0
}
