//! The services behind the gateway, and the HTTP client that reaches them.

use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use url::Url;

use crate::table::Service;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Shorter than the 75 s for which services keep a connection, so that none is closed as we use it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 256;
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the services are.
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

/// Whether a service answers at all.
pub(crate) async fn is_alive(client: &Client, url: Url) -> bool {
    let answer = client.get(url).timeout(CHECK_TIMEOUT).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}
