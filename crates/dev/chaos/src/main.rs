//! `cargo xtask chaos`: decisions are made on the real processes while these are killed, frozen, cut off
//! and left without their servers; in the end every decision that was answered with 200 has arrived.
//!
//! What holds: everything random comes from a seed that is printed first; callers retry nothing; nothing
//! of the run stays behind, even when it is killed.
//!
//! Deliberately absent: looking into the database. What counts is what callers are told, what receivers
//! get, and what the public API says at the end.

mod caller;
mod dice;
mod door;
mod fate;
mod faults;
mod guard;
mod journal;
mod link;
mod load;
mod mailbox;
mod receiver;
mod schedule;
mod settings;
mod signature;
mod system;
mod table;
mod verdict;
mod visitors;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use local_stack::{ports, random};

use xtask::{
    cleanup::{Keep, clean_up},
    duration::parse_duration,
    errln,
    interrupt::Interrupt,
    launch::say,
    outln, paint,
    plan::parse_replicas,
    workspace::Workspace,
};

use crate::{
    caller::Caller,
    faults::Faults,
    guard::Guard,
    journal::Journal,
    load::{Load, Pace, Person},
    mailbox::Mailbox,
    receiver::{MANNERS, Receiver},
    signature::Keys,
    system::{System, Wishes},
    table::Report,
    verdict::Times,
    visitors::Visitors,
};

const SUPERVISION: Duration = Duration::from_millis(250);
/// Deliveries of decisions made this long before the first fault are not disturbed by it.
const UNDISTURBED: Duration = Duration::from_secs(1);

#[derive(Parser)]
#[command(
    name = "cargo xtask chaos",
    about,
    version,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Ends what a run started when that run was killed; a run starts it by itself.
    #[command(hide = true)]
    Watchdog(guard::Arguments),
}

fn main() -> ExitCode {
    let Cli { arguments, command } = Cli::parse();
    let outcome = match command {
        None => run(&arguments),
        Some(Command::Watchdog(arguments)) => guard::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        errln!("{} {error:#}", paint::red("error:"));
        ExitCode::FAILURE
    })
}

/// How hard and how long.
#[derive(Args)]
struct Arguments {
    /// Repeats the faults and choices of an earlier run. Without it a new one is drawn and printed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How long there are load and faults, as in `90s` or `5m`. Healing comes on top.
    #[arg(long, default_value = "2m", value_parser = parse_duration)]
    duration: Duration,
    /// Tasks a second. A run of hours has fewer, so that it stays within a computer's memory.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Run a process several times, as in `--replicas webhook-worker=3`. Can be repeated.
    #[arg(long, value_name = "PROCESS=N", value_parser = parse_replicas)]
    replicas: Vec<(String, usize)>,
    /// Build and run with optimisation.
    #[arg(long)]
    release: bool,
    /// Run the programs of this folder instead of building them.
    #[arg(long, value_name = "FOLDER", conflicts_with = "release")]
    programs: Option<PathBuf>,
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let base = Workspace::find()?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        // Short enough to be typed again.
        None => u64::from(u32::from_be_bytes(random::bytes()?)),
    };
    announce(arguments, seed);
    let interrupt = Interrupt::watch()?;
    let _alone = base.lock("chaos")?;
    let workspace = guard::workspace_of(&base);
    clean_up(&workspace, Keep::Nothing)?;
    let guard = Guard::start(&base)?;
    let outcome = perform(&workspace, arguments, seed, &interrupt);
    let holds = outcome.as_ref().is_ok_and(Report::holds);
    say("stopping everything");
    let started = workspace.local().join("log").is_dir();
    let keep = if holds || interrupt.came() || !started {
        Keep::Nothing
    } else {
        Keep::Everything
    };
    clean_up(&workspace, keep)?;
    drop(guard);
    if let Ok(report) = &outcome {
        report.print();
    }
    if holds {
        outln!("\nchaos: ok");
        return Ok(ExitCode::SUCCESS);
    }
    if keep == Keep::Everything {
        tell_where_to_look(&workspace);
    }
    announce(arguments, seed);
    outcome.map(|_| {
        outln!("\n{}", paint::red("chaos: failed"));
        ExitCode::FAILURE
    })
}

fn tell_where_to_look(workspace: &Workspace) {
    let local = workspace.local();
    let local = local.strip_prefix(workspace.root()).unwrap_or(&local);
    say(&format!(
        "what the processes logged is in {0}/log, what the servers did and hold in {0}/servers",
        local.display()
    ));
}

fn announce(arguments: &Arguments, seed: u64) {
    let Arguments { duration, rate, .. } = arguments;
    let mut command = format!(
        "cargo xtask chaos --seed {seed} --duration {}s --rate {rate}",
        duration.as_secs()
    );
    for (name, count) in &arguments.replicas {
        command.push_str(&format!(" --replicas {name}={count}"));
    }
    if arguments.release {
        command.push_str(" --release");
    }
    if let Some(folder) = &arguments.programs {
        command.push_str(&format!(" --programs {}", folder.display()));
    }
    say(&format!("seed {seed}; the same again: {command}"));
}

