//! Who receives what is sent to the users of a run.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use rig::{
    mail_server::MailServer,
    receiver::{Receiver, Reply},
    sync::lock,
};
use serde_json::Value;

use crate::settings::RecipientUrls;

/// The receiver of the forgot-password webhook, and the mail server.
pub(crate) struct Recipients {
    codes: Receiver,
    /// The addresses that a code was sent to.
    addresses: Arc<Mutex<HashSet<String>>>,
    pub(crate) mails: MailServer,
}

impl Recipients {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let addresses = Arc::<Mutex<HashSet<String>>>::default();
        let received = Arc::clone(&addresses);
        let codes = Receiver::open(move |request| {
            let body: Value = serde_json::from_slice(request.body).unwrap_or_default();
            let text = |name: &str| body.get(name).and_then(Value::as_str);
            if let (Some(email), Some(_)) = (text("email"), text("code")) {
                lock(&received).insert(email.to_owned());
            }
            Reply::status("200 OK")
        })?;
        Ok(Self {
            codes,
            addresses,
            mails: MailServer::start()?,
        })
    }

    pub(crate) fn urls(&self) -> RecipientUrls {
        RecipientUrls {
            codes: self.codes.url("/forgot-password"),
            mails: Some(self.mails.url()),
        }
    }

    /// Whether a code was sent to this address.
    pub(crate) fn has_code_for(&self, email: &str) -> bool {
        lock(&self.addresses).contains(email)
    }
}
