//! Those in whose name the requests are made.

use anyhow::Context;
use serde_json::json;

use crate::{
    demo::client::{Call, Client},
    stack_file::Admin,
};

const USER: &str = "schemathesis.user@example.com";
const PASSWORD: &str = "a password of 30 characters ok";

/// Whose token goes with the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    User,
    Admin,
}

impl Actor {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::User => "a user",
            Self::Admin => "an administrator",
        }
    }
}

/// Both, and how they sign in.
pub(crate) struct Actors {
    admin: Admin,
    /// Identifiers and e-mail addresses of both, whom no request may change or delete.
    pub(crate) protected: Vec<String>,
}

impl Actors {
    /// Signs the user up; the administrator is there from the start.
    pub(crate) fn sign_up(gateway: &str, admin: &Admin) -> anyhow::Result<Self> {
        let mut client = Client::new(gateway);
        client.quiet = true;
        let body = json!({"username": USER, "password": PASSWORD});
        let user = client.call(&Call::new("POST", "/user").body(body))?;
        let user = user.expect(200).context("signing the user up")?;
        let body = json!({"username": admin.username, "password": admin.password});
        let admin_answer = client.call(&Call::new("POST", "/user/auth").body(body))?;
        let admin_answer = admin_answer.expect(200)?;
        let mut protected = vec![USER.to_owned(), admin.username.to_lowercase()];
        for answer in [user, admin_answer] {
            protected.push(answer.text("/user/id")?.to_owned());
        }
        Ok(Self {
            admin: admin.clone(),
            protected,
        })
    }

    /// Username and password.
    pub(crate) fn credentials(&self, actor: Actor) -> (&str, &str) {
        match actor {
            Actor::User => (USER, PASSWORD),
            Actor::Admin => (&self.admin.username, &self.admin.password),
        }
    }
}
