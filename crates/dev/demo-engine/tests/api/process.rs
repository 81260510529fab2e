use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use local_stack::ports;

/// Returns a command that starts the engine with its internal port at `port`.
fn engine(port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo-engine"));
    command
        .env_clear()
        .env("LISTEN_ADDRESS", "127.0.0.1:0")
        .env("METRICS_ADDRESS", format!("127.0.0.1:{port}"));
    command
}

fn ended_within(child: &mut Child, limit: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            panic!("the process did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn healthy(port: u16) -> bool {
    let mut command = engine(port);
    command.arg("--health").status().unwrap().success()
}

#[test]
fn the_process_reports_its_health_and_stops_on_sigterm() {
    let [port] = ports::free().unwrap();
    assert!(!healthy(port), "nothing listens yet");
    let mut child = engine(port).spawn().unwrap();
    let start = Instant::now();
    while !healthy(port) {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }

    let kill = Command::new("kill").arg(child.id().to_string()).status();
    assert!(kill.unwrap().success());
    assert!(ended_within(&mut child, Duration::from_secs(5)).success());
}

#[test]
fn an_invalid_setting_ends_the_process_and_is_named() {
    let mut command = engine(0);
    let output = command.env("DEMO_ENGINE_DELAY", "soon").output().unwrap();
    assert!(!output.status.success());
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("DEMO_ENGINE_DELAY"), "{text}");
}

#[test]
fn the_version_is_printed_without_settings() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo-engine"));
    let output = command.env_clear().arg("--version").output().unwrap();
    assert!(output.status.success());
    let expected = concat!("demo-engine ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
