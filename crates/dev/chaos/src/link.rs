//! A connection between two parts of the system that can be cut and held up: a proxy for TCP.
//!
//! A cut first holds back the answers for a moment: what was asked in it is done, and nobody hears of it.

use std::{
    collections::HashMap,
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::door::{Door, Watched, locked, spawn};

const ANSWERS_LOST: Duration = Duration::from_millis(300);

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traffic {
    Free,
    /// Requests pass, answers wait.
    OneWay,
    /// Everything waits, and nobody is told.
    Stalled,
}

/// Which way a thread copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    There,
    Back,
}

/// The way from one part to another.
pub(crate) struct Link {
    pub(crate) name: String,
    door: Door,
    path: Arc<Path>,
}

/// What all connections of a link share.
struct Path {
    target: u16,
    traffic: Watched<Traffic>,
    open: Mutex<HashMap<u64, [TcpStream; 2]>>,
    next: AtomicU64,
}

impl Link {
    /// Passes what comes to the port `entrance` on to the port `target`.
    pub(crate) fn open(name: String, entrance: u16, target: u16) -> anyhow::Result<Self> {
        let path = Arc::new(Path {
            target,
            traffic: Watched::new(Traffic::Free),
            open: Mutex::default(),
            next: AtomicU64::new(0),
        });
        let taken = Arc::clone(&path);
        let door = Door::open(entrance, move |stream| connect(&taken, stream))?;
        Ok(Self { name, door, path })
    }

    /// Ends every connection, with the answers of the last moment, and refuses new ones.
    pub(crate) fn cut(&self) {
        self.path.traffic.set(Traffic::OneWay);
        thread::sleep(ANSWERS_LOST);
        self.door.shut();
        for stream in locked(&self.path.open).values().flatten() {
            // One that has ended by itself needs no shutdown.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.path.traffic.set(Traffic::Free);
    }

    /// Lets nothing pass any more, while every connection seems to stand.
    pub(crate) fn stall(&self) {
        self.path.traffic.set(Traffic::Stalled);
    }

    /// All is well again; what was held up arrives.
    pub(crate) fn heal(&self) {
        self.path.traffic.set(Traffic::Free);
        self.door.reopen();
    }
}

impl Path {
    /// Waits as long as nothing passes this way.
    fn let_pass(&self, direction: Direction) {
        self.traffic.wait_while(|traffic| match traffic {
            Traffic::Free => false,
            Traffic::OneWay => direction == Direction::Back,
            Traffic::Stalled => true,
        });
    }
}

fn connect(path: &Arc<Path>, near: TcpStream) {
    path.let_pass(Direction::There);
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, path.target)) else {
        return;
    };
    let _ = far.set_nodelay(true);
    let copies = || Some([near.try_clone().ok()?, far.try_clone().ok()?]);
    let (Some(kept), Some([near_end, far_end])) = (copies(), copies()) else {
        return;
    };
    let number = path.next.fetch_add(1, Ordering::Relaxed);
    locked(&path.open).insert(number, kept);
    let back = Arc::clone(path);
    let returning = spawn(move || pump(&back, Direction::Back, far_end, near_end));
    pump(path, Direction::There, near, far);
    if let Some(returning) = returning {
        // It only copies; there is nothing to do about it if it failed.
        let _ = returning.join();
    }
    locked(&path.open).remove(&number);
}

/// Copies until one side ends.
fn pump(path: &Path, direction: Direction, mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer);
        path.let_pass(direction);
        let passed = match count {
            Ok(0) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(count) => to.write_all(buffer.get(..count).unwrap_or_default()),
            Err(error) => Err(error),
        };
        if passed.is_err() {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use local_stack::{ports, process::wait_until};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    fn echo(port: u16) -> Door {
        Door::open(port, |mut stream| {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() {
                stream.write_all(&byte).unwrap();
            }
        })
        .unwrap()
    }

    fn call(port: u16) -> Option<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        Some(stream)
    }

    fn says(stream: &mut TcpStream, byte: u8) -> bool {
        let mut answer = [0];
        stream.write_all(&[byte]).is_ok()
            && stream.read_exact(&mut answer).is_ok()
            && answer == [byte]
    }

    #[test]
    fn a_link_is_cut_and_healed() {
        let [entrance, target] = ports::free().unwrap();
        let _echo = echo(target);
        let link = Link::open("a → b".into(), entrance, target).unwrap();
        let mut stream = call(entrance).unwrap();
        assert!(says(&mut stream, 1));
        link.cut();
        assert!(!says(&mut stream, 2));
        link.heal();
        let again = wait_until(LIMIT, || says(&mut call(entrance)?, 3).then_some(()));
        assert!(again.is_some());
    }

    #[test]
    fn what_a_stalled_link_holds_up_arrives_later() {
        let [entrance, target] = ports::free().unwrap();
        let _echo = echo(target);
        let link = Link::open("a → b".into(), entrance, target).unwrap();
        let mut stream = call(entrance).unwrap();
        assert!(says(&mut stream, 1));
        link.stall();
        assert!(!says(&mut stream, 2));
        link.heal();
        let mut answer = [0];
        assert!(wait_until(LIMIT, || stream.read_exact(&mut answer).ok()).is_some());
        assert_eq!(answer, [2]);
    }
}
