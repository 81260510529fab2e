use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::Timestamptz;
use telemetry::RequestContext;
use values::{NotificationId, UserId};

use super::Channel;
use crate::schema::notifications;
use crate::sql::interval;

/// A new row is published right after its commit; a sweep leaves it alone for so long.
const FIRST_WAKE: Duration = Duration::from_secs(5);

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ForgotPassword,
    VerifyEmail,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::ForgotPassword => "forgot-password",
            Self::VerifyEmail => "verify-email",
        }
    }
}

/// A message that is stored for one channel.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) id: NotificationId,
    pub(crate) channel: Channel,
    pub(crate) created: DateTime<Utc>,
}

/// Stores one message for each channel. Without a user the rows are the same and nothing is sent.
pub(crate) fn insert(
    connection: &mut PgConnection,
    kind: Kind,
    user: Option<UserId>,
    channels: &[Channel],
    context: &RequestContext,
) -> Result<Vec<Queued>, DieselError> {
    channels
        .iter()
        .map(|channel| {
            let id = NotificationId::generate();
            let created = diesel::insert_into(notifications::table)
                .values((
                    notifications::id.eq(id),
                    notifications::user_id.eq(user),
                    notifications::kind.eq(kind.name()),
                    notifications::channel.eq(channel.name()),
                    notifications::request_id.eq(&context.request_id),
                    notifications::traceparent.eq(context.trace.to_string()),
                    notifications::wake_at.eq(now.into_sql::<Timestamptz>() + interval(FIRST_WAKE)),
                ))
                .returning(notifications::created)
                .get_result(connection)?;
            Ok(Queued {
                id,
                channel: *channel,
                created,
            })
        })
        .collect()
}

/// Drops what waits to be sent to a user who needs no code any more.
pub(crate) fn drop_pending_forgot_password(
    connection: &mut PgConnection,
    user: UserId,
) -> Result<(), DieselError> {
    diesel::delete(notifications::table)
        .filter(notifications::user_id.eq(user))
        .filter(notifications::kind.eq(Kind::ForgotPassword.name()))
        .filter(notifications::status.eq("pending"))
        .execute(connection)?;
    Ok(())
}
