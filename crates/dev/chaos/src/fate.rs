//! What became of tasks and webhooks, as the system tells when it is well again.

use std::{
    collections::HashMap,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use xtask::{
    demo::client::{Call, Client},
    interrupt::Interrupt,
};

use crate::{
    door::locked,
    journal::{Journal, Task, Told},
    load::Person,
    receiver::key_of,
};

/// Between two looks at what is not settled.
const PAUSE: Duration = Duration::from_millis(500);
/// What should not come has this long to come.
const QUIET: Duration = Duration::from_secs(2);
const ASKERS: usize = 6;

/// One task at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fate {
    /// `None` when the system does not know the task.
    pub(crate) status: Option<String>,
    /// Key and status of each of its webhooks.
    pub(crate) hooks: Vec<(String, String)>,
}

/// Tasks by their id.
pub(crate) type Fates = HashMap<String, Fate>;

impl Fate {
    fn ask(client: &Client, asker: &Person, id: &str) -> anyhow::Result<Self> {
        let path = format!("/people-task/tasks/{id}");
        let get = |path: String| client.call(&Call::new("GET", path).token(&asker.token));
        let answer = get(path.clone())?;
        if answer.status == 404 {
            return Ok(Self {
                status: None,
                hooks: Vec::new(),
            });
        }
        let status = answer.expect(200)?.text("/status")?.to_owned();
        let list = get(format!("{path}/webhooks"))?.expect(200)?.body;
        let hook = |hook: &Value| {
            let field = |name: &str| hook.get(name).and_then(Value::as_str);
            Some((
                key_of(field("url")?).to_owned(),
                field("status")?.to_owned(),
            ))
        };
        Ok(Self {
            status: Some(status),
            hooks: list
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(hook)
                .collect(),
        })
    }

    pub(crate) fn is_decided(&self) -> bool {
        matches!(self.status.as_deref(), Some("approved" | "rejected"))
    }

    /// Whether nothing more is to be expected.
    fn is_settled(&self, task: &Task, journal: &Journal) -> bool {
        if !self.is_decided() {
            return !task.decisions.iter().any(|one| one.told == Told::Done);
        }
        let hooks = || self.hooks.iter();
        let known = |key: &str| hooks().any(|(known, _)| known == key);
        // What was given up does not arrive any more.
        let ended = |key: &str, status: &str| match status {
            "sent" => journal.is_delivered(key),
            other => other == "fail",
        };
        hooks().all(|(key, status)| ended(key, status))
            && task
                .hooks
                .iter()
                .all(|hook| hook.told != Told::Done || known(&hook.key))
    }
}

/// Who asks, and whom.
pub(crate) struct Inquiry<'run> {
    pub(crate) gateway: &'run str,
    pub(crate) asker: &'run Person,
    pub(crate) journal: &'run Journal,
    pub(crate) interrupt: &'run Interrupt,
}

impl Inquiry<'_> {
    /// Asks until everything is settled, but no longer than until `end`.
    pub(crate) fn wait_settled(&self, tasks: &[Task], end: Instant) -> anyhow::Result<Fates> {
        let mut fates = self.ask(tasks.iter())?;
        loop {
            let settled = |fates: &Fates, task: &Task| {
                let fate = fates.get(&task.id);
                fate.is_some_and(|fate| fate.is_settled(task, self.journal))
            };
            let open: Vec<&Task> = tasks.iter().filter(|task| !settled(&fates, task)).collect();
            if open.is_empty() {
                // A decision whose caller has gone may still come through.
                thread::sleep(QUIET);
                let undecided = |task: &&Task| !fates.get(&task.id).is_some_and(Fate::is_decided);
                fates.extend(self.ask(tasks.iter().filter(undecided))?);
                if tasks.iter().all(|task| settled(&fates, task)) {
                    return Ok(fates);
                }
            } else if Instant::now() > end {
                return Ok(fates);
            } else {
                thread::sleep(PAUSE);
                fates.extend(self.ask(open.into_iter())?);
            }
        }
    }

    fn ask<'task>(&self, tasks: impl Iterator<Item = &'task Task> + Send) -> anyhow::Result<Fates> {
        let tasks = Mutex::new(tasks);
        let next = || locked(&tasks).next();
        let ask_on = || {
            let mut client = Client::new(self.gateway);
            client.quiet = true;
            let mut fates = Fates::new();
            while let Some(task) = next() {
                self.interrupt.check()?;
                let fate = Fate::ask(&client, self.asker, &task.id)?;
                fates.insert(task.id.clone(), fate);
            }
            anyhow::Ok(fates)
        };
        thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(ask_on)).collect();
            let mut all = Fates::new();
            for asker in askers {
                let fates = asker.join();
                all.extend(fates.unwrap_or_else(|_| Err(anyhow::anyhow!("an asker panicked")))?);
            }
            Ok(all)
        })
    }
}
