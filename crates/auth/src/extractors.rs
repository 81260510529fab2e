use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use actix_web::web::Data;
use http_kit::Problem;
use jsonwebtoken::dangerous::insecure_decode_claims;
use values::{CredentialId, FromText as _, Names as _, UserId};

use crate::routes::key_scopes;
use crate::{
    ADMIN_SCOPE, ApiKey, Claims, KeyScope, Rejection, RemoteAuthority, Verifier, key_not_accepted,
};

/// The user whose valid token authenticates the request; `401` without one.
///
/// The application data must hold a [`Data<Verifier>`], and where keys are fetched a
/// [`Data<RemoteAuthority>`].
#[derive(Debug, Clone, derive_more::From)]
pub struct Caller(Arc<Claims>);

impl Caller {
    /// The user.
    pub fn id(&self) -> UserId {
        self.0.subject.id
    }

    /// The user's epoch when the token was issued.
    pub fn epoch(&self) -> i64 {
        self.0.subject.epoch
    }

    /// The credential that the token was issued for, if it can be revoked alone.
    pub fn credential(&self) -> Option<CredentialId> {
        self.0.subject.credential
    }

    /// The incarnation of the database that issued the token.
    pub fn incarnation(&self) -> &str {
        &self.0.subject.incarnation
    }

    /// The group of the user's account, which counts as one wherever users share something; `None` unless a stranger made
    /// the account.
    pub fn group(&self) -> Option<&str> {
        self.0.subject.group.as_deref()
    }

    /// The same as an identifier, as tables have it.
    pub fn group_id(&self) -> Option<UserId> {
        UserId::from_text(self.group()?).ok()
    }

    /// Who shares what users share: the user's group, in place of a user who is in one.
    #[must_use]
    pub fn owner(&self) -> UserId {
        self.group_id().unwrap_or(self.id())
    }

    /// Whether the token has a scope of its user. That of administrators counts for a key only if the key has it, too.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.subject.scope.iter().any(|held| held == scope)
            && (scope != ADMIN_SCOPE || self.may(KeyScope::Admin))
    }

    /// The API key that acts for the user; `None` if the user acts.
    pub fn key(&self) -> Option<CredentialId> {
        self.0
            .subject
            .key_scopes
            .as_ref()
            .and(self.0.subject.credential)
    }

    /// Whether the key that acts has a scope. A user who acts needs none.
    #[must_use]
    pub fn may(&self, scope: KeyScope) -> bool {
        let held = self.0.subject.key_scopes.as_ref();
        held.is_none_or(|held| held.iter().any(|held| held == scope.name()))
    }

    /// Whether the user is a service account, and so no person.
    pub fn is_service(&self) -> bool {
        self.0.subject.service
    }

    /// Whether the token has the scope `admin`, and the key that acts has it, too.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.has_scope(ADMIN_SCOPE)
    }

    /// The e-mail address as the user wrote it; `None` while it is unconfirmed.
    pub fn email(&self) -> Option<&str> {
        self.0
            .subject
            .email_verified
            .then_some(self.0.subject.email.as_str())
    }

    /// The normalized e-mail address, by which tasks belong to users; `None` while it is unconfirmed.
    pub fn normalized_email(&self) -> Option<String> {
        self.email().map(str::to_ascii_lowercase)
    }

    /// The user of a token that came with a request, or of one that a key of the request was exchanged for.
    ///
    /// # Errors
    /// `401` for a token that is not valid, `403` if the key that it was issued for may not make the request, and
    /// `503 not-ready` while no keys are known.
    pub async fn of_token(request: &HttpRequest, token: &str) -> Result<Self, Problem> {
        let claims = verify(request, |verifier| verifier.verify(token)).await?;
        let caller = Self(claims);
        if caller.key().is_none() {
            return Ok(caller);
        }
        let path = request.match_pattern().unwrap_or_default();
        let scopes = key_scopes(request.method(), &path).ok_or_else(key_not_accepted)?;
        if scopes.iter().all(|scope| caller.may(*scope)) {
            return Ok(caller);
        }
        let needed: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        Err(insufficient_scope(&needed.join(" ")))
    }
}

/// A caller who may be unauthenticated. An invalid token is still `401`.
#[derive(Debug, Clone)]
pub struct MaybeCaller(pub Option<Caller>);

