use std::collections::HashSet;
use std::sync::Arc;

/// The hosts to which deliveries are paused, as the last scan found them.
///
/// No load takes deliveries to a paused host, whatever the worker knows. What it has loaded before, it gives back when it
/// learns of the pause.
#[derive(Default)]
pub(super) struct PausedHosts(HashSet<Arc<str>>);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedPauses {
    pub(super) paused: Vec<Arc<str>>,
    pub(super) resumed: Vec<Arc<str>>,
}

impl PausedHosts {
    pub(super) fn contains(&self, host: &str) -> bool {
        self.0.contains(host)
    }

    pub(super) fn replace(&mut self, found: Vec<String>) -> ChangedPauses {
        let found: HashSet<Arc<str>> = found.into_iter().map(Into::into).collect();
        let changed = ChangedPauses {
            paused: found.difference(&self.0).cloned().collect(),
            resumed: self.0.difference(&found).cloned().collect(),
        };
        self.0 = found;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangedPauses, PausedHosts};

    #[test]
    fn a_scan_tells_which_hosts_were_paused_and_resumed_since_the_last_one() {
        let mut hosts = PausedHosts::default();
        for (found, paused, resumed) in [
            (vec!["a.example"], vec!["a.example"], vec![]),
            (vec!["a.example", "b.example"], vec!["b.example"], vec![]),
            (vec!["b.example"], vec![], vec!["a.example"]),
        ] {
            let changed = hosts.replace(found.iter().map(ToString::to_string).collect());
            let names = |names: Vec<&str>| names.into_iter().map(Into::into).collect();
            let expected = ChangedPauses {
                paused: names(paused),
                resumed: names(resumed),
            };
            assert_eq!(changed, expected);
        }
        assert!(hosts.contains("b.example") && !hosts.contains("a.example"));
    }
}
