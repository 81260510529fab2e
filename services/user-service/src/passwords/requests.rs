use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::{EmailAddress, Secret};

use crate::password_rules::{NewPassword, PasswordRules};

#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ChangePasswordRequest {
    #[schema(value_type = String, format = Password, example = "correct horse")]
    pub(super) old_password: Secret,
    #[schema(inline)]
    pub(super) new_password: NewPassword,
}

impl ChangePasswordRequest {
    pub(super) fn parse(mut fields: Fields, rules: PasswordRules) -> Result<Self, Problem> {
        let old = fields.required("oldPassword");
        let new = NewPassword::read(&mut fields, "newPassword", rules);
        let (old_password, new_password) = fields.finish_with(old.zip(new))?;
        Ok(Self {
            old_password,
            new_password,
        })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct ResetPasswordRequest {
    #[schema(inline)]
    pub(super) email: EmailAddress,
    #[schema(inline)]
    pub(super) password: NewPassword,
}

impl ResetPasswordRequest {
    pub(super) fn parse(mut fields: Fields, rules: PasswordRules) -> Result<Self, Problem> {
        let email = fields.required("email");
        let password = NewPassword::read(&mut fields, "password", rules);
        let (email, password) = fields.finish_with(email.zip(password))?;
        Ok(Self { email, password })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct ForgotPasswordRequest {
    #[schema(inline)]
    pub(super) email: EmailAddress,
}

impl ForgotPasswordRequest {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let email = fields.required("email");
        fields.finish_with(email).map(|email| Self { email })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct ResetForgottenPasswordRequest {
    /// The code that was sent.
    #[schema(value_type = String)]
    pub(super) code: Secret,
    #[schema(inline)]
    pub(super) password: NewPassword,
}

impl ResetForgottenPasswordRequest {
    pub(super) fn parse(mut fields: Fields, rules: PasswordRules) -> Result<Self, Problem> {
        let code = fields.required("code");
        let password = NewPassword::read(&mut fields, "password", rules);
        let (code, password) = fields.finish_with(code.zip(password))?;
        Ok(Self { code, password })
    }
}
