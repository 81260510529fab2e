use std::net::SocketAddr;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::servers::install_cryptography;

/// Sends requests to one running service.
#[derive(Debug, Clone)]
pub struct Http {
    base: String,
    client: reqwest::Client,
}

#[derive(Debug)]
pub struct Request(reqwest::RequestBuilder);

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The body as JSON. Null if the body is not JSON.
    pub json: Value,
}

impl Http {
    pub fn to(address: SocketAddr) -> Self {
        install_cryptography();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            base: format!("http://{address}"),
            client,
        }
    }

    /// Returns the base URL of the service, without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn request(&self, method: Method, path: &str) -> Request {
        Request(self.client.request(method, format!("{}{path}", self.base)))
    }

    pub fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str) -> Request {
        self.request(Method::POST, path)
    }

    pub fn put(&self, path: &str) -> Request {
        self.request(Method::PUT, path)
    }

    pub fn delete(&self, path: &str) -> Request {
        self.request(Method::DELETE, path)
    }
}

impl Request {
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn header(self, name: &str, value: &str) -> Self {
        Self(self.0.header(name, value))
    }

    pub fn json(self, body: &Value) -> Self {
        Self(self.0.json(body))
    }

    /// Adds a body without a content type.
    pub fn body(self, body: impl Into<reqwest::Body>) -> Self {
        Self(self.0.body(body))
    }

    /// Sends the request and returns the response when its headers have come, to read its body piece by piece.
    pub async fn open(self) -> reqwest::Response {
        self.0.send().await.expect("the service must respond")
    }

    /// Sends the request and reads the whole response.
    pub async fn send(self) -> Reply {
        let response = self.open().await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await;
        let text = text.expect("the response must be complete");
        Reply {
            status,
            headers,
            json: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
        }
    }
}

impl Reply {
    /// Asserts the status. The message of the panic contains the body.
    #[track_caller]
    #[must_use]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// Asserts that the response is a complete problem (RFC 9457) with this status and code.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.json["code"], code, "{}", self.text);
        assert_eq!(self.json["type"], format!("urn:countersign:problem:{code}"));
        assert_eq!(self.json["status"], status);
        assert_eq!(self.json["statusCode"], status);
        assert_eq!(self.json["detail"], self.json["message"]);
        assert!(self.json["error"].is_string(), "{}", self.text);
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(self.header("x-request-id"), self.json["requestId"].as_str());
    }

    /// Returns the fields that a `validation-failed` problem names, in order.
    pub fn bad_fields(&self) -> Vec<String> {
        let errors = self.json["errors"].as_array().into_iter().flatten();
        errors
            .map(|e| e["field"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the field names of the JSON object, sorted.
    pub fn fields(&self) -> Vec<&str> {
        let object = self.json.as_object().into_iter().flatten();
        let mut names: Vec<_> = object.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Returns a string field of the JSON object.
    #[track_caller]
    pub fn text_of(&self, field: &str) -> String {
        let value = self.json[field].as_str();
        value
            .unwrap_or_else(|| panic!("no string `{field}` in {}", self.text))
            .to_owned()
    }
}
