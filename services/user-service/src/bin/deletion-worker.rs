//! The deletion-worker alone, which tests of its process start.

use std::process::ExitCode;

fn main() -> ExitCode {
    user_service::deletion_worker()
}
