//! The settings of the processes that differ from the usual ones, so that a run ends soon.

use std::time::Duration;

use xtask::plan::Planned;

/// After the faults, what is still to be delivered has this long, and one pause more.
pub(crate) const HEALING: Duration = Duration::from_secs(90);
/// The pauses after the first attempts, in seconds; after them, each is the last one.
const FIRST_PAUSES: [u64; 6] = [1, 1, 2, 2, 3, 3];
const LAST_PAUSE: u64 = 5;
/// Also the longest lease that a killed worker leaves behind, but for a margin of the worker's.
pub(crate) const WEBHOOK_TIMEOUT: &str = "5s";

/// Doubles with every attempt, so it begins small: ten failed ones end a deletion for good.
const DELETE_RETRY_PAUSE: &str = "250ms";

/// The longest pause, with its 20 % of chance.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(LAST_PAUSE + LAST_PAUSE / 5);

/// How many pauses follow the first ones: no delivery is given up, however long everything was broken.
pub(crate) fn further_pauses(duration: Duration) -> usize {
    let whole = (duration + HEALING).as_secs();
    // 20 % shorter is the shortest that a pause can be.
    usize::try_from(whole * 5 / 4 / LAST_PAUSE + 1).unwrap_or(usize::MAX)
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

/// What a person has to know of the settings.
pub(crate) fn description(duration: Duration) -> String {
    let first = FIRST_PAUSES.map(|seconds| format!("{seconds}s")).join(",");
    format!(
        "WEBHOOK_RETRY_SCHEDULE=NOTIFICATION_RETRY_SCHEDULE={first} and then {} times {LAST_PAUSE}s, WEBHOOK_TIMEOUT={WEBHOOK_TIMEOUT}, \
         DELETE_RETRY_PAUSE={DELETE_RETRY_PAUSE}, RATE_LIMIT=off, BCRYPT_COST=4",
        further_pauses(duration)
    )
}

/// Gives a process the settings of a run of this duration; messages to users go to `mailbox`.
pub(crate) fn set(process: &mut Planned, duration: Duration, mailbox: &str) {
    let mailbox = ("WEBHOOK_USER_FORGOT_PASSWORD", mailbox.to_owned());
    let variables = match process.program {
        "gateway" => vec![("RATE_LIMIT", "off".to_owned())],
        "user-service" => vec![("BCRYPT_COST", "4".to_owned()), mailbox],
        "deletion-worker" => vec![("DELETE_RETRY_PAUSE", DELETE_RETRY_PAUSE.to_owned())],
        "notification-worker" => vec![
            ("NOTIFICATION_RETRY_SCHEDULE", retry_schedule(duration)),
            mailbox,
        ],
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
    fn no_delivery_is_given_up_within_a_run() {
        for seconds in [10, 60, 600] {
            let duration = Duration::from_secs(seconds);
            let schedule = retry_schedule(duration);
            let sum: u64 = schedule
                .split(',')
                .map(|pause| pause.trim_end_matches('s').parse::<u64>().unwrap())
                .sum();
            let shortest = Duration::from_secs(sum * 4 / 5);
            assert!(shortest >= duration + HEALING, "{schedule}");
        }
    }
}
