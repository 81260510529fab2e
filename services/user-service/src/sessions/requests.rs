//! What browsers send.

pub(super) mod browser;
pub(super) mod cookie;

use http_kit::{Fields, Problem};
use utoipa::ToSchema;
use values::{Fingerprint, Invalid, Secret};

/// The digits of an attempt's name.
const MIN_ATTEMPT: usize = 32;
const MAX_ATTEMPT: usize = 128;

/// The body of an exchange.
#[derive(Debug, ToSchema)]
pub(super) struct ExchangeRequest {
    /// A random text of 32 to 128 characters that names this exchange. A browser that got no response repeats it, together
    /// with its cookie.
    #[schema(value_type = Option<String>, example = "9c1f0a5e7d3b4c2a8e6f1d0b9a7c5e3f")]
    pub(super) attempt: Option<Fingerprint>,
}

impl ExchangeRequest {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let attempt = fields.optional::<Secret>("attempt");
        let length = attempt.as_ref().map(|attempt| attempt.expose().len());
        if length.is_some_and(|length| !(MIN_ATTEMPT..=MAX_ATTEMPT).contains(&length)) {
            let message = "Must have 32 to 128 characters.";
            fields.reject("attempt", Invalid::new("invalid-length", message));
        }
        fields.finish()?;
        Ok(Self {
            attempt: attempt.map(|attempt| attempt.fingerprint()),
        })
    }
}
