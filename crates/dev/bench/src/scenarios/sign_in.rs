//! Sign-ins, and reads beside them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use serde_json::json;

use crate::context::Context;
use crate::http::{Pace, request, send};
use crate::report::{Figures, Limit, durations, rate};

/// Users who sign in at the same time, each over a connection.
const USERS: usize = 8;
const PACE: Pace = Pace::Closed { connections: USERS };
/// How often a user is read in a second.
const READS: usize = 200;

pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let count = context.pick(160, 32);
    let requests = sign_ins(context, count)?;
    let time = Duration::from_secs(context.pick(15, 4));
    let hashes = hashes_per_second(time).await?;
    let calls = send(context.gateway, &requests, PACE).await?;
    let name = format!("bcrypt of cost {COST} on {THREADS} threads");
    let limit = [Limit::new(&name, hashes)];
    figures.add_beside("sign-ins", rate(&calls), "/s", &limit);
    figures.add_spread("duration of a call", durations(&calls), &[]);
    let pause = tokio::time::sleep(time).map(Ok);
    let (alone, ()) = context.read_beside(READS, pause).await?;
    let sign_ins = send(context.gateway, &requests, PACE);
    let (beside, _) = context.read_beside(READS, sign_ins).await?;
    let name = "GET /user, 200 a second beside sign-ins: duration";
    figures.add_spread(name, beside, &[("without sign-ins", alone)]);
    Ok(())
}

/// The requests of several users, who take turns.
fn sign_ins(context: &Context, count: usize) -> Result<Vec<Vec<u8>>> {
    let mut requests = Vec::new();
    for _ in 0..USERS {
        let user = context.sign_up()?;
        let body = json!({"username": user.email, "password": user.password});
        requests.push(request("POST", "/user/auth", None, Some(&body)));
    }
    Ok(requests.into_iter().cycle().take(count).collect())
}

/// The default cost of the user service.
const COST: u32 = 12;
/// As many as the user service has on two cores.
const THREADS: usize = 2;

/// Hashes on [`THREADS`] threads for at least `time`. Returns the hashes per second.
async fn hashes_per_second(time: Duration) -> Result<f64> {
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
