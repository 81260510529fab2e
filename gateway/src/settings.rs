use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Networks, Reader, SettingValue, Settings as _, Switch};
use auth::RemoteSettings;
use server::HttpServerSettings;
use url::Url;

/// Concurrent connections of each thread. Strangers can make each take 150 KB, so that with two threads all of them
/// take 230 MB. With callers that wait (340 MB) and what may be buffered, that is less than the 768 MiB of its container.
const MAX_CONNECTIONS: &str = "768";
/// The longest name of the pages in characters: more do not fit beside the menu on a phone.
const MAX_NAME: usize = 40;

values::names! {
    /// Whose requests count together towards `RATE_LIMIT_PER_SECOND`.
    pub(crate) enum LimitBy {
        /// Those of a client address.
        Address = "address",
        /// Those of an API key; without one, those of a client address.
        Key = "key",
    }
}

app_config::named_settings! {
    LimitBy, "`address` or `key`", "address";
}

app_config::settings! {
    /// The gateway's settings.
    pub struct GatewaySettings {
        /// The address to listen on. Port 0 picks a free port.
        pub(crate) listen_address: SocketAddr = or_default("LISTEN_ADDRESS", "127.0.0.1:8080"),
        /// The user service, and the tokens that it signs.
        pub(crate) authority: RemoteSettings = part(),
        pub(crate) people_task_service_url: Url =
            required("PEOPLE_TASK_SERVICE_URL", "the URL of the people-task service."),
        /// Proxies in front of the gateway whose `X-Forwarded-For`, `-Proto` and `-Host` headers are trusted.
        pub(crate) trusted_proxies: Networks = or_default("TRUSTED_PROXIES", ""),
        pub(crate) tls: Option<TlsSettings> = by(TlsSettings::read),
        /// How long browsers that have connected over TLS must keep using it (`Strict-Transport-Security`); `0s` disables the header.
        pub(crate) hsts_max_age: Duration = or_default("HSTS_MAX_AGE", "365d"),
        /// Origins whose pages may call the API from a browser; none by default.
        pub(crate) cors_allowed_origins: AllowedOrigins = or_default("CORS_ALLOWED_ORIGINS", ""),
        pub(crate) pages: PagesSettings = part(),
        /// How long a service may take to start its response, and between two parts of it.
        pub(crate) upstream_timeout: Duration = between("GATEWAY_UPSTREAM_TIMEOUT", "30s", "100ms", "1h"),
        /// How long a caller may take to send a body.
        pub(crate) body_timeout: Duration = between("GATEWAY_BODY_TIMEOUT", "30s", "100ms", "1h"),
        /// Concurrent requests to each service, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.
        pub(crate) max_in_flight: u64 = between("GATEWAY_MAX_IN_FLIGHT", "1024", "1", "1000000"),
        /// Concurrent requests whose body is still arriving, each of which may need 150 KB of memory, in addition to `GATEWAY_MAX_IN_FLIGHT`, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.
        pub(crate) max_pending_uploads: u64 = between("GATEWAY_MAX_PENDING_UPLOADS", "2048", "1", "1000000"),
        /// Bytes of responses that callers have not read yet, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.
        pub(crate) max_buffered_response_bytes: u64 =
            between("GATEWAY_MAX_BUFFERED_RESPONSE_BYTES", "134217728", "1048576", "1099511627776"),
        pub(crate) waiting: WaitingSettings = part(),
        pub(crate) circuit: CircuitSettings = part(),
        pub(crate) rate_limit: RateLimitSettings = part(),
        /// Whose requests `RATE_LIMIT_PER_SECOND` counts together: those of a client address, or with `key` those of an API key,
        /// such as where many flows of one engine have keys of their own. Requests without a key always count by address. With
        /// open sign-up an address has as many keys as it wants.
        pub(crate) limit_by: LimitBy = or_default("RATE_LIMIT_BY", "address"),
        pub(crate) http: HttpServerSettings = by(read_http),
    }

    /// When the circuit of a service opens, and for how long.
    #[derive(Copy)]
    pub(crate) struct CircuitSettings {
        /// Consecutive requests without a response that open the circuit of a service; while it is open, its routes respond with `503` at once.
        pub(crate) failures: u32 = between("GATEWAY_CIRCUIT_FAILURES", "5", "1", "1000000"),
        /// How long a circuit stays open before it lets a trial request through.
        pub(crate) pause: Duration = between("GATEWAY_CIRCUIT_PAUSE", "1s", "100ms", "5m"),
    }

    /// The web pages, and how they look.
    pub(crate) struct PagesSettings {
        /// Whether the gateway serves web pages. With `off` their paths are unknown; `/openapi.json` stays. Links in messages then need
        /// pages of your own: `PEOPLE_TASKS_DASHBOARD_URL`, `FORGOT_PASSWORD_URL` and `VERIFY_EMAIL_URL`.
        pub(crate) mode: Switch = or_default("PAGES", "on"),
        /// The name in the header and in the titles of the web pages.
        pub(crate) name: PagesName = or_default("PAGES_NAME", "Countersign"),
        /// The file with the logo of the web pages: SVG or PNG, at most 64 KiB. It is shown 26 pixels high, and is the icon of their tabs,
        /// too.
        pub(crate) logo: Option<String> = optional("PAGES_LOGO"),
        /// The colour of buttons. The text on them is black or white, and links are darker or lighter, so that both are readable.
        pub(crate) color: HexColor = or_default("PAGES_COLOR", "#1f5fd1"),
    }

    /// How many requests one client address may send.
    pub(crate) struct RateLimitSettings {
        /// Whether requests are limited by client address. With `off`, those of one address do not wait for each other either while
        /// other clients send some, and the gateway counts neither sign-ins nor texts that are no API keys.
        pub(crate) mode: Switch = or_default("RATE_LIMIT", "on"),
        /// Requests per second that one client address may send; a burst may have twice as many.
        pub(crate) requests_per_second: u32 = between("RATE_LIMIT_PER_SECOND", "5000", "1", "1000000"),
        /// Sign-ins, sign-ups, password changes, and calls that send or take codes, per minute from one client address.
        pub(crate) credentials_per_minute: u32 = between("RATE_LIMIT_CREDENTIALS_PER_MINUTE", "60", "1", "1000000"),
        /// How many of those calls one client address may make at once.
        pub(crate) credentials_burst: u32 = between("RATE_LIMIT_CREDENTIALS_BURST", "20", "1", "1000000"),
        /// Networks that `RATE_LIMIT_PER_SECOND` does not limit and whose requests do not wait for each other while other clients send
        /// some, such as that of the flow engine.
        pub(crate) exempt: Networks = or_default("RATE_LIMIT_EXEMPT", ""),
    }

    /// How many callers may wait for the end of a task, and how long.
    #[derive(Copy)]
    pub(crate) struct WaitingSettings {
        /// Callers that wait for the end of a task (`?wait=`), each of which needs up to 32 KB of memory. When there are more, a client address with few displaces the
        /// newest caller of the address with the most, which is answered at once.
        pub(crate) max: usize = between("GATEWAY_MAX_WAITING", "12000", "1", "1000000"),
        /// The longest time for which a caller waits for the end of a task, whatever it asks for: less than the time after
        /// which a proxy in front of the gateway gives up.
        pub(crate) longest: Duration = between("GATEWAY_LONGEST_WAIT", "50s", "1s", "50s"),
    }
}

