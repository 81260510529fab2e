//! Checks that migrations can be undone.

use std::collections::BTreeSet;

use diesel::migration::{Migration, MigrationSource as _};
use diesel::pg::Pg;
use diesel::{Connection as _, PgConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _};
use values::Secret;

use crate::lines;

/// A line for each object of the current schema: tables with their privileges, columns, views, indexes, constraints,
/// triggers and functions.
const OBJECTS: &str = include_str!("objects.sql");

/// Runs migrations on an empty schema as its owner, and fails unless each one leaves the schema as it was when it is
/// undone, and can be run again.
pub fn assert_migrations_can_be_undone(owner: &Secret, migrations: EmbeddedMigrations) {
    let mut connection = PgConnection::establish(owner.expose()).unwrap();
    let all: Vec<Box<dyn Migration<Pg>>> = migrations.migrations().unwrap();
    for migration in connection.pending_migrations(migrations).unwrap() {
        let name = migration.name().to_string();
        let before = objects(&mut connection);
        connection.run_migration(&migration).unwrap();
        let after = objects(&mut connection);
        let same = all.iter().find(|one| one.name().to_string() == name);
        let undo = connection.revert_migration(same.unwrap());
        undo.unwrap_or_else(|error| panic!("{name} cannot be undone: {error}"));
        assert_same(&before, &objects(&mut connection), &name);
        connection.run_migration(&migration).unwrap();
        assert_same(&after, &objects(&mut connection), &name);
    }
}

fn objects(connection: &mut PgConnection) -> BTreeSet<String> {
    let objects = lines(connection, OBJECTS).into_iter();
    // An undone constraint on values leaves the rows that have the new value.
    let objects = objects.map(|object| object.trim_end_matches(" NOT VALID").to_owned());
    objects.collect()
}

fn assert_same(expected: &BTreeSet<String>, actual: &BTreeSet<String>, migration: &str) {
    let missing: Vec<_> = expected.difference(actual).collect();
    let left: Vec<_> = actual.difference(expected).collect();
    assert!(
        missing.is_empty() && left.is_empty(),
        "{migration}: missing {missing:#?}, left behind {left:#?}"
    );
}
