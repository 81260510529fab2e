//! The users of one drill: what they do before and after the backup, and what must be left after the restore.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use local_stack::process::wait_until;
use serde_json::{Value, json};

use rig::{
    client::{Call, Client, Response},
    output::say,
    stack_file::{Admin, Stack},
};

pub(super) const PASSWORD: &str = "a password of the backup";
/// How long the processes may take to connect to a server that was replaced, and then to notice it.
const NOTICE_LIMIT: Duration = Duration::from_secs(20);
const REVOCATION_LIMIT: Duration = Duration::from_secs(2);
pub(super) const WORK_LIMIT: Duration = Duration::from_secs(60);

/// A user with a token.
pub(super) struct Person {
    pub(super) email: String,
    pub(super) id: String,
    pub(super) token: String,
}

/// A process that verifies tokens.
pub(super) struct Verifier {
    name: &'static str,
    client: Client,
    /// The path of a `GET` that needs a token.
    path: &'static str,
}

impl Verifier {
    fn refuses(&self, token: &str) -> bool {
        let call = Call::new("GET", self.path).token(token);
        let response = self.client.once(&call);
        response.is_ok_and(|(status, _, _)| status == 401)
    }
}

/// The system, and its users at the time of the backup.
pub(super) struct Drill {
    gateway: Client,
    verifiers: Vec<Verifier>,
    engine: Client,
    webhook: String,
    admin: Admin,
    admin_token: String,
    ada: Person,
    bob: Person,
    carol: Person,
    dave: Person,
    /// A pending task of Ada's with a webhook.
    task: String,
    /// Every token that must be refused after the restore, with its owner.
    tokens: Vec<(String, String)>,
    number: usize,
}

pub(super) fn quiet(url: &str) -> Client {
    let mut client = Client::new(url);
    client.quiet = true;
    client
}

pub(super) fn verifiers(stack: &Stack) -> anyhow::Result<Vec<Verifier>> {
    let all = [
        ("gateway", "/people-task/tasks"),
        ("user-service", "/user"),
        ("people-task-service", "/people-task/tasks"),
    ];
    let verifiers = all.map(|(name, path)| {
        let process = stack.processes.iter().find(|process| process.name == name);
        let url = process.and_then(|process| process.url.as_deref());
        let client = quiet(url.with_context(|| format!("there is no {name}"))?);
        Ok(Verifier { name, client, path })
    });
    verifiers.into_iter().collect()
}

/// Every process refuses each of these tokens, which are given with their owners.
pub(super) fn check_tokens(
    verifiers: &[Verifier],
    tokens: &[(String, String)],
    restored: Instant,
) -> anyhow::Result<()> {
    for verifier in verifiers {
        let name = verifier.name;
        for (owner, token) in tokens {
            let refused = wait_until(NOTICE_LIMIT, || verifier.refuses(token).then_some(()));
            refused.with_context(|| format!("{name} accepts the token of {owner}"))?;
        }
    }
    let elapsed = restored.elapsed().as_secs_f64();
    let tokens = tokens.len();
    say(&format!(
        "  {tokens} earlier tokens are refused by all processes, {elapsed:.1} s after the restore"
    ));
    Ok(())
}

impl Drill {
    /// Signs the users up and creates the task.
    pub(super) fn start(stack: &Stack, number: usize) -> anyhow::Result<Self> {
        let gateway = quiet(&stack.gateway);
        let sign_up = |name: &str| sign_up(&gateway, name, number);
        let admin = stack.admin.clone();
        let mut drill = Self {
            admin_token: sign_in(&gateway, &admin.username, &admin.password)?.token,
            ada: sign_up("ada")?,
            bob: sign_up("bob")?,
            carol: sign_up("carol")?,
            dave: sign_up("dave")?,
            verifiers: verifiers(stack)?,
            engine: quiet(&stack.demo_engine),
            webhook: format!("{}/webhooks/restore-test", stack.demo_engine),
            gateway,
            admin,
            task: String::new(),
            tokens: Vec::new(),
            number,
        };
        drill.task = drill.create_task(&drill.ada.token)?;
        let webhook = json!({"taskId": drill.task, "url": drill.webhook});
        drill.post("/people-task/webhooks", &drill.ada.token, webhook)?;
        let people = [&drill.ada, &drill.bob, &drill.carol, &drill.dave];
        let people = people.map(|person| (person.email.clone(), person.token.clone()));
        drill.tokens = people.into();
        let admin = ("the administrator".to_owned(), drill.admin_token.clone());
        drill.tokens.push(admin);
        Ok(drill)
    }

