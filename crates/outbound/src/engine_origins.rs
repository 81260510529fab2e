use app_config::{Reader, SettingValue, Settings, parse_list};
use url::Url;

/// The origins of flow engines. Callers may choose method, headers and body of a call to them, although their addresses are
/// not public.
///
/// An origin is a scheme, a host and a port, which may be `*`. It permits no address: [`AddressPolicy`](crate::AddressPolicy)
/// does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineOrigins(Vec<EngineOrigin>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct EngineOrigin {
    scheme: String,
    host: String,
    /// `None` for every port.
    port: Option<u16>,
}

impl Settings for EngineOrigins {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        reader.or_default(
            "WEBHOOK_ENGINE_ORIGINS",
            "",
            "Origins of flow engines that are not public, to which webhooks may have `headers`, `method` and `body` of their own. Their networks must be in WEBHOOK_ALLOWED_NETWORKS, too.",
        )
    }
}

impl EngineOrigins {
    /// Whether the URL has one of these origins.
    #[must_use]
    pub fn contain(&self, url: &Url) -> bool {
        self.0.iter().any(|origin| {
            let port = origin.port.is_none() || origin.port == url.port_or_known_default();
            port && origin.scheme == url.scheme() && origin.host == host_of(url)
        })
    }
}

/// The host of a URL, whether it ends with a dot or not.
fn host_of(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

impl SettingValue for EngineOrigins {
    const ALLOWED: &'static str =
        "origins separated by commas such as `http://prefect.internal:4200,http://127.0.0.1:*`";
    const EXAMPLE: &'static str = "http://127.0.0.1:*";

    fn parse(text: &str) -> Result<Self, String> {
        parse_list(text, EngineOrigin::parse).map(Self)
    }
}

impl EngineOrigin {
    fn parse(text: &str) -> Result<Self, String> {
        let (origin, has_every_port) = match text.strip_suffix(":*") {
            Some(origin) => (origin, true),
            None => (text, false),
        };
        let url = <Url as SettingValue>::parse(origin)?;
        let has_more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
        if has_more || !url.username().is_empty() || url.password().is_some() {
            return Err("it has more than a scheme, a host and a port".to_owned());
        }
        if host_of(&url).contains('*') {
            return Err("only the port may be `*`".to_owned());
        }
        let authority = origin
            .split_once("://")
            .map_or("", |(_, authority)| authority);
        // The colons of an IPv6 address are in brackets.
        let after_host = authority.rsplit(']').next().unwrap_or_default();
        if has_every_port && after_host.contains(':') {
            return Err("it has two ports".to_owned());
        }
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host: host_of(&url).to_owned(),
            port: url.port_or_known_default().filter(|_| !has_every_port),
        })
    }
}

#[cfg(test)]
mod tests {
    use app_config::{Reader, Settings as _};
    use url::Url;

    use super::EngineOrigins;

    fn read(text: &str) -> Result<EngineOrigins, app_config::Error> {
        let mut reader = Reader::from_pairs([("WEBHOOK_ENGINE_ORIGINS", text)]).unwrap();
        EngineOrigins::read(&mut reader)
    }

    fn contain(origins: &str, url: &str) -> bool {
        read(origins).unwrap().contain(&Url::parse(url).unwrap())
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origins = "http://Prefect.internal:4200, https://n8n.internal,http://[::1]:80";
        for url in [
            "http://prefect.internal:4200/api/flow_runs/1/resume?x=1",
            "http://PREFECT.internal.:4200/",
            "https://n8n.internal/webhook-waiting/1",
            "https://n8n.internal:443/",
            "http://[0:0::1]/",
        ] {
            assert!(contain(origins, url), "{url}");
        }
        for url in [
            "http://prefect.internal/",
            "https://prefect.internal:4200/",
            "http://prefect.internal:4201/",
            "http://prefect.internal.example.com:4200/",
            "http://sub.n8n.internal/",
            "http://127.0.0.1:4200/",
        ] {
            assert!(!contain(origins, url), "{url}");
        }
        assert!(!contain("", "http://127.0.0.1/"));
    }

    #[test]
    fn a_port_may_be_any() {
        for url in [
            "http://127.0.0.1/",
            "http://127.0.0.1:9/x",
            "http://127.1:4200",
        ] {
            assert!(contain("http://127.0.0.1:*", url), "{url}");
        }
        for url in ["https://127.0.0.1/", "http://127.0.0.2:9/"] {
            assert!(!contain("http://127.0.0.1:*", url), "{url}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "prefect.internal:4200",
            "*",
            "http://*",
            "ftp://prefect.internal",
            "http://prefect.internal/api",
            "http://prefect.internal?x",
            "http://user@prefect.internal",
            "http://prefect.internal:80:*",
            "http://prefect.internal:4200:*",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