fn read_http(reader: &mut Reader) -> Result<HttpServerSettings, app_config::Error> {
    HttpServerSettings::read(reader.replace_default("HTTP_MAX_CONNECTIONS", MAX_CONNECTIONS))
}

#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    /// The certificate, then the intermediate certificates of its authority, in PEM format.
    pub(crate) certificate_file: String,
    pub(crate) private_key_file: String,
    pub(crate) reload_interval: Duration,
}

impl TlsSettings {
    /// `None` if neither file is set.
    fn read(reader: &mut Reader) -> Result<Option<Self>, app_config::Error> {
        const CERTIFICATE: &str = "TLS_CERTIFICATE_FILE";
        const KEY: &str = "TLS_PRIVATE_KEY_FILE";
        let certificate_file = reader.optional(
            CERTIFICATE,
            "The file with the certificate and its chain in PEM format. If set, the gateway serves TLS itself.",
        )?;
        let private_key_file = reader.optional(
            KEY,
            "The file with the private key of `TLS_CERTIFICATE_FILE`, in PEM format.",
        )?;
        let reload_interval = reader.between(
            "TLS_RELOAD_INTERVAL",
            "60s",
            "100ms",
            "1d",
            "How often the two files are read again, so that a renewed certificate needs no restart. In a container, mount their folder and not the files.",
        )?;
        let missing = |name| app_config::Error::Missing {
            name,
            allowed: "a file in PEM format",
            purpose: "required because TLS_CERTIFICATE_FILE and TLS_PRIVATE_KEY_FILE go together.",
            secret: false,
        };
        match (certificate_file, private_key_file) {
            (None, None) => Ok(None),
            (Some(certificate_file), Some(private_key_file)) => Ok(Some(Self {
                certificate_file,
                private_key_file,
                reload_interval,
            })),
            (Some(_), None) => Err(missing(KEY)),
            (None, Some(_)) => Err(missing(CERTIFICATE)),
        }
    }
}

/// Origins (RFC 6454) as browsers write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedOrigins(pub(crate) Vec<String>);

