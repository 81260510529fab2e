//! The load of one phase: tasks with webhooks and decisions, reads, lists, sign-ins and checks of tokens.

use std::{
    sync::Arc,
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
    pub(super) client: OneShotClient<'run>,
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
            client: OneShotClient::new(&[gateway.to_owned()], failovers),
            gateway: gateway.to_owned(),
            profile,
        })
    }

    /// Does the work while there is load from new users.
    pub(super) fn during(
        &self,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Statistics> {
        let users = [
            TestUser::sign_up(&self.gateway, "creator")?,
            TestUser::sign_up(&self.gateway, "approver")?,
        ];
        let reader = Reader::sign_up(self)?;
        self.client.take_statistics();
        let (client, profile) = (&self.client, &self.profile);
        let tasks = TaskWorkload::new(profile, client, &users, &self.receivers, &self.history);
        let outcome = thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| tasks.run_caller());
            }
            scope.spawn(|| reader.run_beside(&tasks, client, profile.rate * 2));
            thread::sleep(MARGIN);
            let outcome = work();
            thread::sleep(MARGIN);
            tasks.stop();
            outcome
        });
        outcome?;
        interrupt::check()?;
        Ok(self.client.take_statistics())
    }
}

/// A user who reads, lists and signs in.
struct Reader {
    person: Person,
    task: String,
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
        })
    }

    /// Makes one call after the other, at most `rate` in a second.
    fn run_beside(&self, tasks: &TaskWorkload<'_>, client: &OneShotClient<'_>, rate: u32) {
        let interval = Duration::from_secs(1) / rate.max(1);
        let calls = self.calls();
        for call in calls.iter().cycle().take_while(|_| !tasks.has_ended()) {
            let next = Instant::now() + interval;
            client.call(call);
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn calls(&self) -> [Call<'_>; 4] {
        let Person {
            email,
            password,
            token,
            ..
        } = &self.person;
        let credentials = json!({"username": email, "password": password});
        let get = |path: &str| Call::new("GET", path).token(token);
        [
            get("/user"),
            get("/people-task/tasks?limit=20"),
            get(&format!("/people-task/tasks/{}", self.task)),
            Call::new("POST", "/user/auth").body(credentials),
        ]
    }
}
