use actix_web::body::{BodySize, BodyStream, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, HeaderValue};
use actix_web::middleware::Next;
use bytes::Bytes;
use futures_util::stream::{Empty, empty};

/// No body, with the headers of one.
type Nothing = BodyStream<Empty<Result<Bytes, std::io::Error>>>;

/// Middleware: leaves the body out of the answer to a `HEAD` and keeps its length (RFC 9110 section 9.3.2).
///
/// The library that serves HTTP would do so, too, but by the request that it has read last: if another one
/// follows in the same breath, it sends the body all the same.
///
/// # Errors
/// The error of an inner middleware.
pub(crate) async fn leave_body_out<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, Nothing>>, actix_web::Error> {
    let asked_for_head = request.method() == Method::HEAD;
    let mut response = next.call(request).await?;
    let size = response.response().body().size();
    if !asked_for_head || size == BodySize::None {
        return Ok(response.map_into_left_body());
    }
    if let BodySize::Sized(length) = size {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    response.response_mut().head_mut().no_chunking(true);
    Ok(response.map_body(|_, _| EitherBody::right(BodyStream::new(empty()))))
}
