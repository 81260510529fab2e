//! The users of one drill: what they do before and after the backup, and what must be left after the restore.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use local_stack::{holds_within, wait_until};
use serde_json::{Value, json};

use rig::{Call, Client, Person, System, say};

pub(super) const PASSWORD: &str = "a password of the backup";
/// Of every task.
const TITLE: &str = "Restore a backup";
/// How long the processes may take to connect to a server that was replaced, and then to notice it.
const NOTICE_LIMIT: Duration = Duration::from_secs(20);
const REVOCATION_LIMIT: Duration = Duration::from_secs(2);
pub(super) const WORK_LIMIT: Duration = Duration::from_secs(60);

/// The system, and its users at the time of the backup.
pub(super) struct Drill<'run> {
    pub(super) system: &'run System,
    pub(super) gateway: Client,
    pub(super) engine: Client,
    pub(super) admin_token: String,
    pub(super) ada: Person,
    pub(super) bob: Person,
    pub(super) carol: Person,
    dave: Person,
    /// A pending task of Ada's with a webhook.
    pub(super) task: String,
    /// Every token that must be refused after the restore, with its owner.
    tokens: Vec<(String, String)>,
    number: usize,
}

impl<'run> Drill<'run> {
    /// Signs the users up and creates the task.
    pub(super) fn start(system: &'run System, number: usize) -> Result<Self> {
        let gateway = system.client();
        let sign_up = |name: &str| gateway.sign_up(&email(name, number), PASSWORD);
        let mut drill = Self {
            system,
            admin_token: system.sign_in_admin()?.token,
            ada: sign_up("ada")?,
            bob: sign_up("bob")?,
            carol: sign_up("carol")?,
            dave: sign_up("dave")?,
            engine: Client::new(&system.demo_engine),
            gateway,
            task: String::new(),
            tokens: Vec::new(),
            number,
        };
        drill.task = drill.create_task(&drill.ada.token)?;
        let url = format!("{}/webhooks/restore-test", system.demo_engine);
        let (gateway, token) = (&drill.gateway, &drill.ada.token);
        gateway.register_webhook(token, &drill.task, &url)?;
        let people = [&drill.ada, &drill.bob, &drill.carol, &drill.dave];
        let people = people.map(|person| (person.email.clone(), person.token.clone()));
        drill.tokens = people.into();
        drill.add_token("the administrator", drill.admin_token.clone());
        Ok(drill)
    }

    fn add_token(&mut self, owner: &str, token: String) {
        self.tokens.push((owner.to_owned(), token));
    }

    /// Makes the changes that the backup does not have.
    pub(super) fn lose_time(mut self) -> Result<Self> {
        let body = json!({"oldPassword": PASSWORD, "newPassword": "a password of the lost time"});
        let path = "/user/change-password";
        let changed = self.gateway.post(path, &self.ada.token, body)?;
        let token = changed.text("/token")?.to_owned();
        self.add_token("ada, after she changed her password", token);
        let admin = &self.admin_token;
        self.update(&self.bob, admin, json!({"isActive": false}))?;
        let deletion = self.gateway.start_deletion(admin, &self.carol.id)?;
        self.gateway
            .wait_deleted(&deletion, admin, WORK_LIMIT, |_| {})?;
        self.update(&self.dave, admin, json!({"scope": ["user", "admin"]}))?;
        let dave = self.gateway.sign_in(&self.dave.email, PASSWORD)?;
        self.gateway.get("/users", &dave.token)?;
        self.add_token("dave, as an administrator", dave.token);
        let erin = email("erin", self.number);
        let erin = self.gateway.sign_up(&erin, PASSWORD)?;
        self.create_task(&erin.token)?;
        self.add_token("erin, who signed up", erin.token);
        Ok(self)
    }

    /// Checks the system after the restore, which ended at this moment.
    pub(super) fn check(&self, restored: Instant) -> Result<()> {
        self.check_tokens(restored)?;
        let bob = self.check_users()?;
        self.check_revocation(&bob)?;
        self.check_decision()
    }