    /// Makes the changes that the backup does not have.
    pub(super) fn lose_time(mut self) -> anyhow::Result<Self> {
        // The server may have been stopped for the backup.
        let body = json!({"oldPassword": PASSWORD, "newPassword": "a password of the lost time"});
        let changed = self.post("/user/change-password", &self.ada.token, body)?;
        let token = changed.text("/token")?.to_owned();
        self.tokens
            .push(("ada, after she changed her password".to_owned(), token));
        self.update(&self.bob, json!({"isActive": false}))?;
        self.delete(&self.carol)?;
        self.update(&self.dave, json!({"scope": ["user", "admin"]}))?;
        let dave = sign_in(&self.gateway, &self.dave.email, PASSWORD)?;
        self.get("/users", &dave.token)?.expect(200)?;
        self.tokens
            .push(("dave, as an administrator".to_owned(), dave.token));
        let erin = sign_up(&self.gateway, "erin", self.number)?;
        self.create_task(&erin.token)?;
        self.tokens
            .push(("erin, who signed up".to_owned(), erin.token));
        Ok(self)
    }

    /// Checks the system after the restore, which ended at this moment.
    pub(super) fn check(&self, restored: Instant) -> anyhow::Result<()> {
        self.check_tokens(restored)?;
        let bob = self.check_users()?;
        self.check_revocation(&bob)?;
        self.check_decision()
    }

    /// Every process refuses every earlier token.
    fn check_tokens(&self, restored: Instant) -> anyhow::Result<()> {
        check_tokens(&self.verifiers, &self.tokens, restored)?;
        // None of them creates a task at the service that would accept one. While a restore is going on the service
        // may see several incarnations, and responds with 503 in between.
        for (owner, token) in &self.tokens {
            let create = Call::new("POST", "/people-task/tasks").token(token);
            let create = create.body(task(&self.ada.email));
            let refused = wait_until(NOTICE_LIMIT, || match self.gateway.once(&create) {
                Ok((503, _, _)) => None,
                outcome => Some(outcome),
            });
            let (status, _, _) = refused.context("the service did not become ready")??;
            ensure!(status == 401, "{owner} could create a task: {status}");
        }
        Ok(())
    }

    /// Users are as in the backup. Returns Bob with a new token.
    fn check_users(&self) -> anyhow::Result<Person> {
        sign_in(&self.gateway, &self.ada.email, PASSWORD)?;
        let bob = sign_in(&self.gateway, &self.bob.email, PASSWORD)?;
        let carol = sign_in(&self.gateway, &self.carol.email, PASSWORD)?;
        // A service accepts the new tokens as soon as it has noticed the new incarnation.
        let mut created = Err(anyhow::anyhow!("it was not tried"));
        wait_until(NOTICE_LIMIT, || {
            created = self.create_task(&carol.token);
            created.is_ok().then_some(())
        });
        created.context("a user whose deletion was undone cannot create a task")?;
        let dave = sign_in(&self.gateway, &self.dave.email, PASSWORD)?;
        self.get("/users", &dave.token)?.expect(403)?;
        let erin = json!({"username": email("erin", self.number), "password": PASSWORD});
        let call = Call::new("POST", "/user/auth").body(erin);
        self.gateway.call(&call)?.expect(401)?;
        say("  users sign in as in the backup");
        Ok(bob)
    }

