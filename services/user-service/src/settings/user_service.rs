use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Csv, Reader, SettingValue, Settings};
use database::DatabaseSettings;
use messaging::BrokerSettings;
use server::HttpServerSettings;
use url::Url;
use values::{EmailAddress, Secret};

use super::{ChannelSettings, SessionSettings};

/// Settings of the HTTP service.
#[derive(Debug, Clone)]
pub struct UserServiceSettings {
    /// The address to listen on.
    pub listen_address: SocketAddr,
    /// Limits of the HTTP server.
    pub http: HttpServerSettings,
    /// The database.
    pub database: DatabaseSettings,
    /// The broker.
    pub broker: BrokerSettings,
    /// How tokens are signed.
    pub tokens: TokenSettings,
    /// How passwords are checked and hashed.
    pub passwords: PasswordSettings,
    /// The defaults of new accounts, and who can create them.
    pub sign_up: SignUpSettings,
    /// The administrator to create if there is none.
    pub first_admin: Option<FirstAdmin>,
    /// `401`, or `403` for clients of Appmixer.
    pub sign_in_failure_status: u16,
    /// The flow engine. If not set, deletions skip its steps. Set it for the user-service and the deletion-worker, or for neither.
    pub flow_engine: Option<Url>,
    /// The channels that send codes to users.
    pub channels: ChannelSettings,
    /// Limits on requests for codes for forgotten passwords.
    pub code_requests: CodeRequestSettings,
    /// Browsers that stay signed in.
    pub sessions: SessionSettings,
    /// Whether e-mail addresses must be confirmed.
    pub email_verification: EmailVerification,
    /// How long entries of the audit log are kept.
    pub audit_retention: Duration,
}

/// Whether an e-mail address must be confirmed before it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmailVerification {
    /// Addresses are trusted immediately.
    Off,
    /// An address is trusted once the user has returned a code that was sent to it.
    Required,
}

impl SettingValue for EmailVerification {
    const ALLOWED: &'static str = "`off` or `required`";
    const EXAMPLE: &'static str = "off";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "required" => Ok(Self::Required),
            _ => Err("unknown value".to_owned()),
        }
    }
}

/// Which usernames a sign-up may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignUpUsernames {
    /// The e-mail address only, while addresses must be confirmed.
    Email,
    /// Any that is free.
    Any,
}

impl SettingValue for SignUpUsernames {
    const ALLOWED: &'static str = "`email` or `any`";
    const EXAMPLE: &'static str = "email";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "email" => Ok(Self::Email),
            "any" => Ok(Self::Any),
            _ => Err("unknown value".to_owned()),
        }
    }
}

/// How many codes for forgotten passwords can be requested within an hour; 0 for no limit.
#[derive(Debug, Clone, Copy)]
pub struct CodeRequestSettings {
    /// For each e-mail address.
    pub per_account: u32,
    /// From each client address.
    pub per_client: u32,
}

/// How tokens are signed.
#[derive(Debug, Clone)]
pub struct TokenSettings {
    /// The current key, PEM.
    pub key: Secret,
    /// Another key whose tokens are accepted, PEM.
    pub previous_key: Option<Secret>,
    /// `iss`.
    pub issuer: String,
    /// `aud`.
    pub audience: String,
    /// From `iat` to `exp`.
    pub lifetime: Duration,
}

/// How passwords are checked and hashed.
#[derive(Debug, Clone, Copy)]
pub struct PasswordSettings {
    /// The bcrypt cost.
    pub cost: u32,
    /// The minimum number of characters of a new password.
    pub min_length: usize,
}

/// The defaults of new accounts, and who can create them.
#[derive(Debug, Clone)]
pub struct SignUpSettings {
    /// The plan.
    pub plan: String,
    /// The vendor.
    pub vendor: Option<String>,
    /// A caller needs one of these scopes. `None` opens sign-up to anyone.
    pub scopes: Option<Vec<String>>,
    /// Which usernames a caller who is not an administrator may choose.
    pub usernames: SignUpUsernames,
}

/// The administrator to create at start if there is none.
#[derive(Debug, Clone)]
pub struct FirstAdmin {
    /// The username and e-mail address.
    pub username: EmailAddress,
    /// The password, not yet checked against the rules.
    pub password: Secret,
}

