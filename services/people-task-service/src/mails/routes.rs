use actix_web::http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use actix_web::web::{Data, Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, get, post};
use askama::Template;
use auth::mails::DueMails;
use auth::{MailKeys, NotificationWorkerCaller};
use database::DatabaseProblems;
use http_kit::{JsonBody, Problem, Query, QueryProblems, path_id, problem_responses};
use values::{Invalid, Language, Names as _};

use crate::context::Context;
use crate::mails::claim::{self, DueMail};
use crate::mails::store::RecipientHash;
use crate::mails::unsubscribe::{self, UnsubscribeQuery};
use crate::turns::Turns;

/// The page loads nothing and runs nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The operations of the notification worker. They are not in the public document, and the gateway does not route them.
pub(crate) fn internal(config: &mut ServiceConfig, context: &Context, turns: &Data<Turns>) {
    if let Some(keys) = context.mailing.keys.clone() {
        config.app_data(Data::new(keys));
    }
    config.app_data(turns.clone());
    config.service(claim_mails).service(report_mail);
}

#[post("/internal/mails/claim")]
async fn claim_mails(
    _caller: NotificationWorkerCaller,
    JsonBody(body): JsonBody,
    keys: Data<MailKeys>,
    turns: Data<Turns>,
    context: Data<Context>,
) -> Result<Json<DueMails<DueMail>>, Problem> {
    let room = body.deserialized()?;
    let due = claim::claim(&context.database, &context.mailing, &turns, &keys, room);
    Ok(Json(due.await?))
}

/// Takes the report about a mail that was claimed. It can be repeated.
#[post("/internal/mails/{id}/report")]
async fn report_mail(
    _caller: NotificationWorkerCaller,
    JsonBody(body): JsonBody,
    id: Path<String>,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    let report = body.deserialized()?;
    let id = path_id(&id, "mail")?;
    claim::record(&context.database, id, report).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The page of the link in reminders with which their recipient turns them off. It changes nothing, because mail
/// scanners open links.
#[utoipa::path(
    operation_id = "showUnsubscribePage",
    params(UnsubscribeQuery),
    security(()),
    responses(
        (status = 200, description = "A page with a button.", content_type = "text/html", body = String),
        QueryProblems, InvalidLink,
    ),
)]
#[get("/people-task/reminders/unsubscribe")]
pub(crate) async fn unsubscribe_page(
    query: Query,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    let (query, _) = parse_unsubscribe(&query, &context)?;
    respond(&request, &context, Step::Ask, &query.token)
}

/// Turns reminders off for the recipient of the link, as one click in a mail program does (RFC 8058), or on again. The
/// body is ignored.
#[utoipa::path(
    operation_id = "unsubscribe",
    params(UnsubscribeQuery),
    security(()),
    responses(
        (status = 200, description = "A page that says so.", content_type = "text/html", body = String),
        QueryProblems, InvalidLink, DatabaseProblems,
    ),
)]
#[post("/people-task/reminders/unsubscribe")]
pub(crate) async fn unsubscribe_recipient(
    query: Query,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    let (query, recipient) = parse_unsubscribe(&query, &context)?;
    unsubscribe::set_opt_out(&context.database, recipient, !query.turns_on).await?;
    let step = if query.turns_on { Step::On } else { Step::Off };
    respond(&request, &context, step, &query.token)
}

/// The page of an unsubscribe link.
#[derive(Template)]
#[template(path = "unsubscribe.html")]
struct Page<'a> {
    language: Language,
    step: Step,
    token: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Asks whether reminders are to end. Mail scanners open links, so this must change nothing.
    Ask,
    Off,
    On,
}

fn respond(
    request: &HttpRequest,
    context: &Context,
    step: Step,
    token: &str,
) -> Result<HttpResponse, Problem> {
    let accepted = request.headers().get(ACCEPT_LANGUAGE);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    let language = accepted.and_then(Language::preferred);
    let language = language.unwrap_or(context.mailing.language);
    let page = Page {
        language,
        step,
        token,
    };
    let page = page.render().map_err(|error| Problem::internal(&error))?;
    Ok(HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page))
}

values::names! {
    /// Whether a recipient wants reminders.
    enum Reminders {
        On = "on",
        Off = "off",
    }
}

fn parse_unsubscribe(
    query: &Query,
    context: &Context,
) -> Result<(UnsubscribeQuery, RecipientHash), Problem> {
    let token = query.first("token").unwrap_or_default().to_owned();
    let turns_on = query.parsed("reminders")? == Some(Reminders::On);
    let keys = context.mailing.keys.as_ref();
    let recipient = keys.and_then(|keys| unsubscribe::parse(keys, &token));
    let recipient = recipient.ok_or_else(invalid_token)?;
    Ok((UnsubscribeQuery { token, turns_on }, recipient))
}

/// The token of an unsubscribe link is not one that was made here, or mail is off.
fn invalid_token() -> Problem {
    let message = "Must be the token of a link in a mail.";
    Problem::invalid_field("token", Invalid::new("invalid-token", message))
}

problem_responses! {
    /// Problems of the links in mails.
    pub(crate) InvalidLink {
        invalid_token() => "The link is incomplete, or was made with a key that is no longer known.",
    }
}

#[cfg(test)]
mod tests {
    use askama::Template as _;
    use values::Language;

    use super::{Page, Step};

    #[test]
    fn every_page_posts_to_its_own_link() {
        for language in [Language::English, Language::German] {
            for (step, action) in [
                (Step::Ask, "action=\"?token=abc\""),
                (Step::Off, "action=\"?token=abc&#38;reminders=on\""),
                (Step::On, "action=\"?token=abc\""),
            ] {
                let token = "abc";
                let page = Page {
                    language,
                    step,
                    token,
                };
                let page = page.render().unwrap();
                assert!(page.contains(action), "{page}");
                assert!(page.contains("method=\"post\""), "{page}");
            }
        }
    }
}
