//! Finds the programs of Postgres and RabbitMQ, and installs missing packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use crate::process::succeeds;

/// A package of the operating system that this project needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The server programs of Postgres.
    Postgres,
    /// RabbitMQ with Erlang.
    RabbitMq,
    /// The Postgres client library and its headers, which diesel links against.
    ClientLibrary,
    /// The command line client of Postgres.
    Psql,
    /// The browser in which the pages are tested.
    Chromium,
    /// The program by which tests control the browser.
    ChromeDriver,
    /// Python with virtual environments, for tools written in Python.
    PythonVenv,
    /// A proxy with which the gateway is compared.
    HaProxy,
    /// A web server and proxy with which the gateway is compared.
    Nginx,
}

impl Need {
    /// The package, and whether it is installed.
    fn state(self) -> (&'static str, bool) {
        let any = |names: &[&str]| names.iter().any(|name| on_path(name).is_some());
        let browsers = ["chromium", "chromium-browser", "google-chrome"];
        match self {
            Self::Postgres => ("postgresql", postgres_programs().is_ok()),
            Self::RabbitMq => (
                "rabbitmq-server",
                rabbitmq_server().is_ok() && any(&["epmd"]),
            ),
            Self::ClientLibrary => ("libpq-dev", has_client_library()),
            Self::Psql => ("postgresql-client", postgres_client("psql").is_ok()),
            Self::Chromium => ("chromium", any(&browsers)),
            Self::ChromeDriver => ("chromium-driver", any(&["chromedriver"])),
            Self::PythonVenv => ("python3-venv", has_python_venv()),
            Self::HaProxy => ("haproxy", system_program("haproxy").is_ok()),
            Self::Nginx => ("nginx-light", system_program("nginx").is_ok()),
        }
    }
}

/// Installs the missing packages of `needs` with `apt-get`, and reports this to `say`. The servers of the
/// packages are started neither now nor at the next boot. If it cannot, the error has the command to run by hand.
pub fn ensure(needs: &[Need], say: &dyn Fn(&str)) -> Result<()> {
    let missing = || {
        let states = needs.iter().map(|need| need.state());
        let missing = states.filter(|(_, is_met)| !is_met);
        missing.map(|(package, _)| package).collect::<Vec<_>>()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    let mut command = installer(&names)?;
    say(&format!("installing with apt-get: {names}"));
    let status = command
        .args(["-c", INSTALL, "install"])
        .args(&packages)
        .stdin(Stdio::null())
        .status()
        .context("running apt-get")?;
    ensure!(
        status.success(),
        "apt-get install {names} failed ({status}): see its messages above"
    );
    if let Some(package) = missing().first() {
        bail!("cannot find {package}, although it was just installed");
    }
    Ok(())
}

fn has_python_venv() -> bool {
    succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"]))
}

/// Returns a shell that may install packages.
fn installer(names: &str) -> Result<Command> {
    let by_hand = |reason: &str| {
        anyhow!(
            "{names}: {reason}\nRun this command, and then try again:\n\n  \
             sudo apt-get update && sudo apt-get install --yes {names}\n"
        )
    };
    if on_path("apt-get").is_none() {
        return Err(by_hand("not installed, and there is no apt-get"));
    }
    if nix::unistd::geteuid().is_root() {
        return Ok(Command::new("sh"));
    }
    if succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut command = Command::new("sudo");
        command.args(["-n", "sh"]);
        return Ok(command);
    }
    Err(by_hand("not installed, and only root may install packages"))
}

/// `policy-rc.d` keeps the servers of the packages from starting during the installation, the file in
/// `createcluster.d` keeps Debian from creating a cluster, and `systemctl disable` keeps the servers from
/// starting at the next boot. Existing files are not changed.
const INSTALL: &str = r#"
set -eu
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/no-main-cluster.conf
cleanup() { rm -f ${made_policy:-} ${made_cluster:-}; }
trap cleanup EXIT
trap 'exit 130' INT TERM
if [ ! -e "$policy" ]; then
    made_policy=$policy
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
if [ ! -e "$cluster" ]; then
    made_cluster=$cluster
    mkdir -p "$(dirname "$cluster")"
    printf 'create_main_cluster = false\n' >"$cluster"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
if [ -d /run/systemd/system ]; then
    for package in "$@"; do
        case $package in
        postgresql | rabbitmq-server | haproxy) systemctl disable --now "$package" >/dev/null 2>&1 || true ;;
        nginx-light) systemctl disable --now nginx >/dev/null 2>&1 || true ;;
        esac
    done
fi
"#;

/// Returns where a program on the `PATH` is.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns the folder with `initdb` and `postgres`: that of the newest version in `/usr/lib/postgresql`, or one
/// on the `PATH`.
pub fn postgres_programs() -> Result<PathBuf> {
    let newest = newest_postgres(Path::new("/usr/lib/postgresql"));
    let on_path = || on_path("initdb").and_then(|file| file.parent().map(Path::to_owned));
    newest
        .or_else(on_path)
        .filter(|folder| folder.join("postgres").is_file())
        .context("cannot find the server programs of Postgres")
}

fn newest_postgres(root: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(root).ok()?.flatten().filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let programs = entry.path().join("bin");
        let has_server = programs.join("initdb").is_file();
        has_server.then_some((version, programs))
    });
    versions.max().map(|(_, programs)| programs)
}

/// Returns a client program of Postgres, such as `psql`.
pub fn postgres_client(name: &str) -> Result<PathBuf> {
    postgres_programs()
        .ok()
        .map(|folder| folder.join(name))
        .filter(|file| file.is_file())
        .or_else(|| on_path(name))
        .with_context(|| format!("cannot find {name}"))
}

/// Returns a program that may be in a folder that only the `PATH` of root has.
pub fn system_program(name: &str) -> Result<PathBuf> {
    let in_sbin = Path::new("/usr/sbin").join(name);
    on_path(name)
        .or_else(|| in_sbin.is_file().then_some(in_sbin))
        .with_context(|| format!("cannot find {name}"))
}

/// Returns RabbitMQ's own start script. Debian's wrapper in `/usr/sbin` does not work here: it drops the
/// environment that tells the server which folder and ports to use.
pub fn rabbitmq_server() -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten();
    let in_versions = versions.flatten().map(|entry| entry.path().join("sbin"));
    let others = ["/usr/lib/rabbitmq/bin", "/opt/rabbitmq/sbin"].map(PathBuf::from);
    in_versions
        .chain(others)
        .map(|folder| folder.join("rabbitmq-server"))
        .find(|file| file.is_file())
        .context("cannot find the RabbitMQ server")
}

fn has_client_library() -> bool {
    let folders = [
        "/usr/include/postgresql",
        "/usr/include",
        "/usr/local/include",
    ];
    let has_header = |folder| Path::new(folder).join("libpq-fe.h").is_file();
    folders.into_iter().any(has_header) || std::env::var_os("PQ_LIB_DIR").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "junk"] {
            let folder = root.path().join(version).join("bin");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("initdb"), "").unwrap();
        }
        assert_eq!(
            newest_postgres(root.path()),
            Some(root.path().join("15/bin"))
        );
    }
}
