//! The project's folders, and cargo in them.

use std::{
    collections::BTreeMap,
    env,
    fs::File,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use cargo_metadata::Message;
use local_stack::private;

use crate::output::say;

/// The folders of the project and of one system.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    local: PathBuf,
}

impl Workspace {
    /// The workspace that this program belongs to.
    pub fn find() -> anyhow::Result<Self> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => env::current_dir().context("finding the current folder")?,
        };
        let root = start
            .ancestors()
            .find(|folder| folder.join("Cargo.lock").is_file() && folder.join("services").is_dir())
            .with_context(|| format!("{} is not in the project's folder", start.display()))?;
        Ok(Self::at(root))
    }

    /// A workspace in a known folder.
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            local: root.join(".local"),
        }
    }

    /// Returns a workspace for another system with the same sources, whose files are in `.local/<name>`.
    pub fn aside(&self, name: &str) -> Self {
        Self {
            root: self.root.clone(),
            local: self.local.join(name),
        }
    }

    /// The folder of the sources.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder for all files of the system.
    pub fn local(&self) -> PathBuf {
        self.local.clone()
    }

    /// The data of Postgres and RabbitMQ.
    pub fn servers(&self) -> PathBuf {
        self.local().join("servers")
    }

    pub(crate) fn test_servers(&self) -> PathBuf {
        self.local().join("test-servers")
    }

    /// The log of a process.
    pub fn log(&self, process: &str) -> PathBuf {
        self.local().join("log").join(format!("{process}.log"))
    }

    pub(crate) fn secret(&self, name: &str) -> PathBuf {
        self.local().join("secrets").join(name)
    }

    /// Waits until no other command of this name is running here. Dropping the returned file releases the lock.
    pub fn lock(&self, name: &str) -> anyhow::Result<File> {
        let path = self.local().join(format!("{name}.lock"));
        let failed = || format!("locking {}", path.display());
        private::create_reachable_folder(&self.local())?;
        let file = File::create(&path).with_context(failed)?;
        if file.try_lock().is_err() {
            say(&format!("waiting for another `cargo xtask {name}`"));
            file.lock().with_context(failed)?;
        }
        Ok(file)
    }

    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        // Cargo sets these for the program that it runs, and another cargo must not see them.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| {
                name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
            }) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Replaces this process by `cargo run` with `options`, so that signals reach the program. Returns only on
    /// an error.
    pub(crate) fn exec_run(&self, options: &[&str], arguments: &[String]) -> anyhow::Error {
        let error = self
            .cargo()
            .args(["run", "--quiet"])
            .args(options)
            .arg("--")
            .args(arguments)
            .exec();
        anyhow::Error::new(error).context("running cargo")
    }

    /// Builds the programs of `packages`. Returns their paths by name.
    pub(crate) fn build(
        &self,
        packages: &[&str],
        release: bool,
    ) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        Self::run_build(self.cargo(), packages, release)
    }

    /// Builds the programs of `packages` with this `command`, which runs cargo. Returns their paths by name.
    pub(crate) fn run_build(
        mut command: Command,
        packages: &[&str],
        release: bool,
    ) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        command.args([
            "build",
            "--bins",
            "--message-format",
            "json-render-diagnostics",
        ]);
        for package in packages {
            command.args(["--package", package]);
        }
        if release {
            command.arg("--release");
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("running cargo build")?;
        let output = child.stdout.take().context("cargo build has no output")?;
        let mut programs = BTreeMap::new();
        for message in Message::parse_stream(std::io::BufReader::new(output)) {
            if let Message::CompilerArtifact(artifact) =
                message.context("reading cargo's messages")?
                && let Some(program) = artifact.executable
            {
                programs.insert(artifact.target.name, program.into_std_path_buf());
            }
        }
        let status = child.wait().context("waiting for cargo build")?;
        ensure!(status.success(), "cargo build failed");
        if programs.is_empty() {
            bail!("cargo build built no program");
        }
        Ok(programs)
    }
}
