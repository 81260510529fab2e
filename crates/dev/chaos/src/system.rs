//! The system under test, connected through proxies that can cut connections.

use anyhow::Context as _;
use local_stack::RabbitMq;
use rig::{
    backing::Layout,
    interrupt::Interrupt,
    system::{self, Options, Source},
    tcp_proxy::TcpProxy,
    workspace::Workspace,
};

use crate::{arguments::Arguments, databases::Databases, proxied::open_proxies, settings};

/// The running system.
pub(crate) struct System {
    pub(crate) rig: system::System,
    pub(crate) databases: Databases,
    pub(crate) proxies: Vec<TcpProxy>,
    /// The nodes of the broker.
    pub(crate) broker: Vec<RabbitMq>,
    pub(crate) gateways: Vec<String>,
}

impl System {
    /// Starts everything and waits until it is ready. On failure, the caller stops what was started.
    pub(crate) fn start(
        workspace: &Workspace,
        arguments: &Arguments,
        recipients: &settings::RecipientUrls,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let source = Source::of(arguments.programs.as_deref(), arguments.release);
        let options = Options {
            layout: Some(Layout {
                broker_nodes: arguments.broker_nodes,
                standby: arguments.standby,
                ..Layout::SINGLE
            }),
            replicas: arguments.replicas.iter().cloned().collect(),
            ..Options::own(source)
        };
        let mut proxies = Vec::new();
        let rig = system::System::start(workspace, &options, interrupt, |plan, backing| {
            for process in &mut plan.processes {
                settings::apply(process, arguments.duration, recipients);
            }
            let servers = backing.servers.as_ref().context("there are no servers")?;
            proxies = open_proxies(&mut plan.processes, servers)?;
            Ok(())
        })?;
        let gateways = rig.processes.iter().map(|process| &process.planned);
        let gateways = gateways.filter(|planned| planned.program == "gateway");
        Ok(Self {
            gateways: gateways.filter_map(|one| one.url.clone()).collect(),
            databases: Databases::new(rig.servers()?),
            broker: rig.servers()?.broker().cloned().collect(),
            rig,
            proxies,
        })
    }

    /// Waits until servers and processes are ready.
    pub(crate) fn wait_ready(&self) -> anyhow::Result<()> {
        self.databases.wait_ready()?;
        self.broker.iter().try_for_each(RabbitMq::wait_ready)?;
        self.rig.wait_ready()
    }
}
