//! Postgres and RabbitMQ, started and stopped together.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::{
    Description, Postgres, RabbitMq, Roles,
    description::PostgresDescription,
    packages::{self, Need},
    ports,
    private::{self, failed},
    rabbitmq, random,
};

/// A private Postgres and a private RabbitMQ.
#[derive(Debug)]
pub struct Servers {
    /// The database server.
    pub postgres: Postgres,
    /// Its standby.
    pub postgres_standby: Option<Postgres>,
    /// The broker, or the first node of its cluster.
    pub rabbitmq: RabbitMq,
    /// The other nodes of its cluster.
    pub rabbitmq_peers: Vec<RabbitMq>,
    passwords: Roles,
}

/// The state that must survive a restart.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    durability: Durability,
    postgres_port: u16,
    postgres_password: String,
    #[serde(default)]
    standby_port: Option<u16>,
    rabbitmq_ports: rabbitmq::Ports,
    rabbitmq_password: String,
    rabbitmq_node: String,
    /// The ports of the other nodes of the broker.
    #[serde(default)]
    rabbitmq_peers: Vec<rabbitmq::Ports>,
    /// The secret by which the nodes of a cluster know each other.
    #[serde(default)]
    rabbitmq_cookie: String,
    role_passwords: Roles,
}

impl State {
    fn new(folder: &Path, layout: Layout) -> Result<Self> {
        let [postgres_port, amqp, management, distribution, epmd] = ports::free()?;
        let peers = (1..layout.broker_nodes).map(|_| {
            let [amqp, management, distribution] = ports::free()?;
            Ok(rabbitmq::Ports {
                amqp,
                management,
                distribution,
                epmd,
            })
        });
        let standby_port = layout.standby.then(ports::free).transpose()?;
        Ok(Self {
            durability: layout.durability,
            postgres_port,
            standby_port: standby_port.map(|[port]| port),
            postgres_password: random::password()?,
            rabbitmq_ports: rabbitmq::Ports {
                amqp,
                management,
                distribution,
                epmd,
            },
            rabbitmq_password: random::password()?,
            rabbitmq_node: format!("local-{}@localhost", random::short_hash(folder)),
            rabbitmq_peers: peers.collect::<Result<_>>()?,
            rabbitmq_cookie: random::password()?,
            role_passwords: Roles::random_passwords()?,
        })
    }

    /// The nodes of the broker, the first one first.
    fn broker(&self, folder: &Path) -> Vec<RabbitMq> {
        let peers = (2..).zip(&self.rabbitmq_peers).map(|(number, ports)| {
            let name = format!("{number}-{}", self.rabbitmq_node);
            (format!("rabbitmq-{number}"), *ports, name)
        });
        let first = (
            "rabbitmq".to_owned(),
            self.rabbitmq_ports,
            self.rabbitmq_node.clone(),
        );
        let nodes: Vec<_> = std::iter::once(first).chain(peers).collect();
        let names: Vec<String> = nodes.iter().map(|(_, _, name)| name.clone()).collect();
        let cluster = (names.len() > 1).then(|| rabbitmq::Cluster {
            nodes: names,
            cookie: self.rabbitmq_cookie.clone(),
        });
        let node = |(subfolder, ports, name): (String, rabbitmq::Ports, String)| {
            let (folder, password) = (folder.join(subfolder), &self.rabbitmq_password);
            RabbitMq::new(
                &folder,
                ports,
                password,
                &name,
                self.durability,
                cluster.clone(),
            )
        };
        nodes.into_iter().map(node).collect()
    }

    fn read(folder: &Path) -> Result<Option<Self>> {
        let path = Self::path(folder);
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(failed("reading", path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(failed("reading", path)),
        }
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        random::write_private(&Self::path(folder), text.as_bytes())
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("servers.json")
    }
}

impl Servers {
    /// Starts the servers in a folder, unless they are running, and waits until they are ready.
    /// Missing packages are installed. Ports, passwords and data are kept from the last start, but a port
    /// that another program has taken is replaced. On failure nothing is left running.
    pub fn start(folder: &Path, parts: Parts, layout: Layout, say: &dyn Fn(&str)) -> Result<Self> {
        packages::ensure(parts.needs(), say)?;
        private::create_reachable_folder(folder)?;
        let folder = &folder
            .canonicalize()
            .with_context(failed("finding", folder))?;
        let mut state = match State::read(folder)? {
            Some(state) => state,
            None => State::new(folder, layout)?,
        };
        state.durability = layout.durability;
        let mut servers = Self::new(folder, &state)?;
        if servers.replace_taken_ports(&mut state)? {
            servers = Self::new(folder, &state)?;
        }
        state.write(folder)?;
        let started = servers
            .start_parts(parts)
            .and_then(|()| servers.start_standby());
        if started.is_err() {
            servers.stop(Stop::Kill)?;
        }
        started.map(|()| servers)
    }

