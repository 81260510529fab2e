use listing::{Conditions, Filter};
use values::{FromText as _, Invalid};

use super::store::DeletionStatus;

values::names! {
    pub(super) enum DeletionFilter {
        Status = "status",
    }
}

impl Filter for DeletionFilter {
    const PATTERN_REFUSAL: Option<&'static str> =
        Some("Deletions cannot be searched by a pattern. Use `filter`.");

    fn pattern(self) -> &'static str {
        "(in-progress|completed|failed|cancelled)"
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        DeletionStatus::from_text(value).map(drop)
    }
}

/// The parameters of the list of all deletions, but for `Paging`.
pub(super) type DeletionConditions = Conditions<DeletionFilter>;
