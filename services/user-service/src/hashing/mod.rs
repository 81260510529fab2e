//! Passwords as values: what a new one must be like, and bcrypt on threads of its own.

mod error;
mod hasher;
mod password;
mod requests;

pub(crate) use error::{HashError, HashProblems};
pub(crate) use hasher::Hasher;
pub(crate) use password::{NewPassword, Password, PasswordRules};
