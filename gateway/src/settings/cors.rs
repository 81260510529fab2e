use app_config::SettingValue;
use url::Url;

/// Origins (RFC 6454) as browsers write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(pub(crate) Vec<String>);

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

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::AllowedOrigins;

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
}
