//! `cargo xtask bench`: measures the time from decisions at the gateway of a running system to webhooks at
//! receivers of this program.
//!
//! Accounts, tasks and webhooks are prepared before the measurement. Then each scenario decides tasks and waits
//! until all webhooks have arrived. Nothing is asserted, because results depend on the machine.

mod caller;
mod figures;
mod receivers;
mod scenario;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;

use crate::caller::Caller;
use crate::receivers::Receivers;
use crate::scenario::{Burst, Steady};

/// Measures how fast decisions are made and webhooks delivered.
#[derive(Debug, Parser)]
struct Arguments {
    /// The gateway's URL.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    gateway: String,
    /// Tasks that are decided as fast as possible, with one webhook each.
    #[arg(long, default_value_t = 10_000)]
    single: usize,
    /// Tasks that are decided as fast as possible, with ten webhooks each.
    #[arg(long, default_value_t = 2_000)]
    tenfold: usize,
    /// Tasks that are decided at `--rate`, with one webhook each.
    #[arg(long, default_value_t = 400)]
    steady: usize,
    /// Decisions per second for `--steady`.
    #[arg(long, default_value_t = 20.0)]
    rate: f64,
    /// Concurrent calls.
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Receivers, each on its own port.
    #[arg(long, default_value_t = 1)]
    receivers: usize,
    /// Seconds between the preparation and the measurement, for example to stop a worker.
    #[arg(long, default_value_t = 0)]
    pause: u64,
}

fn main() -> anyhow::Result<()> {
    // The TLS library needs it even without TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments = Arguments::parse();
    actix_web::rt::System::new().block_on(run(arguments))
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let receivers = Arc::new(Receivers::start(arguments.receivers)?);
    let caller = Caller::sign_up(&arguments.gateway, arguments.concurrency)
        .await
        .context("signing up at the gateway")?;
    let pause = Duration::from_secs(arguments.pause);
    let steady = Steady {
        tasks: arguments.steady,
        interval: Duration::from_secs_f64(1.0 / arguments.rate.max(0.001)),
    };
    report(
        &format!("{} decisions per second", arguments.rate),
        steady.measure(&caller, &receivers).await?,
    )?;
    for (tasks, webhooks, name) in [
        (arguments.single, 1, "one webhook for each decision"),
        (arguments.tenfold, 10, "ten webhooks for each decision"),
    ] {
        let burst = Burst {
            tasks,
            webhooks,
            concurrency: arguments.concurrency,
            pause,
        };
        report(name, burst.measure(&caller, &receivers).await?)?;
    }
    Ok(())
}

fn report(name: &str, lines: Vec<String>) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{name}")?;
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}
