//! Request bodies and parameters of accounts, as they are parsed and documented.

#![allow(
    unused_qualifications,
    reason = "utoipa's derive writes them for inlined types"
)]

mod admin_fields;
mod field_values;
mod names;
mod sign_up_caller;

use auth::Caller;
use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::EmailAddress;

pub(super) use self::admin_fields::AdminFields;
pub(super) use self::field_values::{ComponentTypes, Metadata, Plan, Scopes, Vendor};
use self::names::Names;
pub(super) use self::sign_up_caller::SignUpCaller;

use crate::context::Context;
use crate::hashing::{NewPassword, PasswordRules};
use crate::settings::{EmailVerification, SignUpUsernames};

/// The body of the creation of a user.
#[derive(Debug, ToSchema)]
pub(super) struct CreateUserRequest {
    #[serde(flatten)]
    pub(super) names: Names,
    #[schema(inline)]
    pub(super) password: NewPassword,
    #[serde(flatten)]
    pub(super) by_admin: AdminFields,
}

/// What the body of the creation of a user may contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignUpRules {
    passwords: PasswordRules,
    is_admin: bool,
    any_username: bool,
}

impl SignUpRules {
    /// The rules for a caller. A username that no one confirms could be the address of another person, who could then
    /// not sign up.
    pub(super) fn of(context: &Context, caller: Option<&Caller>) -> Self {
        let is_admin = caller.is_some_and(Caller::is_admin);
        Self {
            passwords: context.rules,
            is_admin,
            any_username: is_admin
                || context.email_verification == EmailVerification::Off
                || context.sign_up.usernames == SignUpUsernames::Any,
        }
    }
}

impl CreateUserRequest {
    /// Parses a body. The fields that are for administrators are ignored, valid or not, if the caller is none.
    pub(super) fn parse(mut fields: Fields, rules: SignUpRules) -> Result<Self, Problem> {
        let password = NewPassword::read(&mut fields, "password", rules.passwords);
        let names = Names::read(&mut fields, rules.any_username);
        let by_admin = if rules.is_admin {
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
