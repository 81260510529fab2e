//! Known violations of the rules.

/// A violation that is accepted.
pub(super) struct Exception {
    pub(super) what: &'static str,
    pub(super) reason: &'static str,
}

/// Files that may break the rule of a layer, as `path: layer`.
pub(super) const LAYER_EXCEPTIONS: [Exception; 0] = [];

/// Imports that close a circle, as `folder: from -> to`.
pub(super) const CIRCLE_EXCEPTIONS: [Exception; 0] = [];
