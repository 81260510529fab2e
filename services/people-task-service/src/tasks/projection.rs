//! Which fields of a task a response has: seven by default, more by `include`, fewer by `projection`.

use actix_web::HttpRequest;
use http_kit::{Problem, Query, combine_errors};
use listing::text_parameter;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use values::{Invalid, Names as _};

use crate::plugin_paths;

values::names! {
    pub(crate) enum TaskField {
        Id = "id",
        Approver = "approver",
        Requester = "requester",
        Title = "title",
        Description = "description",
        DecisionBy = "decisionBy",
        Status = "status",
        Public = "public",
        Created = "created",
        Mtime = "mtime",
        DecisionMade = "decisionMade",
        IsApprover = "isApprover",
        IsRequester = "isRequester",
        CanDecide = "canDecide",
        DecidedBy = "decidedBy",
        Comment = "comment",
        CommentRequired = "commentRequired",
        ConfirmationRequired = "confirmationRequired",
        Metadata = "metadata",
        Version = "version",
        Deciders = "deciders",
        SelfApproval = "selfApproval",
        DecidedVia = "decidedVia",
    }
}

/// How many fields every response has: the first ones.
const DEFAULTS: usize = 7;
const DEFAULT_FIELDS: &[TaskField] = TaskField::ALL.split_at(DEFAULTS).0;
/// The fields that `include` can add.
const OPTIONAL_FIELDS: &[TaskField] = TaskField::ALL.split_at(DEFAULTS).1;

impl TaskField {
    /// The fields that the body of a webhook call can have, which has no caller that a field could be about.
    pub(crate) fn of_webhooks() -> impl Iterator<Item = Self> {
        let about_caller = [Self::IsApprover, Self::IsRequester, Self::CanDecide];
        let all = Self::ALL.iter().copied();
        all.filter(move |field| !about_caller.contains(field))
    }

    /// Those of them that `include` of a webhook can add.
    pub(crate) fn that_webhooks_include() -> impl Iterator<Item = Self> {
        Self::of_webhooks().skip(DEFAULTS)
    }
}

/// The fields of a response: the default ones and those of `include`.
#[derive(Debug, Clone)]
pub(crate) struct FieldSelection {
    fields: Vec<TaskField>,
    /// Whether the request came to an Appmixer plugin path. Then the task also has `taskId`.
    pub(crate) is_plugin: bool,
}

/// The parameters of a list's rows: they have the default fields and those of `include`, without those of `projection`.
pub(crate) enum Projection {}

impl FieldSelection {
    pub(crate) fn new(is_plugin: bool) -> Self {
        Self {
            fields: DEFAULT_FIELDS.to_vec(),
            is_plugin,
        }
    }

    pub(crate) fn contains(&self, field: TaskField) -> bool {
        self.fields.contains(&field)
    }

    /// Adds a field, unless it is there.
    pub(crate) fn with(mut self, field: TaskField) -> Self {
        if !self.contains(field) {
            self.fields.push(field);
        }
        self
    }

    /// The fields that a request asks for.
    pub(crate) fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let query = Query::parse(request.query_string());
        let included = parse_fields(&query, "include", "", OPTIONAL_FIELDS)?;
        let selection = Self::new(plugin_paths::is_plugin_request(request));
        Ok(included.into_iter().fold(selection, Self::with))
    }
}

/// Parses a parameter that lists fields, with commas or by being repeated. `mark` precedes each name.
fn parse_fields(
    query: &Query,
    parameter: &'static str,
    mark: &str,
    allowed: &[TaskField],
) -> Result<Vec<TaskField>, Problem> {
    let values = query.all(parameter);
    let names = values.flat_map(|value| value.split(',')).map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let name = name.strip_prefix(mark).unwrap_or_default();
            let found = allowed.iter().find(|field| field.name() == name);
            found.copied().ok_or_else(|| {
                let names = names_of(allowed, mark).join(", ");
                let message = format!("Must be a list of: {names}.");
                Problem::invalid_field(parameter, Invalid::new("unknown-field", message))
            })
        })
        .collect()
}

fn names_of(fields: &[TaskField], mark: &str) -> Vec<String> {
    let names = fields.iter().map(|field| field.name());
    names.map(|name| format!("{mark}{name}")).collect()
}

/// Describes a parameter that [`parse_fields`] reads.
fn parameter(
    name: &str,
    description: &str,
    example: &str,
    mark: &str,
    allowed: &[TaskField],
) -> Parameter {
    let names = names_of(allowed, "").join("|");
    let pattern = format!("^(( *{mark}({names}) *)?(,|$))*$");
    ParameterBuilder::from(text_parameter(name, description, pattern))
        .example(Some(example.into()))
        .build()
}

impl IntoParams for FieldSelection {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "Fields to add to the response, separated by commas.";
        let example = "created,mtime";
        let include = parameter("include", description, example, "", OPTIONAL_FIELDS);
        vec![include]
    }
}

impl IntoParams for Projection {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "Fields to leave out, separated by commas, each after a minus sign.";
        let example = "-description,-title";
        let projection = parameter("projection", description, example, "-", TaskField::ALL);
        let mut parameters = FieldSelection::into_params(parameter_in);
        parameters.insert(0, projection);
        parameters
    }
}

impl Projection {
    /// The fields of a list's rows that a request asks for.
    pub(crate) fn of(request: &HttpRequest) -> Result<FieldSelection, Problem> {
        let query = Query::parse(request.query_string());
        let left_out = parse_fields(&query, "projection", "-", TaskField::ALL);
        let (mut selection, left_out) = combine_errors(FieldSelection::of(request), left_out)?;
        selection.fields.retain(|field| !left_out.contains(field));
        Ok(selection)
    }
}
