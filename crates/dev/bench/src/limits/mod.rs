//! What the machine does without the system: the limits beside which figures are read.

pub(crate) mod hashing;
pub(crate) mod pgbench;
pub(crate) mod proxies;