/// A caller whose token has the scope `admin`; `403` otherwise.
#[derive(Debug, Clone, derive_more::Deref)]
pub struct AdminCaller(pub Caller);

/// Another process of the system, authenticated by a token that only the user service and its workers can sign; `401` otherwise.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCaller;

http_kit::extractors! {
    MaybeCaller = |request| match bearer_token(&request)? {
        Some(token) => Ok(Self(Some(Caller::of_token(&request, token).await?))),
        None => Ok(Self(None)),
    };
    Caller = |request| {
        let MaybeCaller(caller) = MaybeCaller::extract(&request).await?;
        caller.ok_or_else(token_missing)
    };
    AdminCaller = |request| {
        let caller = Caller::extract(&request).await?;
        let admin = caller.is_admin().then_some(Self(caller));
        admin.ok_or_else(|| insufficient_scope(ADMIN_SCOPE))
    };
    ServiceCaller = |request| {
        let token = bearer_token(&request)?.ok_or_else(token_missing)?;
        verify(&request, |verifier| verifier.verify_service(token)).await?;
        Ok(Self)
    };
}

/// The token of the `Authorization` header (RFC 6750 section 2.1), if there is one. Without a token, many clients send an
/// empty header or what their language makes of a missing value: that counts as no token.
pub(crate) fn bearer_token(request: &HttpRequest) -> Result<Option<&str>, Problem> {
    let invalid = || unauthenticated(Rejection::Invalid);
    let mut headers = request.headers().get_all(AUTHORIZATION);
    let Some(header) = headers.next() else {
        return Ok(None);
    };
    if headers.next().is_some() {
        return Err(invalid());
    }
    let header = header.to_str().map_err(|_| invalid())?.trim();
    let (scheme, token) = header.split_once([' ', '\t']).unwrap_or((header, ""));
    let is_missing = |text| matches!(text, "" | "null" | "undefined");
    match token.trim() {
        _ if is_missing(header) => Ok(None),
        _ if !scheme.eq_ignore_ascii_case("bearer") => Err(invalid()),
        token if is_missing(token) => Ok(None),
        token => Ok(Some(token)),
    }
}

/// Verifies a token, and if its key is unknown, once more with the current keys.
///
/// Until the keys and all revocations are known the response is `503`, because a client would discard its token
/// after a `401`.
async fn verify<Verified>(
    request: &HttpRequest,
    verify: impl Fn(&Verifier) -> Result<Verified, Rejection>,
) -> Result<Verified, Problem> {
    let authority = request.app_data::<Data<RemoteAuthority>>();
    let ready = authority.is_none_or(|authority| authority.is_ready());
    let verifier = request.app_data::<Data<Verifier>>().filter(|_| ready);
    let verifier = verifier.ok_or_else(not_ready)?;
    let verified = verify(verifier);
    let (Err(Rejection::UnknownKey), Some(authority)) = (&verified, authority) else {
        return verified.map_err(unauthenticated);
    };
    let refreshed = authority.refresh_keys().await;
    match verify(verifier) {
        Err(Rejection::UnknownKey) if !refreshed => Err(not_ready()),
        verified => verified.map_err(unauthenticated),
    }
}

fn not_ready() -> Problem {
    let detail = "Tokens cannot be verified yet. Try again shortly.";
    Problem::unavailable("not-ready", detail)
}

/// The API key that a request came with instead of a token, if it has the form of one. Whether it is one is for the user
/// service to say.
///
/// # Errors
/// `401 invalid-key` for what starts like a key but has a wrong checksum, and `401 invalid-token` for a header that is
/// malformed.
pub fn presented_key(request: &HttpRequest) -> Result<Option<ApiKey>, Problem> {
    match bearer_token(request)? {
        Some(token) if ApiKey::is_meant(token) => {
            ApiKey::parse(token).map(Some).ok_or_else(invalid_key)
        }
        _ => Ok(None),
    }
}

/// Whether a request came with a token that was issued for an API key, valid or not. Nothing is checked, so that is only a reason
/// to refuse the request.
pub fn has_key_token(request: &HttpRequest) -> bool {
    let token = bearer_token(request).ok().flatten();
    let claims = token.and_then(|token| insecure_decode_claims::<Claims>(token).ok());
    claims.is_some_and(|claims| claims.subject.key_scopes.is_some())
}

