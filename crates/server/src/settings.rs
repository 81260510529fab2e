use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Reader, Settings};
use telemetry::{LogSettings, TraceSettings};

app_config::settings! {
    /// Settings of every process.
    pub struct ProcessSettings {
        /// What is logged.
        pub log: LogSettings = part(),
        /// Where traces are exported to.
        pub traces: TraceSettings = part(),
        /// The address of the internal endpoints `/metrics`, `/healthz` and `/readyz`. Port 0 picks a free port.
        pub metrics_address: SocketAddr = or_default("METRICS_ADDRESS", "127.0.0.1:0"),
        /// How long a gateway or service takes requests after SIGTERM. Meanwhile it is not ready, and closes each connection
        /// with its next response, so that load balancers and clients move to other replicas. Workers stop at once.
        pub shutdown_delay: Duration = between("SHUTDOWN_DELAY", "0s", "0s", "5m"),
        /// How long requests and steps in flight may take after SIGTERM and `SHUTDOWN_DELAY`.
        pub shutdown_grace: Duration = or_default("SHUTDOWN_GRACE", "25s"),
    }
}

/// How a process serves HTTP.
#[derive(Debug, Clone, Copy)]
pub struct HttpServerSettings {
    /// Threads that serve requests.
    pub workers: usize,
    /// Concurrent connections of each thread.
    pub max_connections: usize,
    /// How long the first request head of a connection may take, and a TLS handshake.
    pub head_timeout: Duration,
    /// How long a connection may wait for its next request.
    pub keep_alive: Duration,
    /// How long a request may take, from its head to the end of its response.
    pub request_timeout: Duration,
    /// How long requests in flight may take when the process stops.
    pub grace: Duration,
}

impl Default for HttpServerSettings {
    fn default() -> Self {
        Self {
            workers: 2,
            max_connections: 10_000,
            head_timeout: Duration::from_secs(10),
            // Longer than the 30 s for which the gateway's client keeps idle connections, so that a
            // service never closes one that is about to be used.
            keep_alive: Duration::from_secs(75),
            request_timeout: Duration::from_secs(120),
            grace: Duration::from_secs(20),
        }
    }
}

impl HttpServerSettings {
    /// One thread and a quick stop: for internal ports and tests.
    pub fn single_threaded() -> Self {
        Self {
            workers: 1,
            grace: Duration::from_secs(1),
            ..Self::default()
        }
    }

    /// Reads the settings, with these as defaults.
    ///
    /// # Errors
    /// A value is not allowed.
    pub fn read_or(self, reader: &mut Reader) -> Result<Self, app_config::Error> {
        let default = self;
        let seconds = |time: Duration| format!("{}s", time.as_secs());
        Ok(Self {
            workers: reader.between(
                "HTTP_WORKERS",
                default.workers.to_string(),
                ("1", "256"),
                "Threads that serve requests.",
            )?,
            max_connections: reader.between(
                "HTTP_MAX_CONNECTIONS",
                default.max_connections.to_string(),
                ("1", "1000000"),
                "Concurrent connections of each thread, each of which may need 150 KB of memory. Beyond that, the gateway closes the newest one of the client address (of IPv6: the /64 network) with the most connections; at a service, more wait in the queue of the operating system. The limit on open files may allow fewer.",
            )?,
            head_timeout: reader.between(
                "HTTP_HEAD_TIMEOUT",
                seconds(default.head_timeout),
                ("100ms", "5m"),
                "How long the head of a request may take to arrive.",
            )?,
            keep_alive: reader.between(
                "HTTP_KEEP_ALIVE",
                seconds(default.keep_alive),
                ("35s", "1h"),
                "How long a connection may wait for its next request.",
            )?,
            request_timeout: reader.between(
                "HTTP_REQUEST_TIMEOUT",
                seconds(default.request_timeout),
                ("1s", "1h"),
                "How long a request may take, from its head to the end of its response. Then its connection is closed.",
            )?,
            ..default
        })
    }
}

impl Settings for HttpServerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Self::default().read_or(reader)
    }
}
