//! Checks that migrations can run while the version before serves requests, and that each can be undone.

mod rules;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;

use self::rules::Runs;
use crate::{
    baseline::{MIGRATIONS, version_of},
    workspace::Workspace,
};

/// The only content of a `metadata.toml`.
const OUTSIDE_TRANSACTION: &str = "run_in_transaction = false";

/// Returns a message for each rule that is broken.
pub(super) fn check(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut errors = Vec::new();
    for migrations in MIGRATIONS {
        let folder = workspace.root().join(migrations.folder);
        let checked = check_folder(&folder, migrations.folder, migrations.last_with_stop);
        errors.extend(checked.with_context(|| format!("reading {}", migrations.folder))?);
    }
    Ok(errors)
}

/// Checks the migrations in a folder, which messages call `shown`.
fn check_folder(folder: &Path, shown: &str, last_with_stop: u64) -> anyhow::Result<Vec<String>> {
    let mut errors = Vec::new();
    let mut by_version = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().display().to_string();
        let Some(version) = version_of(&name) else {
            errors.push(format!("{shown}/{name}: the name needs a number"));
            continue;
        };
        if let Some(other) = by_version.insert(version, name.clone()) {
            errors.push(format!("{shown}: {name} and {other} have the same number"));
        }
        if !entry.path().join("down.sql").is_file() {
            errors.push(format!("{shown}/{name}: down.sql is missing"));
        }
        if version > last_with_stop {
            let found = check_migration(&entry.path())?;
            errors.extend(found.iter().map(|found| format!("{shown}/{name}/{found}")));
        }
    }
    errors.sort();
    Ok(errors)
}

fn check_migration(folder: &Path) -> anyhow::Result<Vec<String>> {
    let up = fs::read_to_string(folder.join("up.sql")).context("reading up.sql")?;
    let metadata = folder.join("metadata.toml");
    let runs = if metadata.is_file() {
        let text = fs::read_to_string(&metadata).context("reading metadata.toml")?;
        if text.trim() != OUTSIDE_TRANSACTION {
            let expected = format!("metadata.toml: expected only {OUTSIDE_TRANSACTION:?}");
            return Ok(vec![expected]);
        }
        Runs::OutsideTransaction
    } else {
        Runs::InTransaction
    };
    let found = rules::check(&up, runs);
    Ok(found
        .iter()
        .map(|found| format!("up.sql:{found}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, files: &[(&str, &str)]) {
        let folder = folder.join(name);
        fs::create_dir(&folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
    }

    #[test]
    fn every_migration_can_be_undone_and_later_ones_do_not_lock() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let index = "CREATE INDEX notes_by_text ON notes (text);";
        write(folder, "01_stopped", &[("up.sql", index)]);
        write(folder, "02_locks", &[("up.sql", index), ("down.sql", "")]);
        let index = "CREATE INDEX CONCURRENTLY IF NOT EXISTS notes_by_text ON notes (text);";
        let outside = ("metadata.toml", "run_in_transaction = false\n");
        let up = ("up.sql", index);
        write(folder, "03_fine", &[up, ("down.sql", ""), outside]);
        let other = ("metadata.toml", "run_in_transaction = true");
        write(folder, "04_metadata", &[up, ("down.sql", ""), other]);
        write(folder, "04_twice", &[("up.sql", ""), ("down.sql", "")]);
        write(folder, "unnumbered", &[("up.sql", "")]);
        let found = check_folder(folder, "it", 1).unwrap();
        let expected = [
            "it/01_stopped: down.sql is missing",
            "it/02_locks/up.sql:1: require-concurrent-index-creation: ",
            "it/04_metadata/metadata.toml: expected only",
            "it/unnumbered: the name needs a number",
            "it: 04_",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn the_last_migration_with_a_stop_exists() {
        let workspace = Workspace::find().unwrap();
        for migrations in MIGRATIONS {
            let folder = fs::read_dir(workspace.root().join(migrations.folder)).unwrap();
            let mut names = folder.map(|entry| entry.unwrap().file_name().display().to_string());
            assert!(names.any(|name| version_of(&name) == Some(migrations.last_with_stop)));
        }
    }
}
