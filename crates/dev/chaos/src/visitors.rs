//! People who come during a run: each signs up and creates a task; half of them forget their passwords,
//! and the others are deleted.

use std::{
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use local_stack::random;
use serde_json::{Value, json};

use xtask::{
    demo::client::{Answer, Call, Client},
    interrupt::Interrupt,
    stack_file::Admin,
};

use crate::{
    caller::Caller,
    door::locked,
    journal::Told,
    mailbox::Mailbox,
    schedule::CALM,
    verdict::{Fault, Finding},
};

const INTERVAL: Duration = Duration::from_secs(4);
const MOST: u32 = 200;
/// Between two looks at what has not ended.
const PAUSE: Duration = Duration::from_millis(300);

/// Where visitors come to.
pub(crate) struct Visitors<'run> {
    pub(crate) caller: &'run Caller,
    pub(crate) gateway: &'run str,
    pub(crate) mailbox: &'run Mailbox,
    pub(crate) interrupt: &'run Interrupt,
    admin: String,
    all: Mutex<Vec<Visitor>>,
}

/// Somebody whose sign-up was answered with 200.
#[derive(Debug, Clone)]
struct Visitor {
    email: String,
    password: String,
    id: String,
    token: String,
    task: Option<String>,
    /// Whether the account was to be deleted, or else a code to be sent.
    leaves: bool,
    /// What the caller was told about it, and the ticket of a deletion.
    told: Told,
    ticket: String,
}

/// What visitors were told, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    pub(crate) signed_up: usize,
    /// Deletions that were answered with 200.
    pub(crate) deletions: usize,
    /// Of these, those that are complete.
    pub(crate) deleted: usize,
    /// Deletions that are complete, and whose caller had no answer.
    pub(crate) deleted_unheard: usize,
    /// Codes that were answered with 200.
    pub(crate) codes: usize,
    /// Of these, those that arrived.
    pub(crate) arrived: usize,
    pub(crate) findings: Vec<Finding>,
}

impl<'run> Visitors<'run> {
    /// Signs the administrator in, patiently.
    pub(crate) fn new(
        caller: &'run Caller,
        gateway: &'run str,
        admin: &Admin,
        mailbox: &'run Mailbox,
        interrupt: &'run Interrupt,
    ) -> anyhow::Result<Self> {
        let credentials = json!({"username": admin.username, "password": admin.password});
        let sign_in = Call::new("POST", "/user/auth").body(credentials);
        let answer = patient(gateway).call(&sign_in)?.expect(200)?;
        Ok(Self {
            caller,
            gateway,
            mailbox,
            interrupt,
            admin: answer.text("/token")?.to_owned(),
            all: Mutex::default(),
        })
    }