/// `401 invalid-key`: there is no such API key, or it has ended.
pub fn invalid_key() -> Problem {
    let reason = "The API key is unknown, or has ended or expired";
    invalid_token("invalid-key", reason, "Ask for another one.")
}

fn invalid_token(code: &'static str, reason: &str, advice: &str) -> Problem {
    let detail = format!("{reason}. {advice}");
    let error = format!(r#", error="invalid_token", error_description="{reason}""#);
    challenge(Problem::new(StatusCode::UNAUTHORIZED, code, detail), &error)
}

pub(crate) fn unauthenticated(rejection: Rejection) -> Problem {
    let (code, reason) = match rejection {
        Rejection::NotReady => return not_ready(),
        Rejection::Invalid | Rejection::UnknownKey => ("invalid-token", "The token is invalid"),
        Rejection::Expired => ("token-expired", "The token has expired"),
        Rejection::Revoked => ("token-revoked", "The token was revoked"),
    };
    invalid_token(code, reason, "Sign in to get a new one.")
}

/// Adds `WWW-Authenticate` (RFC 6750 section 3) with these parameters, each after a comma.
#[must_use]
pub fn challenge(problem: Problem, parameters: &str) -> Problem {
    let challenge = format!(r#"Bearer realm="countersign"{parameters}"#);
    problem.header(WWW_AUTHENTICATE, challenge)
}

/// `401 token-missing` (RFC 6750 section 3).
pub fn token_missing() -> Problem {
    let detail = "This call needs an access token: send `Authorization: Bearer <token>`.";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "token-missing", detail);
    challenge(problem, "")
}

/// `401 token-revoked`, for a token that is revoked for another reason than its epoch, such as a deleted user.
pub fn token_revoked() -> Problem {
    unauthenticated(Rejection::Revoked)
}

/// `403 insufficient-scope`: the token is valid but has none of these scopes (RFC 6750 section 3.1).
pub fn insufficient_scope(scopes: &str) -> Problem {
    let detail = format!("This call needs a token with the scope `{scopes}`.");
    let problem = Problem::new(StatusCode::FORBIDDEN, "insufficient-scope", detail);
    let error = format!(r#", error="insufficient_scope", scope="{scopes}""#);
    challenge(problem, &error)
}

http_kit::problem_responses! {
    /// Problems of operations that need a token.
    pub TokenProblems {
        token_missing(),
        unauthenticated(Rejection::Invalid),
        unauthenticated(Rejection::Expired),
        token_revoked(),
    }
    /// Problems of operations that need a token with the scope `admin`.
    pub AdminProblems: TokenProblems {
        insufficient_scope(ADMIN_SCOPE),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::bearer_token;

    fn token(headers: &[&str]) -> Result<Option<String>, &'static str> {
        let mut request = TestRequest::default();
        for header in headers {
            request = request.append_header(("authorization", *header));
        }
        let request = request.to_http_request();
        let token = bearer_token(&request).map_err(|problem| problem.code());
        token.map(|token| token.map(str::to_owned))
    }

    #[test]
    fn what_clients_send_without_a_token_counts_as_none() {
        for missing in [
            "",
            " ",
            "Bearer",
            "bearer ",
            "Bearer \t",
            "Bearer null",
            "BEARER  null ",
            "Bearer undefined",
            "null",
            "undefined",
        ] {
            assert_eq!(token(&[missing]), Ok(None), "{missing:?}");
        }
        assert_eq!(token(&[]), Ok(None));
        for (given, expected) in [
            ("Bearer a.b.c", "a.b.c"),
            ("bearer  a.b.c ", "a.b.c"),
            ("Bearer nullx", "nullx"),
            ("Bearer null null", "null null"),
        ] {
            assert_eq!(token(&[given]), Ok(Some(expected.to_owned())), "{given}");
        }
        for invalid in [
            &["Basic"][..],
            &["Basic null"],
            &["a.b.c"],
            &["Bearer=null"],
            &["Bearer a", "Bearer a"],
            &["Bearer", "Bearer a"],
        ] {
            assert_eq!(token(invalid), Err("invalid-token"), "{invalid:?}");
        }
    }
}
