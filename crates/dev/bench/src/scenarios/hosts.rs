//! Hosts that do not respond or take a while, and workers that share a host.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::context::{Context, SECOND_WORKER, WORKER};
use crate::decisions::{
    Decided, approve, burst, decide, finish, measure, prepare, start_afresh, warm_up,
};
use crate::http::{Behaviour, Pace, Receiver};
use crate::report::{Figures, Limit};
use crate::scenarios::deliveries::{RATE, measure_steady};

const WEBHOOKS: usize = 10;
/// Decisions for the healthy host, and how many in a quick run.
const HEALTHY: (usize, usize) = (2_000, 1_000);
const HANGING: u8 = 60;
/// Twice as many as a host may have in flight at once.
const FOR_EACH: usize = 32;
const DEAD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);
/// Nothing listens at the port for discarded data.
const DEAD_PORT: u16 = 9;
const SLOW: u8 = 4;
const PAUSE: Duration = Duration::from_millis(50);
/// The default of `WEBHOOK_MAX_IN_FLIGHT_PER_HOST`.
const IN_FLIGHT: f64 = 16.0;
/// Long enough that a killed worker has requests in flight.
const SHORT_PAUSE: Duration = Duration::from_millis(10);
/// What is measured after each kill.
const PAUSES: [&str; 3] = [
    "kill to the next webhook, longest",
    "longest pause after the kill",
    "kill to the last webhook, longest",
];

/// A healthy host alone, and beside others that hang.
pub(super) async fn slow_receivers(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let alone = burst(context, HEALTHY, 1, Pace::FULL).await?;
    start_afresh(context).await?;
    let receiver = Receiver::start(1, HANGING, Behaviour::Hang)?;
    let count = usize::from(HANGING) * FOR_EACH / WEBHOOKS;
    let url = |seq| receiver.unrecorded_url(seq);
    let tasks = prepare(context, count, WEBHOOKS, url).await?;
    approve(context, &tasks, Pace::FULL).await?;
    let beside = burst(context, HEALTHY, 1, Pace::FULL).await?;
    // Nothing waits any more for the hosts that are about to disappear.
    context.reset().await?;
    let limit = [Limit::new("without them", alone.delivered())];
    let name = format!("webhooks of a healthy host beside {HANGING} that hang");
    figures.add_beside(name, beside.delivered(), "/s", &limit);
    let (times, before) = (beside.latencies(), alone.latencies());
    figures.add_spread("decision to receiver", times, &[("without them", before)]);
    beside.add_repeated(figures);
    warm_up(context).await
}

/// 20 decisions a second alone, then beside many deliveries to a host at which nothing listens.
pub(super) async fn dead_host(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let idle = postgres_idle(context).await;
    let steady = measure_steady(context).await?;
    let count = context.pick(10_000, 1_000);
    let url = |_| format!("http://{DEAD}:{DEAD_PORT}/");
    let tasks = prepare(context, count, WEBHOOKS, url).await?;
    approve(context, &tasks, Pace::FULL).await?;
    let beside = measure_steady(context).await?;
    let waiting = postgres_idle(context).await;
    let deliveries = count * WEBHOOKS;
    let when = format!("beside {deliveries} deliveries to a dead host");
    let name = format!("call to receiver {when}");
    let (times, before) = (beside.latencies(), steady.latencies());
    figures.add_spread(&name, times, &[("without them", before)]);
    let unit = "% of a core";
    let limit = [Limit::new("idle", idle)];
    figures.add_beside("Postgres at 20 a second", postgres(&steady), unit, &limit);
    let name = format!("Postgres at 20 a second {when}");
    figures.add_beside(name, postgres(&beside), unit, &limit);
    let name = format!("Postgres without decisions {when}");
    figures.add_beside(name, waiting, unit, &limit);
    beside.add_repeated(figures);
    // Nothing waits any more for the dead host.
    context.reset().await
}

/// The processor time of Postgres while 20 decisions a second were made.
fn postgres(decided: &Decided) -> f64 {
    let seconds = decided.calls.len() as f64 / RATE;
    decided.after.0.cpu_of("postgres", &decided.before.0) / seconds * 100.0
}

