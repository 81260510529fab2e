//! The services behind the gateway, and the HTTP client that reaches them.

use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;

use crate::routes::Service;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Shorter than the 75 s for which services keep idle connections, so that they never close one in use.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 256;
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// The base addresses of the services.
#[derive(Debug, Clone)]
pub(crate) struct Upstreams {
    pub(crate) user: Url,
    pub(crate) people_task: Url,
}

impl Upstreams {
    /// The address of a path at a service.
    pub(crate) fn url(&self, service: Service, path: &str, query: Option<&str>) -> Url {
        let base = match service {
            Service::User => &self.user,
            Service::PeopleTask => &self.people_task,
        };
        let mut url = base.clone();
        url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }
}

/// A client for the services: no redirects, no proxy from the environment, HTTP/1.1.
pub(crate) fn client() -> reqwest::Result<Client> {
    Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .tcp_nodelay(true)
        .build()
}

/// Whether a service is up.
pub(crate) async fn is_alive(client: &Client, url: Url) -> bool {
    let response = client.get(url).timeout(HEALTH_TIMEOUT).send().await;
    response.is_ok_and(|response| response.status().is_success())
}
