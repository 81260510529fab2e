//! `cargo xtask check`: dependencies between packages, layers and modules follow the architecture.

mod cycles;
mod layers;
mod packages;
mod source;

use std::process::ExitCode;

use crate::build::root;
use crate::report;

pub(crate) fn run() -> Result<ExitCode, String> {
    let folders = packages::all()?;
    let mut errors = packages::check(&folders)?;
    for folder in &folders {
        let sources = root().join(folder).join("src");
        if !sources.is_dir() {
            // It has only tests.
            continue;
        }
        let package = source::read(&sources)?;
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
