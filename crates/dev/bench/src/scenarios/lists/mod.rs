//! Pages and counts of tasks and of users.

mod kinds;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, bail};
use rig::say;

use self::kinds::Kind;
use crate::context::{Context, READ, fitting};
use crate::http::{Call, Pace, request, send};
use crate::report::{Figures, Limit, durations, rate};
use crate::tables::{self, Roles};

const FEW: usize = 1_000;
/// Between few and many rows, only what people open all the time is measured.
const BETWEEN: [usize; 2] = [10_000, 100_000];
/// As many lists as a user may have at a time.
const PACE: Pace = Pace::Closed { connections: 2 };
const MOST: usize = 2_000;
const DESCRIPTION: usize = 42;

struct Lists<'run> {
    context: &'run mut Context,
    figures: &'run mut Figures,
    admin: String,
    reads: Limit,
    /// The largest number of rows.
    many: usize,
    /// Durations with few rows, by name, which those with many rows are read beside.
    few: HashMap<&'static str, Limit>,
    failed: Vec<String>,
}

pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> Result<()> {
    let reads = context.limit(READ).await?;
    let admin = context.rig.sign_in_admin()?.token;
    let many = context.pick(1_000_000, 100_000);
    let between = BETWEEN.into_iter().filter(|count| *count < many);
    let counts: Vec<usize> = [FEW].into_iter().chain(between).chain([many]).collect();
    let mut lists = Lists {
        context,
        figures,
        admin,
        reads,
        many,
        few: HashMap::new(),
        failed: Vec::new(),
    };
    for count in counts.iter().copied() {
        lists.add_tasks(count).await?;
        let kinds = kinds::tasks(count);
        lists.measure_all(kinds, count, "tasks").await;
    }
    lists.context.reset().await?;
    lists.few.clear();
    for count in counts {
        lists.add_users(count).await?;
        let kinds = kinds::users(count);
        lists.measure_all(kinds, count, "users").await;
    }
    lists.remove_users().await?;
    if !lists.failed.is_empty() {
        bail!("{}", lists.failed.join("; "));
    }
    Ok(())
}

impl Lists<'_> {
    async fn add_tasks(&self, count: usize) -> Result<()> {
        say(&format!("lists: adding {count} tasks"));
        let context = &*self.context;
        let added = context.add_tasks(count, &context.user, Roles::Shared, DESCRIPTION);
        added.await
    }

    async fn add_users(&self, count: usize) -> Result<()> {
        say(&format!("lists: adding {count} users"));
        self.remove_users().await?;
        let context = &*self.context;
        context.execute(&tables::add_users(count)).await?;
        context.execute(tables::VACUUM_USERS).await?;
        context.execute("CHECKPOINT").await
    }

    async fn remove_users(&self) -> Result<()> {
        let context = &*self.context;
        context.execute(tables::REMOVE_USERS).await?;
        context.execute(tables::VACUUM_USERS).await
    }

    /// A list that fails does not end the measurement of the others.
    async fn measure_all(&mut self, kinds: Vec<Kind>, count: usize, rows: &str) {
        let every = [FEW, self.many].contains(&count);
        for kind in kinds.iter().filter(|kind| every || kind.plot.is_some()) {
            let rows = format!("of {count} {rows}");
            match self.measure(kind).await {
                Ok(calls) => self.add(kind, count, &rows, &calls, every),
                Err(error) => {
                    let failure = format!("{}, {rows}: {error:#}", kind.name);
                    say(&failure);
                    self.failed.push(failure);
                }
            }
        }
    }

    async fn measure(&self, kind: &Kind) -> Result<Vec<Call>> {
        let token = match kind.is_for_administrators() {
            true => &self.admin,
            false => &self.context.user.token,
        };
        let bytes = request("GET", &kind.path, Some(token), None);
        let gateway = self.context.gateway;
        let time = Duration::from_millis(self.context.pick(2_000, 200));
        let count = fitting(gateway, &bytes, PACE, time, MOST).await?;
        send(gateway, &vec![bytes; count], PACE).await
    }

    fn add(&mut self, kind: &Kind, count: usize, rows: &str, calls: &[Call], every: bool) {
        let median = durations(calls).p50;
        if let Some(plot) = kind.plot {
            self.figures.point(plot, kind.name, count as f64, median);
        }
        if !every {
            return;
        }
        let name = format!("{}, {rows}", kind.name);
        if kind.plot.is_some() {
            let reads = std::slice::from_ref(&self.reads);
            self.figures.add_beside(&name, rate(calls), "/s", reads);
        }
        let few: Vec<Limit> = self.few.get(kind.name).cloned().into_iter().collect();
        let duration = format!("{name}: duration, p50");
        self.figures.add_beside(duration, median, "ms", &few);
        self.few.insert(kind.name, Limit::new(rows, median));
    }
}
