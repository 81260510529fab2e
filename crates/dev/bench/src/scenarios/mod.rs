//! The scenarios.

mod abuse;
mod deletion;
mod deliveries;
mod gateway;
mod hosts;
mod lists;
mod processes;
mod sign_in;

use anyhow::Result;
use clap::ValueEnum;

use crate::context::Context;
use crate::report::Figures;

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
    /// Attacks, and a normal user and the memory meanwhile: only on request
    Abuse,
}

impl Scenario {
    /// The name on the command line.
    pub(crate) fn name(&self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn about(&self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map(ToString::to_string).unwrap_or_default()
    }

    pub(crate) async fn run(self, context: &mut Context, figures: &mut Figures) -> Result<()> {
        match self {
            Self::Idle => processes::idle(context, figures).await,
            Self::Decisions => deliveries::decisions(context, figures).await,
            Self::FanOut => deliveries::fan_out(context, figures).await,
            Self::Steady => deliveries::steady(context, figures).await,
            Self::Create => deliveries::writes(context, figures, 0).await,
            Self::Register => deliveries::writes(context, figures, 1).await,
            Self::Backlog => deliveries::backlog(context, figures).await,
            Self::SlowReceivers => hosts::slow_receivers(context, figures).await,
            Self::DeadHost => hosts::dead_host(context, figures).await,
            Self::TwoWorkers => hosts::two_workers(context, figures).await,
            Self::OpenSnapshot => deliveries::open_snapshot(context, figures).await,
            Self::KillWorker => hosts::kill_worker(context, figures).await,
            Self::Gateway => gateway::run(context, figures).await,
            Self::SignIn => sign_in::run(context, figures).await,
            Self::Lists => lists::run(context, figures).await,
            Self::Deletion => deletion::run(context, figures).await,
            Self::StartUp => processes::start_up(context, figures).await,
            Self::Abuse => abuse::run(context, figures).await,
        }
    }
}
