//! The demo engine's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    server::main("demo-engine", |settings| async {
        Ok(demo_engine::run(settings).await?.running)
    })
}
