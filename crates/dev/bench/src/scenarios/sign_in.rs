//! Sign-ins, and reads beside them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::context::Context;
use crate::http::{Pace, request, send};
use crate::report::{Figures, Limit, Spread, durations, rate};

/// Users who sign in at the same time, each over a connection.
const USERS: usize = 8;
const PACE: Pace = Pace::Closed { connections: USERS };
/// How often a user is read beside the sign-ins.
const READS: Pace = Pace::Open { rate: 200.0 };
/// More sign-ins than fit beside the reads, which end first.
const MORE: usize = 100;

pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let count = context.pick(160, 32);
    let requests = sign_ins(context, count).await?;
    let time = Duration::from_secs(context.pick(15, 4));
    let hashes = hashes_per_second(time).await?;
    let calls = send(context.gateway, &requests, PACE).await?;
    let name = format!("bcrypt of cost {COST} on {THREADS} threads");
    let limit = [Limit::new(&name, hashes)];
    figures.add_beside("sign-ins", rate(&calls), "/s", &limit);
    figures.add_spread("duration of a call", durations(&calls), &[]);
    measure_reads(context, figures, &requests).await
}

/// The requests of several users, who take turns.
async fn sign_ins(context: &mut Context, count: usize) -> Result<Vec<Vec<u8>>> {
    let mut requests = Vec::new();
    for _ in 0..USERS {
        let user = context.sign_up()?;
        let body = json!({"username": user.email, "password": user.password});
        requests.push(request("POST", "/user/auth", None, Some(&body)));
    }
    Ok(requests.into_iter().cycle().take(count).collect())
}

async fn measure_reads(
    context: &Context,
    figures: &mut Figures,
    requests: &[Vec<u8>],
) -> Result<()> {
    let alone = read(context).await?;
    let sign_ins = requests.iter().collect::<Vec<_>>().repeat(MORE);
    let beside = tokio::select! {
        spread = read(context) => spread?,
        calls = send(context.gateway, &sign_ins, PACE) => {
            bail!("{} sign-ins ended before the reads", calls?.len())
        }
    };
    let name = "GET /user, 200 a second beside sign-ins: duration";
    figures.add_spread(name, beside, &[("without sign-ins", alone)]);
    Ok(())
}

async fn read(context: &Context) -> Result<Spread> {
    let count = context.pick(3_000, 800);
    let bytes = request("GET", "/user", Some(&context.user.token), None);
    let calls = send(context.gateway, &vec![&bytes; count], READS).await?;
    Ok(durations(&calls))
}

/// The default cost of the user service.
pub(crate) const COST: u32 = 12;
/// As many as the user service has on two cores.
pub(crate) const THREADS: usize = 2;

/// Hashes on [`THREADS`] threads for at least `time`. Returns the hashes per second.
pub(crate) async fn hashes_per_second(time: Duration) -> Result<f64> {
    let start = Instant::now();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| tokio::task::spawn_blocking(move || hash_until(start + time)))
        .collect();
    let mut rate = 0.0;
    for thread in threads {
        rate += thread.await.context("hashing")??;
    }
    Ok(rate)
}

/// Returns the hashes per second of one thread.
fn hash_until(end: Instant) -> Result<f64> {
    let start = Instant::now();
    let mut hashes = 0.0;
    while Instant::now() < end {
        bcrypt::hash("a long enough password", COST)?;
        hashes += 1.0;
    }
    Ok(hashes / start.elapsed().as_secs_f64())
}