    /// Every process refuses every earlier token.
    pub(super) fn check_tokens(&self, restored: Instant) -> Result<()> {
        for verifier in self.system.token_verifiers() {
            let name = &verifier.name;
            for (owner, token) in &self.tokens {
                let refused = holds_within(NOTICE_LIMIT, || verifier.refuses(token));
                ensure!(refused, "{name} accepts the token of {owner}");
            }
        }
        let (tokens, elapsed) = (self.tokens.len(), restored.elapsed().as_secs_f64());
        say(&format!(
            "  {tokens} earlier tokens are refused by all processes, {elapsed:.1} s after the restore"
        ));
        let email = &self.ada.email;
        // None of them creates a task at the service that would accept one. While a restore is going on the service
        // may see several incarnations, and responds with 503 in between.
        for (owner, token) in &self.tokens {
            let create = Call::new("POST", "/people-task/tasks").token(token);
            let create =
                create.body(json!({"title": TITLE, "requester": email, "approver": email}));
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
    fn check_users(&self) -> Result<Person> {
        let sign_in = |person: &Person| self.gateway.sign_in(&person.email, PASSWORD);
        sign_in(&self.ada)?;
        let (bob, carol) = (sign_in(&self.bob)?, sign_in(&self.carol)?);
        // A service accepts the new tokens as soon as it has noticed the new incarnation.
        let mut created = Err(anyhow::anyhow!("it was not tried"));
        holds_within(NOTICE_LIMIT, || {
            created = self.create_task(&carol.token);
            created.is_ok()
        });
        created.context("a user whose deletion was undone cannot create a task")?;
        let list = Call::new("GET", "/users");
        let dave = sign_in(&self.dave)?;
        self.gateway.call(&list.token(&dave.token))?.expect(403)?;
        let erin = email("erin", self.number);
        self.gateway.try_sign_in(&erin, PASSWORD)?.expect(401)?;
        say("  users sign in as in the backup");
        Ok(bob)
    }

    /// Revocation works, also for an epoch that is lower than in the lost time.
    fn check_revocation(&self, bob: &Person) -> Result<()> {
        for verifier in self.system.token_verifiers() {
            let name = &verifier.name;
            ensure!(!verifier.refuses(&bob.token), "{name} refuses a new token");
        }
        let admin = self.system.sign_in_admin()?;
        self.update(bob, &admin.token, json!({"isActive": false}))?;
        for verifier in self.system.token_verifiers() {
            let name = &verifier.name;
            let refused = holds_within(REVOCATION_LIMIT, || verifier.refuses(&bob.token));
            ensure!(refused, "{name} accepts a token that was revoked");
        }
        say("  a token is revoked");
        Ok(())
    }

    /// A decision of a task of the backup is delivered.
    fn check_decision(&self) -> Result<()> {
        let ada = self.gateway.sign_in(&self.ada.email, PASSWORD)?;
        self.gateway.approve(&ada.token, &self.task)?;
        self.wait_delivered()?;
        say("  a decision is delivered");
        Ok(())
    }

    /// Waits until the webhook of the task has arrived, and returns the call.
    pub(super) fn wait_delivered(&self) -> Result<Value> {
        let arrived = wait_until(WORK_LIMIT, || {
            let mut items = self.engine.received("kind=webhook").ok()?.into_iter();
            items.find(|item| item.pointer("/body/id") == Some(&json!(self.task)))
        });
        arrived.context("the decision was not delivered")
    }

    fn create_task(&self, token: &str) -> Result<String> {
        self.gateway.create_task(token, TITLE, &self.ada.email)
    }

    fn update(&self, person: &Person, admin: &str, change: Value) -> Result<()> {
        let path = format!("/users/{}", person.id);
        self.gateway.put(&path, admin, change).map(drop)
    }
}

fn email(name: &str, number: usize) -> String {
    format!("{name}.{number}@example.com")
}
