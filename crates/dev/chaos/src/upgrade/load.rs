//! The load of one phase: tasks with webhooks and decisions, reads, lists, sign-ins and checks of tokens.

use std::thread;
use std::time::{Duration, Instant};

use rig::{Call, Person, interrupt};
use serde_json::json;

use crate::callers::{OneShotClient, Statistics};
use crate::task_workload::{Load, TaskWorkload};

const CALLERS: usize = 12;
/// There is load for this time before and after the work of a phase.
const MARGIN: Duration = Duration::from_secs(2);

pub(super) struct Phase {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) calls: Statistics,
}

impl Load<'_> {
    /// Does the work while there is load from new users.
    pub(super) fn during(
        &self,
        name: &str,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Phase> {
        let client = &self.client;
        let tasks = TaskWorkload::new(self)?;
        let gateway = &client.repeating;
        let reader = gateway.sign_up_new("reader")?;
        let task = gateway.create_task(&reader.token, "To be read", &reader.email)?;
        let reads = reads(&reader, &task);
        client.take_statistics();
        let took = thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| tasks.run_caller());
            }
            scope.spawn(|| read(&tasks, client, &reads, self.rate * 2));
            thread::sleep(MARGIN);
            let start = Instant::now();
            let done = work().map(|()| start.elapsed());
            thread::sleep(MARGIN);
            tasks.stop();
            done
        })?;
        interrupt::check()?;
        Ok(Phase {
            name: name.to_owned(),
            took,
            calls: client.take_statistics(),
        })
    }
}

/// Makes one call after the other until the load ends, at most `rate` in a second.
fn read(tasks: &TaskWorkload<'_>, client: &OneShotClient<'_>, calls: &[Call<'_>], rate: u32) {
    let interval = Duration::from_secs(1) / rate;
    for call in calls.iter().cycle().take_while(|_| !tasks.has_ended()) {
        let next = Instant::now() + interval;
        client.call(call);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The calls of a user who reads a task, lists and signs in.
fn reads<'user>(user: &'user Person, task: &str) -> [Call<'user>; 4] {
    let get = |path: &str| Call::new("GET", path).token(&user.token);
    let credentials = json!({"username": user.email, "password": user.password});
    [
        get("/user"),
        get("/people-task/tasks?limit=20"),
        get(&format!("/people-task/tasks/{task}")),
        Call::new("POST", "/user/auth").body(credentials),
    ]
}
