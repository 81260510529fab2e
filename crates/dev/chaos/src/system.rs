//! The system under test, connected through proxies that can cut connections.

use anyhow::Context as _;
use local_stack::{Layout, Postgres, RabbitMq, Servers};
use rig::{Options, Process, Source, TcpProxy, Workspace};
use url::Url;

use crate::{Arguments, account_workload::Recipients, databases::Databases, settings};

pub(crate) struct System {
    pub(crate) rig: rig::System,
    pub(crate) databases: Databases,
    pub(crate) proxies: Vec<TcpProxy>,
    pub(crate) gateways: Vec<String>,
}

impl System {
    /// Starts everything and waits until it is ready. On failure, the caller stops what was started.
    pub(crate) fn start(
        workspace: &Workspace,
        arguments: &Arguments,
        recipients: &Recipients,
    ) -> anyhow::Result<Self> {
        let source = Source::of(arguments.programs.as_deref());
        let options = Options {
            layout: Some(Layout {
                broker_nodes: arguments.broker_nodes,
                standby: arguments.standby,
                ..Layout::SINGLE
            }),
            replicas: arguments.replicas.iter().cloned().collect(),
            ..Options::own(source)
        };
        let mut rig = rig::System::plan(workspace, &options)?;
        for process in &mut rig.processes {
            process
                .variables
                .extend(settings::changed(arguments.duration));
            recipients.apply(process);
        }
        let servers = rig.backing.servers.as_ref();
        let servers = servers.context("there are no servers")?;
        let proxies = open_proxies(&mut rig.processes, servers)?;
        rig.start()?;
        let gateways = rig.processes.iter().filter(|one| one.program == "gateway");
        Ok(Self {
            gateways: gateways.filter_map(|one| one.url.clone()).collect(),
            databases: Databases::new(rig.servers()?),
            rig,
            proxies,
        })
    }

    pub(crate) fn wait_ready(&self) -> anyhow::Result<()> {
        let servers = self.rig.servers()?;
        servers.databases().try_for_each(Postgres::wait_ready)?;
        servers.broker().try_for_each(RabbitMq::wait_ready)?;
        self.rig.wait_ready()
    }
}

/// What a setting leads to, if the process calls it.
fn target_of(program: &str, variable: &str) -> Option<&'static str> {
    match (variable, program) {
        ("FLOW_ENGINE_URL", "user-service" | "notification-worker")
        | ("PEOPLE_TASK_SERVICE_URL", "user-service")
        | ("USER_SERVICE_URL", "webhook-worker") => None,
        ("AMQP_URL", _) => Some("RabbitMQ"),
        ("DATABASE_URL", _) => Some("Postgres"),
        ("FLOW_ENGINE_URL", _) => Some("demo-engine"),
        ("PEOPLE_TASK_SERVICE_URL", _) => Some("people-task-service"),
        ("USER_SERVICE_URL", _) => Some("user-service"),
        _ => None,
    }
}

/// Puts a proxy into each connection. Those to the broker begin with different nodes. A process has one for each server of
/// Postgres.
fn open_proxies(processes: &mut [Process], servers: &Servers) -> anyhow::Result<Vec<TcpProxy>> {
    let mut nodes: Vec<u16> = servers.broker().map(RabbitMq::amqp_port).collect();
    let standby = servers.postgres_standby.as_ref().map(|server| server.port);
    let mut proxies = Vec::new();
    for process in processes {
        for (variable, url) in process.variables.clone() {
            let Some(other) = target_of(process.program, variable) else {
                continue;
            };
            let name = format!("{} → {other}", process.name);
            let target =
                port_of(&url).with_context(|| format!("{name}: {variable} has no port"))?;
            let mut targets = vec![target];
            if variable == "AMQP_URL" {
                nodes.rotate_left(1);
                targets.clone_from(&nodes);
            }
            let standby = standby.filter(|_| variable == "DATABASE_URL");
            let second = standby.map(|port| (format!("{name} 2"), vec![port]));
            let mut ports = Vec::new();
            for (name, targets) in std::iter::once((name, targets)).chain(second) {
                let proxy = TcpProxy::open(name, targets)?;
                ports.push(proxy.port());
                proxies.push(proxy);
            }
            let owner = (variable == "DATABASE_URL").then_some("DATABASE_OWNER_URL");
            for variable in std::iter::once(variable).chain(owner) {
                if let Some(url) = process.variables.get_mut(variable) {
                    *url = with_ports(url, target, &ports);
                }
            }
        }
    }
    Ok(proxies)
}

/// Returns a loopback URL with other ports in place of `port`. With several, it is a URL of Postgres that leads to the
/// server that is the primary.
fn with_ports(url: &str, port: u16, ports: &[u16]) -> String {
    let hosts = ports.iter().map(|port| format!("127.0.0.1:{port}"));
    let hosts: Vec<_> = hosts.collect();
    let url = url.replace(&format!("127.0.0.1:{port}"), &hosts.join(","));
    if hosts.len() == 1 {
        return url;
    }
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}target_session_attrs=read-write")
}

pub(crate) fn port_of(url: &str) -> Option<u16> {
    Url::parse(url).ok()?.port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_two_servers_leads_to_the_primary() {
        let url = "postgres://role:12ab@127.0.0.1:5432/countersign?sslmode=disable";
        assert_eq!(
            with_ports(url, 5432, &[1, 2]),
            "postgres://role:12ab@127.0.0.1:1,127.0.0.1:2/countersign?sslmode=disable&target_session_attrs=read-write"
        );
        assert_eq!(
            with_ports("http://127.0.0.1:80/x", 80, &[1]),
            "http://127.0.0.1:1/x"
        );
    }

    #[test]
    fn the_port_of_every_kind_of_url_is_found() {
        for url in [
            "http://127.0.0.1:8081",
            "amqp://countersign:12ab@127.0.0.1:8081/%2f",
            "postgres://role:12ab@127.0.0.1:8081/countersign",
        ] {
            assert_eq!(port_of(url), Some(8081), "{url}");
        }
        assert_eq!(port_of("http://example.com"), None);
    }
}
