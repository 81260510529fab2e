//! The program itself. Tests of its commands need a system: they are in `crates/dev/system-tests`, and start the program
//! that is built for this test. What a system does rarely is answered here.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

#[test]
fn the_program_says_which_version_it_is() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let output = program.arg("--version").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, format!("countersign {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn deletions_are_repeated_until_there_are_no_more() {
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gateway.local_addr().unwrap());
    let answers = thread::spawn(move || {
        for body in [
            r#"{"retried":1000,"more":true}"#,
            r#"{"retried":2,"more":false}"#,
        ] {
            let (mut connection, _) = gateway.accept().unwrap();
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            assert_eq!(request, "POST /users/deletions/retry HTTP/1.1");
            assert!(lines.map(Result::unwrap).any(|line| line.is_empty()));
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
            write!(connection, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let program = program.args(["deletions", "retry", "--url", &url]);
    let output = program.env("COUNTERSIGN_TOKEN", "token").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "1002 deletions are repeated.\n");
    answers.join().unwrap();
}
