//! Users of a run, who sign in again when a promotion has revoked their tokens.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use local_stack::process::wait_until;
use rig::client::{Call, Client, Person};
use rig::process::Process;
use rig::sync::lock;
use serde_json::{Value, json};

use crate::history::{CallOutcome, Finding, Violation};
use crate::one_shot_client::OneShotClient;

/// How long a process may take to notice a promotion after all faults.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// A user with a token.
pub(crate) struct TestUser {
    pub(crate) email: String,
    password: String,
    /// All tokens, and when each was requested; the current one last.
    tokens: Mutex<Vec<(String, Instant)>>,
}

impl TestUser {
    /// Signs a user up, with retries.
    pub(crate) fn sign_up(gateway: &str, name: &str) -> anyhow::Result<Self> {
        Self::new(|| Client::new(gateway).sign_up_new(name))
    }

    /// Signs a user in, with retries.
    pub(crate) fn sign_in(gateway: &str, email: &str, password: &str) -> anyhow::Result<Self> {
        Self::new(|| Client::new(gateway).sign_in(email, password))
    }

    fn new(request: impl FnOnce() -> anyhow::Result<Person>) -> anyhow::Result<Self> {
        let requested = Instant::now();
        let person = request()?;
        Ok(Self {
            email: person.email,
            password: person.password,
            tokens: Mutex::new(vec![(person.token, requested)]),
        })
    }

    /// Signs in for another token, with retries.
    pub(crate) fn sign_in_again(&self, gateway: &str) -> anyhow::Result<()> {
        let again = Self::sign_in(gateway, &self.email, &self.password)?;
        lock(&self.tokens).append(&mut lock(&again.tokens));
        Ok(())
    }

    pub(crate) fn token(&self) -> String {
        self.current().0
    }

    /// Makes a call as this user, and returns its outcome and the response body. After a promotion that revoked the
    /// token the outcome is [`CallOutcome::SignedOut`], and later calls have another token.
    pub(crate) fn call(&self, client: &OneShotClient<'_>, call: Call<'_>) -> (CallOutcome, Value) {
        let (token, requested) = self.current();
        let (outcome, body) = client.call_with_token(&call.token(&token), requested);
        let outcome = match outcome {
            CallOutcome::SignedOut => self.renew(client, requested),
            other => other,
        };
        (outcome, body)
    }

    /// Signs in once, unless another caller has done it. After an unknown outcome the next call tries again.
    fn renew(&self, client: &OneShotClient<'_>, refused: Instant) -> CallOutcome {
        let mut tokens = lock(&self.tokens);
        if tokens
            .last()
            .is_some_and(|(_, requested)| *requested > refused)
        {
            return CallOutcome::SignedOut;
        }
        let requested = Instant::now();
        let credentials = json!({"username": self.email, "password": self.password});
        let sign_in = Call::new("POST", "/user/auth").body(credentials);
        let (outcome, body) = client.call(&sign_in);
        if let CallOutcome::Unexpected(response) = outcome {
            return CallOutcome::Unexpected(format!("signing in again: {response}"));
        }
        let token = body.get("token").and_then(Value::as_str);
        tokens.extend(token.map(|token| (token.to_owned(), requested)));
        CallOutcome::SignedOut
    }

    fn current(&self) -> (String, Instant) {
        let current = lock(&self.tokens).last().cloned();
        current.unwrap_or_else(|| (String::new(), Instant::now()))
    }

    /// Checks that no process accepts a token that was requested before `revoked`. Returns the number of tokens.
    pub(crate) fn check_revoked(
        &self,
        processes: &[&Process],
        revoked: Instant,
        findings: &mut Vec<Finding>,
    ) -> usize {
        let tokens = lock(&self.tokens);
        let earlier = || tokens.iter().filter(|(_, requested)| *requested < revoked);
        for process in processes {
            for (token, _) in earlier() {
                let refuses = || process.refuses(token).then_some(());
                if wait_until(NOTICE_LIMIT, refuses).is_none() {
                    let name = &process.name;
                    let what = format!("a token from before a promotion is accepted by {name}");
                    findings.push(Finding::new(Violation::EarlierToken, "-", what));
                }
            }
        }
        earlier().count()
    }
}
