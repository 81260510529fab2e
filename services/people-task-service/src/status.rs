//! The states of tasks, webhooks and deliveries, as the API and the database write them.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::sql_types::Text;
use serde::Serialize;
use utoipa::ToSchema;
use values::{FromText, Invalid};

macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$state_doc:meta])* $state:ident = $text:literal,)+ } $allowed:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema, AsExpression, FromSqlRow)]
        #[serde(rename_all = "lowercase")]
        #[diesel(sql_type = Text)]
        pub(crate) enum $name {
            $($(#[$state_doc])* $state,)+
        }

        impl $name {
            /// Every state.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$state),+];

            /// The word that the API and the database use.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$state => $text,)+
                }
            }
        }

        impl FromText for $name {
            fn from_text(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($text => Ok(Self::$state),)+
                    _ => Err(Invalid::new("unknown-value", concat!("Must be one of ", $allowed, "."))),
                }
            }
        }

        impl diesel::serialize::ToSql<Text, diesel::pg::Pg> for $name {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                std::io::Write::write_all(out, self.as_str().as_bytes())?;
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

states! {
    /// The state of a task. A task leaves `pending` once.
    TaskStatus {
        /// Not decided yet.
        Pending = "pending",
        /// The approver agreed.
        Approved = "approved",
        /// The approver refused.
        Rejected = "rejected",
    }
    "pending, approved, rejected"
}

states! {
    /// The state of a delivery and of its webhook.
    DeliveryStatus {
        /// The task is not decided yet, or another attempt follows.
        Pending = "pending",
        /// A receiver answered 2xx.
        Sent = "sent",
        /// The last attempt failed, or the delivery was given up.
        Fail = "fail",
    }
    "pending, sent, fail"
}
