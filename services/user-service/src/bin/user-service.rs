//! The HTTP service of user accounts.

use std::process::ExitCode;

fn main() -> ExitCode {
    user_service::revoke_all_tokens_command()
        .unwrap_or_else(|| service_runtime::main("user-service", user_service::run))
}
