//! Receives webhooks of decisions and forgot-password messages.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use app_config::SettingValue;
use serde_json::json;

use crate::engine::Engine;
use crate::journal::{Kind, Received, query_of};

/// How long a call with `hang=true` stays open if the caller does not close it.
const MAX_HANG: Duration = Duration::from_secs(60);
const MAX_DELAY: Duration = Duration::from_secs(600);

/// How a webhook's URL tells the engine to respond.
#[derive(Debug, Default, PartialEq, Eq)]
struct Behaviour {
    status: Option<StatusCode>,
    delay: Duration,
    fail_first: u32,
    hang: bool,
    retry_after: Option<u32>,
    redirect: bool,
}

impl Behaviour {
    /// Parses the options. The error is the name of the invalid one.
    fn parse(query: &BTreeMap<String, String>) -> Result<Self, &'static str> {
        let option = |name| query.get(name).map(String::as_str);
        let flag = |name| option(name) == Some("true");
        let status = option("status").map(|text| text.parse().map_err(|_| "status"));
        let delay = option("delay").map(|text| Duration::parse(text).map_err(|_| "delay"));
        let fail_first = option("failFirst").map(|text| text.parse().map_err(|_| "failFirst"));
        let retry_after = option("retryAfter").map(|text| text.parse().map_err(|_| "retryAfter"));
        Ok(Self {
            status: status.transpose()?,
            delay: delay.transpose()?.unwrap_or_default().min(MAX_DELAY),
            fail_first: fail_first.transpose()?.unwrap_or_default(),
            hang: flag("hang"),
            retry_after: retry_after.transpose()?,
            redirect: flag("redirect"),
        })
    }
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    // Any method, to record callers that follow a redirect with a GET, which they must not.
    config
        .route("/webhooks/{path:.*}", web::route().to(webhook))
        .route("/forgot-password", web::post().to(forgot_password));
}

async fn webhook(
    engine: web::Data<Engine>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    if let Some(outage) = record(&engine, Kind::Webhook, &request, &body) {
        return outage;
    }
    let behaviour = match Behaviour::parse(&query_of(&request)) {
        Ok(behaviour) => behaviour,
        Err(option) => {
            let message = format!("`{option}` is invalid.");
            return HttpResponse::BadRequest().json(json!({ "message": message }));
        }
    };
    let fails = engine.fails_first(&request.uri().to_string(), behaviour.fail_first);
    engine.pause(behaviour.delay).await;
    if behaviour.hang {
        engine.pause(MAX_HANG).await;
    }
    response(&behaviour, fails)
}

fn response(behaviour: &Behaviour, fails: bool) -> HttpResponse {
    let status = match behaviour.status {
        _ if fails => StatusCode::SERVICE_UNAVAILABLE,
        _ if behaviour.redirect => StatusCode::FOUND,
        Some(status) => status,
        None => StatusCode::OK,
    };
    let mut response = HttpResponse::build(status);
    if status == StatusCode::FOUND {
        response.insert_header((header::LOCATION, "/webhooks/redirected"));
    }
    if let Some(seconds) = behaviour.retry_after {
        response.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    response.json(json!({}))
}

async fn forgot_password(
    engine: web::Data<Engine>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    let outage = record(&engine, Kind::ForgotPassword, &request, &body);
    outage.unwrap_or_else(|| HttpResponse::Ok().json(json!({})))
}

/// Records a call, unless the engine simulates an outage: then this is the response.
fn record(engine: &Engine, kind: Kind, request: &HttpRequest, body: &[u8]) -> Option<HttpResponse> {
    let outage = engine.outage();
    if outage.is_none() {
        let received = Received::new(kind, request, body);
        engine.journal.lock().record(received);
    }
    outage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_option_is_named() {
        for (name, value) in [
            ("status", "abc"),
            ("delay", "2"),
            ("failFirst", "-1"),
            ("retryAfter", "soon"),
        ] {
            let query = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            assert_eq!(Behaviour::parse(&query), Err(name));
        }
    }
}
