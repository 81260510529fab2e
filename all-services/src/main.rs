//! Both services and all workers in one program. It runs the one whose name it was started by, so a link to it is needed for
//! each.
//!
//! Processes of one program share the memory of its code, which is most of what an idle process needs.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default();
    let programs = user_service::PROGRAMS
        .iter()
        .chain(&people_task_service::PROGRAMS);
    match programs.clone().find(|(program, _)| name == *program) {
        Some((_, run)) => run(),
        None => {
            let names: Vec<_> = programs.map(|(program, _)| *program).collect();
            telemetry::print_error(format!(
                "{} is none of the programs. Start it by a link that is called one of: {}.",
                name.display(),
                names.join(", ")
            ));
            ExitCode::FAILURE
        }
    }
}
