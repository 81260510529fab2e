//! The oldest schema from which an upgrade needs no stop.
//!
//! Migrations up to this one belong to 0.2.0, before which every process of 0.1.0 is stopped: they rename and move columns,
//! and copy tables. Later migrations run beside the processes of the version before.

/// The migrations of one service.
#[derive(Debug, Clone, Copy)]
pub struct Migrations {
    /// Their folder.
    pub folder: &'static str,
    /// The last one that needs a stop.
    pub last_with_stop: u64,
}

/// The migrations of both services.
pub const MIGRATIONS: [Migrations; 2] = [
    Migrations {
        folder: "services/people-task-service/migrations",
        last_with_stop: 15,
    },
    Migrations {
        folder: "services/user-service/migrations",
        last_with_stop: 18,
    },
];

/// Reads the number that the name of a migration begins with.
#[must_use]
pub fn version_of(migration: &str) -> Option<u64> {
    let (number, _) = migration.split_once('_')?;
    number.parse().ok()
}
