use auth::{MailKey, MailKeys};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use database::{Connection, Database, Error};
use utoipa::IntoParams;
use values::Secret;

use crate::mails::store::{self, RecipientHash};

/// The first bytes of the signature, which are enough for a token that can only turn reminders off and on.
const SIGNATURE_BYTES: usize = 16;

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UnsubscribeQuery {
    /// The token of the link.
    pub(super) token: String,
    /// `on` turns reminders on again.
    #[param(rename = "reminders", required = false, value_type = Option<String>)]
    pub(super) turns_on: bool,
}

/// The token of an unsubscribe link: the hash of the recipient's address and a signature. It does not expire.
pub(super) fn token(key: &MailKey, recipient: RecipientHash) -> String {
    let mut bytes = [recipient.0, key.derive("unsubscribe", &[&recipient.0])].concat();
    bytes.truncate(recipient.0.len() + SIGNATURE_BYTES);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The recipient of a token, if it was made here.
pub(super) fn parse(keys: &MailKeys, token: &str) -> Option<RecipientHash> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let recipient = RecipientHash(*bytes.split_first_chunk()?.0);
    let given = Secret::new(token).fingerprint();
    let mut valid = keys
        .all()
        .map(|key| Secret::new(self::token(key, recipient)).fingerprint());
    valid
        .any(|valid| given.matches(valid.as_bytes()))
        .then_some(recipient)
}

/// Records that a recipient wants no reminders or, if `is_out` is false, wants them again.
pub(super) async fn set_opt_out(
    database: &Database,
    recipient: RecipientHash,
    is_out: bool,
) -> Result<(), Error> {
    let set = move |connection: &mut Connection| store::set_opt_out(connection, recipient, is_out);
    database.run(set).await?;
    tracing::info!(is_out, "a recipient turned reminders off or on");
    metrics::counter!("task_mail_opt_outs_total", "change" => if is_out { "out" } else { "in" })
        .increment(1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use app_config::Reader;
    use auth::MailKeys;
    use values::{EmailAddress, FromText as _};

    use super::{RecipientHash, parse, token};

    fn keys(current: &str, previous: &str) -> MailKeys {
        let pairs = [
            ("TASK_MAIL_KEY", current),
            ("TASK_MAIL_PREVIOUS_KEY", previous),
        ];
        MailKeys::read(&mut Reader::from_pairs(pairs).unwrap())
            .unwrap()
            .unwrap()
    }

    const OLD: &str = "old-old-old-old-old-old-old-old-";
    const NEW: &str = "new-new-new-new-new-new-new-new-";

    #[test]
    fn a_token_names_its_recipient_and_cannot_be_made_without_the_key() {
        let ada = EmailAddress::from_text("Ada@Example.com").unwrap();
        let recipient = RecipientHash::from(&ada);
        let (old, both, new) = (keys(OLD, ""), keys(NEW, OLD), keys(NEW, ""));
        let token = token(old.current(), recipient);
        assert_eq!(parse(&old, &token), Some(recipient));
        assert_eq!(parse(&both, &token), Some(recipient));
        assert_eq!(parse(&new, &token), None);
        let mut other = token.clone().into_bytes();
        other[3] = if other[3] == b'A' { b'B' } else { b'A' };
        for wrong in [
            "",
            "x",
            "ä",
            &token[..40],
            std::str::from_utf8(&other).unwrap(),
        ] {
            assert_eq!(parse(&old, wrong), None, "{wrong}");
        }
    }
}
