//! A minimal mail server that records messages.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

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
    texts: Vec<String>,
    commands: Vec<String>,
    refusal: Option<Refusal>,
}

#[derive(Debug)]
struct Refusal {
    command: &'static str,
    reply: String,
    times: u32,
}

/// When a [`MailServer`] speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// From the beginning, as for `smtps://`.
    Wrapper,
    /// After the command `STARTTLS`.
    StartTls,
}

/// A mail server that records what it gets.
#[derive(Debug)]
pub struct MailServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}
type Connection = BufReader<Box<dyn Stream>>;

impl MailServer {
    /// Starts a server on a free port.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server that speaks TLS on a free port.
    pub async fn start_tls(tls: MailTls, config: ServerConfig) -> Self {
        Self::start_with(Some((tls, TlsAcceptor::from(Arc::new(config))))).await
    }

    async fn start_with(tls: Option<(MailTls, TlsAcceptor)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
        };
        let state = Arc::clone(&server.state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, state) = (tls.clone(), Arc::clone(&state));
                tokio::spawn(async move {
                    match tls {
                        Some((MailTls::Wrapper, acceptor)) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                converse(Box::new(stream), None, &state).await;
                            }
                        }
                        Some((MailTls::StartTls, acceptor)) => {
                            converse(Box::new(stream), Some(acceptor), &state).await;
                        }
                        None => converse(Box::new(stream), None, &state).await,
                    }
                });
            }
        });
        server
    }

    /// Its URL, for `SMTP_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// The port on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The messages that it has taken, the oldest first.
    #[must_use]
    pub fn mails(&self) -> Vec<Mail> {
        self.state.lock().unwrap().mails.clone()
    }

    /// The texts that it has received, also those that it refused afterwards, the oldest first.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.state.lock().unwrap().texts.clone()
    }

    /// The commands that it has received, the oldest first.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        self.state.lock().unwrap().commands.clone()
    }

    /// Refuses the next `times` recipients with 451 and a text that contains their address.
    pub fn refuse(&self, times: u32) {
        self.refuse_with("RCPT", "451 {to} try again later", times);
    }

    /// Refuses the next `times` commands that begin with `command`, where `.` is the end of a message. In the
    /// reply, `{to}` stands for the recipient.
    pub fn refuse_with(&self, command: &'static str, reply: &str, times: u32) {
        self.state.lock().unwrap().refusal = Some(Refusal {
            command,
            reply: reply.to_owned(),
            times,
        });
    }
}

/// Serves one connection until the client closes it.
async fn converse(stream: Box<dyn Stream>, tls: Option<TlsAcceptor>, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    let (mut mail, mut tls) = (Mail::default(), tls);
    let mut response = refused("220", &mail, state).unwrap_or_else(|| "220 test\r\n".to_owned());
    while stream.write_all(response.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
        let Some(line) = read_line(&mut stream).await else {
            return;
        };
        state.lock().unwrap().commands.push(line.clone());
        let command = line.get(..4).unwrap_or_default().to_uppercase();
        if command == "RCPT" {
            mail.to.push(address(&line));
        }
        if let Some(refusal) = refused(&command, &mail, state) {
            response = refusal;
            continue;
        }
        response = match command.as_str() {
            "STAR" => match start_tls(stream, tls.take()).await {
                Some(encrypted) => {
                    stream = encrypted;
                    // The client speaks next.
                    String::new()
                }
                None => return,
            },
            "MAIL" => {
                mail = Mail::default();
                mail.from = address(&line);
                "250 ok\r\n".to_owned()
            }
            "DATA" => {
                stream.write_all(b"354 go\r\n").await.unwrap();
                stream.flush().await.unwrap();
                mail.text = read_text(&mut stream).await;
                take(&mail, state)
            }
            other => reply(other, tls.is_some()).to_owned(),
        };
    }
}

/// The reply to a command that changes nothing.
fn reply(command: &str, offers_tls: bool) -> &'static str {
    match command {
        "EHLO" if offers_tls => "250-test\r\n250 STARTTLS\r\n",
        "EHLO" => "250-test\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n",
        "AUTH" => "235 ok\r\n",
        "RCPT" | "NOOP" | "RSET" => "250 ok\r\n",
        _ => "502 unknown\r\n",
    }
}

async fn start_tls(mut stream: Connection, tls: Option<TlsAcceptor>) -> Option<Connection> {
    stream.write_all(b"220 go\r\n").await.ok()?;
    stream.flush().await.ok()?;
    let encrypted = tls?.accept(stream.into_inner()).await.ok()?;
    Some(BufReader::new(Box::new(encrypted)))
}

fn take(mail: &Mail, state: &Mutex<State>) -> String {
    state.lock().unwrap().texts.push(mail.text.clone());
    refused(".", mail, state).unwrap_or_else(|| {
        state.lock().unwrap().mails.push(mail.clone());
        "250 taken\r\n".to_owned()
    })
}

fn refused(command: &str, mail: &Mail, state: &Mutex<State>) -> Option<String> {
    let mut state = state.lock().unwrap();
    let refusal = state.refusal.as_mut();
    let refusal = refusal.filter(|refusal| refusal.command == command && refusal.times > 0)?;
    refusal.times -= 1;
    let to = mail.to.last().map_or("", String::as_str);
    Some(format!("{}\r\n", refusal.reply.replace("{to}", to)))
}

async fn read_line(stream: &mut Connection) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn read_text(stream: &mut Connection) -> String {
    let mut text = String::new();
    while let Some(line) = read_line(stream).await {
        if line == "." {
            break;
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
        text.push('\n');
    }
    text
}

fn address(line: &str) -> String {
    let (_, rest) = line.split_once('<').unwrap();
    rest.split_once('>').unwrap().0.to_owned()
}