impl SettingValue for AllowedOrigins {
    const ALLOWED: &'static str =
        "origins separated by commas such as `https://app.example.com,http://localhost:3000`";
    const EXAMPLE: &'static str = "https://app.example.com";

    fn parse(text: &str) -> Result<Self, String> {
        app_config::parse_list(text, parse_origin).map(Self)
    }
}

fn parse_origin(text: &str) -> Result<String, String> {
    if text.contains('*') {
        return Err(format!(
            "{text:?} has a `*`, which would allow more pages than those you know; name each origin"
        ));
    }
    let url = Url::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
    let origin = url.origin().ascii_serialization();
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{text:?} is neither http nor https"));
    }
    if text.eq_ignore_ascii_case(&origin) {
        Ok(origin)
    } else {
        Err(format!(
            "{text:?} is not an origin as browsers write it; did you mean {origin:?}?"
        ))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagesName(pub(crate) String);

impl SettingValue for PagesName {
    const ALLOWED: &'static str = "a text of 1 to 40 characters in one line";
    const EXAMPLE: &'static str = "Countersign";

    fn parse(text: &str) -> Result<Self, String> {
        let name = text.trim();
        match name.chars().count() {
            0 => Err("it is empty".to_owned()),
            length if length > MAX_NAME => Err(format!("it has {length} characters")),
            _ if name.contains(char::is_control) => Err("it has a control character".to_owned()),
            _ if !values::is_visible(name) => {
                Err("it has no character that can be seen".to_owned())
            }
            _ => Ok(Self(name.to_owned())),
        }
    }
}

/// A colour as red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HexColor(pub(crate) [u8; 3]);

impl SettingValue for HexColor {
    const ALLOWED: &'static str = "a colour such as `#1f5fd1` or `#06c`";
    const EXAMPLE: &'static str = "#1f5fd1";

    fn parse(text: &str) -> Result<Self, String> {
        let digits = text.trim().strip_prefix('#');
        let digits = digits.ok_or("it does not start with `#`")?;
        let digit = |digit: char| {
            let value = digit
                .to_digit(16)
                .and_then(|value| u8::try_from(value).ok());
            value.ok_or_else(|| format!("{digit:?} is not a hexadecimal digit"))
        };
        let digits: Vec<u8> = digits.chars().map(digit).collect::<Result<_, _>>()?;
        match digits.as_slice() {
            [r, g, b] => Ok(Self([r * 17, g * 17, b * 17])),
            [r, r2, g, g2, b, b2] => Ok(Self([r * 16 + r2, g * 16 + g2, b * 16 + b2])),
            _ => Err(format!("it has {} digits", digits.len())),
        }
    }
}

impl fmt::Display for HexColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([red, green, blue]) = self;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::{AllowedOrigins, HexColor, PagesName};

    #[test]
    fn origins_are_kept_as_browsers_write_them() {
        let text = "https://app.example.com, http://localhost:3000,,HTTPS://B.example";
        let AllowedOrigins(origins) = AllowedOrigins::parse(text).unwrap();
        let expected = [
            "https://app.example.com",
            "http://localhost:3000",
            "https://b.example",
        ];
        assert_eq!(origins, expected);
        assert!(AllowedOrigins::parse("").unwrap().0.is_empty());
    }

    #[test]
    fn anything_but_an_origin_is_refused() {
        for text in [
            "*",
            "null",
            "app.example.com",
            "https://*.example.com/",
            "https://*.example.com",
            "https://*",
            "http://*:8080",
            "http://localhost:*",
            "*.example.com",
            "https://%2A.example.com",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://app.example.com?x",
            "https://ada@app.example.com",
            "https://app.example.com:443",
            "file:///etc/passwd",
            "https://app.example.com,*",
        ] {
            assert!(AllowedOrigins::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn colours_have_three_or_six_digits() {
        for (text, expected) in [
            ("#1f5fd1", "#1f5fd1"),
            ("#FFD400", "#ffd400"),
            (" #06c ", "#0066cc"),
        ] {
            assert_eq!(HexColor::parse(text).unwrap().to_string(), expected);
        }
        for (text, reason) in [
            ("blue", "it does not start with `#`"),
            ("1f5fd1", "it does not start with `#`"),
            ("#1f5fd", "it has 5 digits"),
            ("#1f5fd1ff", "it has 8 digits"),
            ("#12345g", "'g' is not a hexadecimal digit"),
            ("#", "it has 0 digits"),
        ] {
            assert_eq!(HexColor::parse(text).unwrap_err(), reason, "{text}");
        }
    }

    #[test]
    fn names_fit_into_the_header() {
        assert_eq!(
            PagesName::parse(" Müller & Söhne ").unwrap().0,
            "Müller & Söhne"
        );
        for text in ["  ", "two\nlines", &"x".repeat(41)] {
            assert!(PagesName::parse(text).is_err(), "{text}");
        }
    }
}
