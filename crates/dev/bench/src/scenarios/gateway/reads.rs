//! Reads through the gateway, beside the same database without the system.

use crate::context::Context;
use crate::decisions::{prepare, start_afresh};
use crate::http::load::{Call, Pace, send};
use crate::http::request::request;
use crate::limits::pgbench::Script;
use crate::report::Figures;
use crate::report::statistics::{Spread, rate};
use crate::system::GATEWAY;

const TASKS: usize = 100;
/// The requests and how many times fewer of them are sent. A user may have two lists at a time, so lists wait for
/// each other.
const READS: [(&str, &str, usize); 3] = [
    ("GET /user", "/user", 1),
    ("GET /people-task/tasks/:id", "/people-task/tasks/:id", 1),
    (
        "GET /people-task/tasks, 20 tasks",
        "/people-task/tasks?limit=20",
        5,
    ),
];

pub(super) async fn measure(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    start_afresh(context).await?;
    let tasks = prepare(context, TASKS, 0, |_| String::new()).await?;
    let count = context.size(30_000, 5_000);
    let limits = [context.limit(Script::Read).await?];
    for (name, path, fewer) in READS {
        let path = path.replace(":id", tasks.first_id()?);
        let bytes = request("GET", &path, Some(&context.user.token), None);
        let before = context.system.usage();
        let requests = vec![bytes; count / fewer];
        let calls = send(context.system.gateway, &requests, Pace::FULL).await?;
        let after = context.system.usage();
        figures.add_beside(name, rate(&calls), "/s", &limits);
        let durations = Spread::of(calls.iter().map(Call::latency));
        figures.add_spread(&format!("{name}, duration"), durations);
        let each = after.cpu_of(GATEWAY, &before) / calls.len() as f64 * 1e6;
        figures.add(format!("{name}, processor of the gateway"), each, "µs");
        figures.add_shares(name, after.shares_since(&before));
    }
    Ok(())
}
