//! One settings type for each binary, and the parts that they share.

mod channels;
mod deletion_worker;
mod keys;
mod mail;
mod notification_worker;
mod sessions;
mod user_service;

pub use auth::EmailVerification;
pub use channels::ChannelSettings;
pub use deletion_worker::{DeletionWorkerSettings, EngineSettings};
pub use keys::KeySettings;
pub use mail::{MailSettings, Sender};
pub use notification_worker::{NotificationWorkerSettings, TaskMailSettings};
pub use sessions::SessionSettings;
pub use user_service::{
    CodeRequestSettings, FirstAdmin, PasswordSettings, SignUpSettings, SignUpUsernames,
    TokenSettings, UserServiceSettings,
};
