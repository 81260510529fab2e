//! The machine and the versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use local_stack::packages;

use crate::context::Context;
use crate::proxies::{HAPROXY, NGINX};

/// Returns what a reader must know to repeat the run, each with its name.
pub(crate) async fn describe(context: &Context) -> anyhow::Result<Vec<(String, String)>> {
    let postgres = context.system.database.version().await?;
    let commit = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    let mut environment = vec![
        ("commit", commit),
        ("processor", processor()),
        ("memory", memory()),
        ("kernel", first_line("uname", &["-sr"])),
        ("compiler", first_line("rustc", &["--version"])),
        ("Postgres", postgres),
        ("RabbitMQ", rabbitmq()),
    ];
    environment.extend([HAPROXY, NGINX].map(|name| ("proxy", proxy_version(name))));
    environment.retain(|(_, value)| !value.is_empty());
    let named = environment.into_iter();
    Ok(named
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}

fn processor() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&text, "model name");
    format!("{model}, {cores} cores")
        .trim_start_matches(", ")
        .to_owned()
}

fn memory() -> String {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = field(&text, "MemTotal").replace(" kB", "").parse::<u64>();
    kibibytes.map_or_else(|_| String::new(), |size| format!("{} MiB", size / 1024))
}

fn field(text: &str, name: &str) -> String {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find(|(key, _)| key.trim() == name);
    value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or_default().to_owned()
}

/// nginx prints it as an error.
fn proxy_version(name: &str) -> String {
    let program = packages::system_program(name).unwrap_or_else(|_| name.into());
    let output = Command::new(program).arg("-v").output();
    let text = output.map_or_else(
        |_| Vec::new(),
        |output| [output.stdout, output.stderr].concat(),
    );
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or_default().to_owned()
}

/// The version that the server's folder names, because asking the server takes seconds.
fn rabbitmq() -> String {
    let Ok(script) = packages::rabbitmq_server() else {
        return String::new();
    };
    let folder = script.ancestors().nth(2).and_then(Path::file_name);
    let name = folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    name.trim_start_matches("rabbitmq_server-").to_owned()
}
