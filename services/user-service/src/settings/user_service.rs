use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Csv, Error};
use database::DatabaseSettings;
use messaging::BrokerSettings;
use server::HttpServerSettings;
use url::Url;
use values::{EmailAddress, Secret};

use auth::EmailVerification;

use super::ChannelSettings;

app_config::settings! {
    /// Settings of the HTTP service.
    pub struct UserServiceSettings {
        /// The address to listen on. The service is internal: callers use the gateway.
        pub(crate) listen_address: SocketAddr = or_default("LISTEN_ADDRESS", "127.0.0.1:8081"),
        pub(crate) http: HttpServerSettings = part(),
        pub(crate) database: DatabaseSettings = part(),
        pub(crate) broker: BrokerSettings = part(),
        pub(crate) tokens: TokenSettings = part(),
        pub(crate) passwords: PasswordSettings = part(),
        pub(crate) first_admin: FirstAdmin = part(),
        /// The status of a failed sign-in; clients of Appmixer expect 403.
        pub(crate) sign_in_failure_status: u16 =
            in_range("SIGN_IN_FAILURE_STATUS", "401", "401 or 403", |status| [401, 403].contains(status)),
        pub(crate) handlers: HandlerSettings = part(),
        pub(crate) audit_retention: Duration = by(audit_log::read_retention),
    }

    /// What the handlers read. It has neither the key that signs tokens nor the first administrator's password.
    pub(crate) struct HandlerSettings checked by check_channels {
        pub(crate) sign_up: SignUpSettings = part(),
        /// The flow engine. If not set, deletions skip its steps.
        pub(crate) flow_engine: Option<Url> = optional("FLOW_ENGINE_URL"),
        pub(crate) channels: ChannelSettings = part(),
        pub(crate) code_requests: CodeRequestSettings = part(),
        pub(crate) sessions: SessionSettings = part(),
        pub(crate) keys: KeySettings = part(),
        /// Whether an e-mail address gives access to tasks only after it was confirmed with a code.
        pub(crate) email_verification: EmailVerification = or_default("EMAIL_VERIFICATION", "off"),
    }

    /// How many codes can be requested at once, and then in each hour; 0 for no limit.
    #[derive(Copy)]
    pub(crate) struct CodeRequestSettings {
        /// Codes that can be requested at once, and then in each hour, for one e-mail address, for a forgotten password and to
        /// confirm the address each; 0 for no limit. From each network from which the user signed in before, three times as many for
        /// a forgotten password, which do not count for the others.
        pub(crate) per_account: u32 = between("FORGOT_PASSWORD_PER_ACCOUNT", "10", "0", "1000000"),
        /// Codes that can be requested at once, and then in each hour, from one client address; 0 for no limit. A sign-up counts if it
        /// causes a code (`EMAIL_VERIFICATION`); over the limit, the account is created without one. So does an API key about which an
        /// unconfirmed address is mailed; over the limit, it is not made.
        pub(crate) per_client: u32 = between("FORGOT_PASSWORD_PER_CLIENT", "100", "0", "1000000"),
    }

    /// How tokens are signed.
    pub(crate) struct TokenSettings {
        pub(crate) key: Secret = by(|reader| auth::read_signing_key(
            reader,
            "TOKEN_SIGNING_KEY",
            "the key that signs tokens.",
        )),
        pub(crate) previous_key: Option<Secret> = by(|reader| auth::read_optional_key(
            reader,
            "TOKEN_PREVIOUS_KEY",
            "Another key whose tokens are accepted, for rotation.",
        )),
        pub(crate) issuer: String = by(auth::read_issuer),
        pub(crate) audience: String = by(auth::read_audience),
        /// How long an access token is valid.
        pub(crate) lifetime: Duration = in_range("TOKEN_TTL", "24h", "a duration from 1s to 365d", |lifetime| {
            (Duration::from_secs(1)..=auth::MAX_TOKEN_LIFETIME).contains(lifetime)
        }),
    }

    /// How passwords are checked and hashed.
    #[derive(Copy)]
    pub(crate) struct PasswordSettings {
        /// The bcrypt cost. Each increment doubles the time. Values below 10 are for tests. A lower value speeds up sign-in
        /// only once no hash of a higher cost is left.
        pub(crate) cost: u32 = between("BCRYPT_COST", "12", "4", "31"),
        /// The minimum number of characters of a new password.
        pub(crate) min_length: usize = between("PASSWORD_MIN_LENGTH", "5", "5", "72"),
    }

    /// The defaults of new accounts, and who can create them.
    pub(crate) struct SignUpSettings {
        /// The plan of new users.
        pub(crate) plan: String = or_default("DEFAULT_USER_PLAN", "free"),
        /// The vendor of new users.
        pub(crate) vendor: Option<String> = optional("DEFAULT_USER_VENDOR"),
        /// A token must have one of these scopes to create a user. If not set, anyone can sign up. Those who create users by the
        /// scope `user`, which every user has, count as strangers do who sign up.
        pub(crate) scopes: Option<Csv<String>> = optional("API_USER_CREATE_SCOPE"),
        /// With `email`, while EMAIL_VERIFICATION is `required`, a new user's username must be the e-mail address, unless an
        /// administrator creates the user: no one confirms usernames. With `any`, it may be any address that no other user
        /// has.
        pub(crate) usernames: SignUpUsernames = or_default("SIGN_UP_USERNAMES", "email"),
    }

    /// The administrator to create at start if there is none.
    pub(crate) struct FirstAdmin checked by check_first_admin {
        /// The e-mail address of the administrator to create at start if there is none.
        pub(crate) username: Option<EmailAddress> = optional("ADMIN_USERNAME"),
        /// The first administrator's password. Never overwrites an existing one.
        pub(crate) password: Option<Secret> = optional("ADMIN_PASSWORD"),
    }

    /// How long browsers stay signed in, and how many of one user.
    #[derive(Copy)]
    pub(crate) struct SessionSettings {
        /// How long a browser stays signed in after its last use, if its user chose to stay signed in.
        pub(crate) unused: Duration = between("SESSION_IDLE_TTL", "30d", "1m", "365d"),
        /// How long a browser stays signed in after the sign-in, however often it is used.
        pub(crate) longest: Duration = between("SESSION_TTL", "180d", "1m", "365d"),
        /// The browsers in which a user can stay signed in. Another one signs out the one that was not used for longest.
        pub(crate) per_user: usize = between("SESSIONS_PER_USER", "20", "1", "1000"),
    }

    /// API keys.
    #[derive(Copy)]
    pub(crate) struct KeySettings {
        /// The API keys that a user can have.
        pub(crate) per_user: usize = between("KEYS_PER_USER", "50", "1", "1000"),
        /// How long before an API key expires its user is mailed, but not in the first half of its life, and not about a key
        /// that lives shorter than two days. A user gets at most ten such mails a day.
        pub(crate) notice: Duration = between("KEY_EXPIRY_NOTICE", "7d", "1m", "365d"),
    }
}

