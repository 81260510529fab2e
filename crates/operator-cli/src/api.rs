use std::time::Duration;

use anyhow::Context as _;
use app_config::Reader;
use clap::Args;
use reqwest::blocking::{Client, RequestBuilder};
use reqwest::header::{CONTENT_LENGTH, HeaderValue, LINK, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use telemetry::CertificateFault;
use url::Url;
use values::Secret;

use crate::Failure;
use crate::output::Output;

const TIMEOUT: Duration = Duration::from_secs(30);
/// As many rows as most lists return at once.
const PAGE: usize = 1_000;

/// Options of every command.
#[derive(Args)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) output: Output,
    /// The gateway. The default is the setting COUNTERSIGN_URL, or http://gateway:8080.
    #[arg(long, global = true, value_name = "URL")]
    url: Option<Url>,
    /// The administrator who does it. The default is the setting ADMIN_USERNAME, or admin@countersign.local. The password is read
    /// from ADMIN_PASSWORD or the file that ADMIN_PASSWORD_FILE names; a token in COUNTERSIGN_TOKEN replaces both.
    #[arg(long = "as", global = true, value_name = "USERNAME")]
    administrator: Option<String>,
}

impl Global {
    pub(crate) fn gateway(&self, reader: &mut Reader) -> Result<Url, app_config::Error> {
        match &self.url {
            Some(url) => Ok(url.clone()),
            None => reader.or_default("COUNTERSIGN_URL", "http://gateway:8080", "The gateway."),
        }
    }

    pub(crate) fn administrator(&self, reader: &mut Reader) -> Result<String, app_config::Error> {
        let default = "admin@countersign.local";
        match &self.administrator {
            Some(username) => Ok(username.clone()),
            None => reader.or_default("ADMIN_USERNAME", default, "The administrator."),
        }
    }
}

/// The public API, as an administrator.
pub(crate) struct Api {
    client: Client,
    url: Url,
    token: Secret,
}

/// A client that follows no redirects and uses no proxy, because they would get the token or the password.
pub(crate) fn client(timeout: Duration) -> anyhow::Result<Client> {
    // rustls needs one process-wide provider. An error means that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .timeout(timeout)
        .build();
    client.context("the HTTP client cannot be built")
}

impl Api {
    /// Signs in, unless there is a token.
    pub(crate) fn open(global: &Global) -> Result<Self, Failure> {
        let mut reader = Reader::from_process()?;
        let mut api = Self {
            client: client(TIMEOUT)?,
            url: global.gateway(&mut reader)?,
            token: Secret::new(String::new()),
        };
        let token = reader.optional("COUNTERSIGN_TOKEN", "An administrator's token.")?;
        let password = reader.optional("ADMIN_PASSWORD", "The administrator's password.")?;
        api.token = match (token, password) {
            (Some(token), _) => token,
            (None, Some(password)) => {
                api.sign_in(&global.administrator(&mut reader)?, &password)?
            }
            (None, None) => {
                return Err(Failure::Usage(
                    "There are no credentials. Set ADMIN_PASSWORD, ADMIN_PASSWORD_FILE or COUNTERSIGN_TOKEN."
                        .to_owned(),
                ));
            }
        };
        Ok(api)
    }

    fn sign_in(&self, username: &str, password: &Secret) -> Result<Secret, Failure> {
        let body = json!({"username": username, "password": password.expose()});
        let response = self.call(Method::POST, &["user", "auth"], |r| r.json(&body))?;
        let token = response.get("token").and_then(Value::as_str);
        let token = token.context("the response to the sign-in has no token")?;
        Ok(Secret::new(token))
    }

    pub(crate) fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, Failure> {
        self.call(Method::GET, path, |request| request.query(query))
    }

