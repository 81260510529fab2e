//! Listeners that stand for receivers of webhooks and for a process of another version.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Context;

/// The listeners.
pub(super) struct Receivers {
    /// Accepts connections and responds to nothing.
    pub(super) silent: String,
    /// Also silent, and counts its connections.
    pub(super) counting: String,
    accepted: Arc<AtomicUsize>,
    /// Responds with 410.
    pub(super) gone: String,
    /// The address of metrics of another version.
    pub(super) other_version: String,
}

impl Receivers {
    pub(super) fn open() -> anyhow::Result<Self> {
        let silent = listen(stay_silent)?;
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let counting = listen(move |stream| {
            count.fetch_add(1, Ordering::Relaxed);
            stay_silent(stream);
        })?;
        let gone = listen(|stream| respond(stream, "410 Gone", ""))?;
        let metrics = "# TYPE build_info gauge\nbuild_info{version=\"0.0.1\"} 1\n";
        let other_version = listen(move |stream| respond(stream, "200 OK", metrics))?;
        Ok(Self {
            silent: format!("http://{silent}/"),
            counting: format!("http://{counting}/"),
            accepted,
            gone: format!("http://{gone}/"),
            other_version,
        })
    }

    /// How many connections the counting receiver has accepted.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Leaves the connection open until the caller gives up.
fn stay_silent(stream: &mut TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Handles each connection on a thread of its own. Returns the address.
fn listen(handle: impl Fn(&mut TcpStream) + Send + Clone + 'static) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("listening")?;
    let address = listener.local_addr().context("listening")?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let handle = handle.clone();
            thread::spawn(move || {
                let mut stream = stream;
                handle(&mut stream);
            });
        }
    });
    Ok(address.to_string())
}

fn respond(stream: &mut TcpStream, status: &str, body: &str) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
    let _ = stream.read(&mut [0; 16 * 1024]);
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}