impl Settings for UserServiceSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            listen_address: reader.or_default(
                "LISTEN_ADDRESS",
                "127.0.0.1:8081",
                "The address to listen on. The service is internal: callers use the gateway.",
            )?,
            http: HttpServerSettings::read(reader)?,
            database: DatabaseSettings::read(reader)?,
            broker: BrokerSettings::read(reader)?,
            tokens: TokenSettings::read(reader)?,
            passwords: PasswordSettings::read(reader)?,
            sign_up: SignUpSettings::read(reader)?,
            first_admin: FirstAdmin::read(reader)?,
            sign_in_failure_status: reader.in_range(
                "SIGN_IN_FAILURE_STATUS",
                "401",
                "401 or 403",
                "The status of a failed sign-in; clients of Appmixer expect 403.",
                |status| [401, 403].contains(status),
            )?,
            flow_engine: reader.optional(
                "FLOW_ENGINE_URL",
                "The flow engine. If not set, deletions skip its steps.",
            )?,
            channels: ChannelSettings::read(reader)?,
            code_requests: CodeRequestSettings::read(reader)?,
            sessions: SessionSettings::read(reader)?,
            email_verification: reader.or_default(
                "EMAIL_VERIFICATION",
                "off",
                "Whether an e-mail address gives access to tasks only after it was confirmed with a code.",
            )?,
            audit_retention: audit_log::read_retention(reader)?,
        })
    }
}

impl Settings for CodeRequestSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let allowed = "a whole number from 0 to 1000000";
        let accepts = |number: &u32| *number <= 1_000_000;
        Ok(Self {
            per_account: reader.in_range(
                "FORGOT_PASSWORD_PER_ACCOUNT",
                "10",
                allowed,
                "Codes that can be requested within an hour for one e-mail address, for a forgotten password and to confirm the address each; 0 for no limit. It does not apply to codes for a forgotten password that are requested from a network from which the user signed in before.",
                accepts,
            )?,
            per_client: reader.in_range(
                "FORGOT_PASSWORD_PER_CLIENT",
                "100",
                allowed,
                "Codes that can be requested within an hour from one client address; 0 for no limit.",
                accepts,
            )?,
        })
    }
}

impl Settings for TokenSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            key: reader.required(
                "TOKEN_SIGNING_KEY",
                "the Ed25519 key that signs tokens (PEM, PKCS#8).",
            )?,
            previous_key: reader.optional(
                "TOKEN_PREVIOUS_KEY",
                "Another Ed25519 key whose tokens are accepted, for rotation.",
            )?,
            issuer: auth::read_issuer(reader)?,
            audience: auth::read_audience(reader)?,
            lifetime: reader.in_range(
                "TOKEN_TTL",
                "24h",
                "a duration from 1s to 365d",
                "How long an access token is valid.",
                |lifetime: &Duration| {
                    (Duration::from_secs(1)..=auth::MAX_TOKEN_LIFETIME).contains(lifetime)
                },
            )?,
        })
    }
}

impl Settings for PasswordSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            cost: reader.in_range(
                "BCRYPT_COST",
                "12",
                "a whole number from 4 to 31",
                "The bcrypt cost. Each increment doubles the time. Values below 10 are for tests. A lower value speeds up sign-in only once no hash of a higher cost is left.",
                |cost| (4..=31).contains(cost),
            )?,
            min_length: reader.in_range(
                "PASSWORD_MIN_LENGTH",
                "5",
                "a whole number from 5 to 72",
                "The minimum number of characters of a new password.",
                |length| (5..=72).contains(length),
            )?,
        })
    }
}

impl Settings for SignUpSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let scopes = reader.optional::<Csv<String>>(
            "API_USER_CREATE_SCOPE",
            "A token must have one of these scopes to create a user. If not set, anyone can sign up.",
        )?;
        Ok(Self {
            plan: reader.or_default("DEFAULT_USER_PLAN", "free", "The plan of new users.")?,
            vendor: reader.optional("DEFAULT_USER_VENDOR", "The vendor of new users.")?,
            scopes: scopes.map(|Csv(scopes)| scopes),
            usernames: reader.or_default(
                "SIGN_UP_USERNAMES",
                "email",
                "With `email`, while EMAIL_VERIFICATION is `required`, a new user's username must be the e-mail address, unless an administrator creates the user: no one confirms usernames. With `any`, it may be any address that no other user has.",
            )?,
        })
    }
}

impl FirstAdmin {
    fn read(reader: &mut Reader) -> Result<Option<Self>, app_config::Error> {
        let username = reader.optional::<EmailAddress>(
            "ADMIN_USERNAME",
            "The e-mail address of the administrator to create at start if there is none.",
        )?;
        let password = reader.optional::<Secret>(
            "ADMIN_PASSWORD",
            "The first administrator's password. Never overwrites an existing one.",
        )?;
        match (username, password) {
            (Some(username), Some(password)) => Ok(Some(Self { username, password })),
            (Some(_), None) => Err(app_config::Error::Missing {
                name: "ADMIN_PASSWORD",
                allowed: Secret::ALLOWED,
                purpose: "required because ADMIN_USERNAME is set.",
                secret: true,
            }),
            (None, _) => Ok(None),
        }
    }
}
