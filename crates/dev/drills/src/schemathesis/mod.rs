//! `cargo xtask schemathesis`: tests a system against its OpenAPI document, with
//! [schemathesis](https://schemathesis.readthedocs.io).
//!
//! All random choices come from a seed that is printed first. The command starts its own system and removes it
//! at the end. Every check of the tool is on, except for those that `schemathesis.toml` turns off with a reason.

mod tool;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use local_stack::random;

use self::tool::{Budget, Tool};
use rig::{
    duration::parse_duration,
    interrupt::Interrupt,
    output::{announce_seed, say, verdict},
    own::with_own_system,
    system::{Options, Source, System},
    workspace::Workspace,
};

const USER: &str = "schemathesis.user@example.com";
const PASSWORD: &str = "a password of 30 characters ok";

/// Settings for the tool, which is a single client and causes many hashes. Most of its webhook URLs lead nowhere.
const SETTINGS: [(&str, &str); 3] = [
    ("RATE_LIMIT", "off"),
    ("BCRYPT_COST", "4"),
    ("WEBHOOK_TIMEOUT", "2s"),
];

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
        None => random::seed()?,
    };
    announce_seed("schemathesis", seed);
    let test = |workspace: &_, interrupt: &_| {
        let tool = Tool::install(&base)?;
        test(workspace, arguments, seed, &tool, interrupt)
    };
    let passed = with_own_system(&base, "schemathesis", test, |passed| *passed)?;
    if !passed {
        announce_seed("schemathesis", seed);
    }
    Ok(verdict("schemathesis", passed))
}

/// Returns whether the system follows the document, for a user and for an administrator.
fn test(
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
    tool: &Tool,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let options = Options::own(Source::of(None, arguments.release));
    let system = System::start(workspace, &options, interrupt, |plan, _| {
        plan.set_all(&SETTINGS);
        Ok(())
    })?;
    let (client, admin) = (system.client(), &system.admin);
    let user = client.sign_up(USER, PASSWORD)?;
    let admin = client.sign_in(&admin.username, &admin.password)?;
    let budget = Budget {
        seed,
        duration: arguments.duration / 2,
        max_examples: arguments.max_examples,
        operations: &arguments.operation,
        protected: [&user, &admin].map(|one| format!("{},{}", one.id, one.email.to_lowercase())),
    };
    let mut passed = true;
    for (title, actor) in [("a user", &user), ("an administrator", &admin)] {
        say(&format!("testing with the token of {title}"));
        passed &= tool.run(workspace, &system.gateway, actor, &budget, interrupt)?;
        interrupt.check()?;
        system.ensure_all_alive()?;
    }
    Ok(passed)
}
