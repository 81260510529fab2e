//! How long processes take to start, and what they use when they have started, while nothing happens and after a load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::context::{Context, ENGINE, PROCESSES, REST};
use crate::decisions::{burst, start_afresh};
use crate::http::{Pace, request, send};
use crate::report::{Figures, Plot, Spread};
use crate::tables::Roles;
use crate::usage::{CLIENT, MEBIBYTE, Memory, memory_of, memory_sum};

/// Tasks whose descriptions are as long as they may be. All together have 20 MB, so a page is as long as it may be.
const TASKS: usize = 1_000;
const DESCRIPTION: usize = 20_000;
const DELETED: usize = 5;
/// As many lists as a user may have at a time.
const LISTS: Pace = Pace::Closed { connections: 2 };
/// Fewer than one client address may have in flight.
const FLOOD: Pace = Pace::Closed { connections: 128 };
const INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn idle(context: &mut Context, figures: &mut Figures) -> Result<()> {
    tokio::time::sleep(REST).await;
    observe(context, figures, "idle").await;
    start_afresh(context).await?;
    let decided = burst(context, (10_000, 1_000), 1, Pace::FULL).await?;
    let count = decided.calls.len();
    tokio::time::sleep(REST).await;
    observe(context, figures, &format!("after {count} decisions")).await;
    Ok(())
}

async fn observe(context: &Context, figures: &mut Figures, when: &str) {
    // Long enough that work which is repeated every few seconds counts as often as it should.
    let time = Duration::from_secs(context.pick(30, 10));
    let before = context.usage();
    tokio::time::sleep(time).await;
    let after = context.usage();
    let cpu = after.cpu_since(&before);
    let share = |cpu: f64| cpu / time.as_secs_f64() * 100.0;
    // Neither the client nor the flow engine is a part of the system.
    let of_system = cpu
        .iter()
        .filter(|(name, _)| ![CLIENT, ENGINE].contains(name));
    let sum = share(of_system.map(|(_, cpu)| cpu).sum());
    let name = format!("the system with Postgres and RabbitMQ, {when}: processor");
    figures.add(name, sum, "% of a core");
    for (name, used) in &after.processes {
        let share = share(cpu.get(name.as_str()).copied().unwrap_or_default());
        figures.add(format!("{name}, {when}: processor"), share, "% of a core");
        let memory = used.memory as f64 / MEBIBYTE;
        figures.add(format!("{name}, {when}: memory"), memory, "MiB");
    }
}

pub(super) async fn start_up(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let user = &context.user;
    let added = context.add_tasks(TASKS, user, Roles::Creator, DESCRIPTION);
    added.await?;
    measure_starts(context, figures).await?;
    tokio::time::sleep(REST).await;
    let processes = context.processes();
    add_memory(figures, "just started", &memory_of(&processes));
    let rest = Duration::from_secs(context.pick(60, 10));
    let work = async {
        let size = load(context).await?;
        tokio::time::sleep(rest).await;
        anyhow::Ok(size)
    };
    let size = tokio::select! {
        size = work => size?,
        error = watch(&processes, figures) => return Err(error),
    };
    figures.add("a list of the load: size", size, "MiB");
    let name = format!("{} s after a load", rest.as_secs());
    add_memory(figures, &name, &memory_of(&processes));
    context.reset().await
}

/// Starts the processes in the order of their dependencies, each when the one before it is ready.
async fn measure_starts(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..context.pick(5, 2) {
        for name in PROCESSES.iter().rev() {
            context.stop(name)?;
        }
        for name in PROCESSES {
            let time = context.rig.start_process(name, &[])?;
            times.entry(name).or_default().push(time);
        }
    }
    for (name, times) in times {
        let median = Spread::of(times.into_iter()).p50;
        figures.add(format!("{name}, start to ready, p50"), median, "ms");
    }
    Ok(())
}

fn add_memory(figures: &mut Figures, when: &str, memory: &BTreeMap<String, Memory>) {
    for (name, memory) in memory {
        let proportional = format!("{name}, {when}: proportional set size");
        figures.add(proportional, memory.proportional, "MiB");
        let resident = format!("{name}, {when}: resident set size");
        figures.add(resident, memory.resident, "MiB");
    }
    let name = format!("all six, {when}: proportional set size");
    figures.add(name, memory_sum(memory), "MiB");
}

/// Asks for long lists, floods the gateway, and gives each worker something to do. Returns the size of a list in MiB.
async fn load(context: &mut Context) -> Result<f64> {
    let gateway = context.gateway;
    let token = Some(context.user.token.clone());
    let size = ask_for_lists(context).await?;
    let user = request("GET", "/user", token.as_deref(), None);
    send(gateway, &vec![user; context.pick(200_000, 20_000)], FLOOD).await?;
    let forgotten = forgotten_passwords(context.pick(1_000, 100));
    send(gateway, &forgotten, Pace::FULL).await?;
    delete_users(context).await?;
    burst(context, (5_000, 1_000), 1, Pace::FULL).await?;
    Ok(size)
}

/// Asks for the longest pages as two users at the same time, because each may have one at a time. Returns the size of a
/// page in MiB.
async fn ask_for_lists(context: &Context) -> Result<f64> {
    let admin = context.rig.sign_in_admin()?.token;
    let count = context.pick(50, 10);
    let path = "/people-task/tasks?limit=1000";
    let own = vec![request("GET", path, Some(&context.user.token), None); count];
    let path = format!("{path}&role=any");
    let all = vec![request("GET", &path, Some(&admin), None); count];
    let gateway = context.gateway;
    let (own, _) = tokio::try_join!(send(gateway, &own, LISTS), send(gateway, &all, LISTS))?;
    Ok(own.first().map_or(0, |call| call.body.len()) as f64 / MEBIBYTE)
}

/// No user has these addresses, but each request is queued like any other. One address may not ask as often.
fn forgotten_passwords(count: usize) -> Vec<Vec<u8>> {
    let request = |number| {
        let body = json!({"email": format!("nobody.{number}@example.com")});
        request("POST", "/user/forgot-password", None, Some(&body))
    };
    (0..count).map(request).collect()
}

/// Starts deletions, which end while the processes rest.
async fn delete_users(context: &mut Context) -> Result<()> {
    let admin = context.rig.sign_in_admin()?.token;
    let mut requests = Vec::new();
    for _ in 0..DELETED {
        let path = format!("/users/{}", context.sign_up()?.id);
        requests.push(request("DELETE", &path, Some(&admin), None));
    }
    let sent = send(context.gateway, &requests, Pace::FULL).await;
    sent.map(drop)
}

/// Reads the memory again and again, until the load ends. Returns only an error.
async fn watch(processes: &BTreeMap<String, i32>, figures: &mut Figures) -> anyhow::Error {
    let (start, limit) = (Instant::now(), Duration::from_secs(30 * 60));
    while start.elapsed() < limit {
        let seconds = start.elapsed().as_secs_f64();
        let memory = memory_of(processes);
        for (name, memory) in &memory {
            figures.point(Plot::Memory, name, seconds, memory.proportional);
        }
        figures.point(Plot::Memory, "all six", seconds, memory_sum(&memory));
        tokio::time::sleep(INTERVAL).await;
    }
    anyhow!("the load takes longer than {} s", limit.as_secs())
}
