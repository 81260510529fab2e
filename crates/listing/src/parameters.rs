//! Query parameters in OpenAPI documents. An empty parameter counts as absent.

use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use values::Names;

use crate::conditions::MAX_CONDITIONS;
use crate::query::{DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET};
use crate::{Conditions, Filter, ListQuery, Paging};

fn parameter(name: &str, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// An optional query parameter that is a text of this pattern.
pub fn text_parameter(name: &str, description: &str, pattern: impl Into<String>) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    parameter(name, description, schema.pattern(Some(pattern)))
}

fn whole_number(minimum: i64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(minimum))
}

impl IntoParams for Paging {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = whole_number(1)
            .maximum(Some(MAX_LIMIT))
            .default(Some(DEFAULT_LIMIT.into()));
        let offset = whole_number(0)
            .maximum(Some(MAX_OFFSET))
            .default(Some(0.into()));
        vec![
            parameter(
                "limit",
                "The maximum number of rows of a page. A page of large rows has fewer: at most 4 MiB. If there are more rows, the \
                 `Link` header leads to the next page.",
                limit,
            ),
            parameter("offset", "How many rows to skip.", offset),
        ]
    }
}

impl<F: Filter> IntoParams for Conditions<F> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let pattern = |filter: &F| format!("{}:{}", filter.name(), filter.pattern());
        let filters: Vec<_> = F::ALL.iter().map(pattern).collect();
        vec![
            text_parameter(
                "filter",
                "`<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most \
                 20: all must match. Write a comma inside a value as `\\,`.",
                format!("^(({})?(,|$)){{0,{MAX_CONDITIONS}}}$", filters.join("|")),
            ),
            text_parameter(
                "pattern",
                "A text to search for, literally and case-insensitively.",
                r"^[^\u0000]*$",
            ),
        ]
    }
}

impl<S: Names, F: Filter> IntoParams for ListQuery<S, F> {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let fields: Vec<_> = S::ALL.iter().map(|field| field.name()).collect();
        let sort = text_parameter(
            "sort",
            "`<field>:<direction>`; the direction is `1` (ascending) or `-1` (descending).",
            format!("^(({}):(1|-1))?$", fields.join("|")),
        );
        let mut parameters = Paging::into_params(&parameter_in);
        parameters.push(sort);
        parameters.extend(Conditions::<F>::into_params(parameter_in));
        parameters
    }
}
