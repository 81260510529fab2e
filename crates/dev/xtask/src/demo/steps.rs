//! The story: two people, one decision, a webhook, a forgotten password, and a deleted account.

use std::{
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, bail, ensure};
use local_stack::{process::wait_until, random};
use serde_json::{Value, json};

use crate::demo::{
    Target,
    client::{Answer, Call, Client},
    show,
};

const ARRIVAL_LIMIT: Duration = Duration::from_secs(60);
const DELETION_LIMIT: Duration = Duration::from_secs(180);
/// Between two looks at a deletion, so that the demo stays far from any rate limit.
const DELETION_PAUSE: Duration = Duration::from_millis(150);
const MILLISECONDS_OF_A_DAY: i64 = 86_400_000;

struct Story<'target> {
    target: &'target Target,
    gateway: Client,
    engine: Client,
    /// Unique to this run.
    run: String,
}

struct Person {
    email: String,
    password: String,
}

struct Session {
    token: String,
    user_id: String,
}

#[derive(PartialEq)]
struct DeleteStatus {
    status: String,
    done: u64,
    total: u64,
    /// Why it failed, if it did.
    failure: Value,
}

impl DeleteStatus {
    fn ask(client: &Client, path: &str, token: &str) -> anyhow::Result<Self> {
        let answer = client
            .call(&Call::new("GET", path).token(token))?
            .expect(200)?;
        let number = |name: &str| answer.body.get(name).and_then(Value::as_u64);
        Ok(Self {
            status: answer.text("/status")?.to_owned(),
            done: number("stepsDone").context("the delete status has no stepsDone")?,
            total: number("stepsTotal").context("the delete status has no stepsTotal")?,
            failure: answer.body.get("failure").cloned().unwrap_or_default(),
        })
    }
}

/// The whole story; an error at the first unexpected answer.
pub(crate) fn all(target: &Target) -> anyhow::Result<()> {
    let run = random::password()?.chars().take(8).collect();
    let mut engine = Client::new(&target.engine);
    engine.quiet = true;
    let story = Story {
        target,
        gateway: Client::new(&target.gateway),
        engine,
        run,
    };

    show::step(1, "Two people sign up");
    let mut ada = story.sign_up("ada")?;
    let grace = story.sign_up("grace")?;

    show::step(2, "Ada signs in");
    let session = story.sign_in(&ada)?;

    show::step(
        3,
        "She asks Grace for a decision, and wants her flow to hear of it",
    );
    let task = story.create_task(&session, &ada, &grace)?;
    let id = task.text("/id")?;
    story.register_webhook(&session, id)?;

    show::step(
        4,
        "Grace approves with the secret of her link, without signing in",
    );
    let decided = story.approve(id, task.text("/approverSecret")?)?;

    show::step(5, "The flow engine hears of it");
    story.show_webhook(id, decided)?;

    show::step(6, "Ada forgets her password and gets a new one");
    story.forget_password(&mut ada)?;
    let session = story.sign_in(&ada)?;

    show::step(7, "An administrator deletes Ada's account");
    story.delete(&session.user_id)?;
    story.check_deleted(&ada, &session)
}

