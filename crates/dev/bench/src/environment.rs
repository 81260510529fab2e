//! The machine and the versions.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;
use local_stack::packages;
use procfs::{CpuInfo, Current as _, Meminfo};

use crate::context::Context;
use crate::proxies::{HAPROXY, NGINX};

/// Returns what a reader must know to repeat the run, each with its name.
pub(crate) async fn describe(context: &Context) -> Result<Vec<(String, String)>> {
    let postgres = context.query("SHOW server_version").await?;
    let commit = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    let environment = [
        ("commit", commit),
        ("processor", Some(processor())),
        ("memory", memory()),
        ("kernel", first_line("uname", &["-sr"])),
        ("compiler", first_line("rustc", &["--version"])),
        ("Postgres", Some(postgres)),
        ("RabbitMQ", rabbitmq()),
        ("proxy", proxy_version(HAPROXY)),
        ("proxy", proxy_version(NGINX)),
    ];
    let known = environment.into_iter();
    let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(known.collect())
}

fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = CpuInfo::current().ok();
    match info.as_ref().and_then(|info| info.model_name(0)) {
        Some(model) => format!("{model}, {cores} cores"),
        None => format!("{cores} cores"),
    }
}

fn memory() -> Option<String> {
    let bytes = Meminfo::current().ok()?.mem_total;
    Some(format!("{} MiB", bytes / 1024 / 1024))
}

/// The first line that a program prints. nginx prints its version as an error.
fn first_line(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let printed = [output.stdout, output.stderr].concat();
    let line = String::from_utf8_lossy(&printed).lines().next()?.to_owned();
    output.status.success().then_some(line)
}

fn proxy_version(name: &str) -> Option<String> {
    first_line(packages::system_program(name).ok()?, &["-v"])
}

/// The version that the server's folder names, because asking the server takes seconds.
fn rabbitmq() -> Option<String> {
    let script = packages::rabbitmq_server().ok()?;
    let folder = script.ancestors().nth(2)?.file_name()?.to_str()?;
    Some(folder.trim_start_matches("rabbitmq_server-").to_owned())
}
