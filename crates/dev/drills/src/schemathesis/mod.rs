//! `cargo xtask schemathesis`: tests a system against its OpenAPI document, with
//! [schemathesis](https://schemathesis.readthedocs.io).
//!
//! All random choices come from a seed that is printed first. The command starts its own system and removes it
//! at the end. Every check of the tool is on, except for those that `schemathesis.toml` turns off with a reason.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use local_stack::{Need, output_of, packages, random, succeeds};
use rig::{
    Options, Person, Profile, Source, System, Workspace, announce_seed, interrupt, parse_duration,
    say, verdict, with_own_system,
};

/// The version of the tool, a Python program that is installed in `target/tools`.
const VERSION: &str = "4.32.5";
const USER: &str = "schemathesis.user@example.com";
const PASSWORD: &str = "a password of 30 characters ok";

/// Settings for the tool, which is a single client and causes many hashes. Most of its webhook URLs lead nowhere.
const SETTINGS: [(&str, &str); 4] = [
    ("RATE_LIMIT", "off"),
    ("BCRYPT_COST", "4"),
    ("WEBHOOK_TIMEOUT", "2s"),
    ("GATEWAY_LONGEST_WAIT", "1s"),
];

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

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
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
fn test(workspace: &Workspace, arguments: &Arguments, seed: u64) -> Result<bool> {
    let program = install(workspace)?;
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
        passed &= run_tool(&program, &system, actor, &protected, seed, duration)?;
        interrupt::check()?;
        system.ensure_all_alive()?;
    }
    Ok(passed)
}

/// Installs the pinned version from PyPI if it is missing. Returns the program.
fn install(workspace: &Workspace) -> Result<PathBuf> {
    let place = workspace.root.join("target/tools/schemathesis");
    let place = place.join(VERSION);
    let program = place.join("bin/schemathesis");
    if succeeds(Command::new(&program).arg("--version")) {
        return Ok(program);
    }
    packages::ensure(&[Need::PYTHON_VENV], &say)?;
    say(&format!("installing schemathesis {VERSION} from PyPI"));
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&place);
    let mut install = Command::new(place.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet"]);
    install.arg(format!("schemathesis=={VERSION}"));
    for command in [&mut create, &mut install] {
        output_of(command).context(
            "schemathesis cannot be installed: python3 with venv and access to PyPI are required",
        )?;
    }
    Ok(program)
}

/// Runs all phases with all checks. No request may change or delete a user whose identifier or address is in `protected`.
/// Returns whether no check failed.
fn run_tool(
    program: &Path,
    system: &System,
    actor: &Person,
    protected: &str,
    seed: u64,
    duration: Duration,
) -> Result<bool> {
    let (gateway, root) = (&system.gateway, &system.workspace.root);
    let folder = root.join("crates/dev/drills/src/schemathesis");
    let mut command = Command::new(program);
    command
        // The tool creates folders in the working directory.
        .current_dir(&system.workspace.local)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", folder.join("hooks.py"))
        .env("ACTOR_USERNAME", &actor.email)
        .env("ACTOR_PASSWORD", &actor.password)
        .env("GATEWAY", gateway)
        .env("PROTECTED_USERS", protected)
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", "--no-color"])
        .args(["--phases", "examples,coverage,fuzzing,stateful"])
        .args(["--generation-database", "none", "--continue-on-failure"])
        .args(["--seed", &seed.to_string()])
        .args(["--max-time", &duration.as_secs().to_string()]);
    command.arg(format!("{gateway}/openapi.json"));
    let child = command.stdin(Stdio::null()).spawn();
    let status = interrupt::wait_for(child.context("running schemathesis")?)?;
    Ok(status.success())
}
