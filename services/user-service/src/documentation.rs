//! What the OpenAPI document holds before the handlers add their operations.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, OpenApi as Document};
use utoipa::{Modify, OpenApi};

/// What the document holds before the handlers add their operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "User service",
        description = "User accounts: sign-up, sign-in, administration, passwords and their recovery, deletion."
    ),
    components(schemas(http_kit::ProblemBody)),
    modifiers(&BearerToken),
    tags(
        (name = "users", description = "User accounts."),
        (name = "keys", description = "The keys that verify access tokens.")
    )
)]
pub(crate) struct Base;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("The access token of sign-in or sign-up."))
            .build();
        let components = document.components.get_or_insert_with(Components::new);
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}
