//! Which variables a process gets: the caller's own win over what these commands would set.

use std::{collections::BTreeMap, ffi::OsStr, process::Command};

/// Marks every process of a project's system, with the project's `.local` folder for a value, so that
/// `down` finds them even when nobody wrote down their pids.
pub(crate) const MARKER: &str = "COUNTERSIGN_STACK";

/// Differ from process to process, so a caller's value cannot be meant for all of them.
const OURS: [&str; 5] = [
    MARKER,
    "LISTEN_ADDRESS",
    "METRICS_ADDRESS",
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
];

/// Never inherited: what a process does not need of these it must not have.
const NOT_INHERITED: [&str; 5] = [
    "LISTEN_ADDRESS",
    "METRICS_ADDRESS",
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "AMQP_URL",
];

/// Variables by name.
pub type Variables = BTreeMap<&'static str, String>;

/// Gives `command` the caller's environment and, where the caller is silent, `variables`.
pub(crate) fn apply(command: &mut Command, variables: &Variables) {
    for name in NOT_INHERITED {
        command.env_remove(name);
        command.env_remove(format!("{name}_FILE"));
    }
    command.envs(wanted(variables, &|name| std::env::var_os(name).is_some()));
}

/// A secret counts as given in either of its two forms, `X` and `X_FILE`.
fn wanted<'variables>(
    variables: &'variables Variables,
    given: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, &'variables OsStr)> {
    variables
        .iter()
        .filter(|(name, _)| {
            let plain = name.strip_suffix("_FILE").unwrap_or(name);
            let inherited =
                !NOT_INHERITED.contains(name) && (given(plain) || given(&format!("{plain}_FILE")));
            OURS.contains(name) || !inherited
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
        wanted(&variables, &|name| given.contains(&name))
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn the_callers_value_wins() {
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
    fn a_secret_may_be_given_in_its_other_form() {
        assert_eq!(
            names(&["TOKEN_SIGNING_KEY"]),
            ["DATABASE_URL", "LOG_FORMAT"]
        );
    }

    #[test]
    fn what_differs_between_processes_is_always_set() {
        assert_eq!(
            names(&["DATABASE_URL"]),
            ["DATABASE_URL", "LOG_FORMAT", "TOKEN_SIGNING_KEY_FILE"]
        );
    }
}
