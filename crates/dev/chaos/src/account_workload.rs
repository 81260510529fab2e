//! Accounts of a run: each one signs up and creates a task, about which a mail is sent. Then every second account is
//! deleted, and the others request a password code.

use std::{
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use local_stack::random;
use rig::{
    client::{Call, Client},
    interrupt::Interrupt,
    stack_file::Admin,
    sync::lock,
};
use serde_json::{Value, json};

use crate::{
    finding::{Finding, Violation},
    history::CallOutcome,
    one_shot_client::OneShotClient,
    recipients::Recipients,
    schedule::CALM,
    test_user::TestUser,
};

const INTERVAL: Duration = Duration::from_secs(4);
const MAX_ACCOUNTS: u32 = 200;
/// Between two checks of something that is unfinished.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Creates accounts and remembers the outcomes.
pub(crate) struct AccountWorkload<'run> {
    pub(crate) client: &'run OneShotClient<'run>,
    pub(crate) gateway: &'run str,
    recipients: &'run Recipients,
    pub(crate) interrupt: &'run Interrupt,
    pub(crate) admin: TestUser,
    accounts: Mutex<Vec<Account>>,
}

/// An account whose sign-up succeeded.
#[derive(Debug, Clone)]
struct Account {
    email: String,
    password: String,
    id: String,
    token: String,
    /// When the token was requested.
    requested: Instant,
    task: Option<String>,
    /// Whether the account is deleted; otherwise a code is requested.
    is_deleted: bool,
    /// The outcome of that call, and the ticket of a deletion.
    outcome: CallOutcome,
    ticket: String,
}

/// Confirmed calls and their effects.
#[derive(Debug, Default)]
pub(crate) struct AccountResults {
    pub(crate) signed_up: usize,
    /// Deletions that were confirmed with 200.
    pub(crate) deletions: usize,
    /// Confirmed deletions that are complete.
    pub(crate) deleted: usize,
    /// Complete deletions whose call had an unknown outcome.
    pub(crate) deleted_unknown: usize,
    /// Code requests that were confirmed with 200.
    pub(crate) codes: usize,
    /// Confirmed codes that arrived.
    pub(crate) arrived: usize,
    /// Tasks about which a mail had to arrive.
    pub(crate) mails: usize,
    /// Those of these mails that arrived.
    pub(crate) mailed: usize,
    pub(crate) findings: Vec<Finding>,
}

