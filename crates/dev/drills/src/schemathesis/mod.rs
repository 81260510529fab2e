//! `cargo xtask schemathesis`: tests a system against its OpenAPI document, with
//! [schemathesis](https://schemathesis.readthedocs.io).
//!
//! All random choices come from a seed that is printed first. The command starts its own system and removes it
//! at the end. Every check of the tool is on, except for those that `schemathesis.toml` turns off with a reason.

mod actors;
mod tool;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use local_stack::random;

use self::{
    actors::{Actor, Actors},
    tool::{Budget, Tool},
};
use rig::{
    cleanup::with_own_system,
    duration::parse_duration,
    environment::Variables,
    interrupt::Interrupt,
    launch::{self, LaunchOptions},
    outln,
    output::say,
    paint,
    processes::ensure_all_alive,
    workspace::Workspace,
};

/// What to test.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Repeats the random choices of an earlier run. The default is a new seed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The limit for fuzzing, such as `90s` or `10m`: half of it with a user's token, half with an
    /// administrator's. Examples and edge cases of the document take as long as they need.
    #[arg(long, default_value = "4m", value_parser = parse_duration)]
    duration: Duration,
    /// Random requests for each operation.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_examples: Option<u32>,
    /// Test only these operations, as in `--operation 'GET /users'`. Can be repeated.
    #[arg(long, value_name = "OPERATION")]
    operation: Vec<String>,
    /// Build and run with optimisations.
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
    let _lock = base.lock("schemathesis")?;
    let tool = Tool::install(&base)?;
    let workspace = base.aside("schemathesis");
    let test = || test(&workspace, arguments, seed, &tool, &interrupt);
    if with_own_system(&workspace, &interrupt, test, |passed| *passed)? {
        outln!("\nschemathesis: ok");
        return Ok(ExitCode::SUCCESS);
    }
    say("the logs of the processes are in .local/schemathesis/log");
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
    say(&format!("seed {seed}; to repeat this run: {command}"));
}

/// Returns whether the system follows the document, for a user and for an administrator.
fn test(
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
    tool: &Tool,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let [port] = local_stack::ports::free()?;
    let options = LaunchOptions {
        optimised: arguments.release,
        port: Some(port),
        settings: settings(),
        ..LaunchOptions::default()
    };
    let running = launch::start(workspace, &options, interrupt)?;
    let gateway = &running.stack.gateway;
    let actors = Actors::sign_up(gateway, &running.stack.admin)?;
    let budget = Budget {
        seed,
        duration: arguments.duration / 2,
        max_examples: arguments.max_examples,
        operations: &arguments.operation,
    };
    let mut passed = true;
    for actor in [Actor::User, Actor::Admin] {
        say(&format!("testing with the token of {}", actor.title()));
        passed &= tool.run(workspace, gateway, &actors, actor, &budget, interrupt)?;
        interrupt.check()?;
        ensure_all_alive(&running.processes)?;
    }
    Ok(passed)
}

/// Settings for the tool, which is a single client and causes many hashes.
fn settings() -> Variables {
    Variables::from([
        ("RATE_LIMIT", "off".to_owned()),
        ("BCRYPT_COST", "4".to_owned()),
        // Most webhook URLs of the tool lead nowhere.
        ("WEBHOOK_TIMEOUT", "2s".to_owned()),
    ])
}
