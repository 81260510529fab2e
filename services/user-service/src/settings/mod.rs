//! One settings type for each binary, and the parts that they share.

mod channels;
mod deletion_worker;
mod mail;
mod notification_worker;
mod user_service;

pub use auth::EmailVerification;
pub use channels::ChannelSettings;
pub use deletion_worker::{DeletionWorkerSettings, EngineSettings};
pub use mail::{MailSettings, Sender};
pub use notification_worker::NotificationWorkerSettings;
pub use user_service::{
    CodeRequestSettings, FirstAdmin, KeySettings, PasswordSettings, SessionSettings,
    SignUpSettings, SignUpUsernames, TokenSettings, UserServiceSettings,
};
