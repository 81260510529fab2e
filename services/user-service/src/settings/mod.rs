//! One settings type for each binary, and the parts that they share.

mod channels;
mod user_service;

pub use channels::{ChannelSettings, MailSettings};
pub use user_service::{FirstAdmin, UserServiceSettings};
