use listing::{Conditions, Filter, ListQuery};
use values::Invalid;

use crate::error::UserError;

pub(crate) type UserListQuery = ListQuery<UserSort, UserFilter>;
pub(crate) type UserConditions = Conditions<UserFilter>;

values::names! {
    pub(crate) enum UserSort {
        Created = "created",
        Mtime = "mtime",
        Username = "username",
        Email = "email",
        Plan = "plan",
        IsActive = "isActive",
        LastSignIn = "lastSignIn",
    }

    pub(crate) enum UserFilter {
        Username = "username",
        Email = "email",
        Scope = "scope",
        Plan = "plan",
        Vendor = "vendor",
        IsActive = "isActive",
    }
}

/// The highest offset of a list with a pattern, unless it is sorted by username or there are few users. All users that
/// match are read and sorted.
pub(crate) const MAX_OFFSET_WITH_PATTERN: i64 = 1_000;
/// So many users are read and sorted for any offset.
pub(super) const MAX_SORTED_USERS: i64 = 100_000;

pub(super) fn offset_too_high() -> UserError {
    let message = format!(
        "Must be at most {MAX_OFFSET_WITH_PATTERN} in a list with a pattern, because there are more than \
         {MAX_SORTED_USERS} users. Sort the list by username, or use a longer pattern."
    );
    UserError::InvalidField("offset", Invalid::new("out-of-range", message))
}

impl Filter for UserFilter {
    fn pattern(self) -> &'static str {
        match self {
            Self::IsActive => "(true|false)",
            _ => listing::ANY_TEXT,
        }
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        if self == Self::IsActive && !["true", "false"].contains(&value) {
            let message = "The value of isActive must be true or false.";
            return Err(Invalid::new("invalid-value", message));
        }
        Ok(())
    }
}
