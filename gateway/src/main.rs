//! The gateway's binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_runtime::main("gateway", gateway::run)
}
