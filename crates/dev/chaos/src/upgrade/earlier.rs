//! The programs of an earlier revision, built in a worktree of their own.

use std::{fs, path::Path, process::Command, time::Instant};

use anyhow::{Context, ensure};
use local_stack::output_of;
use rig::{Programs, Workspace, programs, say};

/// What is compiled from the worktree, in `target`.
const TARGET: &str = "upgrade-test";
/// The last migration of 0.2.0. Its commit is the oldest version that can be upgraded.
const LAST_OF_0_2_0: &str =
    "services/people-task-service/migrations/00000000000015_counts_of_tasks/up.sql";
/// The migration with which a version knows due dates.
const DUE_DATES: &str = "services/people-task-service/migrations/00000000000020_due_deliveries";

pub(super) struct Earlier {
    pub(super) programs: Programs,
    /// Whether it knows `SHUTDOWN_DELAY`. Without it, a process closes its connections at SIGTERM, and a request that
    /// arrives at that moment has no response.
    pub(super) drains: bool,
    /// Whether its services let webhooks wait for due dates.
    pub(super) knows_due: bool,
}

/// Builds the programs of `revision`, or of [`default_revision`], and copies them to a folder of `workspace`.
pub(super) fn build(workspace: &Workspace, revision: Option<&str>) -> anyhow::Result<Earlier> {
    let root = &workspace.root;
    let revision = match revision {
        Some(revision) => revision.to_owned(),
        None => default_revision(root)?,
    };
    let commit = format!("{revision}^{{commit}}");
    let commit = git(root, &["rev-parse", "--verify", "--quiet", &commit])
        .with_context(|| format!("there is no revision {revision}"))?;
    let title = git(root, &["log", "-1", "--format=%h %s", &commit])?;
    say(&format!("the earlier version is {title}"));
    // Beside the folder of the system, where it stays, so that the next build is quick.
    let sources = workspace.local.with_file_name("source");
    check_out(root, &sources, &commit)?;
    say("building the earlier version");
    let start = Instant::now();
    let built = programs::build_other(&sources, &root.join("target").join(TARGET))?;
    say(&format!("built in {:.1} s", start.elapsed().as_secs_f64()));
    let settings = sources.join("deploy/SETTINGS.md");
    let settings = fs::read_to_string(settings).unwrap_or_default();
    Ok(Earlier {
        programs: programs::copy(&workspace.aside("earlier"), built)?,
        drains: settings.contains("`SHUTDOWN_DELAY`"),
        knows_due: sources.join(DUE_DATES).exists(),
    })
}

/// Makes `sources` a worktree of the commit. Files that do not differ keep their times, so that they are not built again.
fn check_out(root: &Path, sources: &Path, commit: &str) -> anyhow::Result<()> {
    if sources.join(".git").exists() {
        let arguments = ["checkout", "--quiet", "--detach", "--force", commit];
        return git(sources, &arguments).map(drop);
    }
    git(root, &["worktree", "prune"])?;
    let sources = sources.to_str().context("the path is not text")?;
    let arguments = [
        "worktree", "add", "--quiet", "--force", "--detach", sources, commit,
    ];
    git(root, &arguments).map(drop)
}

/// The last tag, or the commit that added the last migration of 0.2.0, whichever is later.
fn default_revision(root: &Path) -> anyhow::Result<String> {
    let path = LAST_OF_0_2_0;
    let added = ["log", "-1", "--format=%H", "--diff-filter=A", "--", path];
    let oldest = git(root, &added)?;
    ensure!(
        !oldest.is_empty(),
        "the history does not have the commit that added {path}: name a revision with --from"
    );
    let tag = git(root, &["describe", "--tags", "--abbrev=0"]).ok();
    let is_later = |tag: &String| git(root, &["merge-base", "--is-ancestor", &oldest, tag]).is_ok();
    Ok(tag.filter(is_later).unwrap_or(oldest))
}

fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let mut git = Command::new("git");
    output_of(git.current_dir(folder).args(arguments))
}
