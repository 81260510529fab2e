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