    /// Returns the servers of a folder, running or not. `None` when none was ever started there.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let Some(state) = State::read(folder)? else {
            return Ok(None);
        };
        let folder = folder
            .canonicalize()
            .with_context(failed("finding", folder))?;
        Self::new(&folder, &state).map(Some)
    }

    /// Stops both servers, their children and the port mapper. Does nothing to what is not running. One that does not
    /// end keeps none of the others running.
    pub fn stop(&self, how: Stop) -> Result<()> {
        let postgres: Vec<_> = self.databases().map(|server| server.stop(how)).collect();
        let postgres: Result<()> = postgres.into_iter().collect();
        let broker: Vec<_> = self.broker().map(|node| node.stop(how)).collect();
        let broker: Result<()> = broker.into_iter().collect();
        postgres.and(broker).and(self.rabbitmq.stop_port_mapper())
    }

    /// The database servers.
    pub fn databases(&self) -> impl Iterator<Item = &Postgres> {
        std::iter::once(&self.postgres).chain(&self.postgres_standby)
    }

    /// The nodes of the broker, the first one first.
    pub fn broker(&self) -> impl Iterator<Item = &RabbitMq> {
        std::iter::once(&self.rabbitmq).chain(&self.rabbitmq_peers)
    }

    /// Kills the servers of `folder` and removes the folder with all data.
    pub fn discard(folder: &Path) -> Result<()> {
        if let Ok(Some(servers)) = Self::find(folder) {
            servers.stop(Stop::Kill)?;
            servers.databases().try_for_each(Postgres::discard)?;
        }
        private::remove_folder(folder)
    }

    /// Returns their URLs and credentials.
    pub fn description(&self) -> Description {
        Description {
            postgres: PostgresDescription {
                admin_url: self.postgres.admin_url(),
                passwords: self.passwords.clone(),
            },
            rabbitmq: self.rabbitmq.description(),
        }
    }

    fn new(folder: &Path, state: &State) -> Result<Self> {
        let mut broker = state.broker(folder);
        let rabbitmq_peers = broker.split_off(1);
        let rabbitmq = broker.remove(0);
        let postgres = |subfolder, port| {
            let (folder, password) = (folder.join(subfolder), &state.postgres_password);
            Postgres::new(&folder, port, password, state.durability)
        };
        let standby = state.standby_port.map(|port| postgres("postgres-2", port));
        Ok(Self {
            postgres: postgres("postgres", state.postgres_port)?,
            postgres_standby: standby.transpose()?,
            rabbitmq,
            rabbitmq_peers,
            passwords: state.role_passwords.clone(),
        })
    }

    /// Replaces ports that other programs have taken. Returns whether any was replaced.
    fn replace_taken_ports(&self, state: &mut State) -> Result<bool> {
        let mut held = Vec::new();
        if !self.postgres.is_running() {
            held.push(&mut state.postgres_port);
        }
        if self
            .postgres_standby
            .iter()
            .any(|standby| !standby.is_running())
        {
            held.extend(&mut state.standby_port);
        }
        if !self.rabbitmq.is_running() {
            // A port mapper that outlived its server may hold the port.
            self.rabbitmq.stop(Stop::Kill)?;
            self.rabbitmq.stop_port_mapper()?;
            let broker =
                std::iter::once(&mut state.rabbitmq_ports).chain(&mut state.rabbitmq_peers);
            for (number, node) in broker.enumerate() {
                // The nodes share the port mapper of the first one.
                held.extend((number == 0).then_some(&mut node.epmd));
                held.extend([&mut node.amqp, &mut node.management, &mut node.distribution]);
            }
        }
        let mut replaced = false;
        for port in held {
            let free = ports::prefer(*port)?;
            replaced |= free != *port;
            *port = free;
        }
        for peer in &mut state.rabbitmq_peers {
            peer.epmd = state.rabbitmq_ports.epmd;
        }
        Ok(replaced)
    }

    /// Starts the standby as a copy of the database server, which waits for it from then on.
    fn start_standby(&self) -> Result<()> {
        let Some(standby) = &self.postgres_standby else {
            return Ok(());
        };
        if !standby.is_running() {
            self.postgres.set_synchronous(false)?;
            standby.follow(&self.postgres)?;
        }
        self.postgres.set_synchronous(true)
    }

    fn start_parts(&self, parts: Parts) -> Result<()> {
        // The broker takes longer, so it starts first and is awaited last.
        if parts != Parts::Postgres {
            self.rabbitmq.spawn()?;
        }
        if parts != Parts::RabbitMq {
            self.postgres.spawn()?;
            self.postgres.wait_ready()?;
        }
        if parts != Parts::Postgres {
            self.rabbitmq.wait_ready()?;
            // The others find the first node, instead of waiting for each other.
            self.rabbitmq_peers.iter().try_for_each(RabbitMq::spawn)?;
            self.rabbitmq_peers
                .iter()
                .try_for_each(RabbitMq::wait_ready)?;
        }
        Ok(())
    }
}

/// Whether data survives a failure of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Every commit is written to disk.
    Durable,
    /// The data is temporary, so nothing waits for the disk.
    Discardable,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is asked to stop and given time.
    Graceful,
    /// SIGKILL.
    Kill,
}

/// Which servers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Postgres and RabbitMQ.
    Both,
    /// Only the database; the broker runs elsewhere.
    Postgres,
    /// Only the broker; the database runs elsewhere.
    RabbitMq,
}

impl Parts {
    /// Returns the packages that provide the servers.
    pub fn needs(self) -> &'static [Need] {
        match self {
            Self::Both => &[Need::Postgres, Need::RabbitMq, Need::Psql],
            Self::Postgres => &[Need::Postgres, Need::Psql],
            Self::RabbitMq => &[Need::RabbitMq],
        }
    }
}

/// The private servers.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Whether their data survives a failure of the machine.
    pub durability: Durability,
    /// How many nodes the broker has. Several are a cluster. It cannot change after the first start.
    pub broker_nodes: usize,
    /// Whether Postgres has a standby, for which each commit waits.
    pub standby: bool,
}

impl Layout {
    /// One server of each kind, with data that is thrown away.
    pub const SINGLE: Self = Self {
        durability: Durability::Discardable,
        broker_nodes: 1,
        standby: false,
    };
}
