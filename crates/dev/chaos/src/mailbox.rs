//! Where the messages to users go: the webhook for forgotten passwords.

use std::{
    collections::HashSet,
    io::{BufReader, Write as _},
    sync::{Arc, Mutex},
};

use local_stack::ports;
use serde_json::Value;

use crate::{
    door::{Door, locked},
    receiver::read_request,
};

/// Takes every message at once.
pub(crate) struct Mailbox {
    door: Door,
    addressees: Arc<Mutex<HashSet<String>>>,
}

impl Mailbox {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let [port] = ports::free()?;
        let addressees = Arc::new(Mutex::new(HashSet::new()));
        let noted = Arc::clone(&addressees);
        let door = Door::open(port, move |mut stream| {
            let Ok(copy) = stream.try_clone() else { return };
            let mut input = BufReader::new(copy);
            while let Ok(Some(request)) = read_request(&mut input) {
                let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                if let (Some(email), Some(_)) = (text(&body, "email"), text(&body, "code")) {
                    locked(&noted).insert(email.to_owned());
                }
                if stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                    .is_err()
                {
                    return;
                }
            }
        })?;
        Ok(Self { door, addressees })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/forgot-password", self.door.port())
    }

    /// Whether a code came for this address.
    pub(crate) fn has_code_for(&self, email: &str) -> bool {
        locked(&self.addressees).contains(email)
    }
}

fn text<'body>(body: &'body Value, name: &str) -> Option<&'body str> {
    body.get(name).and_then(Value::as_str)
}
