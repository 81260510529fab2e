//! The gateway's binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    server::main("gateway", gateway::run)
}
