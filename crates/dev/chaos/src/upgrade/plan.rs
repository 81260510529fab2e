//! The processes of the test: two of each, which reach each other through load balancers.

use std::collections::BTreeMap;

use anyhow::Context;
use local_stack::ports;
use rig::plan::{Plan, Planned, Replicas};

use super::balancer::Balancer;
use crate::settings;

/// The programs that are replaced, in this order.
pub(super) const REPLACED: [&str; 6] = [
    "gateway",
    "user-service",
    "people-task-service",
    "deletion-worker",
    "notification-worker",
    "webhook-worker",
];

/// The settings that name another program.
const CALLS: [(&str, &str); 2] = [
    ("USER_SERVICE_URL", "user-service"),
    ("PEOPLE_TASK_SERVICE_URL", "people-task-service"),
];

/// The load balancers that callers of a program reach, by its name, with their URLs.
pub(super) type Balancers = BTreeMap<&'static str, (String, Balancer)>;

/// Two replicas of each process.
pub(super) fn replicas() -> Replicas {
    REPLACED.map(|program| (program.to_owned(), 2)).into()
}

/// Opens the load balancers, and lets the processes of the plan use them.
pub(super) fn open_balancers(plan: &mut Plan) -> anyhow::Result<Balancers> {
    let mut balancers = Balancers::new();
    let programs = ["user-service", "people-task-service", "gateway"];
    let free = ports::several(programs.len())?;
    for (program, port) in programs.into_iter().zip(free) {
        let replicas = plan.processes.iter().filter(|one| one.program == program);
        let replicas = replicas.filter_map(|one| Some((port_of(one)?, one.metrics.clone())));
        let balancer = Balancer::open(port, replicas.collect())?;
        balancers.insert(program, (format!("http://127.0.0.1:{port}"), balancer));
    }
    let url = |program: &str| {
        let balancer = balancers.get(program).context("there is no load balancer");
        balancer.map(|(url, _)| url.clone())
    };
    let recipients = settings::RecipientUrls {
        codes: format!("{}/forgot-password", plan.demo_engine),
        mails: None,
    };
    for process in &mut plan.processes {
        for (variable, program) in CALLS {
            if process.variables.contains_key(variable) {
                process.variables.insert(variable, url(program)?);
            }
        }
        if process.variables.contains_key("PUBLIC_URL") {
            process.variables.insert("PUBLIC_URL", url("gateway")?);
        }
        settings::apply(process, settings::LONGEST_UPGRADE, &recipients);
        process.variables.insert("SHUTDOWN_DELAY", "2s".to_owned());
    }
    plan.gateway = url("gateway")?;
    Ok(balancers)
}

/// The port of a process that serves requests.
pub(super) fn port_of(process: &Planned) -> Option<u16> {
    let url = process.url.as_deref()?;
    url.rsplit_once(':')?.1.parse().ok()
}