    pub(crate) fn list(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Vec<Value>, Failure> {
        Ok(self.page(path, query)?.0)
    }

    /// The rows of a page of a list, and whether another page follows.
    fn page(&self, path: &[&str], query: &[(&str, String)]) -> Result<(Vec<Value>, bool), Failure> {
        let (rows, has_next) = self.answer(Method::GET, path, |request| request.query(query))?;
        Ok((rows.as_array().cloned().unwrap_or_default(), has_next))
    }

    /// The rows of a list after `offset` up to a limit, which may be more than a page has.
    pub(crate) fn rows(
        &self,
        path: &[&str],
        filters: &[(&str, String)],
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Value>, Failure> {
        let next = |found: &[Value]| ("offset", (offset + found.len()).to_string());
        self.pages(path, filters, PAGE, limit, next)
    }

    /// The same with `page` rows at once. `next` is the parameter that leads to the rows after those that were found.
    pub(crate) fn pages(
        &self,
        path: &[&str],
        filters: &[(&str, String)],
        page: usize,
        limit: usize,
        next: impl Fn(&[Value]) -> (&'static str, String),
    ) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        while found.len() < limit {
            let rows = page.min(limit - found.len()).to_string();
            let query = [filters, &[("limit", rows), next(&found)]].concat();
            let (rows, has_next) = self.page(path, &query)?;
            found.extend(rows);
            if !has_next {
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn post(&self, path: &[&str], body: Option<&Value>) -> Result<Value, Failure> {
        self.call(Method::POST, path, |request| match body {
            Some(body) => request.json(body),
            // Some proxies refuse a POST without a length (RFC 9110 section 8.6).
            None => request.header(CONTENT_LENGTH, 0),
        })
    }

    pub(crate) fn put(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        self.call(Method::PUT, path, |request| request.json(body))
    }

    pub(crate) fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, |request| request)
    }

    fn call(
        &self,
        method: Method,
        path: &[&str],
        complete: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Value, Failure> {
        Ok(self.answer(method, path, complete)?.0)
    }

    /// The body of the response, and whether its `Link` header leads to another page.
    fn answer(
        &self,
        method: Method,
        path: &[&str],
        complete: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<(Value, bool), Failure> {
        let mut request = self.client.request(method, below(&self.url, path)?);
        if !self.token.expose().is_empty() {
            request = request.bearer_auth(self.token.expose());
        }
        let response = complete(request)
            .send()
            .map_err(|error| no_response(error, &self.url))?;
        let status = response.status();
        let has_next = response.headers().contains_key(LINK);
        let wait = response.headers().get(RETRY_AFTER).cloned();
        let text = response.text().context("the response is not complete")?;
        if status.is_success() {
            let body = serde_json::from_str(&text).unwrap_or(Value::Null);
            return Ok((body, has_next));
        }
        Err(refusal(status, wait.as_ref(), &text))
    }
}

/// The URL of a path below that of the gateway, which may have one.
pub(crate) fn below(gateway: &Url, path: &[&str]) -> Result<Url, Failure> {
    let mut url = gateway.clone();
    url.path_segments_mut()
        .map_err(|()| Failure::Usage("the gateway's URL is not an HTTP address".to_owned()))?
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

fn no_response(error: reqwest::Error, gateway: &Url) -> anyhow::Error {
    if let Some(fault) = CertificateFault::find(&error) {
        return anyhow::anyhow!("the certificate of the gateway at {gateway} was refused: {fault}");
    }
    let error = anyhow::Error::from(error.without_url());
    error.context(format!("the gateway at {gateway} does not respond"))
}

/// The failure that a problem (RFC 9457) describes.
fn refusal(status: StatusCode, wait: Option<&HeaderValue>, text: &str) -> Failure {
    let problem: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let member = |name: &str| problem.get(name).and_then(Value::as_str);
    let said = member("detail").or_else(|| member("title"));
    let said = said.map_or_else(
        || format!("the gateway responded with {status}"),
        str::to_owned,
    );
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Refused(said),
        StatusCode::NOT_FOUND => Failure::NotFound(said),
        StatusCode::CONFLICT => Failure::Conflict(said),
        StatusCode::TOO_MANY_REQUESTS => {
            let wait = wait.and_then(|wait| wait.to_str().ok());
            let wait = wait.map(|wait| format!(" Retry-After: {wait} s."));
            Failure::Limited(format!("{said}{}", wait.unwrap_or_default()))
        }
        _ => {
            let fields = problem.get("errors").map(|errors| format!(" {errors}"));
            Failure::Failed(anyhow::anyhow!("{said}{}", fields.unwrap_or_default()))
        }
    }
}
