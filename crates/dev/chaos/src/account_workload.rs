//! Accounts of a run: each one signs up and creates a task, about which a mail is sent. Then every second account is
//! deleted, and the others request a password code.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use local_stack::random;
use rig::{Admin, Call, MailServer, Person, Process, Receiver, Reply, Response, interrupt, lock};
use serde_json::{Value, json};

use crate::callers::{OneShotClient, TestUser};
use crate::history::{CallOutcome, Finding, Violation};
use crate::schedule::CALM;

const INTERVAL: Duration = Duration::from_secs(4);
const MAX_ACCOUNTS: u32 = 200;

pub(crate) struct AccountWorkload<'run> {
    client: &'run OneShotClient<'run>,
    recipients: &'run Recipients,
    pub(crate) admin: TestUser,
    accounts: Mutex<Vec<Account>>,
    /// With the unexpected responses.
    results: Mutex<AccountResults>,
}

/// An account whose sign-up succeeded.
struct Account {
    person: Person,
    task: Option<String>,
    /// Whether the account is deleted; otherwise a code is requested.
    is_deleted: bool,
    /// The outcome of that call, and the ticket of a deletion.
    outcome: CallOutcome,
    ticket: String,
}

/// The effects of calls. A list says of each call that was confirmed with 200 whether it had its effect.
#[derive(Debug, Default)]
pub(crate) struct AccountResults {
    pub(crate) signed_up: usize,
    pub(crate) deletions: Vec<bool>,
    /// Complete deletions whose call had an unknown outcome.
    pub(crate) deleted_unknown: usize,
    pub(crate) codes: Vec<bool>,
    pub(crate) mails: Vec<bool>,
    pub(crate) findings: Vec<Finding>,
}

impl<'run> AccountWorkload<'run> {
    pub(crate) fn new(
        client: &'run OneShotClient<'run>,
        admin: &Admin,
        recipients: &'run Recipients,
    ) -> anyhow::Result<Self> {
        let sign_in = || client.repeating.sign_in(&admin.username, &admin.password);
        Ok(Self {
            client,
            recipients,
            admin: TestUser::new(sign_in)?,
            accounts: Mutex::default(),
            results: Mutex::default(),
        })
    }

    /// Creates accounts at regular intervals until `begin + duration`.
    pub(crate) fn run(&self, begin: Instant, duration: Duration) {
        let interval = INTERVAL.max(duration / MAX_ACCOUNTS);
        thread::scope(|scope| {
            let mut next = begin + CALM;
            for number in 0.. {
                interrupt::sleep_until(next);
                if next >= begin + duration || interrupt::came() {
                    break;
                }
                scope.spawn(move || {
                    if let Err(what) = self.run_one(number) {
                        let finding = Finding::new(Violation::UnexpectedResponse, "-", what);
                        lock(&self.results).findings.push(finding);
                    }
                });
                next += interval;
            }
        });
    }

    fn run_one(&self, number: u64) -> Result<(), String> {
        let requested = Instant::now();
        let Some(person) = self.sign_up(number)? else {
            return Ok(());
        };
        let email = &person.email;
        let task = json!({
            "title": "Task of a new account", "requester": email, "approver": email, "notify": true,
        });
        let create = Call::new("POST", "/people-task/tasks").token(&person.token);
        let create = create.body(task);
        let created = self.client.call_with_token(&create, requested);
        let (_, task) = expected(&create, created)?;
        let is_deleted = number.is_multiple_of(2);
        let (outcome, response) = if is_deleted {
            let call = Call::new("DELETE", format!("/users/{}", person.id));
            expected(&call, self.admin.call(self.client, call.clone()))?
        } else {
            let call = Call::new("POST", "/user/forgot-password").body(json!({"email": email}));
            expected(&call, self.client.call(&call))?
        };
        lock(&self.accounts).push(Account {
            person,
            task: text(&task, "/id"),
            is_deleted,
            outcome,
            ticket: text(&response, "/ticket").unwrap_or_default(),
        });
        Ok(())
    }

    /// Returns `None` unless the sign-up succeeded.
    fn sign_up(&self, number: u64) -> Result<Option<Person>, String> {
        let password = random::password();
        let tag = password.get(..8).unwrap_or_default();
        let email = format!("account{number}.{tag}@example.com");
        let body = json!({"email": email, "password": password});
        let call = Call::new("POST", "/user").body(body);
        let (outcome, body) = expected(&call, self.client.call(&call))?;
        if outcome != CallOutcome::Succeeded {
            return Ok(None);
        }
        let (Some(id), Some(token)) = (text(&body, "/user/id"), text(&body, "/token")) else {
            return Err("POST /user: 200 without id and token".to_owned());
        };
        Ok(Some(Person {
            email,
            password,
            id,
            token,
        }))
    }

    /// Compares the outcomes with the state of the accounts. Waits until `end` for deletions and codes.
    pub(crate) fn check(&self, end: Instant) -> anyhow::Result<AccountResults> {
        self.admin.sign_in_again(self.client)?;
        for account in lock(&self.accounts).iter() {
            interrupt::check()?;
            lock(&self.results).signed_up += 1;
            let problems = if account.is_deleted {
                [self.check_deletion(account, end)?, None]
            } else {
                [
                    self.check_code(account, end)?,
                    self.check_mail(account, end)?,
                ]
            };
            let account = format!("of {}", account.person.id);
            let finding = |what| Finding::new(Violation::AccountState, &account, what);
            let findings = problems.into_iter().flatten().map(finding);
            lock(&self.results).findings.extend(findings);
        }
        Ok(std::mem::take(&mut *lock(&self.results)))
    }