async fn postgres_idle(context: &Context) -> f64 {
    let time = Duration::from_secs(context.pick(10, 3));
    let before = context.usage();
    tokio::time::sleep(time).await;
    let used = context.usage().cpu_of("postgres", &before);
    used / time.as_secs_f64() * 100.0
}

/// The same burst to hosts that take a while, with one worker and with two.
pub(super) async fn two_workers(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let one = measure_slow(context).await?;
    start_afresh(context).await?;
    context.rig.start_process(SECOND_WORKER, &[])?;
    warm_up(context).await?;
    let two = measure_slow(context).await?;
    context.stop(SECOND_WORKER)?;
    let most = f64::from(SLOW) * IN_FLIGHT / PAUSE.as_secs_f64();
    let receivers = Limit::new("16 at a time to each host", most);
    let limits = [receivers.clone()];
    figures.add_beside("webhooks, one worker", one.delivered(), "/s", &limits);
    let limits = [receivers, Limit::new("one worker", one.delivered())];
    figures.add_beside("webhooks, two workers", two.delivered(), "/s", &limits);
    let repeated = one.repeated + two.repeated;
    figures.add("webhooks that arrived twice", repeated as f64, "");
    Ok(())
}

async fn measure_slow(context: &mut Context) -> Result<Decided> {
    let receiver = Receiver::start(2, SLOW, Behaviour::RespondAfter(PAUSE))?;
    let count = context.pick(10_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(seq)).await?;
    decide(context, &tasks, &receiver, Pace::FULL).await
}

/// Kills the first worker when a quarter of the webhooks has arrived, several times: how long the host waits depends on
/// how many of its places the killed worker had.
pub(super) async fn kill_worker(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let rounds = context.pick(5, 1);
    let (mut longest, mut repeated) = ([0.0_f64; 3], 0);
    for _ in 0..rounds {
        let (decided, killed) = kill_once(context).await?;
        let pauses = longest.iter_mut().zip(pauses(&decided, killed));
        pauses.for_each(|(longest, pause)| *longest = longest.max(pause));
        repeated += decided.repeated;
    }
    figures.add("kills", rounds as f64, "");
    for (name, seconds) in PAUSES.into_iter().zip(longest) {
        figures.add(name, seconds, "s");
    }
    figures.add("webhooks that arrived twice", repeated as f64, "");
    Ok(())
}

async fn kill_once(context: &mut Context) -> Result<(Decided, Instant)> {
    start_afresh(context).await?;
    context.rig.start_process(SECOND_WORKER, &[])?;
    warm_up(context).await?;
    let receiver = Receiver::start(0, 1, Behaviour::RespondAfter(SHORT_PAUSE))?;
    let count = context.pick(4_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(seq)).await?;
    let before = measure(context).await?;
    let (calls, killed) = tokio::try_join!(
        approve(context, &tasks, Pace::FULL),
        kill_after(context, &receiver, count / 4)
    )?;
    let decided = finish(context, &tasks, &receiver, before, calls).await?;
    Ok((decided, killed))
}

async fn kill_after(context: &Context, receiver: &Receiver, arrivals: usize) -> Result<Instant> {
    // The calls end with an error or with arrivals, and `finish` has a limit if there are none.
    let limit = Instant::now() + Duration::from_secs(60);
    while receiver.arrivals().first.len() < arrivals && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    context.rig.process(WORKER)?.kill_now();
    Ok(Instant::now())
}

/// How long the host waited after a kill, in seconds: see [`PAUSES`].
fn pauses(decided: &Decided, killed: Instant) -> [f64; 3] {
    let arrivals = decided.deliveries.iter().map(|(_, arrival)| *arrival);
    let after = arrivals.filter(|arrival| *arrival > killed);
    let after = after.map(|arrival| (arrival - killed).as_secs_f64());
    let mut after: Vec<f64> = after.collect();
    after.sort_unstable_by(f64::total_cmp);
    let next = after.first().copied().unwrap_or_default();
    let gaps = after
        .array_windows()
        .map(|[one, following]| following - one);
    let last = after.last().copied().unwrap_or_default();
    [next, gaps.fold(next, f64::max), last]
}