    /// Revocation works, also for an epoch that is lower than in the lost time.
    fn check_revocation(&self, bob: &Person) -> anyhow::Result<()> {
        for verifier in &self.verifiers {
            let name = verifier.name;
            ensure!(!verifier.refuses(&bob.token), "{name} refuses a new token");
        }
        let admin = sign_in(&self.gateway, &self.admin.username, &self.admin.password)?;
        let inactive = json!({"isActive": false});
        self.put(&format!("/users/{}", bob.id), &admin.token, inactive)?;
        for verifier in &self.verifiers {
            let name = verifier.name;
            let refused = wait_until(REVOCATION_LIMIT, || {
                verifier.refuses(&bob.token).then_some(())
            });
            refused.with_context(|| format!("{name} accepts a token that was revoked"))?;
        }
        say("  a token is revoked");
        Ok(())
    }

    /// A decision of a task of the backup is delivered.
    fn check_decision(&self) -> anyhow::Result<()> {
        let ada = sign_in(&self.gateway, &self.ada.email, PASSWORD)?;
        let path = format!("/people-task/tasks/{}/approve", self.task);
        self.put(&path, &ada.token, json!({}))?;
        let arrived = wait_until(WORK_LIMIT, || {
            let received = self.engine.once(&Call::new("GET", "/received"));
            let items = received.ok()?.2.get("items")?.to_string();
            items.contains(&self.task).then_some(())
        });
        arrived.context("the decision was not delivered")?;
        say("  a decision is delivered");
        Ok(())
    }

    fn delete(&self, person: &Person) -> anyhow::Result<()> {
        let path = format!("/users/{}", person.id);
        let call = Call::new("DELETE", path.clone()).token(&self.admin_token);
        let deletion = self.gateway.call(&call)?.expect(200)?;
        let status = format!("{path}/delete-status/{}", deletion.text("/ticket")?);
        let completed = wait_until(WORK_LIMIT, || {
            let response = self.get(&status, &self.admin_token).ok()?;
            (response.text("/status").ok()? == "completed").then_some(())
        });
        completed.context("a deletion was not completed")
    }

    fn create_task(&self, token: &str) -> anyhow::Result<String> {
        let created = self.post("/people-task/tasks", token, task(&self.ada.email))?;
        Ok(created.text("/id")?.to_owned())
    }

    fn update(&self, person: &Person, change: Value) -> anyhow::Result<Response> {
        self.put(&format!("/users/{}", person.id), &self.admin_token, change)
    }

    fn get(&self, path: &str, token: &str) -> anyhow::Result<Response> {
        self.gateway.call(&Call::new("GET", path).token(token))
    }

    fn post(&self, path: &str, token: &str, body: Value) -> anyhow::Result<Response> {
        let call = Call::new("POST", path).token(token).body(body);
        self.gateway.call(&call)?.expect(200)
    }

    fn put(&self, path: &str, token: &str, body: Value) -> anyhow::Result<Response> {
        let call = Call::new("PUT", path).token(token).body(body);
        self.gateway.call(&call)?.expect(200)
    }
}

fn email(name: &str, number: usize) -> String {
    format!("{name}.{number}@example.com")
}

pub(super) fn task(requester: &str) -> Value {
    json!({"title": "Restore a backup", "requester": requester, "approver": requester})
}

pub(super) fn sign_up(gateway: &Client, name: &str, number: usize) -> anyhow::Result<Person> {
    let email = email(name, number);
    let body = json!({"username": email, "password": PASSWORD});
    let response = gateway.call(&Call::new("POST", "/user").body(body))?;
    person(email, &response.expect(200)?)
}

pub(super) fn sign_in(gateway: &Client, email: &str, password: &str) -> anyhow::Result<Person> {
    let body = json!({"username": email, "password": password});
    let response = gateway.call(&Call::new("POST", "/user/auth").body(body))?;
    person(email.to_owned(), &response.expect(200)?)
}

fn person(email: String, response: &Response) -> anyhow::Result<Person> {
    Ok(Person {
        email,
        id: response.text("/user/id")?.to_owned(),
        token: response.text("/token")?.to_owned(),
    })
}
