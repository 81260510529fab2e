//! A minimal mail server that records messages.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crate::sync::{ToggleListener, Watch, lock};

#[derive(Debug, Clone, Default)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    /// Head and body, with `\n` as line end.
    pub text: String,
}

#[derive(Debug, Default)]
struct State {
    mails: Vec<Mail>,
    texts: Vec<String>,
    commands: Vec<String>,
    /// A command, the reply that refuses it, and how many more times.
    refusal: Option<(&'static str, String, u32)>,
    /// What recipients have in their addresses for whom there is no reply.
    silent_for: Arc<Watch<Option<&'static str>>>,
}

#[derive(Debug)]
pub struct MailServer {
    listener: ToggleListener,
    state: Arc<Mutex<State>>,
}

impl MailServer {
    /// Starts a server on a free port.
    pub fn start() -> anyhow::Result<Self> {
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        let listener = ToggleListener::open(Ipv4Addr::LOCALHOST, move |stream| {
            // The client has gone.
            let _ = converse(BufReader::new(stream), &shared);
        })?;
        Ok(Self { listener, state })
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Its URL, for `SMTP_URL`.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address())
    }

    /// The messages that it has taken, the oldest first.
    pub fn mails(&self) -> Vec<Mail> {
        lock(&self.state).mails.clone()
    }

    pub fn has_mail_for(&self, email: &str) -> bool {
        let state = lock(&self.state);
        let mut recipients = state.mails.iter().flat_map(|mail| &mail.to);
        recipients.any(|recipient| recipient == email)
    }

    /// The texts that it has received, also those that it refused afterwards, the oldest first.
    pub fn texts(&self) -> Vec<String> {
        lock(&self.state).texts.clone()
    }

    /// The commands that it has received, the oldest first.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.state).commands.clone()
    }

    /// Does not reply to recipients whose address contains this text, until it is changed.
    pub fn be_silent_for(&self, part: Option<&'static str>) {
        lock(&self.state).silent_for.set(part);
    }

    /// Refuses the next `times` recipients with 451 and a text that contains their address.
    pub fn refuse(&self, times: u32) {
        self.refuse_with("RCPT", "451 {to} try again later", times);
    }

    /// Refuses the next `times` commands that begin with `command`, where `.` is the end of a message. In the
    /// reply, `{to}` stands for the recipient. An empty one is not sent.
    pub fn refuse_with(&self, command: &'static str, reply: &str, times: u32) {
        lock(&self.state).refusal = Some((command, reply.to_owned(), times));
    }
}

/// Serves one connection until the client closes it (RFC 5321).
fn converse(mut stream: BufReader<TcpStream>, state: &Mutex<State>) -> io::Result<()> {
    let mut mail = Mail::default();
    let mut response = refused("220", &mail, state).unwrap_or_else(|| "220 test".to_owned());
    loop {
        send(&mut stream, &response)?;
        let Some(line) = read_line(&mut stream)? else {
            return Ok(());
        };
        lock(state).commands.push(line.clone());
        let command = line.get(..4).unwrap_or_default().to_uppercase();
        if command == "RCPT" {
            mail.to.push(address(&line));
            // It waits while there is no reply for this recipient.
            let silent_for = Arc::clone(&lock(state).silent_for);
            silent_for.wait_while(|part| part.is_some_and(|part| line.contains(part)));
        }
        if let Some(refusal) = refused(&command, &mail, state) {
            if command == "RCPT" {
                mail.to.pop();
            }
            response = refusal;
            continue;
        }
        response = match command.as_str() {
            "MAIL" | "RSET" => {
                mail = Mail::default();
                mail.from = address(&line);
                "250 ok".to_owned()
            }
            "DATA" => {
                send(&mut stream, "354 go")?;
                mail.text = read_text(&mut stream)?;
                take(&mail, state)
            }
            "EHLO" => "250-test\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME".to_owned(),
            "AUTH" => "235 ok".to_owned(),
            "RCPT" | "NOOP" => "250 ok".to_owned(),
            _ => "502 unknown".to_owned(),
        };
    }
}

fn send(stream: &mut BufReader<TcpStream>, response: &str) -> io::Result<()> {
    if response.is_empty() {
        return Ok(());
    }
    let stream = stream.get_mut();
    stream.write_all(format!("{response}\r\n").as_bytes())
}

fn take(mail: &Mail, state: &Mutex<State>) -> String {
    lock(state).texts.push(mail.text.clone());
    refused(".", mail, state).unwrap_or_else(|| {
        lock(state).mails.push(mail.clone());
        "250 taken".to_owned()
    })
}

fn refused(command: &str, mail: &Mail, state: &Mutex<State>) -> Option<String> {
    let mut state = lock(state);
    let (refused, reply, times) = state.refusal.as_mut()?;
    if *refused != command || *times == 0 {
        return None;
    }
    *times -= 1;
    let to = mail.to.last().map_or("", String::as_str);
    Some(reply.replace("{to}", to))
}

fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = stream.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_text(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut text = String::new();
    while let Some(line) = read_line(stream)? {
        if line == "." {
            return Ok(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
        text.push('\n');
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// The address in angle brackets.
fn address(line: &str) -> String {
    let address = line.split(['<', '>']).nth(1);
    address.unwrap_or_default().to_owned()
}
