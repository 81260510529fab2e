use database::Database;
use http_kit::{FieldError, Problem, Query};
use listing::{Conditions, Filter, ListQuery, Names, Page, Sort};
use values::{FromText, Invalid};

use crate::status::TaskStatus;
use crate::tasks::access::{Actor, Relations};
use crate::tasks::{Error, Task, list_store};

/// Which of the tasks that concern somebody are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Those that the user created.
    Creator,
    /// Those that wait for the user's decision, or did.
    Approver,
    /// Those that the user asked for.
    Requester,
    /// All tasks of everybody; administrators only.
    Any,
}

impl FromText for Role {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        match text {
            "creator" => Ok(Self::Creator),
            "approver" => Ok(Self::Approver),
            "requester" => Ok(Self::Requester),
            "any" => Ok(Self::Any),
            _ => Err(Invalid::new(
                "unknown-value",
                "Must be one of creator, approver, requester and, for administrators, any.",
            )),
        }
    }
}

/// What tasks are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortBy {
    Created,
    DecisionBy,
    Title,
    Status,
    Mtime,
}

impl Names for SortBy {
    const ALL: &'static [Self] = &[
        Self::Created,
        Self::DecisionBy,
        Self::Title,
        Self::Status,
        Self::Mtime,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::DecisionBy => "decisionBy",
            Self::Title => "title",
            Self::Status => "status",
            Self::Mtime => "mtime",
        }
    }
}

/// What tasks are filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterBy {
    Status,
    Approver,
    Requester,
    Title,
    Public,
}

impl Names for FilterBy {
    const ALL: &'static [Self] = &[
        Self::Status,
        Self::Approver,
        Self::Requester,
        Self::Title,
        Self::Public,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Approver => "approver",
            Self::Requester => "requester",
            Self::Title => "title",
            Self::Public => "public",
        }
    }
}

impl Filter for FilterBy {
    fn check(self, value: &str) -> Result<(), Invalid> {
        match self {
            Self::Status => TaskStatus::from_text(value).map(|_| ()),
            Self::Public if !["true", "false"].contains(&value) => {
                Err(Invalid::new("invalid-type", "Must be true or false."))
            }
            _ => Ok(()),
        }
    }
}

/// The tasks that count: by role, filters and pattern.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) role: Option<Role>,
    pub(crate) conditions: Conditions<FilterBy>,
}

/// What was read from two parts of a request.
///
/// # Errors
/// `400` with all that is wrong with either.
pub(crate) fn both<A, B>(
    first: Result<A, Problem>,
    second: Result<B, Problem>,
) -> Result<(A, B), Problem> {
    let mut errors = Vec::new();
    match (noted(first, &mut errors), noted(second, &mut errors)) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Problem::validation(errors)),
    }
}

/// Takes a value, or notes the fields that kept it from being one.
fn noted<T>(result: Result<T, Problem>, errors: &mut Vec<FieldError>) -> Option<T> {
    result
        .map_err(|problem| errors.extend(problem.body().errors))
        .ok()
}

impl Selection {
    /// Reads `role`, `filter` and `pattern`.
    ///
    /// # Errors
    /// `400` with every wrong parameter.
    pub(crate) fn parse(query: &Query) -> Result<Self, Problem> {
        let (role, conditions) = both(query.parsed("role"), Conditions::parse(query))?;
        Ok(Self { role, conditions })
    }
}

/// What a list of tasks is asked for.
pub(crate) type TaskListQuery = ListQuery<SortBy, FilterBy>;

/// Reads the parameters of a list: newest first when nothing else is said.
///
/// # Errors
/// `400` with every wrong parameter.
pub(crate) fn parse(query: &Query) -> Result<TaskListQuery, Problem> {
    ListQuery::parse(query, Sort::descending(SortBy::Created))
}

/// Whether somebody may ask for tasks by this role.
///
/// # Errors
/// [`Error::NotAdmin`].
pub(crate) fn check_role(actor: &Actor, role: Option<Role>) -> Result<(), Error> {
    if role == Some(Role::Any) && !actor.is_admin() {
        return Err(Error::NotAdmin);
    }
    Ok(())
}

/// One page of the tasks that concern somebody, each with what the task is to them.
///
/// # Errors
/// [`Error::NotAdmin`].
pub(crate) async fn list(
    database: &Database,
    actor: Actor,
    role: Option<Role>,
    list: TaskListQuery,
) -> Result<Page<(Task, Relations)>, Error> {
    check_role(&actor, role)?;
    let paging = list.paging;
    let fetch = move |connection: &mut _| {
        let tasks = list_store::page(connection, &actor, role, &list)?;
        let related = tasks.into_iter().map(|task| {
            let relations = actor.relations_to(&task);
            (task, relations)
        });
        Ok::<_, Error>(related.collect())
    };
    Ok(paging.page(database.run(fetch).await?))
}

/// How many tasks a list without limit would have.
///
/// # Errors
/// [`Error::NotAdmin`].
pub(crate) async fn count(
    database: &Database,
    actor: Actor,
    selection: Selection,
) -> Result<i64, Error> {
    check_role(&actor, selection.role)?;
    let count = move |connection: &mut _| {
        list_store::count(connection, &actor, &selection).map_err(Error::from)
    };
    database.run(count).await
}
