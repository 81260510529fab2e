//! bcrypt on dedicated threads, which client networks share fairly.

mod error;
mod hasher;

pub(crate) use error::{HashError, HashProblems};
pub(crate) use hasher::{Hasher, Verdict};
