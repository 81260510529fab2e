//! What API keys may do. The scopes that each call needs are in the table of routes.

use actix_web::http::StatusCode;
use http_kit::Problem;

values::names! {
    /// What an API key may do, within what its user may do.
    pub enum KeyScope {
        /// Reads tasks, webhooks and deliveries.
        TasksRead = "tasks:read",
        /// Creates and changes tasks and their webhooks, and withdraws tasks.
        TasksWrite = "tasks:write",
        /// Approves and rejects tasks.
        TasksDecide = "tasks:decide",
        /// Reads users.
        UsersRead = "users:read",
        /// Creates, changes and deletes users.
        UsersWrite = "users:write",
        /// Acts as the administrator that the user is, in addition to another scope.
        Admin = "admin",
    }
}

/// `403 key-not-accepted`: the call takes tokens of people, but no API keys.
pub fn key_not_accepted() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "key-not-accepted",
        "API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in.",
    )
}
