//! Every metric of every process: what `/metrics` says about it, and what `deploy/METRICS.md` is generated from.

/// What kind of metric it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only rises, and begins again at 0 when the process starts.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Counts of values up to each of several bounds, with their sum.
    Histogram,
}

/// A metric that a process records.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name in `/metrics`.
    pub name: &'static str,
    /// What kind of metric it is.
    pub kind: MetricKind,
    /// The processes that record it; none means all of them.
    pub processes: &'static [&'static str],
    /// Its labels.
    pub labels: &'static [Label],
    /// What it says.
    pub help: &'static str,
}

/// A label of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// The values that it can have; none if they depend on routes, tables or other names.
    pub values: &'static [&'static str],
}

const ALL: &[&str] = &[];
const HTTP: &[&str] = &["gateway", "user-service", "people-task-service"];
const GATEWAY: &[&str] = &["gateway"];
const USER_SERVICE: &[&str] = &["user-service"];
const PEOPLE_TASK_SERVICE: &[&str] = &["people-task-service"];
const FOLLOWERS: &[&str] = &["gateway", "people-task-service"];
const CALLERS: &[&str] = &[
    "gateway",
    "people-task-service",
    "deletion-worker",
    "notification-worker",
];
const WEBHOOK_WORKER: &[&str] = &["webhook-worker"];
const DELETION_WORKER: &[&str] = &["deletion-worker"];
const NOTIFICATION_WORKER: &[&str] = &["notification-worker"];
const JOB_WORKERS: &[&str] = &["deletion-worker", "notification-worker"];
const PUBLISHERS: &[&str] = &[
    "user-service",
    "people-task-service",
    "deletion-worker",
    "notification-worker",
];
const WITH_DATABASE: &[&str] = &[
    "user-service",
    "people-task-service",
    "deletion-worker",
    "notification-worker",
    "webhook-worker",
];

/// Writes the table of metrics: `kind name(labels) of processes: help;`. A label may list its values.
macro_rules! metrics {
    ($($kind:ident $name:ident($($label:ident $(= [$($value:literal),*])?),*) of $processes:ident: $help:literal;)*) => {
        &[$(Metric {
            name: stringify!($name),
            kind: MetricKind::$kind,
            processes: $processes,
            labels: &[$(Label { name: stringify!($label), values: &[$($($value),*)?] }),*],
            help: $help,
        }),*]
    };
}

