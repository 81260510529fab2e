//! The project's folders, and cargo in them.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use cargo_metadata::Message;
use local_stack::private;

use crate::output::say;

/// The paths of programs by their names.
pub type Programs = BTreeMap<String, PathBuf>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Quickly.
    Dev,
    /// With nearly all optimisations, as in images.
    Image,
    /// With all optimisations, which takes many minutes: for measurements.
    Release,
}

/// The folders of the project and of one system.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub root: PathBuf,
    /// The folder for all files of the system.
    pub local: PathBuf,
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

    pub fn at(root: &Path) -> Self {
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

    /// The data of Postgres and RabbitMQ.
    pub fn servers(&self) -> PathBuf {
        self.local.join("servers")
    }

    pub fn log(&self, process: &str) -> PathBuf {
        self.local.join("log").join(format!("{process}.log"))
    }

    /// Waits until no other command is running here whose folder has the same first part, which is the command's name.
    /// Dropping the returned file releases the lock.
    pub fn lock(&self, folder: &str) -> anyhow::Result<File> {
        let name = folder.split('/').next().unwrap_or_default();
        let path = self.local.join(format!("{name}.lock"));
        let failed = || format!("locking {}", path.display());
        private::create_reachable_folder(&self.local)?;
        let file = File::create(&path).with_context(failed)?;
        if file.try_lock().is_err() {
            say(&format!("waiting for another `cargo xtask {name}`"));
            file.lock().with_context(failed)?;
        }
        Ok(file)
    }

    /// Cargo in the folder of the sources.
    pub fn cargo(&self) -> Command {
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

    /// Builds `programs` of the workspace. Returns their paths by name.
    ///
    /// Cargo chooses the features of dependencies for all packages that are selected together. So the whole workspace is
    /// selected in each build, and no dependency is compiled twice.
    pub fn build(&self, programs: &[&str], profile: Profile) -> anyhow::Result<Programs> {
        let mut command = self.cargo();
        let profile = format!("{profile:?}").to_lowercase();
        command.args(["build", "--workspace", "--profile", &profile]);
        for program in programs {
            command.args(["--bin", program]);
        }
        Self::run_build(command)
    }

    /// Runs `command`, which is cargo with the arguments of a build. Returns the paths of the programs by their names.
    pub(crate) fn run_build(mut command: Command) -> anyhow::Result<Programs> {
        command.args(["--message-format", "json-render-diagnostics"]);
        let built = command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let built = built.output().context("running cargo build")?;
        ensure!(built.status.success(), "cargo build failed");
        let mut programs = Programs::new();
        for message in Message::parse_stream(built.stdout.as_slice()) {
            if let Message::CompilerArtifact(artifact) =
                message.context("reading cargo's messages")?
                && let Some(program) = artifact.executable
            {
                programs.insert(artifact.target.name, program.into_std_path_buf());
            }
        }
        ensure!(!programs.is_empty(), "cargo build built no program");
        Ok(programs)
    }
}
