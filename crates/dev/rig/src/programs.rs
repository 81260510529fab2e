//! The programs of the system: built, and copied under the names of their processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use local_stack::private;

use crate::output::say;
use crate::plan::{self, ALL_SERVICES, PACKAGES, names_of_services};
use crate::workspace::{Profile, Programs, Workspace};

#[derive(Debug, Clone, Copy)]
pub enum Source<'run> {
    Build(Profile),
    Folder(&'run Path),
    /// They were built, and copied.
    Copied(&'run Programs),
}

impl<'run> Source<'run> {
    /// For the option `--programs`.
    pub fn of(folder: Option<&'run Path>) -> Self {
        folder.map_or(Self::Build(Profile::Dev), Self::Folder)
    }
}

pub fn get(workspace: &Workspace, source: Source<'_>) -> anyhow::Result<Programs> {
    let found = match source {
        Source::Build(profile) => build(workspace, profile)?,
        Source::Folder(folder) => plan::names()
            .map(|name| (name.to_owned(), folder.join(name)))
            .collect(),
        Source::Copied(programs) => return Ok(programs.clone()),
    };
    copy(workspace, found)
}

fn build(workspace: &Workspace, profile: Profile) -> anyhow::Result<Programs> {
    say(match profile {
        Profile::Dev => "building the system; the first time takes some minutes",
        Profile::Image | Profile::Release => {
            "building the optimised system; the first time takes many minutes"
        }
    });
    let start = Instant::now();
    let programs = with_services(workspace.build(&PACKAGES, profile)?)?;
    say(&format!("built in {:.1} s", start.elapsed().as_secs_f64()));
    Ok(programs)
}

/// Builds the programs of other sources. What is compiled is kept in the folder `target`.
pub fn build_other(sources: &Path, target: &Path) -> anyhow::Result<Programs> {
    let mut command = Workspace::at(sources).cargo();
    command.env("CARGO_TARGET_DIR", target);
    command.args(["build", "--bins"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    with_services(Workspace::run_build(command)?)
}

/// Lists the program of all services by the name of each.
fn with_services(mut programs: Programs) -> anyhow::Result<Programs> {
    let all_services = programs.remove(ALL_SERVICES);
    let all_services =
        all_services.with_context(|| format!("cargo did not build {ALL_SERVICES}"))?;
    programs.extend(names_of_services().map(|name| (name.to_owned(), all_services.clone())));
    Ok(programs)
}

/// Copies the programs, so that a build during the run does not change them.
pub fn copy(workspace: &Workspace, programs: Programs) -> anyhow::Result<Programs> {
    private::create_reachable_folder(&workspace.local)?;
    let folder = workspace.local.join("bin");
    private::remove_folder(&folder)?;
    private::create_folder(&folder)?;
    let mut copies = BTreeMap::new();
    let copy = |(name, built): (String, PathBuf)| {
        let program =
            fs::canonicalize(&built).with_context(|| format!("finding {}", built.display()))?;
        let target = folder.join(&name);
        let created = match copies.get(&program) {
            // Links to one file share its memory.
            Some(copied) => fs::hard_link(copied, &target),
            // A copy rather than a link: the linker may write into the existing file.
            None => fs::copy(&program, &target).map(drop),
        };
        created.with_context(|| format!("creating {}", target.display()))?;
        copies.insert(program, target.clone());
        Ok((name, target))
    };
    programs.into_iter().map(copy).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::{ALL_SERVICES, copy, with_services};
    use crate::workspace::{Programs, Workspace};

    #[test]
    fn copies_of_services_are_links_to_one_copy() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("all-services");
        fs::write(&program, "a program").unwrap();
        let workspace = Workspace::at(folder.path());
        // The second time, the files exist.
        for _ in 0..2 {
            let built = Programs::from([(ALL_SERVICES.to_owned(), program.clone())]);
            let services = with_services(built).unwrap();
            let names: Vec<_> = services.keys().map(String::as_str).collect();
            let expected = [
                "deletion-worker",
                "notification-worker",
                "people-task-service",
                "user-service",
                "webhook-worker",
            ];
            assert_eq!(names, expected);
            let copies = copy(&workspace, services).unwrap();
            let mut files: Vec<_> = copies
                .values()
                .map(|copy| fs::metadata(copy).unwrap().ino())
                .collect();
            files.dedup();
            assert_eq!(files.len(), 1);
            assert_ne!(files[0], fs::metadata(&program).unwrap().ino());
        }
    }
}
