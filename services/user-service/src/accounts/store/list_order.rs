use listing::{Direction, Sort};

use super::segment::Segment;
use crate::accounts::list_query::UserSort;

/// The order of a list. Ties are broken by id in the same direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListOrder {
    /// The table whose index has the order.
    pub(super) table: &'static str,
    /// The user's identifier in that table.
    pub(super) id: &'static str,
    /// The column or expression of that table that the list is sorted by.
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
            UserSort::LastSignIn => "at",
        };
        let (table, id) = match sort.by {
            UserSort::LastSignIn => ("last_sign_ins", "user_id"),
            _ => ("users", "id"),
        };
        Self {
            table,
            id,
            key,
            sort,
        }
    }

    /// The tables that have all columns of a user and the sort key.
    pub(super) fn tables_of_users(self) -> &'static str {
        match self.sort.by {
            UserSort::LastSignIn => {
                "users JOIN last_sign_ins AS signed_in (user_id, at, own_segment) ON user_id = id"
            }
            _ => "users",
        }
    }

    /// The condition for the sort key of all users of the given segments, if it is the same.
    pub(super) fn fixed_by(self, segments: &[Segment]) -> Option<String> {
        let first = segments.first()?;
        match self.sort.by {
            UserSort::Plan
                if segments
                    .iter()
                    .all(|other| other.plan_key == first.plan_key) =>
            {
                let id = first.id;
                let plan = format!("SELECT lower(plan) FROM user_segments WHERE id = {id}");
                Some(format!("lower(plan) = ({plan})"))
            }
            UserSort::IsActive
                if segments
                    .iter()
                    .all(|other| other.is_active == first.is_active) =>
            {
                Some(format!("is_active = {}", first.is_active))
            }
            _ => None,
        }
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
