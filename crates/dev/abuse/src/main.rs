//! `cargo xtask abuse-test`: attacks the running system from one address without credentials and from another one
//! as a signed-in user, and measures a normal user from a third address and the memory of every process.
//!
//! Three phases: the normal user alone, the same under attack, and alone again. The run fails if a process grows
//! past the limit or ends, or if a request of the normal user fails. Latencies are printed and not asserted,
//! because they depend on the machine, which the attackers share.
//!
//! Invariants: every attack is bounded in rate, concurrency and time, and goes to the gateway of `.local/stack.json`
//! on this machine.

mod attacks;
mod client;
mod latencies;
mod memory;
mod normal_user;

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use rig::duration::parse_duration;
use rig::outln;
use rig::output::say;
use rig::stack_file::Stack;
use rig::workspace::Workspace;
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;

use crate::attacks::Attacks;
use crate::client::Client;
use crate::latencies::{Calls, Latencies};
use crate::memory::Memory;
use crate::normal_user::NormalUser;

/// Attacks the running system, and measures a normal user and the processes' memory meanwhile.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask abuse-test")]
struct Arguments {
    /// How long the attacks run.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    duration: Duration,
    /// How long the normal user is measured alone, before and after the attacks.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    baseline: Duration,
    /// MiB that no process may exceed.
    #[arg(long, default_value_t = 512)]
    memory: u64,
    /// Runs only the attacks whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Leaves out the attacks whose name contains this. May be repeated.
    #[arg(long)]
    except: Vec<String>,
}

impl Arguments {
    fn include(&self, attack: &str) -> bool {
        attack.contains(&self.only) && !self.except.iter().any(|name| attack.contains(name))
    }
}

const NORMAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ANONYMOUS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const SIGNED_IN: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

const ATTACKERS_NICENESS: i32 = 15;

fn main() -> anyhow::Result<ExitCode> {
    // The TLS library needs it even without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let normal = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let attackers = attackers()?;
    let result = normal.block_on(run(&Arguments::parse(), attackers.handle()));
    attackers.shutdown_background();
    result
}

/// Runs the attackers with a low priority: usually they have a machine of their own, and here their work must not
/// take the cores from the system that they attack.
fn attackers() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(|| {
            if let Err(error) = rustix::process::nice(ATTACKERS_NICENESS) {
                say(&format!("the attackers keep the usual priority: {error}"));
            }
        })
        .enable_all()
        .build()
}

async fn run(arguments: &Arguments, attackers: &Handle) -> anyhow::Result<ExitCode> {
    let stack = Stack::read(&Workspace::find()?)?
        .context("no system is running: start one with `cargo xtask up --detach --release`")?;
    let gateway = loopback(&stack.gateway)?;
    let processes = stack.processes.iter();
    let memory = Memory::start(processes.map(|process| (process.name.clone(), process.pid)));

    say("preparing accounts and tasks");
    let mut user = NormalUser::prepare(Client::sign_up(&gateway, NORMAL).await?).await?;
    let anonymous = Client::new(&gateway, ANONYMOUS)?;
    let signed_in = Client::sign_up(&gateway, SIGNED_IN).await?;
    let attacker = signed_in.clone();
    let preparing = attackers.spawn(async move { attacks::prepare(&attacker).await });
    preparing.await??;
    user.warm_up().await?;

    let start = || {
        let end = Instant::now() + arguments.duration;
        let include = |attack: &str| arguments.include(attack);
        attacks::start(&anonymous, &signed_in, include, end, attackers)
    };
    let mut failures = measure(arguments, &mut user, &memory, start).await;
    failures.extend(memory.failures(arguments.memory));
    for failure in &failures {
        outln!("failed: {failure}");
    }
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures the three phases and prints what they showed. Returns a line for each phase with failed calls.
async fn measure(
    arguments: &Arguments,
    user: &mut NormalUser,
    memory: &Memory,
    start: impl FnOnce() -> Attacks,
) -> Vec<String> {
    let mut failures = Vec::new();
    say("the normal user alone");
    let before = user.measure(arguments.baseline).await;
    failures.extend(report("before", &before, None, memory));
    let baseline = before.all_others();

    say("the same under attack");
    let attacks = start();
    let attacked = user.measure(arguments.duration).await;
    failures.extend(report("under attack", &attacked, Some(&baseline), memory));
    attacks.finish_and_print().await;

    say("the normal user alone again");
    let after = user.measure(arguments.baseline).await;
    failures.extend(report("after", &after, Some(&baseline), memory));
    failures
}

/// Prints what a phase measured. Returns a line for the failed calls, if there are any.
fn report(
    phase: &str,
    latencies: &Latencies,
    baseline: Option<&Calls>,
    memory: &Memory,
) -> Option<String> {
    latencies.print(phase, baseline);
    memory.print(phase);
    latencies.failure(phase)
}

/// The gateway's URL, if it is an address of this machine.
fn loopback(gateway: &str) -> anyhow::Result<reqwest::Url> {
    let url: reqwest::Url = gateway.parse()?;
    let host = url.host_str().unwrap_or_default();
    let local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    ensure!(local, "the gateway at {gateway} is not on this machine");
    Ok(url)
}
