use std::borrow::Cow;

use http_kit::Fields;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use values::{EmailAddress, Invalid};

/// The names of a new user. At least one is required; each defaults to the other.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) username: EmailAddress,
    pub(crate) email: EmailAddress,
}

impl Names {
    /// `any_username` says whether the username may differ from the e-mail address.
    pub(super) fn read(fields: &mut Fields, any_username: bool) -> Option<Self> {
        let username = fields.optional::<EmailAddress>("username");
        let email = fields.optional::<EmailAddress>("email");
        if !fields.has("username") && !fields.has("email") {
            let message = "Is required, unless `email` is given.";
            fields.reject("username", Invalid::new("required", message));
        }
        let names = Self {
            username: username.clone().or_else(|| email.clone())?,
            email: email.or(username)?,
        };
        if !any_username && names.username != names.email {
            let message =
                "Must be the e-mail address, because no one confirms usernames. Leave it out.";
            fields.reject("username", Invalid::new("not-the-email", message));
        }
        Some(names)
    }
}

impl PartialSchema for Names {
    fn schema() -> RefOr<Schema> {
        let with_required = |required, optional| {
            ObjectBuilder::new()
                .property(required, EmailAddress::schema())
                .property(optional, or_null(EmailAddress::schema()))
                .required(required)
        };
        AnyOfBuilder::new()
            .description(Some(
                "At least one of `username` and `email` is required; each defaults to the other. While \
                 `EMAIL_VERIFICATION` is `required`, both must be the same without an administrator's token \
                 (`SIGN_UP_USERNAMES`).",
            ))
            .item(with_required("username", "email"))
            .item(with_required("email", "username"))
            .into()
    }
}

fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(schema).item(null).into()
}

impl ToSchema for Names {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewUserNames")
    }
}
