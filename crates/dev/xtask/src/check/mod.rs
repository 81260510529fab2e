//! `cargo xtask check`: dependencies between packages, layers and modules follow the architecture.

mod cycles;
mod layers;
mod packages;
mod source;

use std::{fs, path::Path, process::ExitCode};

use self::source::Package;
use crate::{build::root, report};

/// The folders with packages. Each is either a package or has them as its folders.
const FOLDERS: [&str; 5] = [
    "all-services",
    "crates",
    "crates/dev",
    "gateway",
    "services",
];

pub(crate) fn run() -> Result<ExitCode, String> {
    let folders = packages()?;
    let mut errors = packages::check(&folders)?;
    for folder in &folders {
        let sources = root().join(folder).join("src");
        if !sources.is_dir() {
            // It has only tests.
            continue;
        }
        let package = Package::read(&sources)?;
        errors.extend(layers::check(folder, &package));
        errors.extend(cycles::check(folder, &package));
    }
    for error in &errors {
        report(&format!("error: {error}"));
    }
    if errors.is_empty() {
        report("==> packages, layers and modules follow the rules");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// The folder of each package, such as `crates/values`.
fn packages() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let within = names(&root().join(folder))?;
        let within = within.iter().map(|name| format!("{folder}/{name}"));
        let is_package = |folder: &String| root().join(folder).join("Cargo.toml").is_file();
        found.extend(
            [folder.to_owned()]
                .into_iter()
                .chain(within)
                .filter(is_package),
        );
    }
    Ok(found)
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error| format!("reading {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("reading {}: {error}", file.display()))
}
