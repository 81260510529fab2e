//! The users whose tokens the requests carry.

use anyhow::Context;
use serde_json::json;

use rig::{
    client::{Call, Client},
    stack_file::Admin,
};

const USER: &str = "schemathesis.user@example.com";
const PASSWORD: &str = "a password of 30 characters ok";

/// The user whose token a request carries.
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

/// The users and their credentials.
pub(crate) struct Actors {
    admin: Admin,
    /// Identifiers and e-mail addresses of the users, whom no request may change or delete.
    pub(crate) protected: Vec<String>,
}

impl Actors {
    /// Signs the user up. The administrator already exists.
    pub(crate) fn sign_up(gateway: &str, admin: &Admin) -> anyhow::Result<Self> {
        let mut client = Client::new(gateway);
        client.quiet = true;
        let body = json!({"username": USER, "password": PASSWORD});
        let user = client.call(&Call::new("POST", "/user").body(body))?;
        let user = user.expect(200).context("signing the user up")?;
        let body = json!({"username": admin.username, "password": admin.password});
        let signed_in = client.call(&Call::new("POST", "/user/auth").body(body))?;
        let signed_in = signed_in.expect(200)?;
        let mut protected = vec![USER.to_owned(), admin.username.to_lowercase()];
        for response in [user, signed_in] {
            protected.push(response.text("/user/id")?.to_owned());
        }
        Ok(Self {
            admin: admin.clone(),
            protected,
        })
    }

    /// Returns the username and password.
    pub(crate) fn credentials(&self, actor: Actor) -> (&str, &str) {
        match actor {
            Actor::User => (USER, PASSWORD),
            Actor::Admin => (&self.admin.username, &self.admin.password),
        }
    }
}
