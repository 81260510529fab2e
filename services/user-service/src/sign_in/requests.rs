use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, SchemaType, Type};
use values::{Invalid, Secret};

use crate::back_off;

/// The body of sign-in.
#[derive(Debug, ToSchema)]
pub(crate) struct SignInRequest {
    #[serde(flatten)]
    pub(crate) name: SignInName,
    #[schema(value_type = String, format = Password, example = "correct horse")]
    pub(crate) password: Secret,
}

impl SignInRequest {
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
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

/// The normalized name that a caller signs in with.
#[derive(Debug, Clone)]
pub(crate) struct SignInName(pub(super) String);

impl SignInName {
    /// Accepts any text. A text that is not a name of any user is just a wrong name.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.trim().to_lowercase())
    }

    pub(crate) fn name_hash(&self) -> [u8; 32] {
        back_off::name_hash(&self.0)
    }
}

http_kit::schemas! {
    SignInName = {
        let with_required = |required, optional| {
            let name = |schema_type| {
                ObjectBuilder::new()
                    .schema_type(schema_type)
                    .examples(["ada@example.com"])
            };
            let or_null = SchemaType::from_iter([Type::String, Type::Null]);
            ObjectBuilder::new()
                .property(required, name(Type::String.into()))
                .property(optional, name(or_null))
                .required(required)
        };
        AnyOfBuilder::new()
            .description(Some(
                "At least one of `username` and `email` is required. Each takes the username or the e-mail \
                 address; `email` is used if `username` is absent.",
            ))
            .item(with_required("username", "email"))
            .item(with_required("email", "username"))
    };
}
