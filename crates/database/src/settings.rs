use std::time::Duration;

use app_config::{Reader, SettingValue};
use values::Secret;

app_config::settings! {
    /// The database and how many connections this process may open.
    pub struct DatabaseSettings {
        /// The role that reads and writes.
        pub url: Secret = by(|reader: &mut Reader| {
            let purpose = "the Postgres URL of the service's role, `postgres://role:password@host:5432/countersign`.";
            reader.required("DATABASE_URL", purpose).map(|PostgresUrl(url)| url)
        }),
        /// The role that owns the schema, if the process runs migrations.
        pub owner_url: Option<Secret> = by(|reader: &mut Reader| {
            let purpose = "The Postgres URL of the role that owns the schema. If it is set, the process runs pending \
                migrations at its start; otherwise it waits a minute for the command `migrate` to run them.";
            let url = reader.optional("DATABASE_OWNER_URL", purpose);
            url.map(|url| url.map(|PostgresUrl(url)| url))
        }),
        /// The maximum number of connections to Postgres; the sum over all processes must stay below its `max_connections`.
        /// Services keep a quarter of them, at least one, for lists and counts, so that they open two if it is one.
        pub pool_size: u32 = between("DATABASE_POOL_SIZE", "32", "1", "200"),
        /// How long a request waits before it is refused with 503: for others that are written together before it, then for a free
        /// connection, and then, if that is a new one, until it is open; each of them at most as long as this.
        pub timeout: Duration = between("DATABASE_TIMEOUT", "3s", "100ms", "1m"),
    }

    /// Settings of the command `migrate` of a service.
    pub struct OwnerSettings {
        /// The role that owns the schema.
        pub url: Secret = by(|reader: &mut Reader| {
            let purpose = "the Postgres URL of the role that owns the schema, `postgres://role:password@host:5432/countersign`.";
            reader.required("DATABASE_OWNER_URL", purpose).map(|PostgresUrl(url)| url)
        }),
    }
}

/// A URL that libpq reads as it is meant. Of others, its messages may show the password.
pub(crate) struct PostgresUrl(Secret);

impl SettingValue for PostgresUrl {
    const ALLOWED: &'static str = "a URL; in the password write `%40` for `@`, `%2F` for `/`, `%3F` for `?` and `%25` for `%`";
    const EXAMPLE: &'static str = "postgres://role:password@localhost/countersign";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let mut schemes = ["postgres://", "postgresql://"].into_iter();
        let rest = schemes.find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or("it does not start with postgres://")?;
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, has_path) = match before.split_once('/') {
            Some((authority, _)) => (authority, true),
            None => (before, false),
        };
        // A name and a password without their end, which comes where libpq does not look for it.
        let is_open = authority.contains(':') && !authority.contains('@');
        let has_end = before.contains('@') || (!has_path && query.contains('@'));
        if before.matches('@').count() > 1 || (is_open && has_end) {
            return Err("it has an @, / or ? that is not percent-encoded".to_owned());
        }
        let is_encoded = |part: &str| {
            let digits = part.as_bytes().first_chunk::<2>();
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit) && digits != b"00")
        };
        let parameters = query.strip_suffix('&').unwrap_or(query);
        let mut parameters = parameters.split('&');
        if !query.is_empty() && parameters.any(|parameter| parameter.matches('=').count() != 1) {
            return Err("each parameter after the ? must be NAME=VALUE".to_owned());
        }
        if !rest.split('%').skip(1).all(is_encoded) || before.contains(char::is_whitespace) {
            return Err("it has a % or a space that is not percent-encoded".to_owned());
        }
        Ok(Self(Secret::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::PostgresUrl;

    #[test]
    fn a_password_that_is_not_percent_encoded_is_refused_and_not_shown() {
        for url in [
            "postgres://role:password@host:5432/countersign",
            "postgresql://role:p%40ss%2Fword#1@host,other/db?target_session_attrs=read-write",
            "postgres://role@%2Fvar%2Frun/db?sslmode=require&",
            "postgres:///db?host=/var/run&user=ada@corp",
            "postgres://h:5432/d?application_name=a@b&options=-c%20x%3D1 2",
        ] {
            assert!(PostgresUrl::parse(url).is_ok(), "{url}");
        }
        for wrong in [
            "host=h user=u password=hidden",
            "postgres://u:50%hidden@h/d",
            "postgres://u:50%+5hidden@h/d",
            "postgres://u:hidden%@h/d",
            "postgres://u:%00hidden@h/d",
            "postgres://u:hid/den@h/d",
            "postgres://u:hid?den@h/d",
            "postgres://u:hid@den@h/d",
            "postgres://u:hid den@h/d",
            "postgres:///d?user=u&password=hid&den",
        ] {
            let refused = PostgresUrl::parse(wrong).err().unwrap();
            assert!(
                !refused.contains("hid") && !refused.contains("den"),
                "{refused}"
            );
        }
    }
}

/// How long the server lets a statement run, and wait for a lock. It ends those that take longer, because others
/// wait for their locks and their connections.
#[derive(Debug, Clone, Copy)]
pub struct StatementLimits {
    /// The maximum time of a statement; `None` for no limit.
    pub statement: Option<Duration>,
    /// The maximum time that a statement waits for one lock.
    pub lock: Duration,
}

impl StatementLimits {
    /// For a process whose callers wait for it: a statement ends before the gateway gives up after 30 s, so that few
    /// connections work for callers that are gone. A transaction that hangs is ended after five seconds, so
    /// waiting for its locks succeeds.
    pub const SERVICE: Self = Self {
        statement: Some(Duration::from_secs(10)),
        lock: Duration::from_secs(8),
    };
    /// For a worker, which handles rows in batches.
    pub const WORKER: Self = Self {
        statement: Some(Duration::from_secs(60)),
        lock: Duration::from_secs(10),
    };
    /// How long a transaction may hang between two statements.
    pub(crate) const IDLE_TRANSACTION: Duration = Duration::from_secs(5);

    /// The time that a statement takes at least if it exceeds a limit.
    pub(crate) fn shortest(self) -> Duration {
        self.statement
            .map_or(self.lock, |limit| limit.min(self.lock))
    }

    /// The statements that set the limits of a connection. Its plans are not compiled either: each session compiles each of
    /// them for itself, which takes longer than running all but the largest, and estimates without statistics ask for it.
    /// A statement must see what was committed before it, also if the role or the database has another isolation.
    pub(crate) fn to_sql(self) -> String {
        format!(
            "SET default_transaction_isolation = 'read committed'; SET jit = off; SET idle_in_transaction_session_timeout = {}; SET lock_timeout = {}; SET statement_timeout = {};",
            Self::IDLE_TRANSACTION.as_millis(),
            self.lock.as_millis(),
            self.statement.unwrap_or_default().as_millis(),
        )
    }
}
