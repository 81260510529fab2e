//! Calls the gateway from one address.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

const TIMEOUT: Duration = Duration::from_secs(60);
const PASSWORD: &str = "a long enough password for a test";

/// A caller with an address of its own, and perhaps an account.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    gateway: Url,
    address: IpAddr,
    pub(crate) email: String,
    pub(crate) token: Option<String>,
}

impl Client {
    /// A caller without an account.
    pub(crate) fn new(gateway: &Url, address: IpAddr) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .local_address(address)
            .timeout(TIMEOUT)
            .build()?;
        Ok(Self {
            http,
            gateway: gateway.clone(),
            address,
            email: String::new(),
            token: None,
        })
    }

    /// A caller with a new account.
    pub(crate) async fn sign_up(gateway: &Url, address: IpAddr) -> anyhow::Result<Self> {
        let mut client = Self::new(gateway, address)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        client.email = format!("abuse-{}@example.com", now.as_nanos());
        let account = json!({"email": client.email, "password": PASSWORD});
        client.json(Method::POST, "/user", Some(&account)).await?;
        client.sign_in().await?;
        Ok(client)
    }

    /// Signs in with the right password and keeps the token.
    pub(crate) async fn sign_in(&mut self) -> anyhow::Result<()> {
        let credentials = json!({"username": self.email, "password": PASSWORD});
        let response = self
            .json(Method::POST, "/user/auth", Some(&credentials))
            .await?;
        self.token = Some(text(&response, "token")?.to_owned());
        Ok(())
    }

    /// The JSON of a response, which must be a success.
    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let response = self.request(method.clone(), path, body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(
            status.is_success(),
            "{method} {path} returned {status}: {text}"
        );
        Ok(serde_json::from_str(&text)?)
    }

    /// The status of a response that was read completely.
    pub(crate) async fn status(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<StatusCode> {
        let mut response = self.request(method, path, body).send().await?;
        while response.chunk().await?.is_some() {}
        Ok(response.status())
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.gateway.as_str().trim_end_matches('/'));
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        request
    }

    /// A connection from the caller's address, for requests that no HTTP library sends.
    pub(crate) async fn connect(&self) -> anyhow::Result<TcpStream> {
        let address = self.gateway.socket_addrs(|| None)?;
        let address = address.into_iter().find(SocketAddr::is_ipv4);
        let address = address.context("the gateway has no IPv4 address")?;
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(self.address, 0))?;
        Ok(socket.connect(address).await?)
    }
}

/// A field of a response.
pub(crate) fn text<'a>(response: &'a Value, field: &str) -> anyhow::Result<&'a str> {
    let text = response.get(field).and_then(Value::as_str);
    text.with_context(|| format!("a response has no `{field}`"))
}
