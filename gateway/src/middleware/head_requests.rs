use actix_web::body::{BodySize, BodyStream, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, HeaderValue};
use actix_web::middleware::Next;
use bytes::Bytes;
use futures_util::stream::{Empty, empty};

/// An empty body of which actix-web does not derive the length.
type NoBody = BodyStream<Empty<Result<Bytes, std::io::Error>>>;

/// Middleware: removes the body of the response to a `HEAD` and keeps its length (RFC 9110 section 9.3.2).
///
/// actix-web does so too, but it looks at the last request that it has read: with a pipelined request behind
/// the `HEAD`, it would send the body.
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn remove_body<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, NoBody>>, actix_web::Error> {
    let is_head = request.method() == Method::HEAD;
    let mut response = next.call(request).await?;
    let size = response.response().body().size();
    if !is_head || size == BodySize::None {
        return Ok(response.map_into_left_body());
    }
    if let BodySize::Sized(length) = size {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    response.response_mut().head_mut().no_chunking(true);
    Ok(response.map_body(|_, _| EitherBody::right(BodyStream::new(empty()))))
}
