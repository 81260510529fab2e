//! The little that has to be known about database urls, without a url library.

use crate::{Error, Result};

/// A database url taken apart: `before` ends at the host and port, `query` has its question mark.
pub(crate) struct UrlParts<'url> {
    pub(crate) scheme: &'url str,
    pub(crate) host_and_port: &'url str,
    pub(crate) credentials: &'url str,
    pub(crate) database: &'url str,
    pub(crate) query: &'url str,
}

impl<'url> UrlParts<'url> {
    pub(crate) fn parse(url: &'url str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or(Error::Url {
            reason: "it has no scheme",
        })?;
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err(Error::Url {
                reason: "its scheme is neither postgres nor postgresql",
            });
        }
        let (rest, query) = rest.find('?').map_or((rest, ""), |at| rest.split_at(at));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, host_and_port) = authority.rsplit_once('@').unwrap_or(("", authority));
        if host_and_port.is_empty() {
            return Err(Error::Url {
                reason: "it names no host",
            });
        }
        Ok(Self {
            scheme,
            host_and_port,
            credentials,
            database,
            query,
        })
    }

    pub(crate) fn build(&self, credentials: &str, database: &str) -> String {
        let at = if credentials.is_empty() { "" } else { "@" };
        format!(
            "{}://{credentials}{at}{}/{database}{}",
            self.scheme, self.host_and_port, self.query
        )
    }
}

/// `url` with another database; user, host and parameters stay.
///
/// # Errors
/// When `url` is not of the form `postgres://user:password@host:port/database?parameters`.
pub fn with_database(url: &str, database: &str) -> Result<String> {
    let parts = UrlParts::parse(url)?;
    Ok(parts.build(parts.credentials, database))
}

/// `text` with its `%xx` sequences replaced; a percent sign without two hex digits stays.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        match after
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_exchanged_and_the_rest_kept() {
        let url = with_database("postgres://a:b@127.0.0.1:1/x?sslmode=disable", "y");
        assert_eq!(
            url.ok().as_deref(),
            Some("postgres://a:b@127.0.0.1:1/y?sslmode=disable")
        );
    }

    #[test]
    fn a_url_without_a_database_gets_one() {
        assert_eq!(
            with_database("postgres://h", "y").ok().as_deref(),
            Some("postgres://h/y")
        );
    }

    #[test]
    fn percent_sequences_are_decoded() {
        assert_eq!(percent_decoded("a%40b%c3%bc%zz%"), "a@b\u{fc}%zz%");
    }

    #[test]
    fn other_schemes_are_refused() {
        assert!(with_database("mysql://a:b@h/x", "y").is_err());
        assert!(with_database("x", "y").is_err());
    }
}
