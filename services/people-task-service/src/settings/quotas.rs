use app_config::Csv;
use values::UserId;

use crate::quotas::{Amounts, Limits};

app_config::settings! {
    /// How much users may have and add, each of them and all together. 0 is for no limit.
    pub struct QuotaSettings {
        /// Pending tasks that a user may have; 0 for no limit.
        pub user_tasks: u64 = or_default("QUOTA_USER_PENDING_TASKS", "1000000"),
        /// Pending tasks that all users together may have; 0 for no limit.
        pub all_tasks: u64 = or_default("QUOTA_PENDING_TASKS", "10000000"),
        /// Webhooks that a user's pending tasks may have; 0 for no limit.
        pub user_webhooks: u64 = or_default("QUOTA_USER_WEBHOOKS", "2000000"),
        /// Webhooks that all tasks together may have, decided ones too; 0 for no limit.
        pub all_webhooks: u64 = or_default("QUOTA_WEBHOOKS", "100000000"),
        /// Bytes that the titles, descriptions and metadata of a user's tasks may have; 0 for no limit.
        pub user_bytes: u64 = or_default("QUOTA_USER_BYTES", "20000000000"),
        /// Bytes that all tables of the people-task-service together may have on disk; 0 for no limit.
        pub all_bytes: u64 = or_default("QUOTA_BYTES", "0"),
        /// Tasks that a user may create within a minute, at each replica; 0 for no limit.
        pub user_tasks_per_minute: u64 = or_default("QUOTA_USER_TASKS_PER_MINUTE", "600000"),
        /// Tasks that all users together may create within a minute, at each replica; 0 for no limit.
        pub all_tasks_per_minute: u64 = or_default("QUOTA_TASKS_PER_MINUTE", "1200000"),
        /// Webhooks that a user may register within a minute, at each replica; 0 for no limit.
        pub user_webhooks_per_minute: u64 = or_default("QUOTA_USER_WEBHOOKS_PER_MINUTE", "600000"),
        /// Webhooks that all users together may register within a minute, at each replica; 0 for no limit.
        pub all_webhooks_per_minute: u64 = or_default("QUOTA_WEBHOOKS_PER_MINUTE", "1200000"),
        /// Bytes of titles, descriptions and metadata that a user may add within a minute, at each replica; 0 for no limit.
        pub user_bytes_per_minute: u64 = or_default("QUOTA_USER_BYTES_PER_MINUTE", "2000000000"),
        /// Bytes of titles, descriptions and metadata that all users together may add within a minute, at each replica; 0 for no limit.
        pub all_bytes_per_minute: u64 = or_default("QUOTA_BYTES_PER_MINUTE", "4000000000"),
        /// The identifiers of users to whom no quota applies, separated by commas.
        pub exempt: Csv<UserId> = or_default("QUOTA_EXEMPT_USERS", "none"),
    }
}

impl QuotaSettings {
    /// What a user may have and add, who may cause this number of mails within an hour.
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

    /// What all users together may have and add.
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
