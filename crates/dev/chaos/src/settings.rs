//! Settings of the processes that make a run shorter.

use rig::process::Process;
use std::time::Duration;

/// After the last fault, the remaining deliveries must arrive within this time plus one pause.
pub(crate) const RECOVERY_LIMIT: Duration = Duration::from_secs(90);
/// An upgrade test takes less time, also on a slow machine.
pub(crate) const LONGEST_UPGRADE: Duration = Duration::from_secs(20 * 60);
/// The pauses after the first attempts, in seconds. All later ones are `LAST_PAUSE`.
const FIRST_PAUSES: [u64; 6] = [1, 1, 2, 2, 3, 3];
const LAST_PAUSE: u64 = 5;
/// Also bounds the lease that a killed worker leaves behind.
pub(crate) const WEBHOOK_TIMEOUT: &str = "5s";

/// Doubles with every attempt. Small, because a deletion fails after ten attempts.
const DELETE_RETRY_PAUSE: &str = "250ms";

/// The longest pause, with 20 % of jitter.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(LAST_PAUSE + LAST_PAUSE / 5);

/// The number of pauses after the first ones, chosen so that no delivery is given up during a run.
pub(crate) fn further_pauses(duration: Duration) -> usize {
    let seconds = (duration + RECOVERY_LIMIT).as_secs();
    // Jitter shortens a pause by at most 20 %.
    usize::try_from(seconds * 5 / 4 / LAST_PAUSE + 1).unwrap_or(usize::MAX)
}

fn retry_schedule(duration: Duration) -> String {
    let last = std::iter::repeat_n(LAST_PAUSE, further_pauses(duration));
    let pauses: Vec<String> = FIRST_PAUSES
        .into_iter()
        .chain(last)
        .map(|seconds| format!("{seconds}s"))
        .collect();
    pauses.join(",")
}

/// The changed settings, for the log of the run.
pub(crate) fn description(duration: Duration) -> String {
    let first = FIRST_PAUSES.map(|seconds| format!("{seconds}s")).join(",");
    format!(
        "WEBHOOK_RETRY_SCHEDULE=NOTIFICATION_RETRY_SCHEDULE={first} then {} times {LAST_PAUSE}s, WEBHOOK_TIMEOUT={WEBHOOK_TIMEOUT}, \
         DELETE_RETRY_PAUSE={DELETE_RETRY_PAUSE}, RATE_LIMIT=off, BCRYPT_COST=4",
        further_pauses(duration)
    )
}

/// Adds the changed settings to a process. `codes` is the URL of the forgot-password webhook, `smtp` that of the mail server, if
/// there is one.
pub(crate) fn apply(process: &mut Process, duration: Duration, codes: &str, smtp: Option<&str>) {
    let codes = ("WEBHOOK_USER_FORGOT_PASSWORD", codes.to_owned());
    let variables = match process.program {
        "gateway" => vec![("RATE_LIMIT", "off".to_owned())],
        "user-service" => vec![("BCRYPT_COST", "4".to_owned()), codes],
        "deletion-worker" => vec![("DELETE_RETRY_PAUSE", DELETE_RETRY_PAUSE.to_owned())],
        "notification-worker" => {
            let mut variables = vec![
                ("NOTIFICATION_RETRY_SCHEDULE", retry_schedule(duration)),
                codes,
            ];
            if let Some(smtp) = smtp {
                variables.push(("SMTP_URL", smtp.to_owned()));
                variables.push(("MAIL_FROM", "no-reply@example.com".to_owned()));
            }
            variables
        }
        "webhook-worker" => vec![
            ("WEBHOOK_TIMEOUT", WEBHOOK_TIMEOUT.to_owned()),
            ("WEBHOOK_RETRY_SCHEDULE", retry_schedule(duration)),
        ],
        _ => Vec::new(),
    };
    process.variables.extend(variables);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_schedule_is_longer_than_the_run() {
        for seconds in [10, 60, 600] {
            let duration = Duration::from_secs(seconds);
            let schedule = retry_schedule(duration);
            let sum: u64 = schedule
                .split(',')
                .map(|pause| pause.trim_end_matches('s').parse::<u64>().unwrap())
                .sum();
            let shortest = Duration::from_secs(sum * 4 / 5);
            assert!(shortest >= duration + RECOVERY_LIMIT, "{schedule}");
        }
    }
}
