//! The load of one phase: tasks with webhooks and decisions, reads, lists, sign-ins and checks of tokens.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use local_stack::random;
use rig::{
    client::{Call, Client, Person},
    interrupt,
};
use serde_json::json;

use crate::{
    databases::Failovers,
    history::History,
    one_shot_client::{OneShotClient, Statistics},
    receiver::{Behaviour, Receiver},
    signature::Keys,
    task_workload::{LoadProfile, TaskWorkload},
    test_user::TestUser,
};

/// Concurrent callers that decide tasks.
const CALLERS: usize = 12;
const RECEIVERS: usize = 3;
/// There is load for this time before and after the work of a phase.
const MARGIN: Duration = Duration::from_secs(2);

/// The callers and receivers of a run.
pub(super) struct Load<'run> {
    pub(super) history: Arc<History>,
    /// The keys with which receivers verify webhooks.
    pub(super) keys: Keys,
    client: OneShotClient<'run>,
    receivers: Vec<Receiver>,
    gateway: String,
    profile: LoadProfile,
}

impl<'run> Load<'run> {
    pub(super) fn new(
        gateway: &str,
        failovers: &'run Failovers,
        profile: LoadProfile,
    ) -> anyhow::Result<Self> {
        let history = Arc::new(History::default());
        let keys = Keys::published(gateway)?;
        let open = |number| Receiver::open(number, Behaviour::Fast, profile.seed, &keys, &history);
        let receivers = (1..=RECEIVERS).map(open).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            history,
            receivers,
            keys,
            client: OneShotClient::new(&[gateway.to_owned()], profile.end, failovers),
            gateway: gateway.to_owned(),
            profile,
        })
    }

    /// Whether calls may have no response from now on.
    pub(super) fn set_tolerant(&self, tolerant: bool) {
        self.client.set_tolerant(tolerant);
    }

    /// Does the work while there is load from new users.
    pub(super) fn during(
        &mut self,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Statistics> {
        let creator = TestUser::sign_up(&self.gateway, "creator")?;
        let approver = TestUser::sign_up(&self.gateway, "approver")?;
        let reader = Reader::sign_up(self)?;
        self.client.take_statistics();
        let users = [creator, approver];
        let Self {
            client,
            receivers,
            history,
            profile,
            ..
        } = &*self;
        let tasks = TaskWorkload::new(profile, client, users, receivers, history);
        let outcome = thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| tasks.run_caller());
            }
            scope.spawn(|| reader.run(client, profile.rate * 2));
            thread::sleep(MARGIN);
            let outcome = work();
            thread::sleep(MARGIN);
            tasks.stop();
            reader.stop();
            outcome
        });
        self.profile.first = tasks.next_number();
        outcome?;
        interrupt::check()?;
        Ok(self.client.take_statistics())
    }
}

/// A user who reads, lists and signs in.
struct Reader {
    person: Person,
    task: String,
    stopped: AtomicBool,
}

impl Reader {
    fn sign_up(load: &Load<'_>) -> anyhow::Result<Self> {
        let client = Client::new(&load.gateway);
        let email = format!("reader.{}@example.com", random::tag()?);
        let person = client.sign_up(&email, &random::password()?)?;
        let body = json!({"title": "To be read", "requester": email, "approver": email});
        let created = client.post("/people-task/tasks", &person.token, body)?;
        Ok(Self {
            person,
            task: created.text("/id")?.to_owned(),
            stopped: AtomicBool::new(false),
        })
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Makes one call after the other, at most `rate` in a second.
    fn run(&self, client: &OneShotClient<'_>, rate: u32) {
        let interval = Duration::from_secs(1) / rate.max(1);
        let mut number = 0;
        while !self.stopped.load(Ordering::Relaxed) {
            let next = Instant::now() + interval;
            client.call(&self.call(number), number);
            number += 1;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn call(&self, number: u64) -> Call<'_> {
        let Person {
            email,
            password,
            token,
            ..
        } = &self.person;
        match number % 4 {
            0 => Call::new("GET", "/user").token(token),
            1 => Call::new("GET", "/people-task/tasks?limit=20").token(token),
            2 => Call::new("GET", format!("/people-task/tasks/{}", self.task)).token(token),
            _ => {
                let body = json!({"username": email, "password": password});
                Call::new("POST", "/user/auth").body(body)
            }
        }
    }
}
