//! The receiving ends: webhooks of decisions, and forgot-password messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use app_config::SettingValue;
use serde_json::json;

use crate::engine::{Engine, lock};
use crate::journal::{Kind, Received, query_of};

/// How long a call with `hang=true` stays open when its caller does not give up.
const MAX_HANG: Duration = Duration::from_secs(60);
const MAX_DELAY: Duration = Duration::from_secs(600);
const MAX_COUNTED_URLS: usize = 10_000;

/// How often each url with `failFirst` has failed.
#[derive(Default)]
pub(crate) struct FailedFirst {
    by_url: Mutex<HashMap<String, u32>>,
}

impl FailedFirst {
    /// Whether this call of the url is one of its first `times`, which fail.
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

/// What a webhook's url asks of its receiver.
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
    /// Reads the options; the error names the one that cannot be read.
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
    // Any method, so that a caller who wrongly follows a redirect with a GET is seen, too.
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
        Err(option) => return unreadable(option),
    };
    let fails = failed_first.fails(&request.uri().to_string(), behaviour.fail_first);
    engine.pause(behaviour.delay).await;
    if behaviour.hang {
        engine.pause(MAX_HANG).await;
    }
    answer(&behaviour, fails)
}

fn answer(behaviour: &Behaviour, fails: bool) -> HttpResponse {
    let status = match behaviour.status {
        _ if fails => StatusCode::SERVICE_UNAVAILABLE,
        _ if behaviour.redirect => StatusCode::FOUND,
        Some(status) => status,
        None => StatusCode::OK,
    };
    let mut answer = HttpResponse::build(status);
    if status == StatusCode::FOUND {
        answer.insert_header((header::LOCATION, "/webhooks/redirected"));
    }
    if let Some(seconds) = behaviour.retry_after {
        answer.insert_header((header::RETRY_AFTER, seconds.to_string()));
    }
    answer.json(json!({}))
}

fn unreadable(option: &str) -> HttpResponse {
    HttpResponse::BadRequest().json(json!({"message": format!("`{option}` cannot be read.")}))
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
    fn a_url_fails_only_its_first_times() {
        let failed_first = FailedFirst::default();
        let fails: Vec<bool> = (0..4).map(|_| failed_first.fails("/a", 2)).collect();
        assert_eq!(fails, [true, true, false, false]);
        assert!(failed_first.fails("/b", 1));
        assert!(!failed_first.fails("/c", 0));
    }

    #[test]
    fn an_option_that_cannot_be_read_is_named() {
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
