//! The deletion of a user with many tasks.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::FutureExt as _;
use rig::{Client, Person, say};
use tokio::task::spawn_blocking;

use crate::context::Context;
use crate::http::{Call, Pace, request, send};
use crate::report::{Figures, Limit, Spread};
use crate::tables::{self, Roles};

const RATE: f64 = 50.0;
/// Reads of a second at this rate.
const BATCH: usize = 50;
const ALONE: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(15 * 60);
const DESCRIPTION: usize = 42;

/// Deletes the same tasks by a statement and by the API.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let count = context.pick(200_000, 10_000);
    let leaver = context.sign_up()?;
    let admin = context.rig.sign_in_admin()?.token;
    let pause = tokio::time::sleep(ALONE).map(Ok);
    let (alone, ()) = read_beside(context, pause).await?;
    let by_hand = delete_by_hand(context, &leaver, count).await?;
    say(&format!("deletion: adding {count} tasks"));
    let added = context.add_tasks(count, &leaver, Roles::Creator, DESCRIPTION);
    added.await?;
    let client = context.rig.client();
    let deletion = spawn_blocking(move || delete_by_api(&client, &leaver, &admin));
    let deletion = async { deletion.await? };
    let (beside, [seconds, statuses]) = read_beside(context, deletion).await?;
    let name = format!("a user with {count} tasks, duration");
    figures.add_beside(name, seconds, "s", &by_hand);
    figures.add("different statuses meanwhile", statuses, "");
    let name = "GET /user, 50 a second beside it: duration";
    figures.add_spread(name, beside, &[("without a deletion", alone)]);
    context.reset().await
}

/// Returns the seconds of a statement that deletes the tasks, and of two that also delete their states.
async fn delete_by_hand(context: &Context, user: &Person, count: usize) -> Result<[Limit; 2]> {
    say(&format!("deletion: adding {count} tasks to delete by hand"));
    let added = context.add_tasks(count, user, Roles::Creator, DESCRIPTION);
    added.await?;
    let start = Instant::now();
    context.execute(&tables::delete_states(&user.id)).await?;
    let between = Instant::now();
    context.execute(&tables::delete_tasks(&user.id)).await?;
    let tasks = between.elapsed().as_secs_f64();
    let both = start.elapsed().as_secs_f64();
    Ok([
        Limit::new("DELETE FROM tasks", tasks),
        Limit::new("with their states", both),
    ])
}

/// Returns the seconds of the deletion, and how many different statuses it had until it ended.
fn delete_by_api(client: &Client, user: &Person, admin: &str) -> Result<[f64; 2]> {
    let start = Instant::now();
    let path = client.start_deletion(admin, &user.id)?;
    let mut statuses = HashSet::new();
    client.wait_deleted(&path, admin, LIMIT, |status| {
        statuses.insert(status.to_string());
    })?;
    // The last one says that it is completed.
    let meanwhile = statuses.len() - 1;
    Ok([start.elapsed().as_secs_f64(), meanwhile as f64])
}

/// Reads a user at a fixed rate, a second at a time, until `work` has ended.
async fn read_beside<T>(
    context: &Context,
    work: impl Future<Output = Result<T>>,
) -> Result<(Spread, T)> {
    let bytes = request("GET", "/user", Some(&context.user.token), None);
    let done = Cell::new(false);
    let work = work.inspect(|_| done.set(true));
    let read = async {
        let mut latencies = Vec::new();
        while !done.get() {
            let pace = Pace::Open { rate: RATE };
            let calls = send(context.gateway, &[&bytes; BATCH], pace).await?;
            latencies.extend(calls.iter().map(Call::latency));
        }
        anyhow::Ok(Spread::of(latencies.into_iter()))
    };
    tokio::try_join!(read, work)
}
