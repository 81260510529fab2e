use listing::{Direction, Sort};

use crate::accounts::list_query::UserSort;

/// The order of a list. Ties are broken by id in the same direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListOrder {
    /// The column or expression of `users` that the index of the sort has.
    pub(super) key: &'static str,
    sort: Sort<UserSort>,
}

impl ListOrder {
    pub(super) fn new(sort: Sort<UserSort>) -> Self {
        let key = match sort.by {
            UserSort::Created => "created",
            UserSort::Mtime => "mtime",
            UserSort::Username => "username_key",
            UserSort::Email => "email_key",
            UserSort::Plan => "lower(plan)",
            UserSort::IsActive => "is_active",
            UserSort::LastSignIn => "last_sign_in",
        };
        Self { key, sort }
    }

    /// The order by two columns, as the index has it. Only `lastSignIn` can be null, which comes last.
    pub(super) fn by(self, key: &str, id: &str) -> String {
        let direction = match self.sort.direction {
            Direction::Ascending => "ASC",
            Direction::Descending => "DESC",
        };
        let nulls = match (self.sort.by, self.sort.direction) {
            (UserSort::LastSignIn, Direction::Descending) => " NULLS LAST",
            _ => "",
        };
        format!("{key} {direction}{nulls}, {id} {direction}")
    }
}
