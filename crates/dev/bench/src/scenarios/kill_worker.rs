//! One of two workers is killed while both deliver to the same host.

use std::time::{Duration, Instant};

use crate::context::{Context, SECOND_WORKER, WORKER};
use crate::decisions::{Decided, approve, finish, measure, prepare, start_afresh, warm_up};
use crate::http::load::Pace;
use crate::http::receiver::{Behaviour, Receiver};
use crate::report::Figures;

/// Long enough that the killed worker has requests in flight.
const PAUSE: Duration = Duration::from_millis(10);

/// Kills the first worker when a quarter of the webhooks has arrived, several times: how long the host waits depends on
/// how many of its places the killed worker had.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    let rounds = context.pick(5, 1);
    let mut pauses = Vec::new();
    for _ in 0..rounds {
        pauses.push(kill_once(context).await?);
    }
    let longest = |read: fn(&Pauses) -> f64| pauses.iter().map(read).fold(0.0, f64::max);
    figures.add("kills", rounds as f64, "");
    let next = longest(|pauses| pauses.next);
    figures.add("kill to the next webhook, longest", next, "s");
    let any = longest(|pauses| pauses.longest);
    figures.add("longest pause after the kill", any, "s");
    let last = longest(|pauses| pauses.last);
    figures.add("kill to the last webhook, longest", last, "s");
    let lost: usize = pauses.iter().map(|pauses| pauses.lost).sum();
    figures.add("webhooks lost", lost as f64, "");
    let repeated: usize = pauses.iter().map(|pauses| pauses.repeated).sum();
    figures.add("webhooks that arrived twice", repeated as f64, "");
    Ok(())
}

/// How long the host waited after a kill, in seconds, and how many webhooks were lost and repeated.
struct Pauses {
    next: f64,
    longest: f64,
    last: f64,
    lost: usize,
    repeated: usize,
}

async fn kill_once(context: &mut Context) -> anyhow::Result<Pauses> {
    start_afresh(context).await?;
    context.rig.start_process(SECOND_WORKER)?;
    warm_up(context).await?;
    let receiver = Receiver::start(0, 1, Behaviour::RespondAfter(PAUSE))?;
    let count = context.pick(4_000, 2_000);
    let tasks = prepare(context, count, 1, |seq| receiver.url(seq)).await?;
    receiver.expect(tasks.seqs.clone());
    let before = measure(context).await?;
    let (calls, killed) = tokio::try_join!(
        approve(context, &tasks, Pace::FULL),
        kill_after(context, &receiver, count / 4)
    )?;
    let decided = finish(context, &tasks, &receiver, before, calls).await?;
    Ok(pauses(&decided, killed, count))
}

async fn kill_after(
    context: &Context,
    receiver: &Receiver,
    arrivals: usize,
) -> anyhow::Result<Instant> {
    // The calls end with an error or with arrivals, and `finish` has a limit if there are none.
    let limit = Instant::now() + Duration::from_secs(60);
    while receiver.arrivals().first.len() < arrivals && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    context.rig.process(WORKER)?.kill_now();
    Ok(Instant::now())
}

fn pauses(decided: &Decided, killed: Instant, count: usize) -> Pauses {
    let arrivals = decided.deliveries.iter().map(|(_, arrival)| *arrival);
    let after = arrivals.filter(|arrival| *arrival > killed);
    let after = after.map(|arrival| (arrival - killed).as_secs_f64());
    let mut after: Vec<f64> = after.collect();
    after.sort_unstable_by(f64::total_cmp);
    let next = after.first().copied().unwrap_or_default();
    let gaps = after
        .array_windows()
        .map(|[one, following]| following - one);
    Pauses {
        next,
        longest: gaps.fold(next, f64::max),
        last: after.last().copied().unwrap_or_default(),
        lost: count - decided.deliveries.len(),
        repeated: decided.repeated,
    }
}
