//! Pages and counts of tasks.

use std::time::Duration;

use xtask::output::say;

use crate::context::Context;
use crate::http::load::{Call, Pace, send};
use crate::http::request::request;
use crate::limits::pgbench::Script;
use crate::report::statistics::{Spread, rate};
use crate::report::{Figures, Limit};
use crate::system::tables::{self, People};

const FEW: usize = 1_000;
/// As many lists as a user may have at a time.
const PACE: Pace = Pace::Closed { connections: 2 };
const FULL: Duration = Duration::from_secs(5);
const QUICK: Duration = Duration::from_millis(500);
const SAMPLE: usize = 4;
const MOST: usize = 2_000;
const ROLES: [(&str, &str); 3] = [
    ("mine", "creator"),
    ("to decide", "approver"),
    ("asked by me", "requester"),
];

/// Measures each role of the user, with few and with many tasks.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    let reads = context.limit(Script::Read).await?;
    for count in [FEW, context.size(1_000_000, 100_000)] {
        say(&format!("lists: adding {count} tasks"));
        add_tasks(context, count).await?;
        for (name, role) in ROLES {
            let page = format!("/people-task/tasks?limit=20&role={role}");
            let pending = format!("{page}&filter=status:pending");
            let total = format!("/people-task/tasks-count?role={role}");
            for (what, path) in [
                ("page", page),
                ("page of pending ones", pending),
                ("count", total),
            ] {
                let name = format!("{what}, {name}, of {count} tasks");
                measure(context, figures, &name, &path, &reads).await?;
            }
        }
    }
    context.system.reset().await
}

async fn add_tasks(context: &mut Context, count: usize) -> anyhow::Result<()> {
    context.system.reset().await?;
    let people = People {
        user: &context.user.id,
        address: &context.user.email,
    };
    let database = &context.system.database;
    database.execute(&tables::add_tasks(count, &people)).await?;
    database.execute(tables::VACUUM_TASKS).await
}

/// Sends as many requests as fit into the time, as a few of them show.
async fn measure(
    context: &Context,
    figures: &mut Figures,
    name: &str,
    path: &str,
    reads: &Limit,
) -> anyhow::Result<()> {
    let bytes = request("GET", path, Some(&context.user.token), None);
    let gateway = context.system.gateway;
    let sample = send(gateway, &vec![bytes.clone(); SAMPLE], PACE).await?;
    let time = if context.quick { QUICK } else { FULL };
    let fitting = (SAMPLE..MOST)
        .take_while(|count| *count as f64 / rate(&sample) < time.as_secs_f64())
        .last();
    let requests = vec![bytes; fitting.unwrap_or(SAMPLE)];
    let calls = send(gateway, &requests, PACE).await?;
    figures.add_beside(name, rate(&calls), "/s", std::slice::from_ref(reads));
    let durations = Spread::of(calls.iter().map(Call::latency));
    figures.add(format!("{name}: duration, p50"), durations.p50, "ms");
    Ok(())
}
