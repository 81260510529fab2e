//! The mail server of a run.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
};

use local_stack::ports;

use crate::{sync::lock, toggle_listener::ToggleListener};

/// Accepts every mail, and remembers the recipients.
pub(crate) struct MailReceiver {
    listener: ToggleListener,
    recipients: Arc<Mutex<HashSet<String>>>,
}

impl MailReceiver {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let [port] = ports::free()?;
        let recipients = Arc::new(Mutex::new(HashSet::new()));
        let received = Arc::clone(&recipients);
        let listener = ToggleListener::open(port, move |stream| {
            // The client has gone.
            let _ = receive(&stream, &received);
        })?;
        Ok(Self {
            listener,
            recipients,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.listener.port())
    }

    /// Whether a whole mail to this address was received.
    pub(crate) fn has_mail_for(&self, email: &str) -> bool {
        lock(&self.recipients).contains(email)
    }
}

/// The commands of SMTP (RFC 5321) that the notification-worker sends, until the client closes the connection.
fn receive(mut stream: &TcpStream, received: &Mutex<HashSet<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let mut recipient = None;
    stream.write_all(b"220 chaos\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        let command = line.get(..4).unwrap_or_default().to_uppercase();
        let response: &[u8] = match command.as_str() {
            "EHLO" => b"250-chaos\r\n250 8BITMIME\r\n",
            "MAIL" | "NOOP" | "RSET" => b"250 ok\r\n",
            "RCPT" => {
                let address = line.split(['<', '>']).nth(1);
                recipient = address.map(str::to_owned);
                b"250 ok\r\n"
            }
            "DATA" => {
                stream.write_all(b"354 go\r\n")?;
                loop {
                    match lines.next().transpose()? {
                        Some(line) if line == "." => break,
                        Some(_) => {}
                        None => return Ok(()),
                    }
                }
                lock(received).extend(recipient.take());
                b"250 taken\r\n"
            }
            _ => b"502 unknown\r\n",
        };
        stream.write_all(response)?;
    }
    Ok(())
}