/// The whole run. Whatever it starts is left to be cleaned up.
fn perform(
    workspace: &Workspace,
    arguments: &Arguments,
    seed: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<Report> {
    let journal = Arc::new(Journal::default());
    let mailbox = Mailbox::open()?;
    let wishes = Wishes {
        programs: arguments.programs.as_deref(),
        release: arguments.release,
        replicas: arguments.replicas.iter().cloned().collect(),
        duration: arguments.duration,
        mailbox: mailbox.url(),
    };
    let system = System::start(workspace, &wishes, interrupt)?;
    say(&settings::description(wishes.duration));
    let gateway = system.gateways.first().context("there is no gateway")?;
    let receivers = open_receivers(seed, &Keys::published(gateway)?, &journal)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let supervision = scope.spawn(|| supervise(&system, &over, interrupt));
        let stage = Stage {
            arguments,
            seed,
            system: &system,
            gateway,
            receivers: &receivers,
            mailbox: &mailbox,
            journal: &journal,
            interrupt,
        };
        let report = stage.play();
        over.store(true, Ordering::Relaxed);
        let supervised = supervision.join();
        supervised.unwrap_or_else(|_| Err(anyhow::anyhow!("the supervision panicked")))?;
        report
    })
}

fn open_receivers(seed: u64, keys: &Keys, journal: &Arc<Journal>) -> anyhow::Result<Vec<Receiver>> {
    let free = ports::several(MANNERS.len())?;
    let places = free.into_iter().zip(MANNERS).enumerate();
    places
        .map(|(place, (port, manner))| Receiver::open(place + 1, manner, port, seed, keys, journal))
        .collect()
}

fn supervise(system: &System, over: &AtomicBool, interrupt: &Interrupt) -> anyhow::Result<()> {
    while !over.load(Ordering::Relaxed) && !interrupt.came() {
        system.revive()?;
        thread::sleep(SUPERVISION);
    }
    Ok(())
}

/// A run on a system that is ready.
struct Stage<'run> {
    arguments: &'run Arguments,
    seed: u64,
    system: &'run System,
    gateway: &'run str,
    receivers: &'run [Receiver],
    mailbox: &'run Mailbox,
    journal: &'run Journal,
    interrupt: &'run Interrupt,
}

impl Stage<'_> {
    fn play(&self) -> anyhow::Result<Report> {
        let people = [
            Person::sign_up(self.gateway, "creator")?,
            Person::sign_up(self.gateway, "approver")?,
        ];
        let begin = Instant::now();
        let caller = Caller::new(&self.system.gateways, begin + schedule::CALM);
        let visitors = Visitors::new(
            &caller,
            self.gateway,
            &self.system.admin,
            self.mailbox,
            self.interrupt,
        )?;
        let faults = Faults::new(self.system, self.receivers, self.interrupt, begin);
        let asker = people[0].clone();
        let (healed, unexpected) = self.load_and_faults(&faults, people, &caller, &visitors)?;
        say("all faults are over; waiting for what is still to be delivered");
        self.system.wait_well(self.interrupt)?;
        let report = self.compare(&faults, &asker, &visitors, healed)?;
        Ok(report.complete(self.system.panics()?, unexpected))
    }

    /// Waits for what is still to come, and compares.
    fn compare(
        &self,
        faults: &Faults<'_>,
        asker: &Person,
        visitors: &Visitors<'_>,
        healed: Instant,
    ) -> anyhow::Result<Report> {
        let tasks = self.journal.all_tasks();
        let inquiry = fate::Inquiry {
            gateway: self.gateway,
            asker,
            journal: self.journal,
            interrupt: self.interrupt,
        };
        let end = healed + settings::HEALING + settings::LONGEST_PAUSE;
        let fates = inquiry.wait_settled(&tasks, end)?;
        let visits = visitors.compare(end)?;
        let times = Times {
            calm_until: faults.begin + schedule::CALM - UNDISTURBED,
            healed,
        };
        let arrivals = self.journal.all_arrivals();
        Ok(Report {
            verdict: verdict::judge(&tasks, &fates, &arrivals, times),
            faults: faults.done(),
            slow_stops: faults.slow_stops(),
            ended_by_themselves: self.system.ended_by_themselves(),
            tasks: tasks.len(),
            uncreated: self.journal.all_uncreated(),
            visits,
        })
    }

    /// Answers when the last fault was over, and what visitors were told that nobody has to expect.
    fn load_and_faults(
        &self,
        faults: &Faults<'_>,
        people: [Person; 2],
        caller: &Caller,
        visitors: &Visitors<'_>,
    ) -> anyhow::Result<(Instant, Vec<String>)> {
        let duration = self.arguments.duration;
        let pace = Pace {
            seed: self.seed,
            rate: load::rate_within(self.arguments.rate, duration),
            end: faults.begin + duration,
        };
        let load = Load::new(
            &pace,
            caller,
            people,
            self.receivers,
            self.journal,
            self.interrupt,
        );
        let parts = faults::parts(self.system, self.receivers);
        let drawn = schedule::draw(self.seed, duration, &parts);
        say(&format!(
            "{} tasks a second and {} faults for {} s",
            pace.rate,
            drawn.len(),
            duration.as_secs()
        ));
        thread::scope(|scope| {
            for _ in 0..load::CALLERS {
                scope.spawn(|| load.call_on());
            }
            let visits = scope.spawn(|| visitors.come(faults.begin, duration));
            faults.happen(&drawn)?;
            let healed = Instant::now();
            let unexpected = visits.join();
            let unexpected = unexpected.map_err(|_| anyhow::anyhow!("a visitor panicked"))?;
            Ok((healed, unexpected))
        })
    }
}
