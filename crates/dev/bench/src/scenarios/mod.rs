//! The scenarios, each in a file of its own.

mod backlog;
mod create;
mod dead_host;
mod decisions;
mod deletion;
mod fan_out;
mod gateway;
mod idle;
mod kill_worker;
mod lists;
mod open_snapshot;
mod sign_in;
mod slow_receivers;
mod start_up;
mod steady;
mod two_workers;

use clap::ValueEnum;

use crate::context::Context;
use crate::report::Figures;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Processor time and memory of each process, idle and after a load
    Idle,
    /// Tasks with one webhook, approved over 32 connections as fast as possible
    Decisions,
    /// Tasks with ten webhooks
    FanOut,
    /// 20 decisions a second
    Steady,
    /// Tasks created over 32 connections
    Create,
    /// Webhooks registered over 32 connections
    Register,
    /// Deliveries that piled up while the webhook-worker was stopped
    Backlog,
    /// Decisions for a healthy host beside 60 hosts that never respond
    SlowReceivers,
    /// 20 decisions a second beside many deliveries that wait for a dead host
    DeadHost,
    /// Receivers that take 50 ms, with one worker and with two
    TwoWorkers,
    /// Decisions while another session holds a snapshot
    OpenSnapshot,
    /// One of two workers is killed in a burst
    KillWorker,
    /// The gateway beside HAProxy and nginx, and reads through it
    Gateway,
    /// Sign-ins beside bcrypt alone, and reads beside sign-ins
    SignIn,
    /// Pages and counts of tasks and users, with few and with many of them
    Lists,
    /// A user with many tasks is deleted, beside one statement that deletes the tasks
    Deletion,
    /// From the start of each process until it is ready, and its memory then and after a load
    StartUp,
}

impl Scenario {
    /// All scenarios, in the order in which they run.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// The name on the command line.
    pub(crate) fn name(&self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it measures, in a few words.
    pub(crate) fn about(&self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map(ToString::to_string).unwrap_or_default()
    }

    /// Runs it.
    pub(crate) async fn run(
        self,
        context: &mut Context,
        figures: &mut Figures,
    ) -> anyhow::Result<()> {
        match self {
            Self::Idle => idle::run(context, figures).await,
            Self::Decisions => decisions::run(context, figures).await,
            Self::FanOut => fan_out::run(context, figures).await,
            Self::Steady => steady::run(context, figures).await,
            Self::Create => create::run(context, figures).await,
            Self::Register => create::run_register(context, figures).await,
            Self::Backlog => backlog::run(context, figures).await,
            Self::SlowReceivers => slow_receivers::run(context, figures).await,
            Self::DeadHost => dead_host::run(context, figures).await,
            Self::TwoWorkers => two_workers::run(context, figures).await,
            Self::OpenSnapshot => open_snapshot::run(context, figures).await,
            Self::KillWorker => kill_worker::run(context, figures).await,
            Self::Gateway => gateway::run(context, figures).await,
            Self::SignIn => sign_in::run(context, figures).await,
            Self::Lists => lists::run(context, figures).await,
            Self::Deletion => deletion::run(context, figures).await,
            Self::StartUp => start_up::run(context, figures).await,
        }
    }
}
