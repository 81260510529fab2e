use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::PgConnection;
use diesel::connection::SimpleConnection as _;
use diesel::r2d2::{ConnectionManager, Error, ManageConnection};
use parking_lot::{Mutex, RwLock};

use crate::availability::Availability;
use crate::observer::{Outcome, Trouble};
use crate::{StatementLimits, observer};

/// A connection that worked within this time is used without a check, unless another connection was found
/// broken since.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// A pooled connection, and when it last worked: `None` if its last use failed.
pub(crate) struct Session {
    pub(crate) connection: PgConnection,
    opened: Instant,
    last_success: Option<Instant>,
    /// It is replaced by a new connection.
    discarded: bool,
}

impl Session {
    fn new(connection: PgConnection) -> Self {
        let opened = Instant::now();
        Self {
            connection,
            opened,
            last_success: Some(opened),
            discarded: false,
        }
    }

    /// Ends a use: records whether the server responded, and returns what else the statements showed.
    pub(crate) fn finish_use(&mut self) -> Outcome {
        let outcome = observer::take_outcome(&mut self.connection);
        if let Some(responded) = outcome.responded {
            self.last_success = responded.then(Instant::now);
        }
        let is_standby = matches!(outcome.trouble, Some(Trouble::ReadOnly(_)));
        self.discarded |= outcome.unexplained || is_standby;
        outcome
    }
}

pub(crate) struct Connector {
    pub(crate) manager: ConnectionManager<PgConnection>,
    pub(crate) limits: StatementLimits,
    /// Statements that each new connection runs first.
    pub(crate) on_connect: &'static str,
    pub(crate) found_broken: Mutex<Option<Instant>>,
    pub(crate) gate: ConnectGate,
    pub(crate) availability: Arc<Availability>,
}

impl Connector {
    fn open(&self) -> Result<Session, Error> {
        let mut connection = self.manager.connect()?;
        if !self.on_connect.is_empty() {
            connection.batch_execute(self.on_connect)?;
        }
        observer::limit_statements(&mut connection, self.limits)?;
        Ok(Session::new(connection))
    }

    fn is_trusted(&self, session: &Session) -> bool {
        let (broken, last) = (*self.found_broken.lock(), session.last_success);
        last.is_some_and(|at| at.elapsed() < TRUSTED_FOR && broken < Some(at))
    }

    fn record_broken(&self) {
        *self.found_broken.lock() = Some(Instant::now());
    }
}

impl ManageConnection for Connector {
    type Connection = Session;
    type Error = Error;

    fn connect(&self) -> Result<Session, Error> {
        self.gate
            .run(|| self.availability.connect(|| self.open()))
            .unwrap_or_else(|| Err(bad_connection("the pool is closing")))
    }

    fn is_valid(&self, session: &mut Session) -> Result<(), Error> {
        if self.availability.is_outdated(session.opened) {
            return Err(bad_connection("the server was read-only"));
        }
        if self.is_trusted(session) {
            return Ok(());
        }
        let valid = self.manager.is_valid(&mut session.connection);
        if valid.is_err() {
            self.record_broken();
        }
        valid
    }

    fn has_broken(&self, session: &mut Session) -> bool {
        let broken = self.manager.has_broken(&mut session.connection);
        if broken {
            self.record_broken();
        }
        broken || session.discarded
    }
}

/// Prevents new connections once the pool is dropped. The flag says whether it is closed.
///
/// libpq uses OpenSSL while it connects, even without TLS, and OpenSSL frees its state when the process
/// exits: a connection that a thread of the pool opens at that moment crashes the process.
#[derive(Clone, Default)]
pub(crate) struct ConnectGate(Arc<RwLock<bool>>);

impl ConnectGate {
    fn run<T>(&self, connect: impl FnOnce() -> T) -> Option<T> {
        let closed = self.0.read();
        (!*closed).then(connect)
    }

    /// Waits for connections that are being opened, then prevents new ones.
    pub(crate) fn close(&self) {
        *self.0.write() = true;
    }
}

fn bad_connection(reason: &str) -> Error {
    Error::ConnectionError(diesel::ConnectionError::BadConnection(reason.to_owned()))
}

/// Adds timeouts that the URL does not set itself: for opening a connection (`connect_timeout`, at least two
/// seconds in libpq), for unacknowledged data (`tcp_user_timeout`, in milliseconds), and for a server that
/// disappears while a result is awaited (`keepalives_idle` and `keepalives_interval`, in seconds).
pub(crate) fn with_timeouts(url: &str, timeout: Duration) -> String {
    const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
    let connect = timeout.as_secs().max(2);
    let mut url = url.to_owned();
    for (name, value) in [
        ("connect_timeout", u128::from(connect)),
        ("tcp_user_timeout", UNACKNOWLEDGED.as_millis()),
        ("keepalives_idle", 10),
        ("keepalives_interval", 5),
    ] {
        if !url.contains(&format!("{name}=")) {
            let separator = if url.contains('?') { '&' } else { '?' };
            url = format!("{url}{separator}{name}={value}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_added_unless_the_url_sets_them() {
        let with_defaults = |url| with_timeouts(url, Duration::from_secs(3));
        assert_eq!(
            with_defaults("postgres://a:b@h:1/d"),
            "postgres://a:b@h:1/d?connect_timeout=3&tcp_user_timeout=10000\
                &keepalives_idle=10&keepalives_interval=5"
        );
        assert_eq!(
            with_defaults("postgres://h/d?connect_timeout=9"),
            "postgres://h/d?connect_timeout=9&tcp_user_timeout=10000\
                &keepalives_idle=10&keepalives_interval=5"
        );
    }

    #[test]
    fn a_closed_gate_opens_nothing_and_closing_waits_for_open_connects() {
        let gate = ConnectGate::default();
        let (started, has_started) = std::sync::mpsc::channel();
        let (finish, may_finish) = std::sync::mpsc::channel::<()>();
        let connecting = {
            let gate = gate.clone();
            std::thread::spawn(move || {
                gate.run(|| {
                    started.send(()).unwrap();
                    may_finish.recv().unwrap();
                    Instant::now()
                })
            })
        };
        has_started.recv().unwrap();
        let closing = {
            let gate = gate.clone();
            std::thread::spawn(move || {
                gate.close();
                Instant::now()
            })
        };
        finish.send(()).unwrap();
        let connected_at = connecting.join().unwrap().unwrap();
        assert!(connected_at <= closing.join().unwrap());
        assert_eq!(gate.run(|| ()), None);
    }
}
