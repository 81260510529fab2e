//! The demo: two people, a decision, a webhook, a forgotten password, and a deleted account.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use local_stack::{process::wait_until, random};
use rig::{
    client::{Call, Client, Person, Response},
    transcript,
};
use serde_json::{Value, json};

use super::Target;

const DELETION_LIMIT: Duration = Duration::from_secs(180);

struct Story<'target> {
    target: &'target Target,
    gateway: Client,
    engine: Engine,
    /// Unique to this run.
    run: String,
}

/// Runs the whole demo. Fails at the first unexpected response.
pub(super) fn run(target: &Target) -> anyhow::Result<()> {
    let story = Story {
        target,
        gateway: Client::printing(&target.gateway),
        engine: Engine::new(&target.engine),
        run: random::tag()?,
    };

    transcript::step(1, "Two people sign up");
    let mut ada = story.sign_up("ada")?;
    let grace = story.sign_up("grace")?;

    transcript::step(2, "Ada signs in");
    let session = story.sign_in(&ada)?;

    transcript::step(3, "Ada asks Grace for a decision and registers a webhook");
    let task = story.create_task(&session, &ada, &grace)?;
    let task_id = task.text("/id")?;
    story.register_webhook(&session, task_id)?;

    let title = "Grace approves with the secret of her link, without signing in";
    transcript::step(4, title);
    let decided = story.approve(task_id, task.text("/approverSecret")?)?;

    transcript::step(5, "The flow engine receives the webhook");
    story.show_webhook(task_id, decided)?;

    transcript::step(6, "Ada forgets her password and sets a new one");
    story.reset_password(&mut ada)?;
    let session = story.sign_in(&ada)?;

    transcript::step(7, "An administrator deletes Ada's account");
    story.delete(&session.id)?;
    story.check_deleted(&ada, &session)
}

impl Story<'_> {
    fn post(&self, path: &str, body: Value) -> anyhow::Result<Response> {
        self.gateway.call(&Call::new("POST", path).body(body))
    }

    fn sign_up(&self, name: &str) -> anyhow::Result<Person> {
        let person = Person {
            email: format!("{name}.{}@example.com", self.run),
            password: random::password()?,
            ..Person::default()
        };
        let body = json!({"email": person.email, "password": person.password});
        let response = self.post("/user", body)?;
        if response.repeated && response.status == 409 {
            // The first attempt created the account, and its response was lost.
            self.sign_in(&person)?;
        } else {
            response.expect(200)?.text("/token")?;
        }
        Ok(person)
    }

    fn try_sign_in(&self, person: &Person) -> anyhow::Result<Response> {
        self.gateway.try_sign_in(&person.email, &person.password)
    }

    fn sign_in(&self, person: &Person) -> anyhow::Result<Person> {
        self.gateway.sign_in(&person.email, &person.password)
    }

    fn create_task(
        &self,
        session: &Person,
        requester: &Person,
        approver: &Person,
    ) -> anyhow::Result<Response> {
        let body = json!({
            "title": "Buy a chair",
            "description": "The old one squeaks.",
            "requester": requester.email,
            "approver": approver.email,
            "decisionBy": "2030-01-31 12:00:00",
        });
        let path = "/people-task/tasks";
        self.gateway.post(path, &session.token, body)
    }

    fn register_webhook(&self, session: &Person, task_id: &str) -> anyhow::Result<()> {
        let (engine, run) = (&self.target.engine_inside, &self.run);
        let url = format!("{engine}/webhooks/flow?correlationId={run}&correlationInPort=in");
        let body = json!({"taskId": task_id, "url": url});
        let path = "/people-task/webhooks";
        self.gateway.post(path, &session.token, body).map(drop)
    }

    /// Returns the time of the decision.
    fn approve(&self, task_id: &str, secret: &str) -> anyhow::Result<SystemTime> {
        let path = format!("/people-task/tasks/{task_id}/approve?secret={secret}");
        let mut response = self.gateway.call(&Call::new("PUT", path))?;
        let decided = SystemTime::now();
        if response.repeated && response.code() == "task-already-resolved" {
            transcript::note("the first attempt approved the task");
            let path = format!("/people-task/tasks/{task_id}?secret={secret}");
            response = self.gateway.call(&Call::new("GET", path))?;
        }
        let response = response.expect(200)?;
        let (status, body) = (response.text("/status")?, &response.body);
        ensure!(status == "approved", "the task is not approved: {body}");
        Ok(decided)
    }

    fn show_webhook(&self, task_id: &str, decided: SystemTime) -> anyhow::Result<()> {
        let query = format!("correlationId={}", self.run);
        let item = self.engine.wait_for(&query, |item| Some(item.clone()))?;
        transcript::received(&item);
        let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
        for (pointer, expected) in [
            ("/body/id", task_id),
            ("/body/status", "approved"),
            ("/query/correlationInPort", "in"),
        ] {
            ensure!(
                text(pointer) == Some(expected),
                "{pointer} of the webhook is not {expected}: {item}"
            );
        }
        let delay = milliseconds_between(decided, text("/at").unwrap_or_default())
            .with_context(|| format!("the time of the webhook is invalid: {item}"))?;
        transcript::note(&format!("received {} ms after the decision", delay.max(0)));
        Ok(())
    }

    fn reset_password(&self, person: &mut Person) -> anyhow::Result<()> {
        self.post("/user/forgot-password", json!({"email": person.email}))?
            .expect(200)?;
        person.password = random::password()?;
        let query = format!("kind=forgot-password&email={}", person.email);
        let mut tried: Vec<String> = Vec::new();
        let end = Instant::now() + ARRIVAL_LIMIT;
        loop {
            let code = self.engine.wait_for(&query, |item| {
                let code = item.pointer("/body/code")?.as_str()?;
                (!tried.iter().any(|earlier| earlier == code)).then(|| code.to_owned())
            })?;
            let body = json!({"code": code, "password": person.password});
            let response = self.post("/user/forgot-password/reset", body)?;
            tried.push(code);
            if response.status == 200 {
                return Ok(());
            }
            if response.code() != "invalid-code" || Instant::now() > end {
                response.expect(200)?;
                bail!("the password could not be reset");
            }
            // Either this call was repeated and its first attempt set the password, or the request for a
            // code was repeated and a newer code is on its way.
            if response.repeated && self.try_sign_in(person)?.status == 200 {
                return Ok(());
            }
        }
    }

    fn delete(&self, user_id: &str) -> anyhow::Result<()> {
        let admin = &self.target.admin;
        let admin = self.gateway.sign_in(&admin.username, &admin.password)?;
        let path = format!("/users/{user_id}");
        let deletion = self.gateway.delete(&path, &admin.token)?;
        let path = format!("{path}/delete-status/{}", deletion.text("/ticket")?);
        let quiet = Client::new(&self.target.gateway);
        let mut shown = String::new();
        quiet.wait_deleted(&path, &admin.token, DELETION_LIMIT, |status| {
            let number = |name: &str| status.get(name).cloned().unwrap_or_default();
            let (done, total) = (number("stepsDone"), number("stepsTotal"));
            let progress = format!("{done} of {total} steps");
            if shown != progress {
                transcript::note(&progress);
                shown = progress;
            }
        })
    }

    fn check_deleted(&self, person: &Person, session: &Person) -> anyhow::Result<()> {
        self.try_sign_in(person)?.expect(401)?;
        let call = Call::new("GET", "/user").token(&session.token);
        self.gateway.call(&call)?.expect(401)?;
        transcript::note("the password and the old token are refused");
        Ok(())
    }
}

