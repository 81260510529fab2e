//! Finds the programs of Postgres and RabbitMQ, and installs missing packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use crate::process::succeeds;

/// A package of the operating system that this project needs: its name, and whether it is installed.
pub struct Need(&'static str, fn() -> bool);

impl Need {
    pub const POSTGRES: Self = Self("postgresql", || postgres_programs().is_ok());
    pub const RABBITMQ: Self = Self("rabbitmq-server", || {
        rabbitmq_server().is_ok() && on_path("epmd").is_some()
    });
    /// The Postgres client library and its headers, which diesel links against.
    pub const CLIENT_LIBRARY: Self = Self("libpq-dev", has_client_library);
    pub const PSQL: Self = Self("postgresql-client", || postgres_client("psql").is_ok());
    /// The browser in which the pages are tested.
    pub const CHROMIUM: Self = Self("chromium", || {
        let browsers = ["chromium", "chromium-browser", "google-chrome"];
        browsers.into_iter().any(|name| on_path(name).is_some())
    });
    /// The program by which tests control the browser.
    pub const CHROME_DRIVER: Self = Self("chromium-driver", || on_path("chromedriver").is_some());
    /// Python with virtual environments, for tools written in Python.
    pub const PYTHON_VENV: Self = Self("python3-venv", || {
        succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"]))
    });
    /// A proxy with which the gateway is compared.
    pub const HAPROXY: Self = Self("haproxy", || system_program("haproxy").is_ok());
    /// A web server and proxy with which the gateway is compared.
    pub const NGINX: Self = Self("nginx-light", || system_program("nginx").is_ok());
}

/// Installs the missing packages of `needs` with `apt-get`, and reports this to `say`. The servers of the
/// packages are started neither now nor at the next boot. If it cannot, the error has the command to run by hand.
pub fn ensure(needs: &[Need], say: &dyn Fn(&str)) -> Result<()> {
    let missing = || {
        let missing = needs.iter().filter(|Need(_, is_installed)| !is_installed());
        missing.map(|Need(package, _)| *package).collect::<Vec<_>>()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    let mut command = installer(&names)?;
    say(&format!("installing with apt-get: {names}"));
    let status = command
        .args(["-c", include_str!("install.sh"), "install"])
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

pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    first_file(std::env::split_paths(&path), name)
}

fn first_file(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let mut files = folders.into_iter().map(|folder| folder.join(name));
    files.find(|file| file.is_file())
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

pub fn postgres_client(name: &str) -> Result<PathBuf> {
    let found = first_file(postgres_programs(), name).or_else(|| on_path(name));
    found.with_context(|| format!("cannot find {name}"))
}

/// Returns a program that may be in a folder that only the `PATH` of root has.
pub fn system_program(name: &str) -> Result<PathBuf> {
    let in_sbin = || first_file([PathBuf::from("/usr/sbin")], name);
    let found = on_path(name).or_else(in_sbin);
    found.with_context(|| format!("cannot find {name}"))
}

/// Returns RabbitMQ's own start script. Debian's wrapper in `/usr/sbin` does not work here: it drops the
/// environment that tells the server which folder and ports to use.
pub fn rabbitmq_server() -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten();
    let in_versions = versions.flatten().map(|entry| entry.path().join("sbin"));
    let others = ["/usr/lib/rabbitmq/bin", "/opt/rabbitmq/sbin"].map(PathBuf::from);
    let found = first_file(in_versions.chain(others), "rabbitmq-server");
    found.context("cannot find the RabbitMQ server")
}

fn has_client_library() -> bool {
    let folders = [
        "/usr/include/postgresql",
        "/usr/include",
        "/usr/local/include",
    ];
    let header = first_file(folders.map(PathBuf::from), "libpq-fe.h");
    header.is_some() || std::env::var_os("PQ_LIB_DIR").is_some()
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
