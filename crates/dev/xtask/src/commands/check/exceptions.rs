//! Known violations of the rules.

/// A violation that is accepted.
pub(super) struct Exception {
    pub(super) what: &'static str,
    pub(super) reason: &'static str,
}

const fn exception(what: &'static str, reason: &'static str) -> Exception {
    Exception { what, reason }
}

/// Files that may break the rule of a layer, as `path: layer`.
pub(super) const LAYER_EXCEPTIONS: [Exception; 6] = [
    exception("crates/values/src/email.rs: diesel", "a column type"),
    exception("crates/values/src/id.rs: diesel", "column types"),
    exception(
        "services/people-task-service/src/status.rs: diesel",
        "a column type",
    ),
    exception(
        "services/people-task-service/src/plugin_paths.rs: HTTP",
        "a middleware that rewrites paths",
    ),
    exception(
        "services/people-task-service/src/tasks/credentials.rs: HTTP",
        "an extractor",
    ),
    exception(
        "services/people-task-service/src/tasks/projection.rs: HTTP",
        "an extractor",
    ),
];

/// Imports that close a cycle, as `folder: from -> to`.
pub(super) const CIRCLE_EXCEPTIONS: [Exception; 0] = [];
