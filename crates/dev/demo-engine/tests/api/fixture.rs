use std::sync::Once;

use demo_engine::{Server, Settings};
use reqwest::{Client, Method, RequestBuilder, Response, redirect};
use serde_json::Value;

/// A private engine, and a client that does not follow redirects.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    client: Client,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    pub(crate) async fn start_with(settings: Settings) -> Self {
        Self {
            server: demo_engine::run(settings).await.unwrap(),
            client: client(),
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.server.url());
        self.client.request(method, url)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        let request = self.request(Method::POST, path).json(body);
        request.send().await.unwrap()
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Response {
        let request = self.request(Method::PUT, path).json(body);
        request.send().await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await.unwrap()
    }

    pub(crate) async fn received(&self, query: &str) -> Vec<Value> {
        let body = self.get(&format!("/received{query}")).await;
        body["items"].as_array().unwrap().clone()
    }
}

fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap();
    });
    let client = Client::builder().no_proxy();
    client.redirect(redirect::Policy::none()).build().unwrap()
}
