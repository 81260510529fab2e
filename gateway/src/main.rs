//! The gateway's binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("gateway", gateway::run)
}
