mod error;
mod hasher;

pub(crate) use error::{HashError, HashProblems};
pub(crate) use hasher::{Hasher, Verdict};
