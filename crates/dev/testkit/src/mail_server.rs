//! A minimal mail server that records messages.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};

/// A received message.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    /// The address of the sender.
    pub from: String,
    /// The addresses of the recipients.
    pub to: Vec<String>,
    /// Head and body, with `\n` as line end.
    pub text: String,
}

#[derive(Debug, Default)]
struct State {
    mails: Vec<Mail>,
    refusals: u32,
}

/// A mail server that records what it gets.
#[derive(Debug)]
pub struct MailServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl MailServer {
    /// Starts a server on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
        };
        let state = Arc::clone(&server.state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&state)));
            }
        });
        server
    }

    /// Its URL, for `SMTP_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// The messages that it has received, the oldest first.
    #[must_use]
    pub fn mails(&self) -> Vec<Mail> {
        self.state.lock().unwrap().mails.clone()
    }

    /// Refuses the next `times` recipients with 451 and a text that contains their address.
    pub fn refuse(&self, times: u32) {
        self.state.lock().unwrap().refusals = times;
    }
}

/// Serves one connection until the client closes it.
async fn converse(stream: TcpStream, state: Arc<Mutex<State>>) {
    let (reading, mut writing) = stream.into_split();
    let mut lines = BufReader::new(reading).lines();
    let mut mail = Mail::default();
    let mut response = "220 test\r\n".to_owned();
    while writing.write_all(response.as_bytes()).await.is_ok() {
        let Ok(Some(line)) = lines.next_line().await else {
            return;
        };
        let command = line.get(..4).unwrap_or_default().to_uppercase();
        response = match command.as_str() {
            "EHLO" => "250-test\r\n250 8BITMIME\r\n".to_owned(),
            "MAIL" => {
                mail = Mail::default();
                mail.from = address(&line);
                "250 ok\r\n".to_owned()
            }
            "RCPT" => recipient(&mut mail, &line, &state),
            "DATA" => {
                writing.write_all(b"354 go\r\n").await.unwrap();
                mail.text = read_text(&mut lines).await;
                state.lock().unwrap().mails.push(mail.clone());
                "250 taken\r\n".to_owned()
            }
            "NOOP" | "RSET" => "250 ok\r\n".to_owned(),
            _ => "502 unknown\r\n".to_owned(),
        };
    }
}

async fn read_text(lines: &mut Lines<BufReader<OwnedReadHalf>>) -> String {
    let mut text = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if line == "." {
            break;
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
        text.push('\n');
    }
    text
}

fn recipient(mail: &mut Mail, line: &str, state: &Mutex<State>) -> String {
    let to = address(line);
    let mut state = state.lock().unwrap();
    if state.refusals > 0 {
        state.refusals -= 1;
        return format!("451 <{to}> try again later\r\n");
    }
    mail.to.push(to);
    "250 ok\r\n".to_owned()
}

fn address(line: &str) -> String {
    let (_, rest) = line.split_once('<').unwrap();
    rest.split_once('>').unwrap().0.to_owned()
}
