use auth::Subject;
use values::Secret;

use super::store::{TokenSubject, User};
use crate::context::Context;
use crate::settings::EmailVerification;

pub(crate) fn sign_token(context: &Context, subject: &TokenSubject) -> Secret {
    context.signer.sign(signed_subject(context, subject))
}

/// What a token says of its user.
pub(crate) fn signed_subject(context: &Context, subject: &TokenSubject) -> Subject {
    let user = &subject.user;
    Subject {
        id: user.id,
        email: user.email.clone(),
        username: user.username.clone(),
        scope: user.scope.clone(),
        epoch: user.epoch,
        incarnation: subject.incarnation.clone(),
        group: subject.account_group.as_ref().map(hex::encode),
        credential: None,
        key_scopes: None,
        service: user.is_service,
        email_verified: is_trusted(context.settings.email_verification, user),
    }
}

/// Whether the user's e-mail address gives access to tasks: it was confirmed, or need not be.
pub(crate) fn is_trusted(verification: EmailVerification, user: &User) -> bool {
    user.email_confirmed.is_some() || verification == EmailVerification::Off
}

/// Makes this process refuse tokens of earlier epochs at once. Other processes read the feed.
pub(crate) fn revoke_earlier_tokens(context: &Context, user: &User) {
    let revocations = context.verifier.revocations();
    revocations.raise([(user.id, user.epoch)]);
}
