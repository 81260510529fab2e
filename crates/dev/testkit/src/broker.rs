use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use values::Secret;

use crate::servers::servers;

/// A vhost of one test; deleted at the end, with its queues.
#[derive(Debug)]
pub struct TestBroker {
    vhost: String,
}

impl TestBroker {
    /// A new, empty vhost.
    #[must_use]
    pub fn new() -> Self {
        let vhost = format!("test_{}", hex::encode(rand::random::<[u8; 8]>()));
        let broker = Self { vhost };
        put(&format!("vhosts/{}", broker.vhost), &json!({}));
        broker.set_reachable(true);
        broker
    }

    /// The vhost's AMQP url.
    #[must_use]
    pub fn url(&self) -> Secret {
        Secret::new(servers().rabbitmq.amqp_url_of(&self.vhost))
    }

    /// Takes or gives back the right to use the vhost, and cuts its connections when it is taken: a
    /// broker that is away, for this test only.
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

    /// Every message that waits in a queue of the vhost, headers and all, as the broker's API shows it. They
    /// stay in their queues.
    #[must_use]
    pub fn waiting(&self) -> Vec<Value> {
        let queues = get(&format!("queues/{}", self.vhost));
        let names = queues.as_array().into_iter().flatten();
        let names = names.filter_map(|queue| queue["name"].as_str());
        names.flat_map(|name| self.waiting_in(name)).collect()
    }

    fn waiting_in(&self, queue: &str) -> Vec<Value> {
        let wanted = json!({"count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"});
        let path = url(&format!("queues/{}/{queue}/get", self.vhost));
        let request = ureq::post(path).header("Authorization", authorization());
        let request = request.header("Content-Type", "application/json");
        let mut response = request
            .send(wanted.to_string())
            .expect("the broker's API must give it");
        let text = response.body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Ends every connection to the vhost.
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
        .expect("the broker's API must take it");
}

fn get(path: &str) -> Value {
    let request = ureq::get(url(path)).header("Authorization", authorization());
    let mut response = request.call().expect("the broker's API must answer");
    let text = response.body_mut().read_to_string().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What is gone already needs no deletion.
fn delete(path: &str) {
    let request = ureq::delete(url(path)).header("Authorization", authorization());
    let _ = request.call();
}
