use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use values::{Invalid, UntrustedJson};

use crate::{Fields, Problem, exact_json};

/// The largest body that is read: 256 KiB.
pub const BODY_LIMIT: usize = 256 * 1024;
const UTF_8: &str = "JSON must be UTF-8 without a byte order mark.";

/// A JSON object of at most [`BODY_LIMIT`] bytes.
///
/// `415` for another content type or encoding, `413` for a longer body, `400` if it is not a JSON object.
#[derive(Debug)]
pub struct JsonBody(pub Fields);

/// Like [`JsonBody`], for operations without a required body: an empty body and `null` are an empty object.
#[derive(Debug)]
pub struct OptionalJsonBody(pub Fields);

crate::extractors! {
    JsonBody = |request, payload| {
        check_headers(&request)?;
        parse_object(read(&request, payload).await?).map(Self)
    };
    OptionalJsonBody = |request, payload| {
        let bytes = read(&request, payload).await?;
        if !bytes.is_empty() {
            check_headers(&request)?;
        }
        if bytes.is_empty() || bytes.trim_ascii() == b"null" {
            return Ok(Self(Fields::new(Map::new())));
        }
        parse_object(bytes).map(Self)
    };
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
        Ok(UntrustedJson(Value::Object(object))) => {
            return Ok(Fields::of_body(object, bytes.freeze()));
        }
        Ok(_) => {
            let invalid = Invalid::new("invalid-type", "Must be a JSON object.");
            return wrong("body", invalid);
        }
        Err(error) if error.is_data() => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed-json",
                error.to_string(),
            ));
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

/// Checks that the headers of a request announce JSON in UTF-8 that is not compressed.
fn check_headers(request: &HttpRequest) -> Result<(), Problem> {
    let headers = request.headers();
    if is_compressed(headers) {
        return Err(compressed_body());
    }
    let given = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let given = given.and_then(Result::ok).unwrap_or_default();
    let mut parts = given.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(unsupported_media_type());
    }
    if parts.all(is_utf_8_or_no_charset) {
        Ok(())
    } else {
        Err(refusal(format!(
            "The `charset` of the `Content-Type` must be utf-8. {UTF_8}"
        )))
    }
}

fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).any(|line| {
        let codings = line.as_bytes().split(|byte| *byte == b',');
        let mut codings = codings.map(<[u8]>::trim_ascii);
        codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
    })
}

/// US-ASCII is a part of UTF-8.
fn is_utf_8_or_no_charset(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return true;
    };
    let value = value.trim().trim_matches('"');
    let is_named = |name: &&str| value.eq_ignore_ascii_case(name);
    !name.trim().eq_ignore_ascii_case("charset")
        || ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(is_named)
}

/// Why a body that is not JSON cannot be read, if its first bytes or its encoding say so.
fn explain(body: &[u8]) -> Option<Problem> {
    let detail = match body {
        [0x1f, 0x8b, ..] => return Some(compressed_body()),
        [0xef, 0xbb, 0xbf, ..] => {
            format!("The body begins with a byte order mark (EF BB BF). {UTF_8}")
        }
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, _, ..] | [_, 0, 0, 0, ..] => {
            format!("The body is in UTF-32. {UTF_8}")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
            format!("The body is in UTF-16. {UTF_8}")
        }
        _ => {
            let position = str::from_utf8(body).err()?.valid_up_to() + 1;
            format!(
                "The body is not UTF-8, but perhaps Latin-1 or another encoding: see byte {position}. {UTF_8}"
            )
        }
    };
    let status = StatusCode::BAD_REQUEST;
    Some(Problem::new(status, "malformed-json", detail))
}

fn compressed_body() -> Problem {
    refusal(
        "The body is compressed. Send it without compression: without `Content-Encoding`, or with `identity`.",
    )
    .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
}

pub(crate) fn unsupported_media_type() -> Problem {
    refusal("The body must be JSON: send it with `Content-Type: application/json`.")
}

