//! Deletes an account and shows the progress.

use std::{thread, time::Duration};

use anyhow::{Context, anyhow};
use local_stack::process::wait_until;
use serde_json::Value;

use rig::{client::Client, transcript};

const DELETION_LIMIT: Duration = Duration::from_secs(180);
/// The pause between two status requests, which keeps the demo below the rate limit.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

#[derive(PartialEq)]
struct DeleteStatus {
    status: String,
    done: u64,
    total: u64,
    /// Why it failed, if it did.
    failure: Value,
}

impl DeleteStatus {
    fn get(client: &Client, path: &str, token: &str) -> anyhow::Result<Self> {
        let response = client.get(path, token)?;
        let number = |name: &str| response.body.get(name).and_then(Value::as_u64);
        Ok(Self {
            status: response.text("/status")?.to_owned(),
            done: number("stepsDone").context("the delete status has no stepsDone")?,
            total: number("stepsTotal").context("the delete status has no stepsTotal")?,
            failure: response.body.get("failure").cloned().unwrap_or_default(),
        })
    }
}

/// Deletes a user with an administrator's token, and waits until the deletion is completed.
pub(super) fn delete(gateway: &str, user_id: &str, token: &str) -> anyhow::Result<()> {
    let path = format!("/users/{user_id}");
    let response = Client::printing(gateway).delete(&path, token)?;
    let path = format!("{path}/delete-status/{}", response.text("/ticket")?);
    let client = Client::new(gateway);
    let mut shown = None;
    let ended = wait_until(DELETION_LIMIT, || {
        let status = match DeleteStatus::get(&client, &path, token) {
            Ok(status) => status,
            Err(error) => return Some(Err(error)),
        };
        if shown.as_ref() != Some(&status) {
            transcript::progress(&status.status, status.done, status.total);
        }
        let status = shown.insert(status);
        match status.status.as_str() {
            "in-progress" => {
                thread::sleep(POLL_INTERVAL);
                None
            }
            "completed" => Some(Ok(())),
            other => Some(Err(anyhow!(
                "the deletion ended with status {other}: {}",
                status.failure
            ))),
        }
    });
    let limit = DELETION_LIMIT.as_secs();
    ended.with_context(|| format!("the deletion took longer than {limit} s"))?
}
