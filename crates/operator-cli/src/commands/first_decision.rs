use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use app_config::{PublicUrl, Reader, Settings as _};
use clap::Args;
use serde_json::{Value, json};
use url::Url;

use crate::api::{Api, Global, below, client};
use crate::output::{Output, text};
use crate::{Failure, Outcome};

const EXAMPLES: &str = "\
It waits until the gateway is ready, for two minutes at most. The administrator is asked, so no user is made; a decided task is left.

Examples:
  countersign first-decision
  countersign first-decision --wait";

/// How long to wait for the gateway, which may have been started a moment ago.
const MAX_START: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);
const READINESS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for a person, and with one request, in seconds.
const MAX_DECISION: Duration = Duration::from_secs(600);
const WAIT: u32 = 20;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Wait up to ten minutes until you have decided by the link.
    #[arg(long)]
    wait: bool,
}

pub(crate) fn run(arguments: &Arguments, global: &Global, output: Output) -> Outcome {
    let mut reader = Reader::from_process()?;
    wait_until_ready(&global.gateway(&mut reader)?)?;
    let public_url = PublicUrl::read(&mut reader)?;
    let api = Api::open(global)?;
    let user = api.get(&["user"], &[])?;
    let address = text(&user, "email");
    let task = json!({
        "title": "Is Countersign installed?",
        "description": "The first decision. Nothing depends on it.",
        "requester": address,
        "approver": address,
    });
    let created = api.post(&["people-task", "tasks"], Some(&task))?;
    let (id, secret) = (text(&created, "id"), text(&created, "approverSecret"));
    let link = format!("{public_url}/tasks?id={id}&secret={secret}");
    if arguments.wait || !output.json {
        output.note(&format!("{address} is asked: {link}"))?;
    }
    let decided = if arguments.wait {
        wait_for_decision(&api, id)?
    } else {
        api.put(&["people-task", "tasks", id, "approve"], &json!({}))?
    };
    let status = text(&decided, "status");
    let sentence = format!("The decision is: {status}.");
    output.done(&sentence, &json!({"link": link, "status": status}))
}

fn wait_until_ready(gateway: &Url) -> Outcome {
    let ready = below(gateway, &["readyz"])?;
    let (client, started) = (client(READINESS_TIMEOUT)?, Instant::now());
    loop {
        let response = client.get(ready.clone()).send();
        if response.is_ok_and(|response| response.status().is_success()) {
            return Ok(());
        }
        if started.elapsed() > MAX_START {
            let why = "`countersign doctor` says why";
            return Err(anyhow!("the gateway at {gateway} is not ready: {why}").into());
        }
        thread::sleep(PAUSE);
    }
}

fn wait_for_decision(api: &Api, id: &str) -> Result<Value, Failure> {
    let started = Instant::now();
    while started.elapsed() < MAX_DECISION {
        let task = api.get(&["people-task", "tasks", id], &[("wait", WAIT.to_string())])?;
        if text(&task, "status") != "pending" {
            return Ok(task);
        }
    }
    Err(anyhow!("there is no decision yet").into())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn readiness_is_asked_below_the_path_of_the_gateway() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gateway = format!("http://{}/countersign/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&connection).read_line(&mut line).unwrap();
            connection
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            line
        });
        assert!(wait_until_ready(&gateway.parse().unwrap()).is_ok());
        assert_eq!(
            server.join().unwrap(),
            "GET /countersign/readyz HTTP/1.1\r\n"
        );
    }
}
