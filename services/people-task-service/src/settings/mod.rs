mod mails;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use app_config::{Csv, Error, PublicUrl, Reader, Settings as _, Switch};
use auth::{EmailVerification, RemoteSettings};
use database::DatabaseSettings;
use messaging::BrokerSettings;
use outbound::{AddressPolicy, EngineOrigins, Resolve};
use server::HttpServerSettings;
use url::Url;
use values::UserId;

use crate::header_keys::HeaderKeys;
use crate::quotas::{Amounts, Limits};
use crate::status::Deciders;
use crate::webhook_signature::SigningSettings;

pub use mails::MailSettings;

app_config::settings! {
    /// Settings of the people-task-service.
    pub struct PeopleTaskServiceSettings checked by DeciderSettings::check {
        /// The address to listen on. The service is internal: callers use the gateway.
        pub(crate) listen_address: SocketAddr = or_default("LISTEN_ADDRESS", "127.0.0.1:8082"),
        pub(crate) http: HttpServerSettings = part(),
        pub(crate) database: DatabaseSettings = part(),
        pub(crate) broker: BrokerSettings = part(),
        pub(crate) authority: RemoteSettings = part(),
        pub(crate) signing: SigningSettings = part(),
        pub(crate) addresses: AddressPolicy = part(),
        pub(crate) engine_origins: EngineOrigins = part(),
        pub(crate) header_keys: HeaderKeys = part(),
        pub(crate) dashboard_url: Url = by(read_dashboard_url),
        pub(crate) mails: MailSettings = part(),
        pub(crate) deciders: DeciderSettings = part(),
        pub(crate) quotas: QuotaSettings = part(),
        pub(crate) audit_retention: Duration = by(audit_log::read_retention),
    }
}

fn read_dashboard_url(reader: &mut Reader) -> Result<Url, Error> {
    let public_url = PublicUrl::read(reader)?;
    reader.or_default(
        "PEOPLE_TASKS_DASHBOARD_URL",
        format!("{public_url}/tasks"),
        "The page on which people see their tasks, by default the gateway's own under PUBLIC_URL.",
    )
}

app_config::settings! {
    /// Who decides tasks whose creators do not say.
    #[derive(Copy)]
    pub struct DeciderSettings {
        /// The setting of the user-service, which this service needs to know because only confirmed addresses can say who
        /// the approver of a task is. Give both the same.
        pub email_verification: EmailVerification = or_default("EMAIL_VERIFICATION", "off"),
        /// Who decides tasks: with `any` also their creators and administrators, unless a task has `deciders`; with `approver`
        /// only their approvers, signed in or by the link that is mailed to them. It requires EMAIL_VERIFICATION and TASK_MAIL.
        pub by_default: TaskDeciders = or_default("TASK_DECIDERS", "any"),
    }
}

values::names! {
    /// Who decides tasks whose creators do not say.
    pub enum TaskDeciders {
        /// The approver, the creator and administrators.
        Any = "any",
        /// The approver.
        Approver = "approver",
    }
}

app_config::named_settings! {
    TaskDeciders, "`any` or `approver`", "any";
}

impl DeciderSettings {
    /// What tasks have whose creators do not say who decides.
    pub(crate) fn by_default(self) -> Option<Deciders> {
        match self.by_default {
            TaskDeciders::Any => None,
            TaskDeciders::Approver => Some(Deciders::Approver),
        }
    }

    /// Checks that approvers can decide if only they may.
    fn check(settings: &PeopleTaskServiceSettings) -> Result<(), Error> {
        let deciders = settings.deciders;
        let reason = match deciders.by_default {
            TaskDeciders::Any => return Ok(()),
            TaskDeciders::Approver if deciders.email_verification == EmailVerification::Off => {
                "EMAIL_VERIFICATION is not `required`, so anyone could sign up with an approver's address"
            }
            TaskDeciders::Approver if settings.mails.by_default == Switch::Off => {
                "TASK_MAIL is off, so approvers would get no link"
            }
            TaskDeciders::Approver => return Ok(()),
        };
        Err(Error::Invalid {
            name: "TASK_DECIDERS",
            given: "`approver`".to_owned(),
            reason: reason.to_owned(),
            allowed: "`any`, or set those as well".into(),
        })
    }
}

