//! Postgres and RabbitMQ, started and stopped together.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::description::PostgresDescription;
use crate::packages::{self, Need};
use crate::private::{self, failed};
use crate::{Description, Postgres, RabbitMq, Roles, ports, rabbitmq, random};

#[derive(Debug)]
pub struct Servers {
    pub postgres: Postgres,
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
    standby_port: Option<u16>,
    rabbitmq_ports: rabbitmq::Ports,
    rabbitmq_password: String,
    rabbitmq_node: String,
    #[serde(default)]
    rabbitmq_peers: Vec<rabbitmq::Ports>,
    #[serde(default)]
    rabbitmq_cookie: String,
    role_passwords: Roles,
}

impl State {
    fn new(folder: &Path, layout: Layout) -> Result<Self> {
        // All at once, so that they are different.
        let mut free = ports::several(2 + 4 * layout.broker_nodes)?.into_iter();
        let mut free = || free.next().context("too few free ports");
        let (postgres_port, standby_port) = (free()?, free()?);
        let rabbitmq_ports = rabbitmq::Ports::take(&mut free)?;
        let peers = (1..layout.broker_nodes).map(|_| rabbitmq::Ports::take(&mut free));
        Ok(Self {
            durability: layout.durability,
            postgres_port,
            standby_port: layout.standby.then_some(standby_port),
            postgres_password: random::password(),
            rabbitmq_ports,
            rabbitmq_password: random::password(),
            rabbitmq_node: format!("local-{}@localhost", random::short_hash(folder)),
            rabbitmq_peers: peers.collect::<Result<_>>()?,
            rabbitmq_cookie: random::password(),
            role_passwords: Roles::random_passwords(),
        })
    }

    /// The nodes of the broker, the first one first.
    fn broker(&self, folder: &Path) -> Vec<RabbitMq> {
        let first = &self.rabbitmq_node;
        let numbers = 2..self.rabbitmq_peers.len() + 2;
        let peers = numbers.map(|number| format!("{number}-{first}"));
        let nodes: Vec<String> = std::iter::once(first.clone()).chain(peers).collect();
        let ports = std::iter::once(&self.rabbitmq_ports).chain(&self.rabbitmq_peers);
        let broker = (1..)
            .zip(ports.zip(&nodes))
            .map(|(number, (ports, node))| RabbitMq {
                folder: match number {
                    1 => folder.join("rabbitmq"),
                    _ => folder.join(format!("rabbitmq-{number}")),
                },
                // All use the port mapper of the first one.
                ports: rabbitmq::Ports {
                    epmd: self.rabbitmq_ports.epmd,
                    ..*ports
                },
                password: self.rabbitmq_password.clone(),
                node: node.clone(),
                durability: self.durability,
                nodes: nodes.clone(),
                cookie: self.rabbitmq_cookie.clone(),
            });
        broker.collect()
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("servers.json")
    }
}

impl Servers {
    /// Starts the servers in a folder, unless they are running, and waits until they are ready.
    /// Missing packages are installed. Ports, passwords and data are kept from the last start, but a port
    /// that another program has taken is replaced. On failure nothing is left running.
    pub fn start(folder: &Path, layout: Layout, say: &dyn Fn(&str)) -> Result<Self> {
        let mut needs = Vec::new();
        if layout.postgres {
            needs.extend([Need::POSTGRES, Need::PSQL]);
        }
        if layout.rabbitmq {
            needs.push(Need::RABBITMQ);
        }
        packages::ensure(&needs, say)?;
        private::create_reachable_folder(folder)?;
        let folder = &folder
            .canonicalize()
            .with_context(failed("finding", folder))?;
        let mut state = match private::read_json(&State::path(folder))? {
            Some(state) => state,
            None => Self::begin(folder, layout)?,
        };
        state.durability = layout.durability;
        Self::new(folder, &state)?.replace_taken_ports(&mut state)?;
        let servers = Self::new(folder, &state)?;
        private::write_json(&State::path(folder), &state)?;
        let started = servers
            .start_parts(layout)
            .and_then(|()| servers.start_standby());
        if started.is_err() {
            servers.stop(Stop::Kill)?;
        }
        started.map(|()| servers)
    }