impl Story<'_> {
    fn sign_up(&self, name: &str) -> anyhow::Result<Person> {
        let person = Person {
            email: format!("{name}.{}@example.com", self.run),
            password: random::password()?,
        };
        let answer = self.gateway.call(
            &Call::new("POST", "/user")
                .body(json!({"email": person.email, "password": person.password})),
        )?;
        if answer.repeated && answer.status == 409 {
            // The first try did it, and its answer was lost.
            self.sign_in(&person)?;
        } else {
            answer.expect(200)?.text("/token")?;
        }
        Ok(person)
    }

    fn try_sign_in(&self, person: &Person) -> anyhow::Result<Answer> {
        let body = json!({"username": person.email, "password": person.password});
        self.gateway
            .call(&Call::new("POST", "/user/auth").body(body))
    }

    fn sign_in(&self, person: &Person) -> anyhow::Result<Session> {
        let answer = self.try_sign_in(person)?.expect(200)?;
        Ok(Session {
            token: answer.text("/token")?.to_owned(),
            user_id: answer.text("/user/id")?.to_owned(),
        })
    }

    fn create_task(
        &self,
        session: &Session,
        requester: &Person,
        approver: &Person,
    ) -> anyhow::Result<Answer> {
        let body = json!({
            "title": "Buy a chair",
            "description": "The old one squeaks.",
            "requester": requester.email,
            "approver": approver.email,
            "decisionBy": "2030-01-31 12:00:00",
        });
        self.gateway
            .call(
                &Call::new("POST", "/people-task/tasks")
                    .token(&session.token)
                    .body(body),
            )?
            .expect(200)
    }

    fn register_webhook(&self, session: &Session, task: &str) -> anyhow::Result<()> {
        let engine = &self.target.engine_inside;
        let url = format!(
            "{engine}/webhooks/flow?correlationId={}&correlationInPort=in",
            self.run
        );
        let body = json!({"taskId": task, "url": url});
        self.gateway
            .call(
                &Call::new("POST", "/people-task/webhooks")
                    .token(&session.token)
                    .body(body),
            )?
            .expect(200)?;
        Ok(())
    }

    /// Says when the decision was made.
    fn approve(&self, task: &str, secret: &str) -> anyhow::Result<SystemTime> {
        let path = format!("/people-task/tasks/{task}/approve?secret={secret}");
        let answer = self.gateway.call(&Call::new("PUT", path))?;
        let decided = SystemTime::now();
        if answer.repeated && answer.status == 409 && answer.code() == "task-already-resolved" {
            show::note("the first try had decided already");
            let path = format!("/people-task/tasks/{task}?secret={secret}");
            let answer = self.gateway.call(&Call::new("GET", path))?.expect(200)?;
            ensure!(
                answer.text("/status")? == "approved",
                "the task is not approved: {}",
                answer.body
            );
            return Ok(decided);
        }
        let answer = answer.expect(200)?;
        ensure!(
            answer.text("/status")? == "approved",
            "the task is not approved: {}",
            answer.body
        );
        Ok(decided)
    }

    /// What the engine received, newest last.
    fn received(&self, query: &str) -> anyhow::Result<Vec<Value>> {
        let answer = self
            .engine
            .call(&Call::new("GET", format!("/received?{query}")))?
            .expect(200)?;
        let items = answer.body.get("items").and_then(Value::as_array);
        items
            .cloned()
            .context("the demo engine answered without items")
    }

    /// Waits for an item of the engine that `wanted` accepts.
    fn arrival<T>(
        &self,
        query: &str,
        mut wanted: impl FnMut(&Value) -> Option<T>,
    ) -> anyhow::Result<T> {
        let arrived = wait_until(ARRIVAL_LIMIT, || match self.received(query) {
            Ok(items) => items.iter().rev().find_map(&mut wanted).map(Ok),
            Err(error) => Some(Err(error)),
        });
        arrived.with_context(|| {
            format!(
                "the demo engine received nothing for {query} within {} s",
                ARRIVAL_LIMIT.as_secs()
            )
        })?
    }

    fn show_webhook(&self, task: &str, decided: SystemTime) -> anyhow::Result<()> {
        let item = self.arrival(&format!("correlationId={}", self.run), |item| {
            Some(item.clone())
        })?;
        show::received(&item);
        let field = |pointer: &str| {
            item.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        ensure!(
            field("/body/id") == task,
            "the webhook is about another task: {item}"
        );
        ensure!(
            field("/body/status") == "approved",
            "the webhook says another status: {item}"
        );
        ensure!(
            field("/query/correlationInPort") == "in",
            "the webhook's url lost its parameters: {item}"
        );
        let after = milliseconds_between(decided, field("/at"))
            .with_context(|| format!("the demo engine's time cannot be read: {item}"))?;
        show::note(&format!("received {} ms after the decision", after.max(0)));
        Ok(())
    }

    fn forget_password(&self, person: &mut Person) -> anyhow::Result<()> {
        let body = json!({"email": person.email});
        self.gateway
            .call(&Call::new("POST", "/user/forgot-password").body(body))?
            .expect(200)?;
        person.password = random::password()?;
        let query = format!("kind=forgot-password&email={}", person.email);
        let mut tried: Vec<String> = Vec::new();
        let end = Instant::now() + ARRIVAL_LIMIT;
        loop {
            let code = self.arrival(&query, |item| {
                let code = item.pointer("/body/code")?.as_str()?;
                (!tried.iter().any(|earlier| earlier == code)).then(|| code.to_owned())
            })?;
            let body = json!({"code": code, "password": person.password});
            let answer = self
                .gateway
                .call(&Call::new("POST", "/user/forgot-password/reset").body(body))?;
            tried.push(code);
            if answer.status == 200 {
                return Ok(());
            }
            if answer.code() != "invalid-code" || Instant::now() > end {
                answer.expect(200)?;
                bail!("the password could not be reset");
            }
            // Either this call was repeated and its first try did it, or the request for a code was
            // repeated and a newer code is on its way.
            if answer.repeated && self.try_sign_in(person)?.status == 200 {
                return Ok(());
            }
        }
    }

    fn delete(&self, user: &str) -> anyhow::Result<()> {
        let admin = Person {
            email: self.target.admin.username.clone(),
            password: self.target.admin.password.clone(),
        };
        let admin = self.sign_in(&admin)?;
        let answer = self
            .gateway
            .call(&Call::new("DELETE", format!("/users/{user}")).token(&admin.token))?
            .expect(200)?;
        let path = format!("/users/{user}/delete-status/{}", answer.text("/ticket")?);
        let mut quiet = Client::new(&self.target.gateway);
        quiet.quiet = true;
        let mut shown = None;
        let ended = wait_until(DELETION_LIMIT, || {
            let now = match DeleteStatus::ask(&quiet, &path, &admin.token) {
                Ok(now) => now,
                Err(error) => return Some(Err(error)),
            };
            if shown.as_ref() != Some(&now) {
                show::progress(&now.status, now.done, now.total);
            }
            let now = shown.insert(now);
            match now.status.as_str() {
                "in-progress" => {
                    thread::sleep(DELETION_PAUSE);
                    None
                }
                "completed" => Some(Ok(())),
                other => Some(Err(anyhow::anyhow!(
                    "the deletion ended as {other}: {}",
                    now.failure
                ))),
            }
        });
        ended.with_context(|| {
            format!(
                "the deletion took longer than {} s",
                DELETION_LIMIT.as_secs()
            )
        })?
    }

    fn check_deleted(&self, person: &Person, session: &Session) -> anyhow::Result<()> {
        self.try_sign_in(person)?.expect(401)?;
        self.gateway
            .call(&Call::new("GET", "/user").token(&session.token))?
            .expect(401)?;
        show::note("neither the password nor the old token opens anything any more");
        Ok(())
    }
}

