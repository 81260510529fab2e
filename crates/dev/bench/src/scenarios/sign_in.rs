//! Sign-ins.

use std::time::Duration;

use serde_json::json;

use crate::context::{Context, PASSWORD};
use crate::http::load::{Call, Pace, send};
use crate::http::request::request;
use crate::limits::hashing::{self, COST, THREADS};
use crate::report::statistics::{Spread, rate};
use crate::report::{Figures, Limit};

/// Users who sign in at the same time, each over a connection.
const USERS: usize = 8;
const FULL: Duration = Duration::from_secs(15);
const QUICK: Duration = Duration::from_secs(4);

/// Measures sign-ins beside bcrypt alone.
pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    let mut users = Vec::new();
    for _ in 0..USERS {
        users.push(context.sign_up().await?);
    }
    let time = if context.quick { QUICK } else { FULL };
    let hashes = hashing::hashes_per_second(time).await?;
    let count = context.size(160, 32);
    let requests: Vec<Vec<u8>> = users
        .iter()
        .cycle()
        .take(count)
        .map(|user| {
            let body = json!({"username": user.email, "password": PASSWORD});
            request("POST", "/user/auth", None, Some(&body))
        })
        .collect();
    let pace = Pace::Closed { connections: USERS };
    let calls = send(context.system.gateway, &requests, pace).await?;
    let name = format!("bcrypt of cost {COST} on {THREADS} threads");
    let limit = [Limit::new(&name, hashes)];
    figures.add_beside("sign-ins", rate(&calls), "/s", &limit);
    let durations = Spread::of(calls.iter().map(Call::latency));
    figures.add_spread("duration of a call", durations);
    Ok(())
}