app_config::settings! {
    /// How much users may have and add, each of them and all together. 0 is for no limit.
    pub struct QuotaSettings {
        /// Pending tasks that a user may have; 0 for no limit.
        pub user_tasks: u64 = or_default("QUOTA_USER_PENDING_TASKS", "1000000"),
        /// Pending tasks that all users together may have; 0 for no limit.
        pub all_tasks: u64 = or_default("QUOTA_PENDING_TASKS", "10000000"),
        /// Webhooks that a user may have registered for own pending tasks; 0 for no limit. A user who has as many registers none for
        /// tasks of others either.
        pub user_webhooks: u64 = or_default("QUOTA_USER_WEBHOOKS", "2000000"),
        /// Webhooks that all tasks together may have, decided ones too, so that they become ever more; 0 for no limit.
        pub all_webhooks: u64 = or_default("QUOTA_WEBHOOKS", "0"),
        /// Bytes that the titles, descriptions and metadata of a user's tasks, the options of the user's webhooks, and the answers
        /// that are kept for repeats of the user's requests may have together; 0 for no limit.
        pub user_bytes: u64 = or_default("QUOTA_USER_BYTES", "20000000000"),
        /// Bytes that all tables of the people-task-service together may have on disk; 0 for no limit.
        pub all_bytes: u64 = or_default("QUOTA_BYTES", "0"),
        /// Tasks that a user may create per minute, at each replica; 0 for no limit.
        pub user_tasks_per_minute: u64 = or_default("QUOTA_USER_TASKS_PER_MINUTE", "600000"),
        /// Tasks that all users together may create per minute, at each replica; 0 for no limit.
        pub all_tasks_per_minute: u64 = or_default("QUOTA_TASKS_PER_MINUTE", "1200000"),
        /// Webhooks that a user may register per minute, at each replica; 0 for no limit.
        pub user_webhooks_per_minute: u64 = or_default("QUOTA_USER_WEBHOOKS_PER_MINUTE", "600000"),
        /// Webhooks that all users together may register per minute, at each replica; 0 for no limit.
        pub all_webhooks_per_minute: u64 = or_default("QUOTA_WEBHOOKS_PER_MINUTE", "1200000"),
        /// Bytes of titles, descriptions, metadata and options of webhooks that a user may add per minute, at each replica; 0
        /// for no limit.
        pub user_bytes_per_minute: u64 = or_default("QUOTA_USER_BYTES_PER_MINUTE", "2000000000"),
        /// Bytes of titles, descriptions, metadata and options of webhooks that all users together may add per minute, at each
        /// replica; 0 for no limit.
        pub all_bytes_per_minute: u64 = or_default("QUOTA_BYTES_PER_MINUTE", "4000000000"),
        /// The identifiers of users to whom no quota applies, separated by commas.
        pub exempt: Csv<UserId> = or_default("QUOTA_EXEMPT_USERS", "none"),
    }
}

impl QuotaSettings {
    /// What a user may have and add, who may cause this number of mails per hour.
    pub(crate) fn of_user(&self, mails_per_hour: u32) -> Limits {
        Limits {
            stock: Amounts {
                tasks: self.user_tasks,
                webhooks: self.user_webhooks,
                bytes: self.user_bytes,
                mails: 0,
            },
            per_minute: Amounts {
                tasks: self.user_tasks_per_minute,
                webhooks: self.user_webhooks_per_minute,
                bytes: self.user_bytes_per_minute,
                mails: 0,
            },
            per_hour: Amounts {
                mails: mails_per_hour.into(),
                ..Amounts::default()
            },
        }
    }

    pub(crate) fn of_all(&self) -> Limits {
        Limits {
            stock: Amounts {
                tasks: self.all_tasks,
                webhooks: self.all_webhooks,
                bytes: self.all_bytes,
                mails: 0,
            },
            per_minute: Amounts {
                tasks: self.all_tasks_per_minute,
                webhooks: self.all_webhooks_per_minute,
                bytes: self.all_bytes_per_minute,
                mails: 0,
            },
            per_hour: Amounts::default(),
        }
    }
}

app_config::settings! {
    /// Settings of the webhook-worker.
    pub struct WebhookWorkerSettings {
        pub(crate) database: DatabaseSettings = part(),
        pub(crate) broker: BrokerSettings = part(),
        pub(crate) signing: SigningSettings = part(),
        pub(crate) policy: AddressPolicy = part(),
        pub(crate) engine_origins: EngineOrigins = part(),
        pub(crate) header_keys: HeaderKeys = part(),
        /// The pauses after failed attempts, each varied by up to 20 %. After the last one, the delivery fails.
        pub retry_schedule: Csv<Duration> = or_default("WEBHOOK_RETRY_SCHEDULE", "5s,30s,2m,10m,30m,2h,6h,12h"),
        /// How long a receiver may take to respond.
        pub timeout: Duration = in_range(
            "WEBHOOK_TIMEOUT",
            "10s",
            "a duration from `100ms` to `60s`",
            |timeout| (100..=60_000).contains(&Duration::as_millis(timeout))
        ),
        /// Concurrent webhook requests to one host, whatever the ports and schemes, over all workers.
        pub max_in_flight_per_host: u32 = between("WEBHOOK_MAX_IN_FLIGHT_PER_HOST", "16", "1", "256"),
        /// How long finished deliveries and their attempts are kept. Each day is a partition, and some statements lock all of
        /// them: for more than half a year, raise `max_locks_per_transaction` of Postgres.
        pub retention: Duration = or_default("WEBHOOK_RETENTION", "30d"),
        /// The number of concurrent attempts, over all hosts. Operators cannot set it.
        pub max_in_flight: usize = by(fixed(2_048)),
        /// The bytes of all bodies that are being sent, of which one user has a quarter. Operators cannot set it.
        pub max_body_bytes: u64 = by(fixed(128 * 1024 * 1024)),
        /// After this long without a sign of life a worker is taken for dead, and others take its hosts. Operators cannot set
        /// it.
        pub silence: Duration = by(fixed(Duration::from_secs(2))),
        /// How long a worker must run before it tries deliveries that may end workers. One that is ended by something else
        /// soon after its start must not be evidence against them. Operators cannot set it.
        pub suspects_after: Duration = by(fixed(Duration::from_secs(10))),
        /// Resolves host names in place of the system's resolver, in tests.
        pub resolver: Option<Arc<dyn Resolve>> = by(fixed(None)),
    }
}

/// What is read for a field that is no setting.
fn fixed<T>(value: T) -> impl FnOnce(&mut Reader) -> Result<T, Error> {
    |_| Ok(value)
}
