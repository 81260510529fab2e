//! The problems that operations of more than one capability return, for the OpenAPI document.

use http_kit::{BodyProblems, problem_responses};

use crate::status::TaskStatus;
use crate::{deliveries, tasks, webhooks};

problem_responses! {
    /// Problems of operations that may be called with `role=any`.
    pub(crate) NotAdmin {
        tasks::Error::NotAdmin => "`role=any` is for administrators.",
    }
    /// Problems of operations that a reader of the task may not do.
    pub(crate) Forbidden {
        tasks::Error::Forbidden => "The caller may read the task, but not do this.",
    }
    /// Problems of operations on one task.
    pub(crate) NoTask {
        tasks::Error::NotFound => "The task does not exist or is not visible to the caller.",
    }
    /// Problems of operations on one webhook.
    pub(crate) NoWebhook {
        webhooks::Error::NotFound => "The webhook does not exist or is not visible to the caller.",
    }
    /// Problems of operations on one delivery.
    pub(crate) NoDelivery {
        deliveries::Error::NotFound => "The delivery does not exist or is not visible to the caller.",
    }
    /// Problems of operations that change a pending task.
    pub(crate) AlreadyResolved {
        tasks::Error::AlreadyResolved(TaskStatus::Approved) => "The task is already resolved.",
    }
    /// Problems of registering a webhook.
    pub(crate) NoMoreWebhooks: AlreadyResolved {
        webhooks::Error::TooMany,
    }
    /// Problems of operations whose body names a webhook's url.
    pub(crate) WebhookBodyProblems: BodyProblems {
        webhooks::refused_address() => "Fields are missing or invalid, or the url's host is not allowed.",
    }
}
