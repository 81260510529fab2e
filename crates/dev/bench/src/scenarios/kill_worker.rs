//! One of two workers is killed while both deliver to the same host.

use std::time::{Duration, Instant};

use crate::context::Context;
use crate::decisions::{
    Decided, HOST, approve, expect, finish, measure, prepare, start_afresh, warm_up,
};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::report::Figures;
use crate::system::{System, Worker};

/// Long enough that the killed worker has requests in flight.
const PAUSE: Duration = Duration::from_millis(10);

/// Kills the first worker when a quarter of the webhooks has arrived.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    context.system.start_worker(Worker::Second).await?;
    warm_up(context).await?;
    let receiver = Receiver::start(&[(HOST, Behaviour::RespondAfter(PAUSE))])?;
    let count = context.size(10_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(HOST, seq)).await?;
    expect(&receiver, &tasks);
    let before = measure(context).await?;
    let (calls, killed) = tokio::try_join!(
        approve(context, &tasks, Pace::FULL),
        kill_after(&context.system, &receiver, count / 4)
    )?;
    let decided = finish(context, &tasks, &receiver, before, calls).await?;
    context.system.kill_worker(Worker::First).await?;
    context.system.stop_worker(Worker::Second).await?;
    context.system.start_worker(Worker::First).await?;
    add(figures, &decided, killed, count);
    Ok(())
}

async fn kill_after(
    system: &System,
    receiver: &Receiver,
    arrivals: usize,
) -> anyhow::Result<Instant> {
    // The calls end with an error or with arrivals, and `finish` has a limit if there are none.
    let limit = Instant::now() + Duration::from_secs(60);
    while receiver.arrived() < arrivals && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    system.kill_now(Worker::First)?;
    Ok(Instant::now())
}

fn add(figures: &mut Figures, decided: &Decided, killed: Instant, count: usize) {
    let mut after: Vec<Instant> = decided
        .deliveries
        .iter()
        .map(|(_, arrival)| *arrival)
        .filter(|arrival| *arrival > killed)
        .collect();
    after.sort_unstable();
    let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
    let first = after.first().map_or(0.0, |first| seconds(killed, *first));
    let last = after.last().map_or(0.0, |last| seconds(killed, *last));
    let gaps = after.windows(2).filter_map(|pair| match pair {
        [one, next] => Some(seconds(*one, *next)),
        _ => None,
    });
    let longest = gaps.fold(first, f64::max);
    figures.add("kill to the next webhook", first * 1e3, "ms");
    figures.add("longest pause after the kill", longest * 1e3, "ms");
    figures.add("kill to the last webhook", last, "s");
    let lost = count - decided.deliveries.len();
    figures.add("webhooks lost", lost as f64, "");
    decided.add_repeated(figures);
}
