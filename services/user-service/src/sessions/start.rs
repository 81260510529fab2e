use std::time::Duration;

use audit_log::{AuthMethod, RequestMeta};
use database::Connection;
use values::{CredentialId, Secret, UserId};

use super::requests::browser::Browser;
use super::requests::cookie::CookieValues;
use super::{TOKEN_LIFETIME, end, entry, record_event, store};
use crate::accounts::{TokenSubject, User, sign_token_for_credential};
use crate::audit::AuditAction;
use crate::context::Context;
use crate::credentials::CredentialKind;
use crate::credentials::store::{NewCredential, insert, of_user};
use crate::sign_in::{Attempt, SignInError, SignInRequest, authenticate};

/// What a browser gets for a session.
pub(super) struct Granted {
    pub(super) user: User,
    pub(super) token: Secret,
    pub(super) cookie: CookieValues,
    /// How long the cookie is valid.
    pub(super) lifetime: Duration,
}

/// A session to be inserted.
struct Beginning {
    id: CredentialId,
    cookie: CookieValues,
    browser: Browser,
    lifetime: Duration,
    per_user: usize,
    meta: RequestMeta,
}

/// Signs in by password and starts a session. It takes the place of the one that the browser has.
#[tracing::instrument(skip_all)]
pub(super) async fn start(
    context: &Context,
    browser: Browser,
    request: SignInRequest,
    meta: RequestMeta,
) -> Result<Granted, SignInError> {
    let attempt = Attempt {
        name: request.name,
        client: browser.network.clone(),
        meta: meta.clone(),
    };
    let checked = authenticate(context, attempt, request.password).await?;
    let (id, cookie) = (CredentialId::generate(), CookieValues::random());
    let lifetime = context.sessions.unused.min(context.sessions.longest);
    let beginning = Beginning {
        id,
        cookie: cookie.clone(),
        browser,
        lifetime,
        per_user: context.sessions.per_user,
        meta,
    };
    let begin = move |connection: &mut Connection| begin(connection, &checked, &beginning);
    let (subject, ended) = context.database.transaction(begin).await?;
    end::note_ended(context, ended);
    record_event("started");
    grant(context, subject, id, cookie, lifetime).map_err(SignInError::from)
}

/// Inserts a session of a user whose password was checked. Returns the user, and the sessions that ended in its place.
fn begin(
    connection: &mut Connection,
    checked: &TokenSubject,
    beginning: &Beginning,
) -> Result<(TokenSubject, Vec<CredentialId>), SignInError> {
    let Beginning { browser, meta, .. } = beginning;
    let subject = store::lock_subject(connection, checked)?;
    let subject = subject.ok_or(SignInError::InvalidCredentials)?;
    let user = subject.user.id;
    let mut ended = end::end_earlier(connection, browser, meta)?;
    let new = NewCredential {
        id: beginning.id,
        user,
        kind: CredentialKind::Session,
        fingerprint: beginning.cookie.fingerprint(),
        secret: Some(beginning.cookie.secret()),
        lifetime: beginning.lifetime,
        network: &browser.network,
        program: &browser.program,
    };
    let entry = entry(AuditAction::SessionStarted, user, new.id, meta);
    insert(
        connection,
        &new,
        entry.authenticated_by(AuthMethod::Password),
    )?;
    ended.extend(end_excess(connection, user, beginning.per_user, meta)?);
    Ok((subject, ended))
}

/// Signs the token of a session.
pub(super) fn grant(
    context: &Context,
    subject: TokenSubject,
    id: CredentialId,
    cookie: CookieValues,
    lifetime: Duration,
) -> Result<Granted, auth::SignError> {
    let token = sign_token_for_credential(context, &subject, id, TOKEN_LIFETIME.min(lifetime))?;
    Ok(Granted {
        user: subject.user,
        token,
        cookie,
        lifetime,
    })
}

/// Ends the sessions of a user that were not used for longest, but for this many.
fn end_excess(
    connection: &mut Connection,
    user: UserId,
    per_user: usize,
    meta: &RequestMeta,
) -> Result<Vec<CredentialId>, database::Error> {
    let sessions = of_user(connection, user, CredentialKind::Session)?;
    let excess = sessions.into_iter().skip(per_user);
    let excess: Vec<_> = excess.map(|session| session.id).collect();
    for id in &excess {
        let entry = entry(AuditAction::SessionEnded, user, *id, meta);
        let kind = CredentialKind::Session;
        crate::credentials::store::end(connection, user, kind, *id, entry)?;
    }
    Ok(excess)
}
