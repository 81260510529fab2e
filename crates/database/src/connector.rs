use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use diesel::PgConnection;
use diesel::connection::SimpleConnection as _;
use diesel::r2d2::{ConnectionManager, Error, ManageConnection};

use crate::DatabaseSettings;

/// A connection that worked this short a time ago is used without asking whether it still works, unless
/// another one was found broken since.
const TRUSTED: Duration = Duration::from_secs(1);

/// What the server puts an end to by itself, because whoever waits for it would wait as long: a transaction
/// whose process hangs between two statements, a wait for somebody else's lock, a statement that never ends.
const LIMITS: &str = "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '10s'; \
    SET statement_timeout = '60s';";

/// What the pool holds: a connection and when it last worked, if it did at its last use.
pub(crate) struct Session {
    pub(crate) connection: PgConnection,
    worked: Option<Instant>,
}

impl Session {
    fn new(connection: PgConnection) -> Self {
        Self {
            connection,
            worked: Some(Instant::now()),
        }
    }

    /// Notes whether the server did just now what it was asked to.
    pub(crate) fn used(&mut self, well: bool) {
        self.worked = well.then(Instant::now);
    }
}

/// Opens and checks the pool's connections.
pub(crate) struct Connector {
    manager: ConnectionManager<PgConnection>,
    at_start: &'static str,
    found_broken: Mutex<Option<Instant>>,
    door: Door,
}

impl Connector {
    pub(crate) fn new(settings: &DatabaseSettings, at_start: &'static str, door: Door) -> Self {
        let url = with_time_limits(settings.url.expose(), settings.timeout);
        Self {
            manager: ConnectionManager::new(url),
            at_start,
            found_broken: Mutex::default(),
            door,
        }
    }

    fn open(&self) -> Result<Session, Error> {
        let mut connection = self.manager.connect()?;
        connection.batch_execute(&format!("{LIMITS}{}", self.at_start))?;
        Ok(Session::new(connection))
    }

    fn is_trusted(&self, session: &Session) -> bool {
        let broken = *self.broken();
        session
            .worked
            .is_some_and(|at| at.elapsed() < TRUSTED && broken < Some(at))
    }

    fn note_broken(&self) {
        *self.broken() = Some(Instant::now());
    }

    fn broken(&self) -> MutexGuard<'_, Option<Instant>> {
        let broken = self.found_broken.lock();
        broken.unwrap_or_else(PoisonError::into_inner)
    }
}

impl ManageConnection for Connector {
    type Connection = Session;
    type Error = Error;

    fn connect(&self) -> Result<Session, Error> {
        self.door
            .pass(|| self.open())
            .unwrap_or_else(|| Err(closing()))
    }

    fn is_valid(&self, session: &mut Session) -> Result<(), Error> {
        if self.is_trusted(session) {
            return Ok(());
        }
        let valid = self.manager.is_valid(&mut session.connection);
        if valid.is_err() {
            self.note_broken();
        }
        valid
    }

    fn has_broken(&self, session: &mut Session) -> bool {
        let broken = self.manager.has_broken(&mut session.connection);
        if broken {
            self.note_broken();
        }
        broken
    }
}

/// The way to new connections, open until it is shut, which is `true`.
///
/// libpq uses OpenSSL while it connects, also without TLS, and OpenSSL clears itself away when the
/// process exits: a connection that one of the pool's threads opens at that moment crashes the process.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<RwLock<bool>>);

impl Door {
    /// Runs `connect` unless the door is shut.
    fn pass<T>(&self, connect: impl FnOnce() -> T) -> Option<T> {
        let shut = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (!*shut).then(connect)
    }

    /// Waits for those who are passing, at most as long as one connection may take to open, and lets
    /// nobody pass any more.
    pub(crate) fn shut(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

fn closing() -> Error {
    Error::ConnectionError(diesel::ConnectionError::BadConnection(
        "the pool is closing".to_owned(),
    ))
}

/// Limits for opening a connection, for data that nobody acknowledges, and for a server that has gone while an
/// answer is awaited, unless the url has its own: `connect_timeout` (two at the least in libpq), the pauses of
/// `keepalives_idle` and `keepalives_interval` in seconds, and `tcp_user_timeout` in milliseconds.
fn with_time_limits(url: &str, timeout: Duration) -> String {
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
    fn a_url_gets_the_time_limits_that_it_does_not_have() {
        let limited = |url| with_time_limits(url, Duration::from_secs(3));
        assert_eq!(
            limited("postgres://a:b@h:1/d"),
            "postgres://a:b@h:1/d?connect_timeout=3&tcp_user_timeout=10000\
                &keepalives_idle=10&keepalives_interval=5"
        );
        assert_eq!(
            limited("postgres://h/d?connect_timeout=9"),
            "postgres://h/d?connect_timeout=9&tcp_user_timeout=10000\
                &keepalives_idle=10&keepalives_interval=5"
        );
    }

    #[test]
    fn nobody_passes_a_shut_door_and_shutting_waits_for_those_who_pass() {
        let door = Door::default();
        let (entered, is_inside) = std::sync::mpsc::channel();
        let (leave, may_leave) = std::sync::mpsc::channel::<()>();
        let passing = {
            let door = door.clone();
            std::thread::spawn(move || {
                door.pass(|| {
                    entered.send(()).unwrap();
                    may_leave.recv().unwrap();
                    Instant::now()
                })
            })
        };
        is_inside.recv().unwrap();
        let shutting = {
            let door = door.clone();
            std::thread::spawn(move || {
                door.shut();
                Instant::now()
            })
        };
        leave.send(()).unwrap();
        let left = passing.join().unwrap().unwrap();
        assert!(left <= shutting.join().unwrap());
        assert_eq!(door.pass(|| ()), None);
    }
}
