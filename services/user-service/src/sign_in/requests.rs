use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::{Invalid, Secret};

use super::name::SignInName;

/// The body of sign-in.
#[derive(Debug, ToSchema)]
pub(super) struct SignInRequest {
    #[serde(flatten)]
    pub(super) name: SignInName,
    #[schema(value_type = String, format = Password, example = "correct horse")]
    pub(super) password: Secret,
}

impl SignInRequest {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let password = fields.required::<Secret>("password");
        let username = fields.optional::<String>("username");
        let email = fields.optional::<String>("email");
        if !fields.has("username") && !fields.has("email") {
            fields.reject("username", Invalid::new("required", "Is required."));
        }
        let (name, password) = fields.finish_with(username.or(email).zip(password))?;
        Ok(Self {
            name: SignInName::new(&name),
            password,
        })
    }
}
