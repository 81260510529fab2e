use rig::{Call, Client};
use serde_json::{Value, json};
use values::Secret;

use crate::servers::servers;

/// Returns the URL of the vhost that a run's tests share. No test may read messages in it or make it unavailable.
pub fn shared_broker() -> Secret {
    Secret::new(&*servers().rabbitmq.amqp_url)
}

/// A private vhost, deleted with its queues when it is dropped.
#[derive(Debug)]
pub struct TestBroker {
    vhost: String,
}

impl TestBroker {
    /// Creates an empty vhost.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let vhost = format!("test_{}", hex::encode(rand::random::<[u8; 8]>()));
        let broker = Self { vhost };
        put(&format!("vhosts/{}", broker.vhost), &json!({}));
        broker.set_reachable(true);
        broker
    }

    pub fn url(&self) -> Secret {
        Secret::new(servers().rabbitmq.amqp_url_of(&self.vhost))
    }

    /// Makes the broker unavailable for this test only, by revoking the right to use the vhost and closing its
    /// connections, or available again.
    pub fn set_reachable(&self, reachable: bool) {
        let path = format!("permissions/{}/{}", self.vhost, servers().rabbitmq.username);
        if reachable {
            let all = json!({"configure": ".*", "write": ".*", "read": ".*"});
            put(&path, &all);
        } else {
            call("DELETE", &path, None).expect("the broker's API must accept the request");
            self.cut_connections();
        }
    }

    /// Returns all messages in the queues of the vhost, with their headers, as the broker's API shows them. They
    /// stay in their queues.
    pub fn waiting(&self) -> Vec<Value> {
        let queues = get(&format!("queues/{}", self.vhost));
        let names = queues.as_array().into_iter().flatten();
        let names = names.filter_map(|queue| queue["name"].as_str());
        names.flat_map(|name| self.waiting_in(name)).collect()
    }

    fn waiting_in(&self, queue: &str) -> Vec<Value> {
        let options = json!({"count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"});
        let path = format!("queues/{}/{queue}/get", self.vhost);
        let messages = call("POST", &path, Some(&options));
        let messages = messages.expect("the broker's API must return messages");
        messages.as_array().cloned().unwrap_or_default()
    }

    /// Limits how many queues the vhost may have.
    pub fn limit_queues(&self, number: u32) {
        let path = format!("vhost-limits/{}/max-queues", self.vhost);
        put(&path, &json!({"value": number}));
    }

    pub fn delete_exchange(&self, name: &str) {
        let path = format!("exchanges/{}/{name}", self.vhost);
        call("DELETE", &path, None).expect("the broker's API must accept the request");
    }

    /// Closes the connections to the vhost that the broker lists, which is late. Returns how many.
    pub fn cut_connections(&self) -> usize {
        let connections = get(&format!("vhosts/{}/connections", self.vhost));
        let connections = connections.as_array().map_or(&[][..], Vec::as_slice);
        for connection in connections {
            let name = connection["name"].as_str().unwrap_or_default();
            let name = name.replace(' ', "%20").replace('>', "%3E");
            delete(&format!("connections/{name}"));
        }
        connections.len()
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        delete(&format!("vhosts/{}", self.vhost));
    }
}

/// Calls the broker's API. `None` if it does not respond or refuses the request.
fn call(method: &'static str, path: &str, body: Option<&Value>) -> Option<Value> {
    let rabbitmq = &servers().rabbitmq;
    let call = Call {
        body: body.cloned(),
        ..Call::new(method, format!("/api/{path}"))
    };
    let call = call.header("authorization", rabbitmq.authorization());
    let response = Client::new(&rabbitmq.management_url).once(&call);
    let (status, _, body) = response.ok()?;
    (200..300).contains(&status).then_some(body)
}

fn put(path: &str, body: &Value) {
    call("PUT", path, Some(body)).expect("the broker's API must accept the request");
}

fn get(path: &str) -> Value {
    call("GET", path, None).expect("the broker's API must respond")
}

/// Ignores failures: the resource may be gone already.
fn delete(path: &str) {
    let _ = call("DELETE", path, None);
}
