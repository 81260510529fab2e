//! How a caller wants to see tasks: what `include` adds, what `projection` leaves out, and whether the
//! request came by the newer paths.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use http_kit::{FieldError, Problem, Query};
use values::Invalid;

use crate::plugins;

/// The fields of a task object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Id,
    Approver,
    Requester,
    Title,
    Description,
    DecisionBy,
    Status,
    Public,
    Created,
    Mtime,
    DecisionMade,
    IsApprover,
}

const FIELDS: [(Field, &str); 12] = [
    (Field::Id, "id"),
    (Field::Approver, "approver"),
    (Field::Requester, "requester"),
    (Field::Title, "title"),
    (Field::Description, "description"),
    (Field::DecisionBy, "decisionBy"),
    (Field::Status, "status"),
    (Field::Public, "public"),
    (Field::Created, "created"),
    (Field::Mtime, "mtime"),
    (Field::DecisionMade, "decisionMade"),
    (Field::IsApprover, "isApprover"),
];
/// The first of [`FIELDS`] come always, the others when they are asked for.
const ALWAYS: usize = 7;

/// What to show of a task: its seven fields, and what differs from that.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    added: Vec<Field>,
    left_out: Vec<Field>,
    /// Answers also carry `taskId`.
    pub(crate) with_task_id: bool,
}

impl View {
    /// What webhooks see: the seven fields, and `taskId` where it is wanted.
    pub(crate) fn of_webhooks(with_task_id: bool) -> Self {
        Self {
            with_task_id,
            ..Self::default()
        }
    }

    /// Whether a field is shown.
    pub(crate) fn shows(&self, field: Field) -> bool {
        let always = FIELDS.iter().take(ALWAYS).any(|(f, _)| *f == field);
        (always || self.added.contains(&field)) && !self.left_out.contains(&field)
    }

    /// The same with one more field.
    pub(crate) fn and(mut self, field: Field) -> Self {
        self.added.push(field);
        self
    }

    /// Reads `include`.
    ///
    /// # Errors
    /// `400` for a name that does not exist.
    fn from_request(request: &HttpRequest) -> Result<Self, Problem> {
        let query = Query::parse(request.query_string());
        let mut view = Self {
            with_task_id: plugins::is_plugins_request(request),
            ..Self::default()
        };
        let (_, addable) = FIELDS.split_at(ALWAYS);
        for name in names(&query, "include") {
            view.added.push(find(name, addable, "include", "")?);
        }
        Ok(view)
    }

    /// The same with what a list's `projection` leaves out.
    ///
    /// # Errors
    /// `400` for a field that does not exist or is not marked by a minus.
    pub(crate) fn projected(mut self, query: &Query) -> Result<Self, Problem> {
        for name in names(query, "projection") {
            let field = name.strip_prefix('-').unwrap_or_default();
            self.left_out.push(find(field, &FIELDS, "projection", "-")?);
        }
        Ok(self)
    }
}

/// The names that a parameter lists, with commas or by being repeated.
fn names<'a>(query: &'a Query, parameter: &'a str) -> impl Iterator<Item = &'a str> {
    let values = query.all(parameter);
    let names = values.flat_map(|value| value.split(',')).map(str::trim);
    names.filter(|name| !name.is_empty())
}

fn find(
    name: &str,
    among: &[(Field, &str)],
    parameter: &'static str,
    mark: &str,
) -> Result<Field, Problem> {
    if let Some((field, _)) = among.iter().find(|(_, known)| *known == name) {
        return Ok(*field);
    }
    let known: Vec<_> = among.iter().map(|(_, n)| format!("{mark}{n}")).collect();
    let message = format!("Must be made of {}.", known.join(", "));
    let error = FieldError::new(parameter, Invalid::new("unknown-field", message));
    Err(Problem::validation(vec![error]))
}

impl FromRequest for View {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::from_request(request))
    }
}
