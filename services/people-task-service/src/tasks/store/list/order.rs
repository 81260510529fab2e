use listing::{Direction, Sort};

use crate::tasks::list_query::TaskSort;

/// The order of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    sort: Sort<TaskSort>,
}

impl From<Sort<TaskSort>> for Order {
    fn from(sort: Sort<TaskSort>) -> Self {
        Self { sort }
    }
}

impl Order {
    pub(super) fn is_by_created(self) -> bool {
        self.sort.by == TaskSort::Created
    }

    /// The column of `task_states`.
    pub(super) fn key(self) -> &'static str {
        match self.sort.by {
            TaskSort::Created => "created",
            TaskSort::DecisionBy => "decision_by",
            TaskSort::Title => "title_key",
            TaskSort::Status => "status",
            TaskSort::Mtime => "mtime",
        }
    }

    /// What `tasks` has an index of, if the order has one, and the condition of the index.
    pub(super) fn index(self) -> Option<(&'static str, &'static str)> {
        match self.sort.by {
            TaskSort::Created => Some(("created", "")),
            TaskSort::Title => Some(("lower(title)", "")),
            TaskSort::DecisionBy => Some(("decision_by", " WHERE decision_by IS NOT NULL")),
            TaskSort::Status | TaskSort::Mtime => None,
        }
    }

    /// The order of rows by a key and by `id`, which breaks ties. Tasks without the key come last.
    pub(super) fn by(self, key: &str, id: &str) -> String {
        // Only this column can be null. For the others `NULLS LAST` would rule out their index.
        let nulls = match self.sort.by {
            TaskSort::DecisionBy => " NULLS LAST",
            _ => "",
        };
        let direction = self.direction();
        format!("{key} {direction}{nulls}, {id} {direction}")
    }

    /// The same for rows that have the key, in the form that an index of both directions serves.
    pub(super) fn by_present(self, key: &str, id: &str) -> String {
        let direction = self.direction();
        format!("{key} {direction}, {id} {direction}")
    }

    fn direction(self) -> &'static str {
        match self.sort.direction {
            Direction::Ascending => "ASC",
            Direction::Descending => "DESC",
        }
    }
}
