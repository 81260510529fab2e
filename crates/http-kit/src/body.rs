use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::{FromRequest, HttpRequest};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};
use values::Invalid;

use crate::body_encoding::{check_headers, explain};
use crate::{Fields, Problem, exact_json};

/// The largest body that is read: 256 KiB.
pub const BODY_LIMIT: usize = 256 * 1024;

/// A JSON object of at most [`BODY_LIMIT`] bytes.
///
/// `415` for another content type or encoding, `413` for a longer body, `400` if it is not a JSON object.
#[derive(Debug)]
pub struct JsonBody(pub Fields);

/// Like [`JsonBody`], for operations without a required body: an empty body and `null` are an empty object.
#[derive(Debug)]
pub struct OptionalJsonBody(pub Fields);

impl FromRequest for JsonBody {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            check_headers(&request)?;
            let bytes = read(&request, payload).await?;
            parse_object(bytes).map(Self)
        })
    }
}

impl FromRequest for OptionalJsonBody {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let bytes = read(&request, payload).await?;
            if !bytes.is_empty() {
                check_headers(&request)?;
            }
            if bytes.is_empty() || bytes.trim_ascii() == b"null" {
                return Ok(Self(Fields::new(Map::new())));
            }
            parse_object(bytes).map(Self)
        })
    }
}

/// `413 body-too-large`, for a body longer than [`BODY_LIMIT`].
pub fn body_too_large() -> Problem {
    let detail = "The body must have at most 256 KiB (262144 bytes).";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
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

fn parse_object(bytes: BytesMut) -> Result<Fields, Problem> {
    let wrong = |name: &str, invalid| Err(Problem::invalid_field(name, invalid));
    let error = match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => return Ok(Fields::of_body(object, bytes.freeze())),
        Ok(_) => {
            let invalid = Invalid::new("invalid-type", "Must be a JSON object.");
            return wrong("body", invalid);
        }
        Err(error) => error,
    };
    match exact_json::field_with_huge_number(&bytes, &error) {
        Some(name) => wrong(&name, exact_json::inexact_number()),
        None => {
            Err(explain(&bytes).unwrap_or_else(|| malformed_json(error.line(), error.column())))
        }
    }
}

/// `400 incomplete-body`, for a body that ends before its declared length.
pub fn incomplete_body() -> Problem {
    let detail = "The body ended before its declared length. Send it again.";
    Problem::new(StatusCode::BAD_REQUEST, "incomplete-body", detail)
}

pub(crate) fn malformed_json(line: usize, column: usize) -> Problem {
    let detail = format!("The body is not JSON: see line {line}, column {column}.");
    Problem::new(StatusCode::BAD_REQUEST, "malformed-json", detail)
}
