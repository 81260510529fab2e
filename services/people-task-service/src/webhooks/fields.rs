use std::fmt;

use http_kit::FieldValue;
use serde_json::Value;
use url::Url;
use values::{FromText, Invalid, Secret, bounded_text};

use crate::webhooks::signing::WebhookSecret;

const MAX_URL: usize = 2_048;

/// Where a webhook is sent: http or https, at most 2,048 characters, kept as it was given.
#[derive(Debug, Clone)]
pub(crate) struct WebhookUrl {
    given: String,
    parsed: Url,
}

impl WebhookUrl {
    /// Byte for byte as it was given.
    pub(crate) fn as_str(&self) -> &str {
        &self.given
    }

    /// The url that will be called.
    pub(crate) fn parsed(&self) -> &Url {
        &self.parsed
    }
}

impl FromText for WebhookUrl {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        bounded_text(text, 1, MAX_URL)?;
        // The parser drops blanks and line ends in silence, and what is kept would not be what is called.
        let plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
        let parsed = Url::parse(text)
            .ok()
            .filter(|url| plain && matches!(url.scheme(), "http" | "https") && url.has_host());
        match parsed {
            Some(parsed) => Ok(Self {
                given: text.to_owned(),
                parsed,
            }),
            None => Err(Invalid::new(
                "invalid-url",
                "Must be a url that begins with http:// or https://.",
            )),
        }
    }
}

impl FieldValue for WebhookUrl {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        Self::from_text(&String::from_json(value)?)
    }
}

/// The secret that signs a webhook's calls, in the `whsec_…` form of Standard Webhooks.
#[derive(Clone)]
pub(crate) struct SigningSecret(Secret);

impl SigningSecret {
    /// The `whsec_…` form.
    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl FieldValue for SigningSecret {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let secret = Secret::from_json(value)?;
        WebhookSecret::from_text(secret.expose()).map(|_| Self(secret))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use values::FromText as _;

    use super::WebhookUrl;

    #[test]
    fn a_url_is_kept_byte_for_byte() {
        for text in [
            "http://engine.example.com/flows/1?correlationId=a%2Fb&correlationInPort=in",
            "HTTPS://Engine.Example.com:443/%7euser/../x?b=2&a=1#part",
            "http://127.0.0.1:8090",
            "http://user:password@[::1]/",
        ] {
            assert_eq!(WebhookUrl::from_text(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn anything_but_http_and_https_is_refused() {
        for text in [
            "",
            "engine.example.com",
            "/flows/1",
            "ftp://engine.example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "http://",
            " http://engine.example.com/",
            "http://engine.example.com/\n",
            "http://engine.exa\tmple.com/",
            "http://engine.example.com/\0",
        ] {
            assert!(WebhookUrl::from_text(text).is_err(), "{text:?}");
        }
        let long = format!("http://example.com/{}", "a".repeat(2_048 - 19));
        assert!(WebhookUrl::from_text(&long).is_ok());
        assert!(WebhookUrl::from_text(&format!("{long}a")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = WebhookUrl::from_text(&text);
        }

        #[test]
        fn a_url_that_is_taken_is_one_of_http_with_a_host(
            text in "[hH][tT]{1,2}[pP][sS]?[:/]{1,3}[ -~é]{0,40}",
        ) {
            if let Ok(url) = WebhookUrl::from_text(&text) {
                prop_assert_eq!(url.as_str(), text);
                let parsed = url.parsed();
                prop_assert!(matches!(parsed.scheme(), "http" | "https"));
                prop_assert!(parsed.has_host());
                prop_assert_eq!(&url::Url::parse(parsed.as_str()).unwrap(), parsed);
            }
        }
    }
}
