//! The demo engine's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    process::main("demo-engine", |settings| async {
        Ok(demo_engine::run(settings).await?.running)
    })
}
