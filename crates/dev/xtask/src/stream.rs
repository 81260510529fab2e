//! The logs of all processes on the terminal, each line with its process's name in its own colour.

use std::{
    fs::File,
    io::{Read, Write, stdout},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::paint;

/// Follows log files until it is dropped; then prints what is left and ends.
pub struct Stream {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Followed {
    prefix: String,
    path: PathBuf,
    file: Option<File>,
    /// What came after the last line break.
    rest: Vec<u8>,
}

impl Stream {
    /// Prints each file from its beginning; one that is not there yet is waited for.
    pub(crate) fn follow(logs: Vec<(String, PathBuf)>) -> Self {
        let width = logs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut all: Vec<Followed> = logs
            .into_iter()
            .enumerate()
            .map(|(place, (name, path))| Followed {
                prefix: paint::prefix(place, &format!("{name:width$} |")),
                path,
                file: None,
                rest: Vec::new(),
            })
            .collect();
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            loop {
                let last = seen.load(Ordering::SeqCst);
                for one in &mut all {
                    one.print_new();
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
            // It only prints; there is nothing to do about it if it failed.
            let _ = thread.join();
        }
    }
}

impl Followed {
    fn print_new(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        if file.read_to_end(&mut self.rest).is_err() {
            return;
        }
        let lines = take_lines(&mut self.rest);
        let mut out = stdout().lock();
        for line in lines {
            // A closed terminal is noticed as a signal elsewhere.
            let _ = writeln!(out, "{} {line}", self.prefix);
        }
        let _ = out.flush();
    }
}

/// Takes the whole lines out of `bytes` and leaves the unfinished one.
fn take_lines(bytes: &mut Vec<u8>) -> Vec<String> {
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        return Vec::new();
    };
    let rest = bytes.split_off(end + 1);
    let whole = std::mem::replace(bytes, rest);
    String::from_utf8_lossy(&whole)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_line_waits_for_its_end() {
        let mut bytes = b"one\ntwo\nthr".to_vec();
        assert_eq!(take_lines(&mut bytes), ["one", "two"]);
        bytes.extend(b"ee\n");
        assert_eq!(take_lines(&mut bytes), ["three"]);
        assert!(take_lines(&mut bytes).is_empty());
    }
}