const ARRIVAL_LIMIT: Duration = Duration::from_secs(60);
const MILLISECONDS_PER_DAY: i64 = 86_400_000;

struct Engine {
    client: Client,
}

impl Engine {
    fn new(url: &str) -> Self {
        Self {
            client: Client::new(url),
        }
    }

    /// Waits for an item that matches `query` and for which `pick` returns a value. Newer items come first.
    fn wait_for<T>(
        &self,
        query: &str,
        mut pick: impl FnMut(&Value) -> Option<T>,
    ) -> anyhow::Result<T> {
        let arrived = wait_until(ARRIVAL_LIMIT, || match self.client.received(query) {
            Ok(items) => items.iter().rev().find_map(&mut pick).map(Ok),
            Err(error) => Some(Err(error)),
        });
        arrived.with_context(|| {
            let limit = ARRIVAL_LIMIT.as_secs();
            format!("the demo engine received nothing for {query} within {limit} s")
        })?
    }
}

/// Returns the milliseconds from `from` to a time of the form `…THH:MM:SS.mmm…` less than half a day away.
fn milliseconds_between(from: SystemTime, to: &str) -> Option<i64> {
    let (_, time) = to.split_once('T')?;
    let mut parts = time.get(..12)?.split([':', '.']);
    let mut next = || parts.next()?.parse::<i64>().ok();
    let to = ((next()? * 60 + next()?) * 60 + next()?) * 1000 + next()?;
    let from = i64::try_from(from.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?
        % MILLISECONDS_PER_DAY;
    let half = MILLISECONDS_PER_DAY / 2;
    Some((to - from + half).rem_euclid(MILLISECONDS_PER_DAY) - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_subtracted_across_midnight() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        let before_midnight = UNIX_EPOCH + Duration::from_millis(86_399_990);
        for (from, to, expected) in [
            (noon, "2026-01-01T12:00:00.025Z", Some(25)),
            (noon, "2026-01-01T11:59:59.990Z", Some(-10)),
            (before_midnight, "2026-01-02T00:00:00.010Z", Some(20)),
            (noon, "soon", None),
        ] {
            assert_eq!(milliseconds_between(from, to), expected, "{to}");
        }
    }
}
