//! Database URLs of the form `postgres://user:password@host:port/database?parameters`.

use anyhow::{Context as _, Result, anyhow, bail};
use percent_encoding::percent_decode_str;
use url::Url;

/// Returns `url` with another database. User, host and parameters stay.
pub fn with_database(url: &str, database: &str) -> Result<String> {
    let mut url = parse(url)?;
    url.set_path(database);
    Ok(url.into())
}

/// Returns the name of the database; empty when `url` names none.
pub fn database_name(url: &str) -> Result<String> {
    let url = parse(url)?;
    Ok(decode(url.path().trim_start_matches('/')))
}

pub(crate) fn parse(url: &str) -> Result<Url> {
    // No error has the URL itself, which contains a password.
    let url = Url::parse(url).context("invalid database URL")?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        bail!("invalid database URL: the scheme is not postgres");
    }
    if url.host_str().is_none_or(str::is_empty) {
        bail!("invalid database URL: the host is missing");
    }
    Ok(url)
}

/// Returns `url` with other credentials.
pub(crate) fn with_credentials(url: &Url, user: &str, password: Option<&str>) -> Result<String> {
    let mut url = url.clone();
    url.set_username(user)
        .and_then(|()| url.set_password(password))
        .map_err(|()| anyhow!("the database URL cannot hold credentials"))?;
    Ok(url.into())
}

/// Replaces the `%xx` sequences of a part of a URL.
pub(crate) fn decode(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_database_replaces_only_the_database() {
        for (url, expected) in [
            (
                "postgres://a:b@127.0.0.1:1/x?sslmode=disable",
                "postgres://a:b@127.0.0.1:1/y?sslmode=disable",
            ),
            ("postgres://h", "postgres://h/y"),
        ] {
            assert_eq!(with_database(url, "y").unwrap(), expected);
        }
    }

    #[test]
    fn database_name_is_empty_when_the_url_names_none() {
        for (url, expected) in [
            ("postgres://h/x?a=b", "x"),
            ("postgresql://h/", ""),
            ("postgres://h", ""),
        ] {
            assert_eq!(database_name(url).unwrap(), expected);
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for url in ["mysql://a:b@h/x", "x", "postgres:///x"] {
            assert!(with_database(url, "y").is_err(), "{url}");
        }
    }

    #[test]
    fn credentials_are_replaced() {
        let url = parse("postgres://a:p%40ss@h/x").unwrap();
        assert_eq!(decode(url.password().unwrap()), "p@ss");
        assert_eq!(
            with_credentials(&url, "b", None).unwrap(),
            "postgres://b@h/x"
        );
    }
}
