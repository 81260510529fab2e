//! One settings type for each binary, and the parts that they share.

mod channels;
mod deletion_worker;
mod ehlo_name;
mod notification_worker;
mod sender;
mod sessions;
mod user_service;

pub use channels::{ChannelSettings, MailSettings};
pub use deletion_worker::{DeletionWorkerSettings, EngineSettings};
use ehlo_name::EhloName;
pub use notification_worker::{NotificationWorkerSettings, TaskMailSettings};
pub use sender::Sender;
pub use sessions::SessionSettings;
pub use user_service::{
    CodeRequestSettings, EmailVerification, FirstAdmin, PasswordSettings, SignUpSettings,
    SignUpUsernames, TokenSettings, UserServiceSettings,
};
