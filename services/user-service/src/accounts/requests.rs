#![allow(
    unused_qualifications,
    reason = "utoipa's derive writes them for inlined types"
)]

mod field_values;

use actix_web::ResponseError as _;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use app_config::Csv;
use auth::{Caller, MaybeCaller, has_key_token};
use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use values::{EmailAddress, Invalid};

pub(super) use self::field_values::{ComponentTypes, Metadata, Plan, Scopes, Vendor};

use crate::context::Context;
use crate::password_rules::{NewPassword, PasswordRules, service_password};
use crate::settings::{EmailVerification, SignUpUsernames};

/// The body of the creation of a user.
#[derive(Debug, ToSchema)]
pub(super) struct CreateUserRequest {
    #[serde(flatten)]
    pub(super) names: NewUserNames,
    #[serde(flatten)]
    #[schema(value_type = PersonOrService)]
    pub(super) password: NewPassword,
    #[serde(flatten)]
    pub(super) by_admin: AdminFields,
}

impl CreateUserRequest {
    /// Parses a body. The fields that are for administrators are ignored, valid or not, if the caller is none. A username
    /// that no one confirms could be the address of another person, who could then not sign up.
    pub(super) fn parse(
        mut fields: Fields,
        context: &Context,
        caller: Option<&Caller>,
    ) -> Result<Self, Problem> {
        let is_admin = caller.is_some_and(Caller::is_admin);
        let any_username = is_admin
            || context.settings.email_verification == EmailVerification::Off
            || context.settings.sign_up.usernames == SignUpUsernames::Any;
        let is_service = is_admin && fields.optional::<bool>("service") == Some(true);
        let password = if is_service {
            no_password(&mut fields)
        } else {
            NewPassword::read(&mut fields, "password", context.rules)
        };
        let names = NewUserNames::read(&mut fields, any_username);
        let by_admin = if is_admin {
            AdminFields::read(&mut fields)
        } else {
            AdminFields::default()
        };
        let (password, names) = fields.finish_with(password.zip(names))?;
        Ok(Self {
            names,
            password,
            by_admin,
        })
    }
}

/// A password that no one knows, because it is stored only as a hash, in place of one in the body.
fn no_password(fields: &mut Fields) -> Option<NewPassword> {
    if fields.has("password") {
        fields.reject("password", service_password());
        return None;
    }
    Some(NewPassword::random())
}

/// The names of a new user. At least one is required; each defaults to the other.
#[derive(Debug)]
pub(super) struct NewUserNames {
    pub(super) username: EmailAddress,
    pub(super) email: EmailAddress,
}

