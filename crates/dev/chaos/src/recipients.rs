//! Who receives what is sent to the users of a run.

use crate::{code_receiver::CodeReceiver, mail_receiver::MailReceiver, settings::RecipientUrls};

/// The receivers of codes and of mails about tasks.
pub(crate) struct Recipients {
    pub(crate) codes: CodeReceiver,
    pub(crate) mails: MailReceiver,
}

impl Recipients {
    pub(crate) fn open() -> anyhow::Result<Self> {
        Ok(Self {
            codes: CodeReceiver::open()?,
            mails: MailReceiver::open()?,
        })
    }

    pub(crate) fn urls(&self) -> RecipientUrls {
        RecipientUrls {
            codes: self.codes.url(),
            mails: Some(self.mails.url()),
        }
    }
}
