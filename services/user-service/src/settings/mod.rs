//! One settings type for each binary, and the parts that they share.

mod channels;
mod deletion_worker;
mod mail;
mod notification_worker;
mod user_service;

pub(crate) use auth::EmailVerification;
pub(crate) use channels::{CODE, ChannelSettings};
pub use deletion_worker::DeletionWorkerSettings;
pub(crate) use mail::MailSettings;
pub use notification_worker::NotificationWorkerSettings;
pub use user_service::UserServiceSettings;
pub(crate) use user_service::{
    CodeRequestSettings, FirstAdmin, HandlerSettings, SessionSettings, SignUpUsernames,
    TokenSettings,
};