    /// The first start in a folder. Data may be outside of it, and so be left from a folder of the same name that was
    /// removed, with passwords that went with it.
    fn begin(folder: &Path, layout: Layout) -> Result<State> {
        let state = State::new(folder, layout)?;
        let servers = Self::new(folder, &state)?;
        servers.databases().try_for_each(Postgres::discard)?;
        Ok(state)
    }

    /// Returns the servers of a folder, running or not. `None` when none was ever started there.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let Some(state) = private::read_json(&State::path(folder))? else {
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
        let databases = self.databases().map(|server| server.stop(how));
        let stopped = databases.chain(self.broker().map(|node| node.stop(how)));
        let stopped = stopped.fold(Ok(()), Result::and);
        stopped.and(self.rabbitmq.stop_port_mapper())
    }

    pub fn databases(&self) -> impl Iterator<Item = &Postgres> {
        std::iter::once(&self.postgres).chain(&self.postgres_standby)
    }

    /// The nodes of the broker, the first one first.
    pub fn broker(&self) -> impl Iterator<Item = &RabbitMq> {
        std::iter::once(&self.rabbitmq).chain(&self.rabbitmq_peers)
    }

    /// Ends the servers, as fast as it leaves nothing: a killed Postgres would leave shared memory until it is started again.
    pub fn end(&self) -> Result<()> {
        let databases = self.databases();
        let ended = databases.map(|server| server.stop(Stop::Graceful));
        let ended = ended.fold(Ok(()), Result::and);
        self.stop(Stop::Kill).and(ended)
    }

    /// Ends the servers of `folder` and removes the folder with all data.
    pub fn discard(folder: &Path) -> Result<()> {
        if let Ok(Some(servers)) = Self::find(folder) {
            servers.end()?;
            servers.databases().try_for_each(Postgres::discard)?;
        }
        private::remove_folder(folder)
    }

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

    /// Replaces ports that other programs have taken.
    fn replace_taken_ports(&self, state: &mut State) -> Result<()> {
        let mut held = Vec::new();
        if self.postgres.process().is_none() {
            held.push(&mut state.postgres_port);
        }
        let standby = self.postgres_standby.as_ref();
        if standby.is_some_and(|standby| standby.process().is_none()) {
            held.extend(&mut state.standby_port);
        }
        if self.rabbitmq.process().is_none() {
            // A port mapper that outlived its server may hold the port.
            self.rabbitmq.stop(Stop::Kill)?;
            self.rabbitmq.stop_port_mapper()?;
            let first = std::iter::once(&mut state.rabbitmq_ports);
            for node in first.chain(&mut state.rabbitmq_peers) {
                held.extend([&mut node.amqp, &mut node.management]);
                held.extend([&mut node.distribution, &mut node.epmd]);
            }
        }
        for port in held {
            *port = ports::prefer(*port)?;
        }
        Ok(())
    }

    /// Starts the standby as a copy of the database server, which waits for it from then on.
    fn start_standby(&self) -> Result<()> {
        let Some(standby) = &self.postgres_standby else {
            return Ok(());
        };
        if standby.process().is_none() {
            self.postgres.set_synchronous(false)?;
            standby.follow(&self.postgres)?;
        }
        self.postgres.set_synchronous(true)
    }

    fn start_parts(&self, layout: Layout) -> Result<()> {
        // The broker takes longer, so it starts first and is awaited last.
        if layout.rabbitmq {
            self.rabbitmq.spawn()?;
        }
        if layout.postgres {
            self.postgres.spawn()?;
            self.postgres.wait_ready()?;
        }
        if layout.rabbitmq {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is asked to stop and given time.
    Graceful,
    /// SIGKILL.
    Kill,
}

#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Whether the database server runs here, and not elsewhere.
    pub postgres: bool,
    /// Whether the broker runs here.
    pub rabbitmq: bool,
    pub durability: Durability,
    /// How many nodes the broker has. Several are a cluster. It cannot change after the first start.
    pub broker_nodes: usize,
    /// Whether Postgres has a standby, for which each commit waits.
    pub standby: bool,
}

impl Layout {
    /// One server of each kind, with data that is thrown away.
    pub const SINGLE: Self = Self {
        postgres: true,
        rabbitmq: true,
        durability: Durability::Discardable,
        broker_nodes: 1,
        standby: false,
    };
}
