//! Requests as bytes, so that a measurement formats nothing.

use serde_json::Value;

/// Returns the bytes of a request.
pub(crate) fn request(
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n");
    if let Some(token) = token {
        head.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    let body = body.map(Value::to_string);
    if body.is_some() {
        head.push_str("content-type: application/json\r\n");
    }
    if method != "GET" {
        let length = body.as_ref().map_or(0, String::len);
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.push_str(body.as_deref().unwrap_or_default());
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::request;

    #[test]
    fn a_body_has_its_type_and_length() {
        let bytes = request("POST", "/a", Some("t"), Some(&json!({"b": 1})));
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "POST /a HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer t\r\n\
             content-type: application/json\r\ncontent-length: 7\r\n\r\n{\"b\":1}"
        );
    }

    #[test]
    fn a_request_without_a_body_says_so_unless_it_reads() {
        let put = String::from_utf8(request("PUT", "/a", None, None)).unwrap();
        assert!(put.contains("content-length: 0\r\n"), "{put}");
        let get = String::from_utf8(request("GET", "/a", None, None)).unwrap();
        assert!(!get.contains("content-length"), "{get}");
    }
}
