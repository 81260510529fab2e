use actix_web::{FromRequest as _, HttpRequest};
use auth::{Caller, MaybeCaller};
use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::{Invalid, Secret};

use crate::password_rules::{NewPassword, PasswordRules};

/// The body of a confirmation of an e-mail address.
#[derive(Debug, ToSchema)]
pub(super) struct VerifyEmailRequest {
    /// The code that was sent.
    #[schema(value_type = String)]
    pub(super) code: Secret,
    #[serde(flatten)]
    #[schema(value_type = ProofFields)]
    pub(super) proof: Proof,
}

/// What shows, besides the code, that the person who has the mailbox also has the account.
#[derive(Debug)]
pub(super) enum Proof {
    Token(Caller),
    Password(Secret),
    /// The person takes the account over: everyone who used it is signed out.
    NewPassword(NewPassword),
}

impl VerifyEmailRequest {
    /// Parses a body. The token counts only without a password, so that an expired one is no obstacle.
    pub(super) async fn parse(
        mut fields: Fields,
        rules: PasswordRules,
        request: &HttpRequest,
    ) -> Result<Self, Problem> {
        let needs_token = !fields.has("password") && !fields.has("newPassword");
        let caller = if needs_token {
            MaybeCaller::extract(request).await?.0
        } else {
            None
        };
        let code = fields.required("code");
        let proof = Proof::read(&mut fields, rules, caller);
        let (code, proof) = fields.finish_with(code.zip(proof))?;
        Ok(Self { code, proof })
    }
}

impl Proof {
    /// `None` means that `fields` holds an error.
    fn read(fields: &mut Fields, rules: PasswordRules, caller: Option<Caller>) -> Option<Self> {
        if fields.has("password") && fields.has("newPassword") {
            let message = "Cannot be given together with `password`.";
            fields.reject("newPassword", Invalid::new("ambiguous", message));
            return None;
        }
        if fields.has("newPassword") {
            return NewPassword::read(fields, "newPassword", rules).map(Self::NewPassword);
        }
        if fields.has("password") {
            return fields.required("password").map(Self::Password);
        }
        if caller.is_none() {
            let message = "Is required, unless `newPassword` or a token of the account (`Authorization`) is given: the \
                           code alone does not show whose the account is.";
            fields.reject("password", Invalid::new("required", message));
        }
        caller.map(Self::Token)
    }
}

// The fields of a proof, for the document.
#[derive(ToSchema)]
#[schema(as = AccountProof, rename_all = "camelCase")]
#[expect(dead_code, reason = "they are only documented")]
struct ProofFields {
    /// The account's password, if there is neither a token nor `newPassword`.
    #[schema(format = Password)]
    password: Option<String>,
    /// A new password for the account, under the rules of new passwords. It signs out all who use the account.
    #[schema(format = Password, min_length = 5, max_length = 72)]
    new_password: Option<String>,
}
