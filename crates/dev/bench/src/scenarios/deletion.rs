//! The deletion of a user with many tasks.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::FutureExt as _;
use rig::{Person, say};
use serde_json::Value;

use crate::context::Context;
use crate::http::{Call, Connection, Pace, request, send};
use crate::report::{Figures, Limit, Spread};
use crate::tables::{self, Roles};

const RATE: f64 = 50.0;
/// Reads of a second at this rate.
const BATCH: usize = 50;
const ALONE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
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
    let deletion = delete_by_api(context, &leaver, &admin);
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
async fn delete_by_api(context: &Context, user: &Person, admin: &str) -> Result<[f64; 2]> {
    let mut connection = Connection::open(context.gateway).await?;
    let path = format!("/users/{}", user.id);
    let delete = request("DELETE", &path, Some(admin), None);
    let start = Instant::now();
    let ticket = text(&connection.call(&delete).await?.json()?, "ticket")?;
    let path = format!("{path}/delete-status/{ticket}");
    let poll = request("GET", &path, Some(admin), None);
    let mut statuses = HashSet::new();
    loop {
        let status = connection.call(&poll).await?.json()?;
        let state = text(&status, "status")?;
        if state != "in-progress" {
            ensure!(state == "completed", "the deletion ended: {status}");
            break;
        }
        statuses.insert(status.to_string());
        ensure!(start.elapsed() < LIMIT, "the deletion takes too long");
        tokio::time::sleep(POLL).await;
    }
    Ok([start.elapsed().as_secs_f64(), statuses.len() as f64])
}

fn text(body: &Value, field: &str) -> Result<String> {
    let value = body.get(field).and_then(Value::as_str);
    let value = value.with_context(|| format!("the API returned no {field}: {body}"))?;
    Ok(value.to_owned())
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
