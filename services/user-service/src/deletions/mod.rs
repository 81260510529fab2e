//! Deleting a user: a job of steps that a worker goes through, and the ticket that shows how far it is.

mod steps;

pub use steps::Step;
