//! The processes of a system that verify access tokens.

use crate::client::{Call, Client};
use crate::system::System;

/// A process that verifies tokens.
pub struct Verifier {
    /// Its name.
    pub name: String,
    client: Client,
    /// The path of a `GET` that needs a token.
    path: &'static str,
}

impl Verifier {
    /// Whether the process refuses a token.
    pub fn refuses(&self, token: &str) -> bool {
        let response = self.client.once(&Call::new("GET", self.path).token(token));
        response.is_ok_and(|(status, ..)| status == 401)
    }
}

impl System {
    /// The processes that verify tokens.
    pub fn token_verifiers(&self) -> Vec<Verifier> {
        let verifiers = self.processes.iter().filter_map(|process| {
            let path = match process.program {
                "user-service" => "/user",
                "gateway" | "people-task-service" => "/people-task/tasks",
                _ => return None,
            };
            Some(Verifier {
                name: process.name.clone(),
                client: Client::of_process(process.url.as_deref()?),
                path,
            })
        });
        verifiers.collect()
    }
}
