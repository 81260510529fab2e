use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{FromRequest, HttpRequest};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use values::Invalid;

use crate::{Fields, Problem};

/// The largest body that is read: 256 KiB.
pub const BODY_LIMIT: usize = 256 * 1024;

/// A JSON object of at most [`BODY_LIMIT`] bytes.
///
/// `415` for another content type, `413` for a longer body, `400` if it is not a JSON object.
#[derive(Debug)]
pub struct JsonBody(pub Fields);

/// Like [`JsonBody`], for operations without a required body: an empty body and `null` are an empty object.
#[derive(Debug)]
pub struct OptionalJsonBody(pub Fields);

type ExtractFuture<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

impl FromRequest for JsonBody {
    type Error = Problem;
    type Future = ExtractFuture<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            check_content_type(&request)?;
            let bytes = read(&request, payload).await?;
            parse_object(&bytes).map(Fields::new).map(Self)
        })
    }
}

impl FromRequest for OptionalJsonBody {
    type Error = Problem;
    type Future = ExtractFuture<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let bytes = read(&request, payload).await?;
            if bytes.is_empty() {
                return Ok(Self(Fields::new(Map::new())));
            }
            check_content_type(&request)?;
            if bytes.trim_ascii() == b"null" {
                return Ok(Self(Fields::new(Map::new())));
            }
            parse_object(&bytes).map(Fields::new).map(Self)
        })
    }
}

fn check_content_type(request: &HttpRequest) -> Result<(), Problem> {
    let given = request.headers().get(CONTENT_TYPE);
    let essence = given
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    if essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(unsupported_media_type())
}

pub(crate) fn unsupported_media_type() -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        "The body must be JSON: send it with `Content-Type: application/json`.",
    )
}

/// `413 body-too-large`, for a body longer than [`BODY_LIMIT`].
#[must_use]
pub fn body_too_large() -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body-too-large",
        "The body must have at most 256 KiB (262144 bytes).",
    )
}

async fn read(request: &HttpRequest, mut payload: Payload) -> Result<BytesMut, Problem> {
    let declared = request.headers().get(CONTENT_LENGTH);
    let declared = declared.and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > BODY_LIMIT) {
        return Err(body_too_large());
    }
    let mut body = BytesMut::with_capacity(declared.unwrap_or(0));
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|_| incomplete_body())?;
        if body.len() + chunk.len() > BODY_LIMIT {
            return Err(body_too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Problem::invalid_field(
            "body",
            Invalid::new("invalid-type", "Must be a JSON object."),
        )),
        Err(error) => Err(malformed_json(error.line(), error.column())),
    }
}

/// `400 incomplete-body`, for a body that ends before its declared length.
#[must_use]
pub fn incomplete_body() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "incomplete-body",
        "The body ended before its declared length. Send it again.",
    )
}

pub(crate) fn malformed_json(line: usize, column: usize) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "malformed-json",
        format!("The body is not JSON: see line {line}, column {column}."),
    )
}