fn refusal(detail: impl Into<String>) -> Problem {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Problem::new(status, "unsupported-media-type", detail.into())
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::test::TestRequest;

    use super::{check_headers, explain};

    fn refusal(headers: &[(&'static str, &str)]) -> Option<String> {
        let mut request = TestRequest::default();
        for header in headers {
            request = request.append_header(*header);
        }
        let problem = check_headers(&request.to_http_request()).err()?;
        assert_eq!(problem.status_code(), 415);
        Some(problem.body().detail.clone())
    }

    #[test]
    fn json_in_utf_8_is_accepted() {
        for content_type in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json ; Charset = utf8",
            "application/json; charset=US-ASCII",
            "application/json; profile=x;",
        ] {
            assert_eq!(
                refusal(&[("content-type", content_type)]),
                None,
                "{content_type}"
            );
        }
        for encoding in ["identity", "Identity", "", "identity, identity"] {
            let headers = [
                ("content-type", "application/json"),
                ("content-encoding", encoding),
            ];
            assert_eq!(refusal(&headers), None, "{encoding}");
        }
    }

    #[test]
    fn another_type_charset_or_coding_is_named() {
        let json = ("content-type", "application/json");
        for (headers, expected) in [
            (&[][..], "must be JSON"),
            (
                &[("content-type", "text/plain; charset=utf-8")],
                "must be JSON",
            ),
            (
                &[("content-type", "application/json; charset=iso-8859-1")],
                "must be utf-8",
            ),
            (
                &[("content-type", "application/json; a=b; charset=UTF-16LE")],
                "must be utf-8",
            ),
            (&[json, ("content-encoding", "gzip")], "compressed"),
            (&[json, ("content-encoding", "identity, BR")], "compressed"),
            (
                &[
                    json,
                    ("content-encoding", "identity"),
                    ("content-encoding", "deflate"),
                ],
                "compressed",
            ),
        ] {
            let detail = refusal(headers).unwrap();
            assert!(detail.contains(expected), "{headers:?}: {detail}");
        }
    }

    fn utf_16(mark: &[u8], order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let text = "{\"a\":1}".encode_utf16().flat_map(order);
        mark.iter().copied().chain(text).collect()
    }

    fn utf_32(mark: &[u8], order: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let text = "{}".chars().map(u32::from).flat_map(order);
        mark.iter().copied().chain(text).collect()
    }

    #[test]
    fn the_encoding_of_a_body_is_named() {
        for (body, status, expected) in [
            (b"\x1f\x8b\x08\0".to_vec(), 415, "compressed"),
            (b"\xef\xbb\xbf{}".to_vec(), 400, "byte order mark"),
            (utf_16(b"", u16::to_le_bytes), 400, "UTF-16"),
            (utf_16(b"", u16::to_be_bytes), 400, "UTF-16"),
            (utf_16(b"\xff\xfe", u16::to_le_bytes), 400, "UTF-16"),
            (utf_16(b"\xfe\xff", u16::to_be_bytes), 400, "UTF-16"),
            (utf_32(b"", u32::to_le_bytes), 400, "UTF-32"),
            (utf_32(b"", u32::to_be_bytes), 400, "UTF-32"),
            (utf_32(b"\xff\xfe\0\0", u32::to_le_bytes), 400, "UTF-32"),
            (utf_32(b"\0\0\xfe\xff", u32::to_be_bytes), 400, "UTF-32"),
            (b"{\"a\": \"\xfc\"}".to_vec(), 400, "not UTF-8"),
            (b"{\"a\": \"\xfc\"}".to_vec(), 400, "see byte 8"),
        ] {
            let problem = explain(&body).unwrap();
            assert_eq!(problem.status_code(), status, "{body:?}");
            let detail = problem.body().detail;
            assert!(detail.contains(expected), "{body:?}: {detail}");
        }
        for body in [&b"{"[..], b"", b"a", "{\"ü\"}".as_bytes()] {
            assert!(explain(body).is_none());
        }
    }
}
