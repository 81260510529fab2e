//! Reads through the gateway.

use crate::context::Context;
use crate::decisions::{prepare, start_afresh};
use crate::http::load::{Call, Pace, send};
use crate::http::request::request;
use crate::limits::pgbench::Script;
use crate::limits::proxies;
use crate::report::statistics::{Spread, rate};
use crate::report::{Figures, Limit};

const TASKS: usize = 100;

/// Measures a user, a task and a list, each with a token.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let tasks = prepare(context, TASKS, 0, |_| String::new()).await?;
    let task = format!("/people-task/tasks/{}", tasks.first_id()?);
    let count = context.size(30_000, 5_000);
    let proxies = proxies::measure(&context.workspace, count).await?;
    let reads = context.limit(Script::Read).await?;
    let direct = [Limit::new("nginx without a proxy", proxies.direct)];
    figures.add_beside("HAProxy in front of nginx", proxies.haproxy, "/s", &direct);
    figures.add_beside("nginx in front of nginx", proxies.nginx, "/s", &direct);
    let limits = [
        Limit::new("HAProxy", proxies.haproxy),
        Limit::new("nginx", proxies.nginx),
        reads,
    ];
    for (name, path, count) in [
        ("GET /user", "/user", count),
        ("GET /people-task/tasks/:id", &task, count),
        // One user may have two lists at a time, so these wait for each other.
        (
            "GET /people-task/tasks, 20 tasks",
            "/people-task/tasks?limit=20",
            count / 5,
        ),
    ] {
        let requests = vec![request("GET", path, Some(&context.user.token), None); count];
        let before = context.system.usage();
        let calls = send(context.system.gateway, &requests, Pace::FULL).await?;
        let cpu = context.system.usage().cpu_of("gateway", &before);
        figures.add_beside(name, rate(&calls), "/s", &limits);
        let durations = Spread::of(calls.iter().map(Call::latency));
        figures.add_spread(&format!("{name}, duration"), durations);
        let each = cpu / count as f64 * 1e6;
        figures.add(format!("{name}, processor of the gateway"), each, "µs");
    }
    Ok(())
}