/// Every metric that the code records. Those of the operating system, whose names begin with `process_`, are the standard
/// ones of Prometheus.
pub const METRICS: &[Metric] = metrics! {
    // All processes.
    Gauge build_info(process, version) of ALL: "Always 1. The labels say which program this is.";
    Gauge ready() of ALL: "1 if every required check of /readyz passes, otherwise 0.";
    Gauge readiness_check_passed(check) of ALL: "1 if the check of /readyz passes, otherwise 0.";
    Counter log_lines_dropped_total() of ALL: "Log lines that were dropped because standard output was not read fast enough.";
    // HTTP.
    Histogram http_request_duration_seconds(method, route, status) of HTTP: "The time from the head of a request to the head of its response, except while the gateway waits for the body, or because of `wait`.";
    Counter http_connections_refused_total() of HTTP: "Connections that were closed because the limit of connections was reached.";
    Counter http_connections_displaced_total() of HTTP: "Connections that were closed to make room for those of other client networks.";
    Counter http_slow_connections_closed_total() of HTTP: "Connections that were closed because their clients sent or read too slowly.";
    Histogram outbound_request_duration_seconds(destination, outcome) of CALLERS: "The time from a request to another system to the head of its response. Attempts to deliver webhooks have metrics of their own.";
    // The gateway.
    Gauge gateway_requests_in_flight(service) of GATEWAY: "Requests that wait for their turn at a service, or for the head of its response.";
    Gauge gateway_waiting_requests() of GATEWAY: "Callers that wait for the end of a task.";
    Counter gateway_waiting_displaced_total() of GATEWAY: "Callers whose wait was ended for one of another client network.";
    Gauge gateway_circuit_open(service) of GATEWAY: "1 while requests to the service are refused because it failed, otherwise 0.";
    Counter gateway_upstream_failures_total(kind = ["broken", "timeout", "unreachable"]) of GATEWAY: "Requests that a service did not respond to.";
    Counter gateway_key_exchanges_total(outcome = ["exchanged", "refused", "refused-again", "unavailable"]) of GATEWAY: "API keys that were exchanged for tokens. `refused-again` is a text that was just refused.";
    Counter gateway_requests_refused_by_circuit_total(service = ["people-task-service", "user-service"]) of GATEWAY: "Requests that were refused with 503 because the circuit of the service was open.";
    Counter gateway_requests_rate_limited_total(limit = ["credentials", "keys", "requests"]) of GATEWAY: "Requests that were refused with 429 because of a rate limit.";
    Counter gateway_requests_delayed_total() of GATEWAY: "Requests that waited for others of their client network.";
    Counter gateway_requests_over_share_total() of GATEWAY: "Requests that were refused because their client network held its whole share: with 429, or with 502 if their response did not fit and they may have changed something.";
    Counter gateway_requests_shed_total() of GATEWAY: "Requests that were refused because all clients together held too much: with 503, or with 502 if their response did not fit and they may have changed something.";
    Counter gateway_tls_reload_failures_total() of GATEWAY: "Times that the TLS certificate could not be loaded again.";
    Gauge revocation_feed_age_seconds() of FOLLOWERS: "The time since the revocation feed was last read.";
    // The database and the broker.
    Gauge database_connections(pool, state) of WITH_DATABASE: "Open connections to Postgres; the state is `in-use` or `idle`.";
    Gauge database_connections_max(pool) of WITH_DATABASE: "The maximum number of connections to Postgres.";
    Gauge database_waiting(pool) of WITH_DATABASE: "Requests and tasks that wait for a connection to Postgres, without those that wait for the batch before theirs.";
    Histogram database_wait_seconds() of WITH_DATABASE: "How long a request or task waited for a connection to Postgres, also for the batch before its own, and if it got none in time.";
    Histogram database_batch_requests() of WITH_DATABASE: "Requests that shared one transaction or one statement.";
    Counter broker_connection_losses_total(role) of WITH_DATABASE: "Connections to RabbitMQ that were lost or could not be opened, each try counted.";
    Gauge broker_blocked(queue) of PUBLISHERS: "1 while RabbitMQ accepts no messages because of its memory or disk alarm, otherwise 0.";
    Counter messages_published_total(queue, outcome) of WITH_DATABASE: "Messages that were published to RabbitMQ.";
    Gauge queue_messages(queue) of WITH_DATABASE: "Messages in a queue of RabbitMQ.";
    Counter retention_deleted_total(table) of WITH_DATABASE: "Rows and partitions that were deleted because of their age.";
    Gauge outbox_open(outbox) of JOB_WORKERS: "Jobs that have not ended.";
    Gauge outbox_overdue_seconds(outbox) of JOB_WORKERS: "How long the oldest due job has waited for a worker.";
    // Accounts.
    Counter sign_ups_total() of USER_SERVICE: "Accounts that were created.";
    Counter sign_ins_total(outcome = ["failed", "inactive", "signed-in", "waiting"]) of USER_SERVICE: "Attempts to sign in.";
    Counter session_events_total(event = ["busy", "ended", "exchanged", "refused", "replayed", "started"]) of USER_SERVICE: "What happened to sessions of browsers. `replayed` is a value of a cookie that was copied: it ends its session.";
    Counter key_events_total(event = ["confirmed", "created", "ended", "exchanged", "refused"]) of USER_SERVICE: "What happened to API keys. `exchanged` is a token for a key, about one a minute for each key in use and gateway; `refused` is a text that is no key.";
    Counter sign_in_refusals_not_logged_total() of USER_SERVICE: "Refused sign-ins that the audit log does not have, because it has enough of them.";
    Histogram password_hash_seconds() of USER_SERVICE: "How long bcrypt took, with the wait for a thread.";
    Gauge password_hash_queue() of USER_SERVICE: "Passwords that wait for a thread that runs bcrypt.";
    Counter password_hashes_refused_total() of USER_SERVICE: "Requests that were refused because the queue for bcrypt was full.";
    Counter code_requests_refused_total(counted = ["account", "client"]) of USER_SERVICE: "Requests for codes that were refused because of a limit.";
    Counter deletions_started_total() of USER_SERVICE: "Deletions of users that were started.";
    Counter deletions_total(outcome = ["completed", "failed"]) of DELETION_WORKER: "Deletions of users that ended.";
    Counter deletion_steps_total(step, outcome) of DELETION_WORKER: "Attempts at steps of deletions. After `part` the step has more to do.";
    Counter user_changes_total(outcome = ["failed", "told"]) of DELETION_WORKER: "Calls that tell the people-task service of changes of users.";
    Gauge user_changes_oldest_seconds() of DELETION_WORKER: "How long the oldest change of a user has waited to be told to the people-task service.";
    Counter notification_attempts_total(channel = ["log", "mail", "webhook"], outcome = ["failed", "sent"]) of NOTIFICATION_WORKER: "Attempts to send codes to users.";
    Counter task_mail_attempts_total(kind = ["asked", "cancelled", "decided", "due", "reminder"], outcome = ["fail", "retry", "sent"]) of NOTIFICATION_WORKER: "Attempts to send mails about tasks.";
    // Tasks.
    Counter tasks_created_total() of PEOPLE_TASK_SERVICE: "Tasks that were created.";
    Counter task_decisions_total(decision = ["approved", "rejected"]) of PEOPLE_TASK_SERVICE: "Tasks that were decided.";
    Counter tasks_cancelled_total() of PEOPLE_TASK_SERVICE: "Tasks that were withdrawn.";
    Counter idempotent_requests_total(operation = ["create-task", "register-webhook"], outcome = ["in-use", "replayed", "reused", "stored"]) of PEOPLE_TASK_SERVICE: "Requests with an Idempotency-Key, by what became of them.";
    Counter quota_refusals_total(kind = ["rate", "stock"], resource = ["bytes", "mails", "tasks", "webhooks"], of = ["all", "user"]) of PEOPLE_TASK_SERVICE: "Requests that were refused because of a quota.";
    Gauge quota_used_ratio(resource = ["bytes", "tasks", "webhooks"], of = ["all", "user"]) of PEOPLE_TASK_SERVICE: "How much is used of what all users together may have, or, with `user`, the highest such ratio of any user who added something within the hour; from 0 to 1.";
    Counter webhooks_registered_total() of PEOPLE_TASK_SERVICE: "Webhooks that were registered.";
    Counter webhooks_with_options_total() of PEOPLE_TASK_SERVICE: "Webhooks that were registered with `include`, `headers`, `method`, `body` or `success`.";
    Counter task_mails_dropped_total(kind = ["asked", "cancelled", "decided", "due", "other", "reminder"], reason = ["late", "limited", "no-key", "opted-out", "superseded"]) of PEOPLE_TASK_SERVICE: "Mails about tasks that were not sent.";
    Gauge task_mails_oldest_due_seconds() of PEOPLE_TASK_SERVICE: "How long the oldest due mail about a task has waited for a notification-worker.";
    Counter task_mail_opt_outs_total(change = ["in", "out"]) of PEOPLE_TASK_SERVICE: "Recipients who turned reminders off or on again.";
    // Deliveries.
    Counter webhook_attempts_total(outcome = ["fail", "lost", "postponed", "retry", "sent", "suspended"]) of WEBHOOK_WORKER: "Attempts to deliver a webhook.";
    Histogram webhook_attempt_duration_seconds() of WEBHOOK_WORKER: "How long a receiver took to respond, or the attempt to fail.";
    Gauge webhook_attempts_in_flight() of WEBHOOK_WORKER: "Attempts that wait for a response.";
    Counter webhook_deliveries_total(outcome = ["fail", "sent"]) of WEBHOOK_WORKER: "Deliveries that ended.";
    Histogram webhook_decision_to_delivery_seconds() of WEBHOOK_WORKER: "The time from a decision to the response of the receiver, of deliveries that succeeded and were not redelivered by hand.";
    Gauge webhook_deliveries_pending() of WEBHOOK_WORKER: "Deliveries that have not ended, counted up to a limit.";
    Gauge webhook_deliveries_due() of WEBHOOK_WORKER: "Deliveries that should be under way now, counted up to a limit.";
    Gauge webhook_deliveries_oldest_due_seconds() of WEBHOOK_WORKER: "How long the oldest due delivery has waited, apart from paused ones.";
    Gauge webhook_deliveries_paused() of WEBHOOK_WORKER: "Deliveries that wait because an administrator paused their host, counted up to a limit.";
    Gauge webhook_hosts_paused() of WEBHOOK_WORKER: "Hosts to which deliveries are paused.";
    Gauge webhook_deliveries_parked() of WEBHOOK_WORKER: "Deliveries that ended their worker several times and wait to be redelivered by hand.";
    Counter webhook_due_dates_total() of WEBHOOK_WORKER: "Deliveries that were added because a due date passed while the task was pending.";
    Counter webhook_shards_orphaned_total() of WEBHOOK_WORKER: "Shards of hosts that were taken over from workers that died.";
    Counter webhook_tests_total(outcome = ["failure", "success"]) of WEBHOOK_WORKER: "Calls by which users tried webhooks, by what came of them.";
    Gauge webhook_headers_of_earlier_keys() of WEBHOOK_WORKER: "Webhooks whose headers were encrypted by another key than the first of `WEBHOOK_HEADER_KEYS`, counted up to a limit.";
    Counter webhook_circuits_opened_total() of WEBHOOK_WORKER: "Times that a user's webhooks to a receiver failed so often that they get one request at a time.";
    Gauge webhook_circuits_open() of WEBHOOK_WORKER: "Users' receivers that failed and get one request at a time.";
};

/// Tells the recorder what each metric says and which program this is, and sets the counters of a process whose labels are known to 0: a rate needs a
/// value before the first increment.
pub fn describe_metrics(process: &'static str) {
    metrics::gauge!("build_info", "process" => process, "version" => env!("CARGO_PKG_VERSION"))
        .set(1);
    for metric in METRICS {
        let is_recorded = metric.processes.is_empty() || metric.processes.contains(&process);
        match metric.kind {
            MetricKind::Counter => {
                metrics::describe_counter!(metric.name, metric.help);
                if is_recorded {
                    metric.start_counters();
                }
            }
            MetricKind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            MetricKind::Histogram => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
}

impl Metric {
    /// Sets the counter of each combination of labels to 0, if the values of all labels are known.
    fn start_counters(&self) {
        let mut combinations = vec![Vec::new()];
        for label in self.labels {
            let extended = label.values.iter().flat_map(|value| {
                let extend = |known: &Vec<_>| [known.as_slice(), &[(label.name, *value)]].concat();
                combinations.iter().map(extend)
            });
            combinations = extended.collect();
        }
        for labels in &combinations {
            metrics::counter!(self.name, labels).increment(0);
        }
    }
}
