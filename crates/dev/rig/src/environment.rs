//! The environment of a process. Variables of the caller take precedence over those of the commands.

use std::{collections::BTreeMap, ffi::OsStr, process::Command};

/// Marks all processes of a system with its identity (see `instance`), so that `down` finds the processes even when no
/// file has their pids.
pub const MARKER: &str = "COUNTERSIGN_INSTANCE";

/// Always set, because they differ between processes.
const ALWAYS_SET: [&str; 5] = [
    MARKER,
    "LISTEN_ADDRESS",
    "METRICS_ADDRESS",
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
];

/// Not inherited, so that a process has only those that it needs.
const NOT_INHERITED: [&str; 5] = [
    "LISTEN_ADDRESS",
    "METRICS_ADDRESS",
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "AMQP_URL",
];

/// Variables by name.
pub type Variables = BTreeMap<&'static str, String>;

/// Adds those `variables` to the inherited environment of `command` that the caller has not set.
pub fn apply(command: &mut Command, variables: &Variables) {
    for name in NOT_INHERITED {
        command.env_remove(name);
        command.env_remove(format!("{name}_FILE"));
    }
    command.envs(not_given(variables, &|name| {
        std::env::var_os(name).is_some()
    }));
}

/// Returns the variables to set. A secret counts as given in either form, `X` or `X_FILE`.
fn not_given<'variables>(
    variables: &'variables Variables,
    given: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, &'variables OsStr)> {
    variables
        .iter()
        .filter(|(name, _)| {
            let plain = name.strip_suffix("_FILE").unwrap_or(name);
            let inherited =
                !NOT_INHERITED.contains(name) && (given(plain) || given(&format!("{plain}_FILE")));
            ALWAYS_SET.contains(name) || !inherited
        })
        .map(|(name, value)| (*name, OsStr::new(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Vec<&'static str> {
        let variables = Variables::from([
            ("DATABASE_URL", "d".to_owned()),
            ("LOG_FORMAT", "text".to_owned()),
            ("TOKEN_SIGNING_KEY_FILE", "f".to_owned()),
        ]);
        not_given(&variables, &|name| given.contains(&name))
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn values_of_the_caller_take_precedence() {
        assert_eq!(
            names(&[]),
            ["DATABASE_URL", "LOG_FORMAT", "TOKEN_SIGNING_KEY_FILE"]
        );
        assert_eq!(
            names(&["LOG_FORMAT"]),
            ["DATABASE_URL", "TOKEN_SIGNING_KEY_FILE"]
        );
    }

    #[test]
    fn a_secret_may_be_given_in_either_form() {
        assert_eq!(
            names(&["TOKEN_SIGNING_KEY"]),
            ["DATABASE_URL", "LOG_FORMAT"]
        );
    }

    #[test]
    fn variables_that_differ_between_processes_are_always_set() {
        assert_eq!(
            names(&["DATABASE_URL"]),
            ["DATABASE_URL", "LOG_FORMAT", "TOKEN_SIGNING_KEY_FILE"]
        );
    }
}
