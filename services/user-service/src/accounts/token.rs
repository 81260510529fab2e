use std::time::Duration;

use auth::{KeyScope, SignError, Subject};
use values::{CredentialId, Secret};

use super::confirmation;
use super::store::{TokenSubject, User};
use crate::context::Context;

/// Signs an access token for a user.
pub(crate) fn sign_token(context: &Context, subject: &TokenSubject) -> Result<Secret, SignError> {
    context.signer.sign(signed_subject(context, subject))
}

/// Signs an access token that ends with a credential of its user, and is valid for `lifetime` at most.
pub(crate) fn sign_token_for_credential(
    context: &Context,
    subject: &TokenSubject,
    credential: CredentialId,
    lifetime: Duration,
) -> Result<Secret, SignError> {
    let subject = signed_subject(context, subject);
    context
        .signer
        .sign_for_credential(subject, credential, lifetime)
}

/// Signs an access token for an API key of a user, which ends with the key and is valid for `lifetime` at most.
pub(crate) fn sign_token_for_key(
    context: &Context,
    subject: &TokenSubject,
    key: CredentialId,
    scopes: &[KeyScope],
    lifetime: Duration,
) -> Result<Secret, SignError> {
    let subject = signed_subject(context, subject);
    context.signer.sign_for_key(subject, key, scopes, lifetime)
}

fn signed_subject(context: &Context, subject: &TokenSubject) -> Subject {
    let TokenSubject {
        user,
        incarnation,
        account_group,
    } = subject;
    Subject {
        id: user.id,
        email: user.email.clone(),
        username: user.username.clone(),
        scope: user.scope.clone(),
        epoch: user.epoch,
        incarnation: incarnation.clone(),
        group: account_group.as_ref().map(hex::encode),
        service: user.is_service,
        email_verified: confirmation::is_trusted(context.email_verification, user),
    }
}

/// Makes this process refuse tokens of earlier epochs at once. Other processes read the feed.
pub(crate) fn revoke_earlier_tokens(context: &Context, user: &User) {
    context
        .verifier
        .revocations()
        .raise([(user.id, user.epoch)]);
}
