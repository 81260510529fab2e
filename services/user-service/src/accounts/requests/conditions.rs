use listing::{Filter, Names};
use utoipa::IntoParams;
use values::Invalid;

/// What the list of users can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::accounts) enum UserSort {
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
pub(in crate::accounts) enum UserFilter {
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

/// Which users count.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(in crate::accounts) struct ConditionParameters {
    /// `<field>:<value>`; several by repeating the parameter or by commas, all must hold. A comma
    /// inside a value is written `\,`.
    #[param(
        pattern = r"^((isActive:(true|false)|(username|email|scope|plan|vendor):([^,\u0000]|\\,)*)?(,|$))*$",
        nullable = false
    )]
    filter: Option<String>,
    /// A text that is searched for in the username, without regard to case and taken literally.
    #[param(pattern = r"^[^\u0000]*$", nullable = false)]
    pattern: Option<String>,
}

/// In which order users are listed, and which of them are shown.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it describes the parameters")]
pub(in crate::accounts) struct ListParameters {
    /// Rows of a page at the most. When there are more, the header `Link` names the next page.
    #[param(minimum = 1, maximum = 1000, default = 100, nullable = false)]
    limit: Option<i64>,
    /// Rows before the page.
    #[param(minimum = 0, default = 0, nullable = false)]
    offset: Option<i64>,
    /// `<field>:<direction>`, where the direction is `1` or `-1`.
    #[param(
        pattern = "^((created|mtime|username|email|plan|isActive|lastSignIn):(1|-1))?$",
        nullable = false
    )]
    sort: Option<String>,
}