impl<'run> AccountWorkload<'run> {
    /// Signs the administrator in, with retries.
    pub(crate) fn new(
        client: &'run OneShotClient<'run>,
        gateway: &'run str,
        admin: &Admin,
        recipients: &'run Recipients,
        interrupt: &'run Interrupt,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            client,
            gateway,
            recipients,
            interrupt,
            admin: TestUser::sign_in(gateway, &admin.username, &admin.password)?,
            accounts: Mutex::default(),
        })
    }

    /// Creates accounts at regular intervals until `begin + duration`. Returns the unexpected responses.
    pub(crate) fn run(&self, begin: Instant, duration: Duration) -> Vec<String> {
        let interval = INTERVAL.max(duration / MAX_ACCOUNTS);
        let unexpected = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let mut next = begin + CALM;
            for number in 0.. {
                self.interrupt.sleep_until(next);
                if next >= begin + duration || self.interrupt.came() {
                    break;
                }
                let unexpected = &unexpected;
                scope.spawn(move || {
                    if let Err(response) = self.run_one(number) {
                        lock(unexpected).push(response);
                    }
                });
                next += interval;
            }
        });
        unexpected.into_inner().unwrap_or_default()
    }

    fn run_one(&self, number: u64) -> Result<(), String> {
        let Some(mut account) = self.sign_up(number)? else {
            return Ok(());
        };
        let Account { email, token, .. } = &account;
        let task = json!({
            "title": "Task of a new account", "requester": email, "approver": email, "notify": true,
        });
        let create = Call::new("POST", "/people-task/tasks")
            .token(token)
            .body(task);
        let created = self
            .client
            .call_with_token(&create, account.requested, number);
        let (_, task) = expected(&create, created)?;
        let (outcome, response) = if account.is_deleted {
            let call = Call::new("DELETE", format!("/users/{}", account.id));
            expected(&call, self.admin.call(self.client, call.clone(), number))?
        } else {
            let call = Call::new("POST", "/user/forgot-password").body(json!({"email": email}));
            expected(&call, self.client.call(&call, number))?
        };
        account.task = text(&task, "/id");
        account.outcome = outcome;
        account.ticket = text(&response, "/ticket").unwrap_or_default();
        lock(&self.accounts).push(account);
        Ok(())
    }

    /// Returns `None` unless the sign-up succeeded.
    fn sign_up(&self, number: u64) -> Result<Option<Account>, String> {
        let password = random::password().map_err(|error| error.to_string())?;
        let tag = password.get(..8).unwrap_or_default();
        let email = format!("account{number}.{tag}@example.com");
        let body = json!({"email": email, "password": password});
        let call = Call::new("POST", "/user").body(body);
        let requested = Instant::now();
        let (outcome, body) = expected(&call, self.client.call(&call, number))?;
        if outcome != CallOutcome::Succeeded {
            return Ok(None);
        }
        let (Some(id), Some(token)) = (text(&body, "/user/id"), text(&body, "/token")) else {
            return Err("POST /user: 200 without id and token".to_owned());
        };
        Ok(Some(Account {
            email,
            password,
            id,
            token,
            requested,
            task: None,
            is_deleted: number.is_multiple_of(2),
            outcome: CallOutcome::Unknown,
            ticket: String::new(),
        }))
    }

    /// Compares the outcomes with the state of the accounts. Waits until `end` for deletions and codes.
    pub(crate) fn check(&self, end: Instant) -> anyhow::Result<AccountResults> {
        let client = Client::new(self.gateway);
        self.admin.sign_in_again(self.gateway)?;
        let mut results = AccountResults::default();
        for account in lock(&self.accounts).iter() {
            self.interrupt.check()?;
            results.signed_up += 1;
            let problems = if account.is_deleted {
                [
                    self.check_deletion(&client, account, end, &mut results)?,
                    None,
                ]
            } else {
                [
                    self.check_code(&client, account, end, &mut results)?,
                    self.check_mail(account, end, &mut results)?,
                ]
            };
            let problems = problems.into_iter().flatten();
            results.findings.extend(problems.map(|what| Finding {
                violation: Violation::AccountState,
                task: format!("of {}", account.id),
                what,
            }));
        }
        Ok(results)
    }

    fn check_deletion(
        &self,
        client: &Client,
        account: &Account,
        end: Instant,
        results: &mut AccountResults,
    ) -> anyhow::Result<Option<String>> {
        results.deletions += usize::from(account.outcome == CallOutcome::Succeeded);
        let user = format!("/users/{}", account.id);
        let mut ticket = account.ticket.clone();
        if account.outcome != CallOutcome::Succeeded {
            // Returns the job of the first call, if there is one.
            let response = client.call(&Call::new("DELETE", &user).token(&self.admin.token()))?;
            if response.status == 404 {
                results.deleted_unknown += 1;
                return self.find_remains(client, account);
            }
            response
                .expect(200)?
                .text("/ticket")?
                .clone_into(&mut ticket);
        }
        let path = format!("{user}/delete-status/{ticket}");
        loop {
            let response = client.call(&Call::new("GET", &path).token(&self.admin.token()))?;
            let status = response.text("/status").unwrap_or_default();
            match status {
                "completed" => break,
                "in-progress" if Instant::now() < end => thread::sleep(POLL_INTERVAL),
                _ => {
                    let what = format!("was to be deleted, and the ticket reads {}", response.body);
                    return Ok(Some(what));
                }
            }
            self.interrupt.check()?;
        }
        *(match account.outcome {
            CallOutcome::Succeeded => &mut results.deleted,
            _ => &mut results.deleted_unknown,
        }) += 1;
        self.find_remains(client, account)
    }

    /// Describes what a deleted user can still do or has left behind.
    fn find_remains(&self, client: &Client, account: &Account) -> anyhow::Result<Option<String>> {
        let token = client.call(&Call::new("GET", "/user").token(&account.token))?;
        if token.status != 401 {
            let what = format!("is deleted, and the token yields {}", token.status);
            return Ok(Some(what));
        }
        if let Some(task) = &account.task {
            let path = format!("/people-task/tasks/{task}");
            let task = client.call(&Call::new("GET", path).token(&self.admin.token()))?;
            if task.status != 404 {
                let what = format!("is deleted, and a task yields {}", task.status);
                return Ok(Some(what));
            }
        }
        let sign_in = client
            .try_sign_in(&account.email, &account.password)?
            .status;
        Ok((sign_in != 401).then(|| format!("is deleted, and signing in yields {sign_in}")))
    }

    fn check_code(
        &self,
        client: &Client,
        account: &Account,
        end: Instant,
        results: &mut AccountResults,
    ) -> anyhow::Result<Option<String>> {
        let sign_in = client
            .try_sign_in(&account.email, &account.password)?
            .status;
        if sign_in != 200 {
            let what = format!("signed up with 200, and signing in yields {sign_in}");
            return Ok(Some(what));
        }
        if account.outcome != CallOutcome::Succeeded {
            return Ok(None);
        }
        results.codes += 1;
        let has_arrived = || self.recipients.has_code_for(&account.email);
        if !self.wait_until(end, has_arrived)? {
            let what = "requested a code with 200 that never arrived";
            return Ok(Some(what.to_owned()));
        }
        results.arrived += 1;
        Ok(None)
    }

    /// The approver must have been asked, because the task is not decided.
    fn check_mail(
        &self,
        account: &Account,
        end: Instant,
        results: &mut AccountResults,
    ) -> anyhow::Result<Option<String>> {
        if account.task.is_none() {
            return Ok(None);
        }
        results.mails += 1;
        let mails = &self.recipients.mails;
        if !self.wait_until(end, || mails.has_mail_for(&account.email))? {
            let what = "created a task with 200 about which no mail arrived";
            return Ok(Some(what.to_owned()));
        }
        results.mailed += 1;
        Ok(None)
    }

    /// Waits until something is so; `false` if it is not by `end`.
    fn wait_until(&self, end: Instant, is_so: impl Fn() -> bool) -> anyhow::Result<bool> {
        let left = end.saturating_duration_since(Instant::now());
        let found = self.interrupt.wait_until(left, || is_so().then_some(()))?;
        Ok(found.is_some())
    }
}

/// An unexpected response is an error.
fn expected(
    call: &Call<'_>,
    (outcome, body): (CallOutcome, Value),
) -> Result<(CallOutcome, Value), String> {
    let response = match &outcome {
        CallOutcome::Unexpected(response) => response.as_str(),
        CallOutcome::AlreadyResolved(_) => "409",
        _ => return Ok((outcome, body)),
    };
    Err(format!("{} {}: {response}", call.method, call.path))
}

fn text(body: &Value, pointer: &str) -> Option<String> {
    Some(body.pointer(pointer)?.as_str()?.to_owned())
}
