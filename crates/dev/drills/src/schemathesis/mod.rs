//! `cargo xtask schemathesis`: tests a system against its OpenAPI document, with
//! [schemathesis](https://schemathesis.readthedocs.io).
//!
//! All random choices come from a seed that is printed first. The command starts its own system and removes it
//! at the end. Every check of the tool is on, except for those that `schemathesis.toml` turns off with a reason.

mod tool;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use local_stack::random;

use rig::duration::parse_duration;
use rig::interrupt;
use rig::output::{announce_seed, say, verdict};
use rig::own::with_own_system;
use rig::programs::Source;
use rig::system::{Options, System};
use rig::workspace::{Profile, Workspace};

const USER: &str = "schemathesis.user@example.com";
const PASSWORD: &str = "a password of 30 characters ok";

/// Settings for the tool, which is a single client and causes many hashes. Most of its webhook URLs lead nowhere.
const SETTINGS: [(&str, &str); 4] = [
    ("RATE_LIMIT", "off"),
    ("BCRYPT_COST", "4"),
    ("WEBHOOK_TIMEOUT", "2s"),
    ("GATEWAY_LONGEST_WAIT", "1s"),
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
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let seed = arguments.seed.unwrap_or_else(random::seed);
    announce_seed("schemathesis", seed);
    let test = |workspace: &_| test(workspace, arguments, seed);
    let passed = with_own_system("schemathesis", test, |passed| *passed)?;
    if !passed {
        announce_seed("schemathesis", seed);
    }
    Ok(verdict("schemathesis", passed))
}

/// Returns whether the system follows the document, for a user and for an administrator.
fn test(workspace: &Workspace, arguments: &Arguments, seed: u64) -> anyhow::Result<bool> {
    let program = tool::install(workspace)?;
    let options = Options::own(Source::Build(Profile::Dev));
    let mut system = System::plan(workspace, &options)?;
    system.set_all(&SETTINGS);
    system.start()?;
    let user = system.client().sign_up(USER, PASSWORD)?;
    let admin = system.sign_in_admin()?;
    let protected = [&user, &admin].map(|one| format!("{},{}", one.id, one.email.to_lowercase()));
    let (protected, duration) = (protected.join(","), arguments.duration / 2);
    let mut passed = true;
    for (title, actor) in [("a user", &user), ("an administrator", &admin)] {
        say(&format!("testing with the token of {title}"));
        passed &= tool::run(&program, &system, actor, &protected, seed, duration)?;
        interrupt::check()?;
        system.ensure_all_alive()?;
    }
    Ok(passed)
}
