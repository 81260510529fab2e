//! Attacks from one address without credentials and from another one as a signed-in user, beside a normal user at a third
//! address.
//!
//! Three phases: the normal user alone, the same under attack, and alone again. It fails if a process grows past the limit
//! or ends, or if a call of the normal user fails. Every attack is bounded in rate, concurrency and time.

mod attacks;
mod normal_user;

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rig::{Person, say};

use self::attacks::Attackers;
use self::normal_user::{NormalUser, Observed, SIGN_IN};
use crate::context::{Context, GATEWAY};
use crate::report::{Figures, Spread};
use crate::usage::{Memory, memory_of};

/// The normal user is at 127.0.0.1.
const ANONYMOUS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const SIGNED_IN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const WARM_UP: Duration = Duration::from_secs(3);
/// MiB that no process may exceed.
const MEMORY_LIMIT: f64 = 512.0;
/// Other scenarios run without it.
const RATE_LIMIT: (&str, &str) = ("RATE_LIMIT", "on");

pub(super) async fn run(context: &mut Context, figures: &mut Figures) -> Result<()> {
    context.reset().await?;
    let (user, attacker) = (context.sign_up()?, context.sign_up()?);
    attacks::prepare(context, &attacker)?;
    context.stop(GATEWAY)?;
    let rig = &context.rig;
    rig.start_process(GATEWAY, &[RATE_LIMIT])?;
    let measured = measure(context, figures, user, &attacker).await;
    context.stop(GATEWAY)?;
    rig.start_process(GATEWAY, &[])?;
    context.reset().await?;
    measured
}

async fn measure(
    context: &Context,
    figures: &mut Figures,
    user: Person,
    attacker: &Person,
) -> Result<()> {
    let attacked = Duration::from_secs(context.pick(60, 15));
    let alone = Duration::from_secs(context.pick(30, 15));
    let gateway = context.gateway;
    let mut user = NormalUser::connect(gateway, user).await?;
    user.work(WARM_UP).await.ensure_none_failed("warming up")?;
    let before = user.work(alone).await;
    say("under attack");
    let attackers = Attackers::start(gateway, attacker, attacked)?;
    let under = user.work(attacked).await;
    attackers.print();
    drop(attackers);
    say("alone again");
    let after = user.work(alone).await;
    for call in [None, Some(SIGN_IN)] {
        let name = call.unwrap_or("other calls");
        let [before, under, after] = [&before, &under, &after].map(|phase| phase.spread(call));
        figures.add_spread(&format!("{name}, alone"), before, &[]);
        figures.add(format!("{name}, alone, longest"), before.longest, "ms");
        for (phase, spread) in [("under attack", under), ("after it", after)] {
            let name = format!("{name}, {phase}");
            figures.add_spread(&name, spread, &[("alone", before)]);
            figures.add(format!("{name}, longest"), spread.longest, "ms");
        }
    }
    before.ensure_none_failed("alone")?;
    under.ensure_none_failed("under attack")?;
    after.ensure_none_failed("after it")?;
    check_memory(context, figures)
}

fn check_memory(context: &Context, figures: &mut Figures) -> Result<()> {
    context.rig.ensure_all_alive()?;
    let memory = memory_of(&context.processes());
    for (name, memory) in &memory {
        let resident = format!("{name}: resident set size, highest");
        figures.add(resident, memory.highest, "MiB");
    }
    for (name, Memory { highest, .. }) in memory {
        ensure!(highest > 0.0, "the memory of {name} could not be read");
        ensure!(highest <= MEMORY_LIMIT, "{name} grew to {highest:.0} MiB");
    }
    Ok(())
}

impl Observed {
    /// How long calls of a kind took, or all but signing in.
    fn spread(&self, call: Option<&str>) -> Spread {
        let is_wanted = |name: &str| call.map_or(name != SIGN_IN, |call| name == call);
        let calls = self.calls.iter().filter(|(name, _)| is_wanted(name));
        Spread::of(calls.map(|(_, took)| *took))
    }

    fn ensure_none_failed(&self, phase: &str) -> Result<()> {
        let count = self.failures.len();
        let first = self.failures.first().map_or("", String::as_str);
        ensure!(
            count == 0,
            "{phase}: {count} calls of the normal user failed, the first with {first}"
        );
        self.calls.first().context("no call was made").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Observed, SIGN_IN};

    #[test]
    fn failed_calls_are_counted_and_not_measured() {
        let mut observed = Observed::default();
        let ms = Duration::from_millis(1);
        observed.record("read", ms, Ok(()));
        observed.record("read", 60_000 * ms, Err(anyhow::anyhow!("no response")));
        observed.record(SIGN_IN, 300 * ms, Ok(()));
        let spread = observed.spread(None);
        assert!((spread.p50 - 1.0).abs() < 1e-9 && (spread.longest - 1.0).abs() < 1e-9);
        let error = observed
            .ensure_none_failed("after")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "after: 1 calls of the normal user failed, the first with read: no response"
        );
    }
}
