//! The deletion of a user with many tasks.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rig::client::Person;
use rig::output::say;
use serde_json::Value;

use crate::context::Context;
use crate::http::connection::Connection;
use crate::http::connection::request;
use crate::http::load::{Call, Pace, send};
use crate::report::Spread;
use crate::report::{Figures, Limit};
use crate::system::tables::{self, Generated, Roles};

const RATE: f64 = 50.0;
/// Reads of a second at this rate.
const BATCH: usize = 50;
const POLL: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_secs(15 * 60);
const DESCRIPTION: usize = 42;

/// Deletes the same tasks by a statement and by the API.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    let count = context.size(200_000, 10_000);
    let leaver = context.sign_up()?;
    let admin = context.sign_in_admin()?;
    let done = Cell::new(false);
    let alone = tokio::try_join!(read_until(context, &done), stop_soon(&done))?.0;
    let tasks = Generated {
        count,
        user: &leaver,
        roles: Roles::Creator,
        description: DESCRIPTION,
    };
    let by_hand = delete_by_hand(context, tasks).await?;
    say(&format!("deletion: adding {count} tasks"));
    context.add_tasks(tasks).await?;
    let done = Cell::new(false);
    let (beside, deleted) = tokio::try_join!(
        read_until(context, &done),
        delete_by_api(context, &leaver, &admin, &done)
    )?;
    let name = format!("a user with {count} tasks, duration");
    figures.add_beside(name, deleted.seconds, "s", &by_hand);
    figures.add("different statuses meanwhile", deleted.statuses as f64, "");
    let name = "GET /user, 50 a second beside it: duration";
    figures.add_spread_beside(name, beside, "without a deletion", alone);
    context.system.reset().await
}

/// Returns the seconds of a statement that deletes the tasks, and of two that also delete their states.
async fn delete_by_hand(context: &Context, generated: Generated<'_>) -> anyhow::Result<[Limit; 2]> {
    let Generated { count, user, .. } = generated;
    say(&format!("deletion: adding {count} tasks to delete by hand"));
    context.add_tasks(generated).await?;
    let database = &context.system.database;
    let start = Instant::now();
    database.execute(&tables::delete_states(&user.id)).await?;
    let between = Instant::now();
    database.execute(&tables::delete_tasks(&user.id)).await?;
    let tasks = between.elapsed().as_secs_f64();
    let both = start.elapsed().as_secs_f64();
    Ok([
        Limit::new("DELETE FROM tasks", tasks),
        Limit::new("with their states", both),
    ])
}

/// What a deletion by the API took.
struct Deleted {
    seconds: f64,
    /// How many different statuses it had until it ended.
    statuses: usize,
}

async fn delete_by_api(
    context: &Context,
    user: &Person,
    admin: &str,
    done: &Cell<bool>,
) -> anyhow::Result<Deleted> {
    let mut connection = Connection::open(context.system.gateway).await?;
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
    done.set(true);
    Ok(Deleted {
        seconds: start.elapsed().as_secs_f64(),
        statuses: statuses.len(),
    })
}

fn text(body: &Value, field: &str) -> anyhow::Result<String> {
    let value = body.get(field).and_then(Value::as_str);
    let value = value.with_context(|| format!("the API returned no {field}: {body}"))?;
    Ok(value.to_owned())
}

/// Reads a user at a fixed rate, a second at a time, until `done`.
async fn read_until(context: &Context, done: &Cell<bool>) -> anyhow::Result<Spread> {
    let bytes = request("GET", "/user", Some(&context.user.token), None);
    let (start, mut latencies) = (Instant::now(), Vec::new());
    while !done.get() && start.elapsed() < LIMIT {
        let pace = Pace::Open { rate: RATE };
        let calls = send(context.system.gateway, &[&bytes; BATCH], pace).await?;
        latencies.extend(calls.iter().map(Call::latency));
    }
    Ok(Spread::of(latencies.into_iter()))
}

async fn stop_soon(done: &Cell<bool>) -> anyhow::Result<()> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    done.set(true);
    Ok(())
}
