use listing::{Conditions, Filter, ListQuery, Names};
use values::Invalid;

/// The query of the list of users.
pub(crate) type UserListQuery = ListQuery<UserSort, UserFilter>;
/// The query of the count of users.
pub(crate) type UserConditions = Conditions<UserFilter>;

/// What the list of users can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserSort {
    Created,
    Mtime,
    Username,
    Email,
    Plan,
    IsActive,
    LastSignIn,
}

impl Names for UserSort {
    const ALL: &'static [Self] = &[
        Self::Created,
        Self::Mtime,
        Self::Username,
        Self::Email,
        Self::Plan,
        Self::IsActive,
        Self::LastSignIn,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Mtime => "mtime",
            Self::Username => "username",
            Self::Email => "email",
            Self::Plan => "plan",
            Self::IsActive => "isActive",
            Self::LastSignIn => "lastSignIn",
        }
    }
}

/// What the list and the count of users can be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserFilter {
    Username,
    Email,
    Scope,
    Plan,
    Vendor,
    IsActive,
}

impl Names for UserFilter {
    const ALL: &'static [Self] = &[
        Self::Username,
        Self::Email,
        Self::Scope,
        Self::Plan,
        Self::Vendor,
        Self::IsActive,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Username => "username",
            Self::Email => "email",
            Self::Scope => "scope",
            Self::Plan => "plan",
            Self::Vendor => "vendor",
            Self::IsActive => "isActive",
        }
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
