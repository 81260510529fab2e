use std::fmt;

use url::Url;

use crate::{Error, Reader, SettingValue, Settings};

/// The address at which people reach the gateway, without a slash at the end. Links begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl SettingValue for PublicUrl {
    const ALLOWED: &'static str =
        "a URL that starts with http:// or https://, without a query or a fragment";
    const EXAMPLE: &'static str = "https://countersign.example.com";

    fn parse(text: &str) -> Result<Self, String> {
        let url = <Url as SettingValue>::parse(text)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("it has a query or a fragment".to_owned());
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl Settings for PublicUrl {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        reader.or_default(
            "PUBLIC_URL",
            "http://localhost:8080",
            "The address at which people reach the gateway. Links begin with it unless they have a setting of their own.",
        )
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
