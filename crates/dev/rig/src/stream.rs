//! Prints the logs of all processes, each line with the name of its process in a colour.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::paint::PREFIXES;

/// Follows log files until it is dropped. Dropping it prints the remaining lines.
pub struct Stream {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Log {
    prefix: String,
    file: File,
    /// The bytes after the last line break.
    rest: Vec<u8>,
}

impl Stream {
    /// Prints each file from its start.
    pub fn follow(logs: Vec<(String, PathBuf)>) -> Self {
        let width = logs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let logs = logs.into_iter().zip(PREFIXES.into_iter().cycle());
        let logs = logs.filter_map(|((name, path), colour)| {
            let colour = colour.on_default();
            Some(Log {
                prefix: format!("{colour}{name:width$} |{colour:#}"),
                file: File::open(path).ok()?,
                rest: Vec::new(),
            })
        });
        let mut all: Vec<Log> = logs.collect();
        let ended = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            loop {
                let last = ending.load(Ordering::SeqCst);
                for log in &mut all {
                    log.print_new_lines();
                }
                if last {
                    break;
                }
                thread::sleep(Duration::from_millis(80));
            }
        });
        Self {
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // The thread only prints, so its failure does no harm.
            let _ = thread.join();
        }
    }
}

impl Log {
    fn print_new_lines(&mut self) {
        if self.file.read_to_end(&mut self.rest).is_err() {
            return;
        }
        let lines = take_lines(&mut self.rest);
        let mut out = anstream::stdout().lock();
        for line in lines {
            // A closed terminal sends a signal, which `interrupt` handles.
            let _ = writeln!(out, "{} {line}", self.prefix);
        }
        let _ = out.flush();
    }
}

/// Removes the complete lines from `bytes` and returns them.
fn take_lines(bytes: &mut Vec<u8>) -> Vec<String> {
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        return Vec::new();
    };
    let rest = bytes.split_off(end + 1);
    let whole = std::mem::replace(bytes, rest);
    let whole = String::from_utf8_lossy(&whole);
    whole.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_lines_leaves_an_unfinished_line() {
        let mut bytes = b"one\ntwo\nthr".to_vec();
        assert_eq!(take_lines(&mut bytes), ["one", "two"]);
        bytes.extend(b"ee\n");
        assert_eq!(take_lines(&mut bytes), ["three"]);
        assert!(take_lines(&mut bytes).is_empty());
    }
}