    /// Lets them come, one after the other, until a run that began at `begin` has lasted `duration`. What
    /// they were told that nobody has to expect is in the answer.
    pub(crate) fn come(&self, begin: Instant, duration: Duration) -> Vec<String> {
        let interval = INTERVAL.max(duration / MOST);
        let unexpected = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let mut turn = begin + CALM;
            for number in 0.. {
                while Instant::now() < turn && !self.interrupt.came() {
                    thread::sleep(PAUSE.min(turn.saturating_duration_since(Instant::now())));
                }
                if turn >= begin + duration || self.interrupt.came() {
                    break;
                }
                let unexpected = &unexpected;
                scope.spawn(move || {
                    if let Err(told) = self.visit(number) {
                        locked(unexpected).push(told);
                    }
                });
                turn += interval;
            }
        });
        unexpected.into_inner().unwrap_or_default()
    }

    /// One visitor.
    fn visit(&self, number: u64) -> Result<(), String> {
        let Some(mut visitor) = self.sign_up(number)? else {
            return Ok(());
        };
        let Visitor { email, token, .. } = &visitor;
        let task = json!({"title": "Visit", "requester": email, "approver": email});
        let create = Call::new("POST", "/people-task/tasks").token(token);
        let (_, task) = self.tell(&create.body(task), number)?;
        let call = if visitor.leaves {
            Call::new("DELETE", format!("/users/{}", visitor.id)).token(&self.admin)
        } else {
            Call::new("POST", "/user/forgot-password").body(json!({"email": email}))
        };
        let (told, answer) = self.tell(&call, number)?;
        visitor.task = text(&task, "/id");
        visitor.told = told;
        visitor.ticket = text(&answer, "/ticket").unwrap_or_default();
        locked(&self.all).push(visitor);
        Ok(())
    }

    /// `None` when the sign-up was not answered with 200.
    fn sign_up(&self, number: u64) -> Result<Option<Visitor>, String> {
        let password = random::password().map_err(|error| error.to_string())?;
        let unique = password.get(..8).unwrap_or_default();
        let email = format!("visitor{number}.{unique}@example.com");
        let body = json!({"email": email, "password": password});
        let (told, body) = self.tell(&Call::new("POST", "/user").body(body), number)?;
        if told != Told::Done {
            return Ok(None);
        }
        let (Some(id), Some(token)) = (text(&body, "/user/id"), text(&body, "/token")) else {
            return Err("POST /user: 200 without identifier and token".to_owned());
        };
        Ok(Some(Visitor {
            email,
            password,
            id,
            token,
            task: None,
            leaves: number.is_multiple_of(2),
            told: Told::Unknown,
            ticket: String::new(),
        }))
    }

    /// Makes a call once.
    fn tell(&self, call: &Call<'_>, number: u64) -> Result<(Told, Value), String> {
        let (told, body) = self.caller.tell(call, number);
        let said = match &told {
            Told::Unexpected(said) => said.as_str(),
            Told::Resolved(_) => "409",
            _ => return Ok((told, body)),
        };
        Err(format!("{} {}: {said}", call.method, call.path))
    }

    /// Compares, when all is well again, what they were told with what is so; waits until `end` for what
    /// has not ended.
    pub(crate) fn compare(&self, end: Instant) -> anyhow::Result<Visits> {
        let client = patient(self.gateway);
        let mut visits = Visits::default();
        for visitor in locked(&self.all).iter() {
            self.interrupt.check()?;
            visits.signed_up += 1;
            let fault = if visitor.leaves {
                self.compare_deletion(&client, visitor, end, &mut visits)?
            } else {
                self.compare_code(&client, visitor, end, &mut visits)?
            };
            visits.findings.extend(fault.map(|what| Finding {
                fault: Fault::Account,
                task: format!("of {}", visitor.id),
                what,
            }));
        }
        Ok(visits)
    }

    fn compare_deletion(
        &self,
        client: &Client,
        visitor: &Visitor,
        end: Instant,
        visits: &mut Visits,
    ) -> anyhow::Result<Option<String>> {
        visits.deletions += usize::from(visitor.told == Told::Done);
        let user = format!("/users/{}", visitor.id);
        let mut ticket = visitor.ticket.clone();
        if visitor.told != Told::Done {
            // The job of the first call, if there is one.
            let answer = client.call(&Call::new("DELETE", &user).token(&self.admin))?;
            if answer.status == 404 {
                visits.deleted_unheard += 1;
                return self.left_over(client, visitor);
            }
            answer.expect(200)?.text("/ticket")?.clone_into(&mut ticket);
        }
        let path = format!("{user}/delete-status/{ticket}");
        loop {
            let answer = client.call(&Call::new("GET", &path).token(&self.admin))?;
            let status = answer.text("/status").unwrap_or_default();
            match status {
                "completed" => break,
                "in-progress" if Instant::now() < end => thread::sleep(PAUSE),
                _ => {
                    let what = format!("was to be deleted, and the ticket says {}", answer.body);
                    return Ok(Some(what));
                }
            }
            self.interrupt.check()?;
        }
        *(match visitor.told {
            Told::Done => &mut visits.deleted,
            _ => &mut visits.deleted_unheard,
        }) += 1;
        self.left_over(client, visitor)
    }

    /// What a deleted person can still do, or has left behind.
    fn left_over(&self, client: &Client, visitor: &Visitor) -> anyhow::Result<Option<String>> {
        let token = client.call(&Call::new("GET", "/user").token(&visitor.token))?;
        if token.status != 401 {
            let what = format!("is deleted, and the token is answered {}", token.status);
            return Ok(Some(what));
        }
        if let Some(task) = &visitor.task {
            let path = format!("/people-task/tasks/{task}");
            let task = client.call(&Call::new("GET", path).token(&self.admin))?;
            if task.status != 404 {
                let what = format!("is deleted, and a task is answered {}", task.status);
                return Ok(Some(what));
            }
        }
        let sign_in = sign_in(client, visitor)?.status;
        Ok((sign_in != 401).then(|| format!("is deleted, and signing in is answered {sign_in}")))
    }

    fn compare_code(
        &self,
        client: &Client,
        visitor: &Visitor,
        end: Instant,
        visits: &mut Visits,
    ) -> anyhow::Result<Option<String>> {
        let signed_in = sign_in(client, visitor)?;
        if signed_in.status != 200 {
            let what = format!(
                "signed up with 200, and signing in is answered {}",
                signed_in.status
            );
            return Ok(Some(what));
        }
        if visitor.told != Told::Done {
            return Ok(None);
        }
        visits.codes += 1;
        while !self.mailbox.has_code_for(&visitor.email) {
            self.interrupt.check()?;
            if Instant::now() > end {
                return Ok(Some("was promised a code that never came".to_owned()));
            }
            thread::sleep(PAUSE);
        }
        visits.arrived += 1;
        Ok(None)
    }
}

fn patient(gateway: &str) -> Client {
    let mut client = Client::new(gateway);
    client.quiet = true;
    client
}

fn sign_in(client: &Client, visitor: &Visitor) -> anyhow::Result<Answer> {
    let body = json!({"username": visitor.email, "password": visitor.password});
    client
        .call(&Call::new("POST", "/user/auth").body(body))
        .context("signing a visitor in")
}

fn text(body: &Value, pointer: &str) -> Option<String> {
    Some(body.pointer(pointer)?.as_str()?.to_owned())
}
