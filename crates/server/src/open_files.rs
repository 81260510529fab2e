//! The limit on open files. Each connection needs some.

use crate::settings::HttpServerSettings;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files of a connection: its socket, and a connection to a service.
const PER_CONNECTION: u64 = 2;
/// Files for everything else: databases, queues, logs.
const RESERVED: u64 = 256;

/// Raises the soft limit. The usual default of 1,024 is too low for a busy process.
pub(crate) fn raise_limit() {
    const ENOUGH: u64 = 65_536;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let wanted = hard.min(ENOUGH);
        if soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() {
            tracing::warn!(soft, hard, "the limit on open files cannot be raised");
        }
    }
}

/// The number of connections for which there are enough files, if that is fewer than `wanted`.
///
/// With more, accepting would fail for everyone until some are closed.
pub(crate) fn limit_connections(wanted: usize) -> usize {
    limit("connections", wanted, |soft| {
        soft.saturating_sub(RESERVED) / PER_CONNECTION
    })
}

/// The number of connections that may be set aside, each of which has only its socket, beside the others, if that is fewer
/// than `wanted`.
pub fn limit_aside(settings: HttpServerSettings, wanted: usize) -> usize {
    let counted = limit_connections(settings.workers * settings.max_connections) as u64;
    limit("callers can wait", wanted, |soft| {
        soft.saturating_sub(RESERVED + counted * PER_CONNECTION)
    })
}

/// The smaller one of what is `wanted` and what is `possible` with the soft limit.
fn limit(what: &str, wanted: usize, possible: impl Fn(u64) -> u64) -> usize {
    let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return wanted;
    };
    let possible = usize::try_from(possible(soft)).unwrap_or(usize::MAX).max(1);
    if possible < wanted {
        tracing::info!(
            wanted,
            possible,
            "fewer {what}, because of the limit on open files"
        );
    }
    wanted.min(possible)
}

#[cfg(test)]
mod tests {
    use super::limit_connections;

    #[test]
    fn connections_are_limited_by_open_files() {
        assert_eq!(limit_connections(1), 1);
        assert!(limit_connections(usize::MAX) < usize::MAX / 2);
    }
}
