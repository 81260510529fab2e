//! The states of tasks, webhooks and deliveries, as the API and the database write them.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::sql_types::Text;
use serde::Serialize;
use utoipa::ToSchema;
use values::{FromText as _, Names as _};

macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($states:tt)+ }) => {
        values::names! {
            $(#[$doc])*
            #[derive(Serialize, ToSchema, AsExpression, FromSqlRow)]
            #[serde(rename_all = "kebab-case")]
            #[diesel(sql_type = Text)]
            pub(crate) enum $name { $($states)+ }
        }

        impl diesel::serialize::ToSql<Text, diesel::pg::Pg> for $name {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                std::io::Write::write_all(out, self.name().as_bytes())?;
                Ok(diesel::serialize::IsNull::No)
            }
        }

        impl diesel::deserialize::FromSql<Text, diesel::pg::Pg> for $name {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                Ok(Self::from_text(std::str::from_utf8(value.as_bytes())?)?)
            }
        }
    };
}

/// The status of a row of `task_states`, as it is shown: the column has `rejected` for a task that was withdrawn.
macro_rules! shown_status {
    () => {
        "CASE WHEN task_states.cancelled THEN 'cancelled' ELSE task_states.status END"
    };
}

pub(crate) use shown_status;

states! {
    /// The state of a task. A task leaves `pending` once.
    TaskStatus {
        /// Not decided yet.
        Pending = "pending",
        /// The approver agreed.
        Approved = "approved",
        /// The approver refused.
        Rejected = "rejected",
        /// It was withdrawn before it was decided.
        Cancelled = "cancelled",
    }
}

states! {
    /// Who decides a task, if not everyone who may by default.
    Deciders {
        /// The approver, signed in or by the link that is mailed to them.
        Approver = "approver",
        /// The approver, signed in: a link decides nothing.
        SignedIn = "signed-in",
    }
}

/// Whether not everyone decides a task with these fields who may by default. Its creator is then told a secret that only
/// opens it.
pub(crate) fn is_restricted(deciders: Option<Deciders>, self_approval: bool) -> bool {
    deciders.is_some() || !self_approval
}

states! {
    /// What a webhook is called for.
    WebhookEvent {
        /// The task was approved.
        Approved = "approved",
        /// The task was rejected.
        Rejected = "rejected",
        /// The due date has passed, and the task is pending.
        Due = "due",
        /// The task was withdrawn.
        Cancelled = "cancelled",
    }
}

states! {
    /// The state of a delivery and of its webhook.
    DeliveryStatus {
        /// Nothing happened yet, or another attempt follows.
        Pending = "pending",
        /// A receiver responded with 2xx.
        Sent = "sent",
        /// The last attempt failed, or the delivery was given up.
        Fail = "fail",
    }
}
