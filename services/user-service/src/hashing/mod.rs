//! Passwords as values: the rules for new ones, and bcrypt on dedicated threads.

mod error;
mod hasher;
mod password;
mod requests;

pub(crate) use error::{HashError, HashProblems};
pub(crate) use hasher::Hasher;
pub(crate) use password::{NewPassword, Password, PasswordRules};
