use std::time::Duration;

use app_config::{PublicUrl, Reader, SettingValue, Settings as _};
use outbound::TargetUrl;
use url::Url;

use super::MailSettings;

/// The placeholder of the code in a link.
pub(crate) const CODE: &str = "{{code}}";

app_config::settings! {
    /// The channels that send codes to users, and the link that contains the code.
    pub(crate) struct ChannelSettings {
        /// The URL that receives the codes for forgotten passwords as JSON.
        pub(crate) webhook: Option<TargetUrl> = optional("WEBHOOK_USER_FORGOT_PASSWORD"),
        pub(crate) mail: Option<MailSettings> = by(MailSettings::read),
        /// For development only: logs the links with codes.
        pub(crate) log: bool = or_default("FORGOT_PASSWORD_LOG", "false"),
        pub(crate) public_url: PublicUrl = part(),
        pub(crate) link: String = by(|reader: &mut Reader| read_link(
            reader,
            "FORGOT_PASSWORD_URL",
            "reset-password",
            "The link that sets a new password, by default a page under PUBLIC_URL. {{code}} stands for the code.",
        )),
        /// How long a code for a forgotten password is valid.
        pub(crate) code_lifetime: Duration = between("FORGOT_PASSWORD_TTL", "60m", "1s", "30d"),
    }
}

impl ChannelSettings {
    /// Whether nothing can send codes.
    pub(super) fn is_empty(&self) -> bool {
        self.webhook.is_none() && self.mail.is_none() && !self.log
    }
}

/// Reads a link with the placeholder of a code, by default to this page under `PUBLIC_URL`.
pub(super) fn read_link(
    reader: &mut Reader,
    name: &'static str,
    page: &str,
    purpose: &'static str,
) -> Result<String, app_config::Error> {
    let default = format!("{}/{page}?code={CODE}", PublicUrl::read(reader)?);
    let allowed = "a URL that contains {{code}} and starts with http:// or https://";
    let is_link = |link: &String| {
        let link_with_code = link.replace(CODE, "code");
        link.contains(CODE) && <Url as SettingValue>::parse(&link_with_code).is_ok()
    };
    reader.in_range(name, default, allowed, is_link, purpose)
}

#[cfg(test)]
mod tests {
    use app_config::{Reader, Settings as _};

    use super::ChannelSettings;
    use crate::settings::NotificationWorkerSettings;

    const REQUIRED: [(&str, &str); 3] = [
        ("MAIL_FROM", "no-reply@example.com"),
        ("DATABASE_URL", "postgres://x"),
        ("AMQP_URL", "amqp://x"),
    ];

    fn reader(pairs: &[(&str, &str)]) -> Reader {
        Reader::from_pairs(REQUIRED.iter().chain(pairs).copied()).unwrap()
    }

    fn worker(pairs: &[(&str, &str)]) -> Result<NotificationWorkerSettings, app_config::Error> {
        NotificationWorkerSettings::read(&mut reader(pairs))
    }

    #[test]
    fn links_begin_with_the_public_url() {
        for (public, prefix) in [
            (None, "http://localhost:8080"),
            (Some("https://c.example.com"), "https://c.example.com"),
        ] {
            let pair = public.map(|url| ("PUBLIC_URL", url));
            let settings = worker(pair.as_slice()).unwrap();
            let reset = format!("{prefix}/reset-password?code={{{{code}}}}");
            assert_eq!(settings.channels.link, reset);
            let verify = format!("{prefix}/verify-email?code={{{{code}}}}");
            assert_eq!(settings.verify_email_link, verify);
        }
        let own = ("VERIFY_EMAIL_URL", "https://x.example/?c={{code}}");
        let settings = worker(&[("PUBLIC_URL", "https://c.example.com"), own]).unwrap();
        assert_eq!(settings.verify_email_link, own.1);
        assert!(worker(&[("PUBLIC_URL", "https://c.example.com/?a=1")]).is_err());
    }

    #[test]
    fn a_link_without_the_code_or_without_a_host_is_refused() {
        for name in ["FORGOT_PASSWORD_URL", "VERIFY_EMAIL_URL"] {
            for link in [
                "https://c.example.com/",
                "c.example.com/?code={{code}}",
                "/reset?code={{code}}",
                "https://?code={{code}}",
                "javascript://c.example.com/{{code}}",
                "{{code}}",
            ] {
                let error = worker(&[(name, link)]).unwrap_err();
                let message = error.to_string();
                assert!(message.contains(name), "{message}");
                assert!(
                    message.contains("a URL that contains {{code}}"),
                    "{message}"
                );
            }
            assert!(worker(&[(name, "https://c.example.com/{{code}}")]).is_ok());
        }
    }

    #[test]
    fn a_mail_server_without_a_scheme_is_refused_and_not_shown() {
        for url in [
            "mail.example.com:587",
            "mail.example.com",
            "user:hush@mail.example.com",
            "http://user:hush@mail.example.com",
            "smtp://user:hush/@mail.example.com",
        ] {
            let error = ChannelSettings::read(&mut reader(&[("SMTP_URL", url)])).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("SMTP_URL is (a secret"), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_mail_server_without_tls_causes_a_warning_that_shows_no_secret() {
        for (url, warns) in [
            ("smtp://user:hush@mail.example.com", true),
            ("smtp://user:hush@10.0.0.1:25?tls=opportunistic", true),
            ("smtp://user:hush@mail.example.com:587?tls=required", false),
            ("smtps://user:hush@mail.example.com", false),
            ("smtp://localhost:2525", false),
            ("smtp://127.0.0.1:2525", false),
            ("smtp://[::1]:2525", false),
        ] {
            let mut reader = reader(&[("SMTP_URL", url)]);
            let _ = ChannelSettings::read(&mut reader).unwrap();
            let warnings = reader.warnings().concat();
            assert_eq!(warnings.contains("SMTP_URL"), warns, "{url}: {warnings}");
            assert!(!warnings.contains("hush"));
        }
    }
}
