//! Passwords as values: the rules for new ones, and bcrypt on dedicated threads, which
//! client networks share fairly.

mod error;
mod hasher;
mod password;
mod requests;
mod work;

pub(crate) use error::{HashError, HashProblems};
pub(crate) use hasher::{Hasher, Verdict};
pub(crate) use password::{NewPassword, Password, PasswordRules};