values::names! {
    /// Which usernames a sign-up may choose.
    pub(crate) enum SignUpUsernames {
        /// The e-mail address only, while addresses must be confirmed.
        Email = "email",
        /// Any that is free.
        Any = "any",
    }
}

app_config::named_settings! {
    SignUpUsernames, "`email` or `any`", "email";
}

fn check_channels(settings: &HandlerSettings) -> Result<(), Error> {
    if settings.email_verification == EmailVerification::Required && settings.channels.is_empty() {
        return Err(Error::Invalid {
            name: "EMAIL_VERIFICATION",
            given: "`required`".to_owned(),
            reason: "no channel for codes is configured".to_owned(),
            allowed: "`off`, or set SMTP_URL and MAIL_FROM, or WEBHOOK_USER_FORGOT_PASSWORD".into(),
        });
    }
    Ok(())
}

fn check_first_admin(admin: &FirstAdmin) -> Result<(), Error> {
    if admin.username.is_some() && admin.password.is_none() {
        let purpose = "required because ADMIN_USERNAME is set.";
        return Err(Error::missing::<Secret>("ADMIN_PASSWORD", purpose));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use app_config::{Reader, Settings as _};

    use super::HandlerSettings;

    #[test]
    fn addresses_can_be_confirmed_only_by_a_channel_for_codes() {
        const REQUIRED: (&str, &str) = ("EMAIL_VERIFICATION", "required");
        let read = |pairs: &[(&str, &str)]| {
            HandlerSettings::read(&mut Reader::from_pairs(pairs.iter().copied()).unwrap())
        };
        let error = read(&[REQUIRED]).unwrap_err().to_string();
        let expected =
            "EMAIL_VERIFICATION is `required`, which is not allowed: no channel for codes";
        assert!(error.starts_with(expected), "{error}");
        assert!(read(&[REQUIRED, ("FORGOT_PASSWORD_LOG", "true")]).is_ok());
        assert!(read(&[]).is_ok());
    }
}
