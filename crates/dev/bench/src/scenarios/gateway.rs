//! Requests through the gateway: a constant response of nginx beside other proxies, so that only the proxies differ, then
//! reads of the system beside the same database without it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use rig::Person;

use crate::context::{Context, GATEWAY, READ, SECOND_GATEWAY, fitting};
use crate::decisions::{prepare, start_afresh};
use crate::http::{Call, Pace, request, send};
use crate::proxies::{HAPROXY, NGINX, Proxies, TOKEN};
use crate::report::{Figures, Limit, Spread, durations, rate};
use crate::usage::CLIENT;

/// A route of the gateway that reads, and that needs a token or a secret. nginx responds to every path.
const PATH: &str = "/people-task/tasks/0123456789abcdef01234567";
/// The proxies take turns, so that what else the machine does affects all of them.
const ROUNDS: usize = 3;
const MOST: usize = 1_000_000;
const VERIFYING: &str = "HAProxy with ES256 in front of nginx";
const GATEWAY_ALONE: &str = "gateway in front of nginx";

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

/// A way to the constant response, and what was measured there.
struct Way {
    name: &'static str,
    process: &'static str,
    address: SocketAddr,
    bytes: Vec<u8>,
    /// Requests of a round.
    count: usize,
    seconds: f64,
    latencies: Vec<Duration>,
    /// Seconds of processor time of the proxy's process. nginx is the origin, too.
    proxy: f64,
    /// Seconds of processor time of the client.
    client: f64,
}

impl Way {
    fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }
}

pub(super) async fn run(context: &mut Context, figures: &mut Figures) -> Result<()> {
    measure_proxies(context, figures).await?;
    measure_reads(context, figures).await
}

async fn measure_proxies(context: &Context, figures: &mut Figures) -> Result<()> {
    let proxies = Proxies::start(&context.rig.workspace).await?;
    // It has the system's keys and revocations.
    let rig = &context.rig;
    let service = format!("http://{}", proxies.origin);
    rig.start_process(SECOND_GATEWAY, &[("PEOPLE_TASK_SERVICE_URL", &service)])?;
    let gateway = rig.process(SECOND_GATEWAY)?.address()?.parse()?;
    let mut ways = ways(&proxies, gateway, &context.user);
    let time = Duration::from_millis(context.pick(3_000, 500));
    for way in &mut ways {
        way.count = fitting(way.address, &way.bytes, Pace::FULL, time, MOST).await?;
    }
    for _ in 0..ROUNDS {
        for way in &mut ways {
            measure_once(context, &proxies, way).await?;
        }
    }
    context.stop(SECOND_GATEWAY)?;
    report(&ways, figures);
    Ok(())
}

fn ways(proxies: &Proxies, gateway: SocketAddr, user: &Person) -> [Way; 5] {
    let way = |name, process, address, token: &str| Way {
        name,
        process,
        address,
        bytes: request("GET", PATH, Some(token), None),
        count: 0,
        seconds: 0.0,
        latencies: Vec::new(),
        proxy: 0.0,
        client: 0.0,
    };
    let (at, token) = (proxies, &user.token);
    [
        way("nginx without a proxy", NGINX, at.origin, token),
        way("HAProxy in front of nginx", HAPROXY, at.haproxy, token),
        way(VERIFYING, HAPROXY, at.verifying, TOKEN),
        way("nginx in front of nginx", NGINX, at.nginx, token),
        way(GATEWAY_ALONE, SECOND_GATEWAY, gateway, token),
    ]
}

async fn measure_once(context: &Context, proxies: &Proxies, way: &mut Way) -> Result<()> {
    let processes = proxies.processes();
    let before = context.usage_with(&processes);
    let requests = vec![&way.bytes; way.count];
    let calls = send(way.address, &requests, Pace::FULL).await?;
    let after = context.usage_with(&processes);
    way.seconds += calls.len() as f64 / rate(&calls);
    way.latencies.extend(calls.iter().map(Call::latency));
    way.proxy += after.cpu_of(way.process, &before);
    way.client += after.cpu_of(CLIENT, &before);
    Ok(())
}

fn report(ways: &[Way], figures: &mut Figures) {
    let others = ways.iter().filter(|way| way.name != GATEWAY_ALONE);
    let limits: Vec<Limit> = others.map(|way| Limit::new(way.name, way.rate())).collect();
    for way in ways {
        let name = way.name;
        let is_alone = name == GATEWAY_ALONE;
        let limits = if is_alone { limits.as_slice() } else { &[] };
        figures.add_beside(name, way.rate(), "/s", limits);
        let durations = Spread::of(way.latencies.iter().copied());
        figures.add_spread(&format!("{name}, duration"), durations, &[]);
        let each = way.proxy / way.latencies.len() as f64 * 1e6;
        figures.add(format!("{name}, processor of the proxy"), each, "µs");
        let share = way.client / way.seconds * 100.0;
        let name = format!("{name}, processor of the client");
        figures.add(name, share, "% of a core");
    }
}

async fn measure_reads(context: &mut Context, figures: &mut Figures) -> Result<()> {
    start_afresh(context).await?;
    let tasks = prepare(context, TASKS, 0, |_| String::new()).await?;
    let count = context.pick(30_000, 5_000);
    let limits = [context.limit(READ).await?];
    for (name, path, fewer) in READS {
        let path = path.replace(":id", tasks.ids.first().map_or("", String::as_str));
        let bytes = request("GET", &path, Some(&context.user.token), None);
        let before = context.usage();
        let requests = vec![bytes; count / fewer];
        let calls = send(context.gateway, &requests, Pace::FULL).await?;
        let after = context.usage();
        figures.add_beside(name, rate(&calls), "/s", &limits);
        figures.add_spread(&format!("{name}, duration"), durations(&calls), &[]);
        let each = after.cpu_of(GATEWAY, &before) / calls.len() as f64 * 1e6;
        figures.add(format!("{name}, processor of the gateway"), each, "µs");
        figures.add_shares(name, &before, &after);
    }
    Ok(())
}