/// From `from` to a time of the same day in the form `…THH:MM:SS.mmm…`; midnight between is allowed.
fn milliseconds_between(from: SystemTime, to: &str) -> Option<i64> {
    let (_, time) = to.split_once('T')?;
    let mut parts = time.get(..12)?.split([':', '.']);
    let mut next = || parts.next()?.parse::<i64>().ok();
    let to = ((next()? * 60 + next()?) * 60 + next()?) * 1000 + next()?;
    let from = i64::try_from(from.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?
        % MILLISECONDS_OF_A_DAY;
    let half = MILLISECONDS_OF_A_DAY / 2;
    Some((to - from + half).rem_euclid(MILLISECONDS_OF_A_DAY) - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_subtracted_over_midnight() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        assert_eq!(
            milliseconds_between(noon, "2026-01-01T12:00:00.025Z"),
            Some(25)
        );
        assert_eq!(
            milliseconds_between(noon, "2026-01-01T11:59:59.990Z"),
            Some(-10)
        );
        let late = UNIX_EPOCH + Duration::from_millis(86_399_990);
        assert_eq!(
            milliseconds_between(late, "2026-01-02T00:00:00.010Z"),
            Some(20)
        );
        assert_eq!(milliseconds_between(noon, "soon"), None);
    }
}
