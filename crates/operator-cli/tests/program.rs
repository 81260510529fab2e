//! The program itself. Tests of its commands need a system: they are in `crates/dev/system-tests`, and start the program
//! that is built for this test.

use std::process::Command;

#[test]
fn the_program_says_which_version_it_is() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let output = program.arg("--version").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, format!("countersign {}\n", env!("CARGO_PKG_VERSION")));
}
