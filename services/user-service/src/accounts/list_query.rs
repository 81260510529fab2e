use listing::{Conditions, Filter, ListQuery};
use values::Invalid;

/// The query of the list of users.
pub(crate) type UserListQuery = ListQuery<UserSort, UserFilter>;
/// The query of the count of users.
pub(crate) type UserConditions = Conditions<UserFilter>;

values::names! {
    /// The fields that users can be sorted by.
    pub(crate) enum UserSort {
        Created = "created",
        Mtime = "mtime",
        Username = "username",
        Email = "email",
        Plan = "plan",
        IsActive = "isActive",
        LastSignIn = "lastSignIn",
    }

    /// The fields that users can be filtered by.
    pub(crate) enum UserFilter {
        Username = "username",
        Email = "email",
        Scope = "scope",
        Plan = "plan",
        Vendor = "vendor",
        IsActive = "isActive",
    }
}

/// The highest offset of a list with a pattern, unless it is sorted by username. All users that match are read and sorted,
/// and the sort keys up to the end of the page are kept in memory.
pub(crate) const MAX_OFFSET_WITH_PATTERN: i64 = 10_000;

/// Checks that the page is not too far in a list that no index has in the order of the sort.
///
/// # Errors
/// Why the offset is too high.
pub(super) fn check_offset(list: &UserListQuery) -> Result<(), Invalid> {
    let is_sorted_at_once = list.conditions.pattern.is_some() && list.sort.by != UserSort::Username;
    if is_sorted_at_once && list.paging.offset > MAX_OFFSET_WITH_PATTERN {
        let message = format!(
            "Must be at most {MAX_OFFSET_WITH_PATTERN} in a list with a pattern. Sort the list by username, or use a \
             longer pattern."
        );
        return Err(Invalid::new("out-of-range", message));
    }
    Ok(())
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
            return Err(Invalid::new(
                "invalid-value",
                "The value of isActive must be true or false.",
            ));
        }
        Ok(())
    }
}
