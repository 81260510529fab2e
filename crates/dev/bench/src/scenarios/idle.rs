//! What the processes use while nothing happens.

use std::time::Duration;

use crate::context::{Context, ENGINE, REST};
use crate::decisions::{burst, start_afresh};
use crate::http::load::Pace;
use crate::report::Figures;
use crate::usage::{CLIENT, MEBIBYTE};

pub(crate) async fn run(context: &mut Context, figures: &mut Figures) -> anyhow::Result<()> {
    tokio::time::sleep(REST).await;
    observe(context, figures, "idle").await;
    start_afresh(context).await?;
    let decided = burst(context, (10_000, 1_000), 1, Pace::FULL).await?;
    let count = decided.calls.len();
    tokio::time::sleep(REST).await;
    observe(context, figures, &format!("after {count} decisions")).await;
    Ok(())
}

async fn observe(context: &Context, figures: &mut Figures, when: &str) {
    // Long enough that work which is repeated every few seconds counts as often as it should.
    let time = Duration::from_secs(context.pick(30, 10));
    let before = context.usage();
    tokio::time::sleep(time).await;
    let after = context.usage();
    let cpu = after.cpu_since(&before);
    let share = |cpu: f64| cpu / time.as_secs_f64() * 100.0;
    // Neither the client nor the flow engine is a part of the system.
    let of_system = cpu
        .iter()
        .filter(|(name, _)| ![CLIENT, ENGINE].contains(name));
    let sum = share(of_system.map(|(_, cpu)| cpu).sum());
    let name = format!("the system with Postgres and RabbitMQ, {when}: processor");
    figures.add(name, sum, "% of a core");
    for (name, used) in &after.processes {
        let share = share(cpu.get(name.as_str()).copied().unwrap_or_default());
        figures.add(format!("{name}, {when}: processor"), share, "% of a core");
        let memory = used.memory as f64 / MEBIBYTE;
        figures.add(format!("{name}, {when}: memory"), memory, "MiB");
    }
}
