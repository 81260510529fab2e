//! `cargo xtask schemathesis`: the OpenAPI document is held against the running system, by a tool that
//! others wrote: <https://schemathesis.readthedocs.io>.
//!
//! What holds: everything random comes from a seed that is printed first; the system is one of its own and
//! is gone afterwards; every check of the tool is on, but for what `schemathesis.toml` switches off with a
//! reason.

mod actors;
mod tool;

use std::{process::ExitCode, time::Duration};

use anyhow::ensure;
use clap::Args;
use local_stack::random;

use crate::{
    cleanup::{Keep, clean_up},
    duration::parse_duration,
    environment::Variables,
    interrupt::Interrupt,
    launch::{self, Wishes, say},
    paint,
    schemathesis::{
        actors::{Actor, Actors},
        tool::{Budget, Tool},
    },
    workspace::Workspace,
};

/// How the document is tried.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Repeats the choices of an earlier run. Without it a new one is drawn and printed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How long the fuzzing may take, as in `90s` or `10m`: half of it with the token of a user, half with
    /// that of an administrator. The examples and the corners of the document are tried however long it takes.
    #[arg(long, default_value = "4m", value_parser = parse_duration)]
    duration: Duration,
    /// Random requests for each operation.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_examples: Option<u32>,
    /// Try these operations only, as in `--operation 'GET /users'`. Can be repeated.
    #[arg(long, value_name = "OPERATION")]
    operation: Vec<String>,
    /// Build and run with optimisation.
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        // Short enough to be typed again.
        None => u64::from(u32::from_be_bytes(random::bytes()?)),
    };
    announce(arguments, seed);
    let interrupt = Interrupt::watch()?;
    let _alone = base.lock("schemathesis")?;
    let tool = Tool::install(&base)?;
    let workspace = base.aside("schemathesis");
    // Left behind by a run that was killed.
    clean_up(&workspace, Keep::Nothing)?;
    let outcome = perform(&workspace, arguments, seed, &tool, &interrupt);
    let holds = matches!(outcome, Ok(true));
    say("stopping everything");
    let keep = if holds || interrupt.came() {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(&workspace, keep)?;
    if outcome? {
        outln!("\nschemathesis: ok");
        return Ok(ExitCode::SUCCESS);
    }
    say("what the processes logged is in .local/schemathesis/log");
    announce(arguments, seed);
    outln!("\n{}", paint::red("schemathesis: failed"));
    Ok(ExitCode::FAILURE)
}

fn announce(arguments: &Arguments, seed: u64) {
    let mut command = format!(
        "cargo xtask schemathesis --seed {seed} --duration {}s",
        arguments.duration.as_secs()
    );
    if let Some(examples) = arguments.max_examples {
        command.push_str(&format!(" --max-examples {examples}"));
    }
    say(&format!("seed {seed}; the same again: {command}"));
}

/// Says whether the system did what the document says, to a user and to an administrator.
fn perform(
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
    tool: &Tool,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let [port] = local_stack::ports::free()?;
    let wishes = Wishes {
        release: arguments.release,
        port: Some(port),
        settings: settings(),
        ..Wishes::default()
    };
    let running = launch::start(workspace, &wishes, interrupt)?;
    let gateway = &running.stack.gateway;
    let actors = Actors::sign_up(gateway, &running.stack.admin)?;
    let budget = Budget {
        seed,
        duration: arguments.duration / 2,
        max_examples: arguments.max_examples,
        operations: &arguments.operation,
    };
    let mut holds = true;
    for actor in [Actor::User, Actor::Admin] {
        say(&format!("with the token of {}", actor.title()));
        holds &= tool.run(workspace, gateway, &actors, actor, &budget, interrupt)?;
        interrupt.check()?;
        let lost = running.processes.iter();
        let lost: Vec<&str> = lost
            .filter(|(_, identity)| !identity.is_alive())
            .map(|(planned, _)| planned.name.as_str())
            .collect();
        ensure!(lost.is_empty(), "{} ended by itself", lost.join(", "));
    }
    Ok(holds)
}

/// What differs from the usual settings: the tool is one client with one address, and hashes a lot.
fn settings() -> Variables {
    Variables::from([
        ("RATE_LIMIT", "off".to_owned()),
        ("BCRYPT_COST", "4".to_owned()),
        // An address that the tool made up is not waited for.
        ("WEBHOOK_TIMEOUT", "2s".to_owned()),
    ])
}
