//! The gateway's binary as a process: its log and its metrics.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, copy, sink};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::{Http, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);
/// How many requests are sent before their responses are read.
const PIPELINED: usize = 16;

struct Process {
    child: Child,
    address: SocketAddr,
    metrics: Http,
}

impl Process {
    /// Starts the gateway. Returns the rest of its log, which begins after the addresses.
    fn start() -> (Self, BufReader<ChildStdout>) {
        let mut child = command().spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let metrics = address_in(&mut log, "serving metrics and health checks");
        let address = address_in(&mut log, "running");
        let metrics = Http::to(metrics);
        let process = Self {
            child,
            address,
            metrics,
        };
        (process, log)
    }

    async fn metrics(&self) -> String {
        self.metrics.get("/metrics").send().await.expect(200).text
    }

    /// The names and labels of all metrics.
    async fn series(&self) -> BTreeSet<String> {
        let text = self.metrics().await;
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let series = samples.filter_map(|line| line.rsplit_once(' '));
        series.map(|(series, _)| series.to_owned()).collect()
    }

    /// Sends requests without a body on one connection, and reads the responses.
    async fn send(&self, requests: impl IntoIterator<Item = String>) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let requests: Vec<_> = requests.into_iter().collect();
        let mut buffer = vec![0; 65_536];
        for requests in requests.chunks(PIPELINED) {
            socket
                .write_all(requests.concat().as_bytes())
                .await
                .unwrap();
            let mut responses = String::new();
            while responses.matches("HTTP/1.1 ").count() < requests.len() {
                let read = timeout(LIMIT, socket.read(&mut buffer)).await;
                let read = read.expect("the gateway does not respond").unwrap();
                assert_ne!(read, 0, "the connection was closed: {responses}");
                responses.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.unwrap().success());
    }

    async fn ended(&mut self) -> ExitStatus {
        eventually("the process to end", || {
            let status = self.child.try_wait().unwrap();
            async move { status }
        })
        .await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The gateway without services: only its own paths respond.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gateway"));
    command
        .env_clear()
        .env("LISTEN_ADDRESS", "127.0.0.1:0")
        .env("METRICS_ADDRESS", "127.0.0.1:0")
        .env("USER_SERVICE_URL", "http://127.0.0.1:1")
        .env("PEOPLE_TASK_SERVICE_URL", "http://127.0.0.1:1")
        .env("RATE_LIMIT", "off")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Reads the log up to a message, and returns the address in it.
fn address_in(log: &mut BufReader<ChildStdout>, message: &str) -> SocketAddr {
    loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the gateway ended");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["message"] == message {
            let address = event["address"].as_str().unwrap();
            let address = address.trim_start_matches("Some(").trim_end_matches(')');
            return address.parse().unwrap();
        }
    }
}

fn request(method: &str, path: &str, host: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[tokio::test]
async fn what_callers_invent_makes_no_series() {
    let (process, mut log) = Process::start();
    std::thread::spawn(move || copy(&mut log, &mut sink()));
    let invented = |number: usize| {
        let (method, host) = (format!("METHOD{number}"), format!("host{number}.example"));
        let path = match number % 3 {
            0 => "/user".to_owned(),
            1 => "/docs".to_owned(),
            _ => format!("/path{number}/{}", "x".repeat(100)),
        };
        request(&method, &path, &host)
    };
    process.send((0..3).map(invented)).await;
    eventually("the upkeep", || async {
        let metrics = process.metrics().await;
        metrics.contains("log_lines_dropped_total").then_some(())
    })
    .await;
    let before = process.series().await;
    for hundred in 0..100 {
        let numbers = hundred * 100..(hundred + 1) * 100;
        process.send(numbers.map(invented)).await;
    }
    let series = process.series().await;
    let new: Vec<_> = series.difference(&before).take(3).collect();
    assert!(new.is_empty(), "{new:#?}");
}

#[tokio::test]
async fn a_log_that_is_not_read_stops_neither_requests_nor_the_shutdown() {
    let (mut process, log) = Process::start();
    // Their log lines fill the pipe, and then the queue.
    for _ in 0..15 {
        process
            .send((0..1_000).map(|_| request("GET", "/healthz", "x")))
            .await;
    }
    eventually("the lost lines to be counted", || async {
        let metrics = process.metrics().await;
        let mut lines = metrics.lines();
        let count = lines.find_map(|line| line.strip_prefix("log_lines_dropped_total "))?;
        (count.parse::<u64>().unwrap() > 1_000).then_some(())
    })
    .await;
    process.signal("TERM");
    let status = process.ended().await;
    assert!(status.success(), "{status}");
    drop(log);
}

#[tokio::test]
async fn other_signals_are_logged_and_do_not_stop_the_process() {
    let (process, log) = Process::start();
    let mut lines = log.lines();
    for name in ["HUP", "USR1", "USR2", "ALRM", "HUP"] {
        process.signal(name);
        let logged = lines.find_map(|line| {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let signal = event["signal"].as_str()?.to_owned();
            Some((signal, event["level"].as_str().unwrap().to_owned()))
        });
        assert_eq!(logged, Some((format!("SIG{name}"), "INFO".to_owned())));
    }
    process.send([request("GET", "/healthz", "x")]).await;
}

#[tokio::test]
async fn each_signal_to_stop_lets_requests_finish() {
    for name in ["TERM", "INT", "QUIT"] {
        let (mut process, mut log) = Process::start();
        std::thread::spawn(move || copy(&mut log, &mut sink()));
        process.signal(name);
        let status = process.ended().await;
        assert!(status.success(), "{name}: {status}");
    }
}

#[test]
fn a_failed_start_is_logged_and_reported_before_the_process_ends() {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    let output = command().env("LISTEN_ADDRESS", &address).output().unwrap();
    assert!(!output.status.success());
    let (log, error) = (output.stdout, output.stderr);
    let (log, error) = (
        String::from_utf8(log).unwrap(),
        String::from_utf8(error).unwrap(),
    );
    assert!(log.contains("\"starting\""), "{log}");
    assert!(
        error.contains(&format!("gateway cannot run: LISTEN_ADDRESS {address}")),
        "{error}"
    );
}
