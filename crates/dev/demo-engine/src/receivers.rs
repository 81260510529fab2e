//! Receives webhooks of decisions and forgot-password messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use app_config::SettingValue;
use serde_json::json;

use crate::engine::Engine;
use crate::journal::lock;
use crate::journal::{Kind, Received, query_of};

/// How long a call with `hang=true` stays open if the caller does not close it.
const MAX_HANG: Duration = Duration::from_secs(60);
const MAX_DELAY: Duration = Duration::from_secs(600);
const MAX_COUNTED_URLS: usize = 10_000;

/// How often each URL with `failFirst` has failed.
#[derive(Default)]
pub(crate) struct FailedFirst {
    by_url: Mutex<HashMap<String, u32>>,
}

impl FailedFirst {
    /// Returns whether this call of the URL is one of the first `times`, which fail.
    fn fails(&self, url: &str, times: u32) -> bool {
        let mut by_url = lock(&self.by_url);
        if by_url.len() >= MAX_COUNTED_URLS && !by_url.contains_key(url) {
            by_url.clear();
        }
        let failed = by_url.entry(url.to_owned()).or_default();
        let fails = *failed < times;
        *failed += u32::from(fails);
        fails
    }
}

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
    failed_first: web::Data<FailedFirst>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    if let Some(outage) = engine.outage() {
        return outage;
    }
    engine
        .journal
        .record(Received::new(Kind::Webhook, &request, &body));
    let behaviour = match Behaviour::parse(&query_of(&request)) {
        Ok(behaviour) => behaviour,
        Err(option) => return invalid_option(option),
    };
    let fails = failed_first.fails(&request.uri().to_string(), behaviour.fail_first);
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

fn invalid_option(option: &str) -> HttpResponse {
    HttpResponse::BadRequest().json(json!({"message": format!("`{option}` is invalid.")}))
}

async fn forgot_password(
    engine: web::Data<Engine>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    if let Some(outage) = engine.outage() {
        return outage;
    }
    engine
        .journal
        .record(Received::new(Kind::ForgotPassword, &request, &body));
    HttpResponse::Ok().json(json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_calls_of_a_url_fail() {
        let failed_first = FailedFirst::default();
        let fails: Vec<bool> = (0..4).map(|_| failed_first.fails("/a", 2)).collect();
        assert_eq!(fails, [true, true, false, false]);
        assert!(failed_first.fails("/b", 1));
        assert!(!failed_first.fails("/c", 0));
    }

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