impl NewUserNames {
    /// `any_username` says whether the username may differ from the e-mail address.
    fn read(fields: &mut Fields, any_username: bool) -> Option<Self> {
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

/// The document of `password` and `service`: a user has either one.
struct PersonOrService;

http_kit::schemas! {
    NewUserNames = {
        let with_required = |required, optional| {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            let or_null = OneOfBuilder::new().item(EmailAddress::schema()).item(null);
            ObjectBuilder::new()
                .property(required, EmailAddress::schema())
                .property(optional, or_null)
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
    };
    PersonOrService = {
        let service = |values: &[Option<bool>]| {
            let types = [Type::Boolean, Type::Null];
            ObjectBuilder::new()
                .schema_type(SchemaType::Array(types.to_vec()))
                .enum_values(Some(values.to_vec()))
        };
        let person = ObjectBuilder::new()
            .property("password", NewPassword::schema())
            .property("service", service(&[Some(false), None]))
            .required("password");
        let program = ObjectBuilder::new()
            .property("password", ObjectBuilder::new().schema_type(Type::Null))
            .property("service", service(&[Some(true)]))
            .required("service");
        OneOfBuilder::new()
            .description(Some(
                "A person has a `password`. Only an administrator's token creates a service account, which has none and acts \
                 only with API keys; for other callers `service` is ignored.",
            ))
            .item(person)
            .item(program)
    };
}

/// The fields of a new user that only an administrator's token sets. For other callers they are ignored and the
/// defaults apply, as they do for a field that is absent.
#[derive(Debug, Default, ToSchema)]
#[schema(as = NewUserAdminFields, rename_all = "camelCase")]
pub(super) struct AdminFields {
    /// `["user"]` by default.
    #[schema(inline)]
    pub(super) scope: Option<Scopes>,
    /// True by default. The token of an inactive user is already revoked.
    pub(super) is_active: Option<bool>,
    /// `DEFAULT_USER_PLAN` by default.
    #[schema(inline)]
    pub(super) plan: Option<Plan>,
    /// `DEFAULT_USER_VENDOR` by default; null for none.
    #[schema(value_type = Option<Vendor>, inline)]
    pub(super) vendor: Option<Option<Vendor>>,
    /// `{}` by default.
    #[schema(inline)]
    pub(super) metadata: Option<Metadata>,
    /// Whether it is a service account.
    #[schema(ignore)]
    pub(super) service: Option<bool>,
}

impl AdminFields {
    fn read(fields: &mut Fields) -> Self {
        Self {
            scope: fields.optional("scope"),
            is_active: fields.optional("isActive"),
            plan: fields.optional("plan"),
            vendor: fields.nullable("vendor"),
            metadata: fields.optional("metadata"),
            service: fields.optional("service"),
        }
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        let fields = [
            ("scope", self.scope.is_some()),
            ("isActive", self.is_active.is_some()),
            ("plan", self.plan.is_some()),
            ("vendor", self.vendor.is_some()),
            ("metadata", self.metadata.is_some()),
            ("service", self.service.is_some()),
        ];
        let present = fields.into_iter().filter(|(_, present)| *present);
        present.map(|(name, _)| name).collect()
    }
}

/// The body of an update. Fields that are absent or null keep their value, except that null removes
/// `vendor`.
#[derive(Debug, Default, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct UpdateUserRequest {
    #[schema(inline)]
    pub(super) username: Option<EmailAddress>,
    #[schema(inline)]
    pub(super) email: Option<EmailAddress>,
    #[schema(inline)]
    pub(super) password: Option<NewPassword>,
    pub(super) is_active: Option<bool>,
    #[schema(inline)]
    pub(super) plan: Option<Plan>,
    #[schema(inline)]
    pub(super) scope: Option<Scopes>,
    /// Null removes the vendor.
    #[schema(value_type = Option<Vendor>, inline)]
    pub(super) vendor: Option<Option<Vendor>>,
    #[schema(inline)]
    pub(super) allowed_private_components: Option<ComponentTypes>,
    #[schema(inline)]
    pub(super) metadata: Option<Metadata>,
}

impl UpdateUserRequest {
    pub(super) fn parse(mut fields: Fields, rules: PasswordRules) -> Result<Self, Problem> {
        let request = Self {
            username: fields.optional("username"),
            email: fields.optional("email"),
            password: NewPassword::read_optional(&mut fields, "password", rules),
            is_active: fields.optional("isActive"),
            plan: fields.optional("plan"),
            scope: fields.optional("scope"),
            vendor: fields.nullable("vendor"),
            allowed_private_components: fields.optional("allowedPrivateComponents"),
            metadata: fields.optional("metadata"),
        };
        fields.finish()?;
        Ok(request)
    }
}

/// The caller of sign-up. If `API_USER_CREATE_SCOPE` is set, the caller must hold one of its scopes. Otherwise only
/// an administrator's token counts, and every other `Authorization` header is ignored.
pub(super) struct SignUpCaller(pub(super) Option<Caller>);

http_kit::extractors! {
    SignUpCaller = |request| {
        let context = request.app_data::<Data<Context>>();
        let sign_up = context.map(|context| &context.settings.sign_up);
        let Some(Csv(scopes)) = sign_up.and_then(|sign_up| sign_up.scopes.as_ref()) else {
            let caller = MaybeCaller::extract(&request).await;
            return admin_or_key(caller, has_key_token(&request)).map(Self);
        };
        let caller = Caller::extract(&request).await?;
        if scopes.iter().any(|scope| caller.has_scope(scope)) {
            Ok(Self(Some(caller)))
        } else {
            Err(auth::insufficient_scope(&scopes.join(" ")))
        }
    };
}

/// The administrator that a caller is. An API key is never ignored: with one that may not create users, or whose token was just
/// revoked, no account is made by mistake as if by a stranger.
fn admin_or_key(
    caller: Result<MaybeCaller, Problem>,
    is_key: bool,
) -> Result<Option<Caller>, Problem> {
    match caller {
        Ok(MaybeCaller(Some(caller))) if caller.is_admin() => Ok(Some(caller)),
        Ok(MaybeCaller(Some(caller))) if caller.key().is_some() => {
            Err(auth::insufficient_scope(auth::ADMIN_SCOPE))
        }
        Ok(_) => Ok(None),
        // The gateway gets another token for the key.
        Err(problem) if problem.status_code() == StatusCode::UNAUTHORIZED && !is_key => Ok(None),
        // Only a key lacks the scope of a call, and a token that was not checked may be an administrator's.
        Err(problem) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;

    use super::*;

    #[test]
    fn only_a_token_that_was_checked_is_ignored() {
        for (status, is_key, is_ignored) in [
            (StatusCode::UNAUTHORIZED, false, true),
            (StatusCode::UNAUTHORIZED, true, false),
            (StatusCode::FORBIDDEN, false, false),
            (StatusCode::SERVICE_UNAVAILABLE, false, false),
        ] {
            let problem = Problem::new(status, "code", "Detail.");
            let caller = admin_or_key(Err(problem), is_key);
            assert_eq!(caller.is_ok_and(|caller| caller.is_none()), is_ignored);
        }
    }
}
