//! The processes of the test: two of each, which reach each other through load balancers.

use std::collections::BTreeMap;

use anyhow::Context;
use rig::plan::{Plan, Planned};

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
const CALLS: [(&str, &str); 3] = [
    ("USER_SERVICE_URL", "user-service"),
    ("PEOPLE_TASK_SERVICE_URL", "people-task-service"),
    ("PUBLIC_URL", "gateway"),
];

/// The load balancers that callers of a program reach, by its name.
pub(super) struct Balancers(BTreeMap<&'static str, Balancer>);

impl Balancers {
    /// The load balancer of a process that serves requests, and the process's port.
    pub(super) fn of(&self, process: &Planned) -> Option<(u16, &Balancer)> {
        port_of(process).zip(self.0.get(process.program))
    }

    fn url(&self, program: &str) -> anyhow::Result<String> {
        let balancer = self.0.get(program).context("there is no load balancer")?;
        Ok(balancer.url())
    }
}

/// Opens the load balancers, and lets the processes of the plan use them.
pub(super) fn open_balancers(plan: &mut Plan) -> anyhow::Result<Balancers> {
    let mut balancers = Balancers(BTreeMap::new());
    for (_, program) in CALLS {
        let replicas = plan.processes.iter().filter(|one| one.program == program);
        let replicas = replicas.filter_map(|one| Some((port_of(one)?, one.metrics.clone())));
        let balancer = Balancer::open(program, replicas.collect())?;
        balancers.0.insert(program, balancer);
    }
    let recipients = settings::RecipientUrls {
        codes: format!("{}/forgot-password", plan.demo_engine),
        mails: None,
    };
    for process in &mut plan.processes {
        for (variable, program) in CALLS {
            if process.variables.contains_key(variable) {
                process.variables.insert(variable, balancers.url(program)?);
            }
        }
        settings::apply(process, settings::LONGEST_UPGRADE, &recipients);
        process.variables.insert("SHUTDOWN_DELAY", "2s".to_owned());
    }
    plan.gateway = balancers.url("gateway")?;
    Ok(balancers)
}

/// The port of a process that serves requests.
fn port_of(process: &Planned) -> Option<u16> {
    let url = process.url.as_deref()?;
    url.rsplit_once(':')?.1.parse().ok()
}
