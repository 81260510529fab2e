//! The connections between processes and servers that faults cut and stall.

use anyhow::Context;
use local_stack::{Postgres, RabbitMq, Servers};
use rig::{plan::Planned, tcp_proxy::TcpProxy};

/// The proxied connections: program, variable, and target.
const PROXIED: [(&str, &str, &str); 16] = [
    ("deletion-worker", "AMQP_URL", "RabbitMQ"),
    ("deletion-worker", "DATABASE_URL", "Postgres"),
    ("deletion-worker", "FLOW_ENGINE_URL", "demo-engine"),
    (
        "deletion-worker",
        "PEOPLE_TASK_SERVICE_URL",
        "people-task-service",
    ),
    ("gateway", "PEOPLE_TASK_SERVICE_URL", "people-task-service"),
    ("gateway", "USER_SERVICE_URL", "user-service"),
    ("notification-worker", "AMQP_URL", "RabbitMQ"),
    ("notification-worker", "DATABASE_URL", "Postgres"),
    (
        "notification-worker",
        "PEOPLE_TASK_SERVICE_URL",
        "people-task-service",
    ),
    ("people-task-service", "AMQP_URL", "RabbitMQ"),
    ("people-task-service", "DATABASE_URL", "Postgres"),
    ("people-task-service", "USER_SERVICE_URL", "user-service"),
    ("user-service", "AMQP_URL", "RabbitMQ"),
    ("user-service", "DATABASE_URL", "Postgres"),
    ("webhook-worker", "AMQP_URL", "RabbitMQ"),
    ("webhook-worker", "DATABASE_URL", "Postgres"),
];

/// Puts a proxy into each connection of [`PROXIED`]. Those to the broker begin with different nodes. A process has one
/// for each server of Postgres.
pub(crate) fn open_proxies(
    processes: &mut [Planned],
    servers: &Servers,
) -> anyhow::Result<Vec<TcpProxy>> {
    let mut nodes: Vec<u16> = servers.broker().map(RabbitMq::amqp_port).collect();
    let standby = servers.postgres_standby.as_ref().map(Postgres::port);
    let mut proxies = Vec::new();
    for process in processes {
        for (program, variable, other) in PROXIED {
            if process.program != program {
                continue;
            }
            let url = process.variables.get(variable);
            let target = url
                .and_then(|url| port_of(url))
                .with_context(|| format!("{} has no usable {variable}", process.name))?;
            let is_database = variable == "DATABASE_URL";
            let targets = if variable == "AMQP_URL" {
                nodes.rotate_left(1);
                nodes.clone()
            } else {
                vec![target]
            };
            let name = format!("{} → {other}", process.name);
            let mut ports = vec![open_proxy(&mut proxies, name.clone(), targets)?];
            if let (true, Some(standby)) = (is_database, standby) {
                let name = format!("{name} 2");
                ports.push(open_proxy(&mut proxies, name, vec![standby])?);
            }
            let owner = is_database.then_some("DATABASE_OWNER_URL");
            for name in [Some(variable), owner].into_iter().flatten() {
                if let Some(url) = process.variables.get_mut(name) {
                    *url = with_ports(url, target, &ports);
                }
            }
        }
    }
    Ok(proxies)
}

/// Opens a proxy, and returns its port.
fn open_proxy(proxies: &mut Vec<TcpProxy>, name: String, targets: Vec<u16>) -> anyhow::Result<u16> {
    let proxy = TcpProxy::open(name, targets)?;
    let port = proxy.port();
    proxies.push(proxy);
    Ok(port)
}

/// Returns a loopback URL with other ports in place of `port`. With several, it is a URL of Postgres that leads to the
/// server that is the primary.
fn with_ports(url: &str, port: u16, ports: &[u16]) -> String {
    let hosts: Vec<_> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let url = url.replace(&format!("127.0.0.1:{port}"), &hosts.join(","));
    if hosts.len() == 1 {
        return url;
    }
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}target_session_attrs=read-write")
}

/// The port of a loopback URL.
fn port_of(url: &str) -> Option<u16> {
    let (_, after) = url.split_once("127.0.0.1:")?;
    let end = after.find(|character: char| !character.is_ascii_digit());
    after.get(..end.unwrap_or(after.len()))?.parse().ok()
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
