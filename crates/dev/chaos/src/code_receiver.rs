//! The receiver of the forgot-password webhook.

use std::{
    collections::HashSet,
    io::{BufReader, Write as _},
    sync::{Arc, Mutex},
};

use local_stack::ports;
use serde_json::Value;

use crate::{receiver::read_request, sync::lock, toggle_listener::ToggleListener};

/// Responds to every message with 200, and remembers the addresses that a code was sent to.
pub(crate) struct CodeReceiver {
    listener: ToggleListener,
    addresses: Arc<Mutex<HashSet<String>>>,
}

impl CodeReceiver {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let [port] = ports::free()?;
        let addresses = Arc::new(Mutex::new(HashSet::new()));
        let received = Arc::clone(&addresses);
        let listener = ToggleListener::open(port, move |mut stream| {
            let Ok(copy) = stream.try_clone() else { return };
            let mut input = BufReader::new(copy);
            while let Ok(Some(request)) = read_request(&mut input) {
                let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                if let (Some(email), Some(_)) = (text(&body, "email"), text(&body, "code")) {
                    lock(&received).insert(email.to_owned());
                }
                if stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .is_err()
                {
                    return;
                }
            }
        })?;
        Ok(Self {
            listener,
            addresses,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/forgot-password", self.listener.port())
    }

    /// Whether a code was sent to this address.
    pub(crate) fn has_code_for(&self, email: &str) -> bool {
        lock(&self.addresses).contains(email)
    }
}

fn text<'body>(body: &'body Value, name: &str) -> Option<&'body str> {
    body.get(name).and_then(Value::as_str)
}