    /// Returns what is wrong, as the other checks do.
    fn check_deletion(&self, account: &Account, end: Instant) -> anyhow::Result<Option<String>> {
        let is_confirmed = account.outcome == CallOutcome::Succeeded;
        let user = format!("/users/{}", account.person.id);
        let mut ticket = Some(account.ticket.clone());
        if !is_confirmed {
            // Returns the job of the first call, if there is one.
            let job = self.call_as_admin("DELETE", &user)?;
            ticket = match job.status {
                404 => None,
                _ => Some(job.expect(200)?.text("/ticket")?.to_owned()),
            };
        }
        if let Some(ticket) = ticket {
            let path = format!("{user}/delete-status/{ticket}");
            let (token, client) = (self.admin.token(), &self.client.repeating);
            let completed = client.wait_deleted(&path, &token, left(end), |_| {});
            interrupt::check()?;
            if is_confirmed {
                lock(&self.results).deletions.push(completed.is_ok());
            }
            if let Err(error) = completed {
                return Ok(Some(format!("was to be deleted, and {error:#}")));
            }
        }
        lock(&self.results).deleted_unknown += usize::from(!is_confirmed);
        self.find_remains(account)
    }

    /// Describes what a deleted user can still do or has left behind.
    fn find_remains(&self, account: &Account) -> anyhow::Result<Option<String>> {
        let client = &self.client.repeating;
        let token = Call::new("GET", "/user").token(&account.person.token);
        let token = client.call(&token)?.status;
        if token != 401 {
            return Ok(Some(format!("is deleted, and the token yields {token}")));
        }
        if let Some(task) = &account.task {
            let path = format!("/people-task/tasks/{task}");
            let task = self.call_as_admin("GET", &path)?.status;
            if task != 404 {
                return Ok(Some(format!("is deleted, and a task yields {task}")));
            }
        }
        let person = &account.person;
        let sign_in = client.try_sign_in(&person.email, &person.password)?;
        let sign_in = sign_in.status;
        Ok((sign_in != 401).then(|| format!("is deleted, and signing in yields {sign_in}")))
    }

    fn check_code(&self, account: &Account, end: Instant) -> anyhow::Result<Option<String>> {
        let (client, person) = (&self.client.repeating, &account.person);
        let sign_in = client.try_sign_in(&person.email, &person.password)?;
        let sign_in = sign_in.status;
        if sign_in != 200 {
            let what = format!("signed up with 200, and signing in yields {sign_in}");
            return Ok(Some(what));
        }
        if account.outcome != CallOutcome::Succeeded {
            return Ok(None);
        }
        let addresses = &self.recipients.addresses;
        let arrived = wait_until(end, || lock(addresses).contains(&person.email))?;
        lock(&self.results).codes.push(arrived);
        Ok((!arrived).then(|| "requested a code with 200 that never arrived".to_owned()))
    }

    /// The approver must have been asked, because the task is not decided.
    fn check_mail(&self, account: &Account, end: Instant) -> anyhow::Result<Option<String>> {
        if account.task.is_none() {
            return Ok(None);
        }
        let mails = &self.recipients.mails;
        let arrived = wait_until(end, || mails.has_mail_for(&account.person.email))?;
        lock(&self.results).mails.push(arrived);
        Ok((!arrived).then(|| "created a task with 200 about which no mail arrived".to_owned()))
    }

    fn call_as_admin(&self, method: &'static str, path: &str) -> anyhow::Result<Response> {
        let token = self.admin.token();
        let call = Call::new(method, path).token(&token);
        self.client.repeating.call(&call)
    }
}

fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}

fn wait_until(end: Instant, is_so: impl Fn() -> bool) -> anyhow::Result<bool> {
    let found = interrupt::wait_until(left(end), || is_so().then_some(()))?;
    Ok(found.is_some())
}

/// An unexpected response is an error.
fn expected(
    call: &Call<'_>,
    (outcome, body): (CallOutcome, Value),
) -> Result<(CallOutcome, Value), String> {
    match outcome.unexpected() {
        Some(response) => Err(format!("{} {}: {response}", call.method, call.path)),
        None => Ok((outcome, body)),
    }
}

fn text(body: &Value, pointer: &str) -> Option<String> {
    Some(body.pointer(pointer)?.as_str()?.to_owned())
}

/// The receiver of the forgot-password webhook, and the mail server.
pub(crate) struct Recipients {
    codes: Receiver,
    /// The addresses that a code was sent to.
    addresses: Arc<Mutex<HashSet<String>>>,
    pub(crate) mails: MailServer,
}

impl Recipients {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let addresses = Arc::<Mutex<HashSet<String>>>::default();
        let received = Arc::clone(&addresses);
        let codes = Receiver::open(move |request| {
            let body: Value = serde_json::from_slice(request.body).unwrap_or_default();
            let text = |name: &str| body.get(name).and_then(Value::as_str);
            if let (Some(email), Some(_)) = (text("email"), text("code")) {
                lock(&received).insert(email.to_owned());
            }
            Reply::status("200 OK")
        })?;
        Ok(Self {
            codes,
            addresses,
            mails: MailServer::start()?,
        })
    }

    /// Lets a process send codes and mails to them.
    pub(crate) fn apply(&self, process: &mut Process) {
        let variables = &mut process.variables;
        variables.insert("WEBHOOK_USER_FORGOT_PASSWORD", self.codes.url("/"));
        // The user service would have codes sent as mails, too.
        if process.program == "notification-worker" {
            variables.insert("SMTP_URL", self.mails.url());
            variables.insert("MAIL_FROM", "no-reply@example.com".to_owned());
        }
    }
}
