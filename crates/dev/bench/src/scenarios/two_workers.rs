//! Receivers that take a while, with one worker and with two.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::context::Context;
use crate::decisions::{Decided, decide, prepare, start_afresh, warm_up};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::report::{Figures, Limit};
use crate::scenarios::slow_receivers::host_of;
use crate::system::Worker;

const PAUSE: Duration = Duration::from_millis(50);
const HOSTS: u8 = 4;
/// The default of `WEBHOOK_MAX_IN_FLIGHT_PER_HOST`.
const IN_FLIGHT: f64 = 16.0;

/// Measures the same burst with one worker and with two.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let one = measure_burst(context).await?;
    start_afresh(context).await?;
    context.system.start_worker(Worker::Second).await?;
    warm_up(context).await?;
    let two = measure_burst(context).await?;
    context.system.stop_worker(Worker::Second).await?;
    let most = f64::from(HOSTS) * IN_FLIGHT / PAUSE.as_secs_f64();
    let receivers = Limit::new("16 at a time to each host", most);
    let limits = [receivers.clone()];
    figures.add_beside("webhooks, one worker", one.delivered(), "/s", &limits);
    let limits = [receivers, Limit::new("one worker", one.delivered())];
    figures.add_beside("webhooks, two workers", two.delivered(), "/s", &limits);
    let repeated = one.repeated + two.repeated;
    figures.add("webhooks that arrived twice", repeated as f64, "");
    Ok(())
}

async fn measure_burst(context: &mut Context) -> anyhow::Result<Decided> {
    let hosts: Vec<Ipv4Addr> = (1..=HOSTS)
        .map(|host| Ipv4Addr::new(127, 0, 2, host))
        .collect();
    let behaviours: Vec<_> = hosts
        .iter()
        .map(|host| (*host, Behaviour::RespondAfter(PAUSE)))
        .collect();
    let receiver = Receiver::start(&behaviours)?;
    let count = context.size(10_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| {
        receiver.url(host_of(seq, &hosts), seq)
    });
    let tasks = tasks.await?;
    decide(context, &tasks, &receiver, Pace::FULL).await
}
