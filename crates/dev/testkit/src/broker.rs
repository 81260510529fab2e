use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use values::Secret;

use crate::servers::servers;

/// A private vhost, deleted with its queues when it is dropped.
#[derive(Debug)]
pub struct TestBroker {
    vhost: String,
}

impl TestBroker {
    /// Creates an empty vhost.
    #[must_use]
    pub fn new() -> Self {
        let vhost = format!("test_{}", hex::encode(rand::random::<[u8; 8]>()));
        let broker = Self { vhost };
        put(&format!("vhosts/{}", broker.vhost), &json!({}));
        broker.set_reachable(true);
        broker
    }

    /// Returns the AMQP URL of the vhost.
    #[must_use]
    pub fn url(&self) -> Secret {
        Secret::new(servers().rabbitmq.amqp_url_of(&self.vhost))
    }

    /// Makes the broker unavailable for this test only, by revoking the right to use the vhost and closing its
    /// connections, or available again.
    pub fn set_reachable(&self, reachable: bool) {
        let path = format!("permissions/{}/{}", self.vhost, servers().rabbitmq.username);
        if reachable {
            put(
                &path,
                &json!({"configure": ".*", "write": ".*", "read": ".*"}),
            );
        } else {
            delete(&path);
            self.cut_connections();
        }
    }

    /// Returns all messages in the queues of the vhost, with their headers, as the broker's API shows them. They
    /// stay in their queues.
    #[must_use]
    pub fn waiting(&self) -> Vec<Value> {
        let queues = get(&format!("queues/{}", self.vhost));
        let names = queues.as_array().into_iter().flatten();
        let names = names.filter_map(|queue| queue["name"].as_str());
        names.flat_map(|name| self.waiting_in(name)).collect()
    }

    fn waiting_in(&self, queue: &str) -> Vec<Value> {
        let options = json!({"count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"});
        let path = url(&format!("queues/{}/{queue}/get", self.vhost));
        let request = ureq::post(path).header("Authorization", authorization());
        let request = request.header("Content-Type", "application/json");
        let mut response = request
            .send(options.to_string())
            .expect("the broker's API must return messages");
        let text = response.body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Closes all connections to the vhost.
    pub fn cut_connections(&self) {
        let connections = get(&format!("vhosts/{}/connections", self.vhost));
        for connection in connections.as_array().into_iter().flatten() {
            let name = connection["name"].as_str().unwrap_or_default();
            delete(&format!(
                "connections/{}",
                name.replace(' ', "%20").replace('>', "%3E")
            ));
        }
    }
}

impl Default for TestBroker {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        delete(&format!("vhosts/{}", self.vhost));
    }
}

fn url(path: &str) -> String {
    format!("{}/api/{path}", servers().rabbitmq.management_url)
}

fn authorization() -> String {
    let rabbitmq = &servers().rabbitmq;
    let credentials = format!("{}:{}", rabbitmq.username, rabbitmq.password);
    format!("Basic {}", STANDARD.encode(credentials))
}

fn put(path: &str, body: &Value) {
    let request = ureq::put(url(path)).header("Authorization", authorization());
    let request = request.header("Content-Type", "application/json");
    request
        .send(body.to_string())
        .expect("the broker's API must accept the request");
}

fn get(path: &str) -> Value {
    let request = ureq::get(url(path)).header("Authorization", authorization());
    let mut response = request.call().expect("the broker's API must respond");
    let text = response.body_mut().read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Ignores failures: the resource may be gone already.
fn delete(path: &str) {
    let request = ureq::delete(url(path)).header("Authorization", authorization());
    let _ = request.call();
}
