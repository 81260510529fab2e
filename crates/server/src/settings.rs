use std::net::SocketAddr;
use std::time::Duration;

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
        /// How long requests and steps in flight may take after SIGTERM and `SHUTDOWN_DELAY`. What stops the process must wait ten seconds
        /// longer than both together: `stop_grace_period` of Compose, `TimeoutStopSec` of systemd, `terminationGracePeriodSeconds` of Kubernetes.
        pub shutdown_grace: Duration = between("SHUTDOWN_GRACE", "25s", "0s", "1h"),
    }

    /// How a process serves HTTP.
    #[derive(Copy)]
    pub struct HttpServerSettings {
        /// Threads that serve requests. With more than 64, also raise the limit on all threads of the process, which is 256 with Compose
        /// (`pids_limit`) and the Debian package (`TasksMax`).
        pub workers: usize = between("HTTP_WORKERS", "2", "1", "256"),
        /// Concurrent connections of each thread, each of which may need 150 KB of memory. Beyond that, the gateway closes the newest one of the client address (of IPv6: the /64 network) with the most connections, and does not count those of `TRUSTED_PROXIES`; at a service, more wait in the queue of the operating system. The limit on open files may allow fewer.
        pub max_connections: usize = between("HTTP_MAX_CONNECTIONS", "10000", "1", "1000000"),
        /// How long a TLS handshake may take, and then the head of the first request. That of a later one may also take what is left
        /// of `HTTP_KEEP_ALIVE`.
        pub head_timeout: Duration = between("HTTP_HEAD_TIMEOUT", "10s", "100ms", "5m"),
        // Longer than the 30 s for which the gateway's client keeps idle connections, so that a
        // service never closes one that is about to be used.
        /// How long a connection may wait for its next request.
        pub keep_alive: Duration = between("HTTP_KEEP_ALIVE", "75s", "35s", "1h"),
        /// How long a request may take, from its head until all of its response is in the buffers of its connection. Then the
        /// connection is closed, without a response or in the middle of it. So it should be longer than `GATEWAY_UPSTREAM_TIMEOUT`,
        /// `GATEWAY_BODY_TIMEOUT` and `GATEWAY_LONGEST_WAIT`, and at a service longer than a minute, because a gateway asks for ended
        /// tasks for as long.
        pub request_timeout: Duration = between("HTTP_REQUEST_TIMEOUT", "120s", "1s", "1h"),
    }
}

impl HttpServerSettings {
    /// One thread: for internal ports and tests.
    pub fn single_threaded() -> Self {
        Self {
            workers: 1,
            max_connections: 10_000,
            head_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            request_timeout: Duration::from_secs(120),
        }
    }
}
