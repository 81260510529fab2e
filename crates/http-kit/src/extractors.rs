/// Implements [`FromRequest`](actix_web::FromRequest) for types that handlers extract from a request. Each has an expression
/// that makes one of a request, and of its body if a second name is given for it, or fails with a problem. It may wait.
///
/// ```
/// struct Agent(String);
///
/// http_kit::extractors! {
///     Agent = |request| {
///         let agent = request.headers().get("user-agent");
///         let agent = agent.ok_or_else(|| http_kit::Problem::forbidden("Say who you are."))?;
///         Ok(Self(String::from_utf8_lossy(agent.as_bytes()).into_owned()))
///     };
/// }
/// ```
#[macro_export]
macro_rules! extractors {
    ($($type:ty = |$request:ident $(, $payload:ident)?| $extract:expr;)+) => {$(
        impl actix_web::FromRequest for $type {
            type Error = $crate::Problem;
            type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self, $crate::Problem>>>>;

            fn from_request(
                request: &actix_web::HttpRequest,
                _payload: &mut actix_web::dev::Payload,
            ) -> Self::Future {
                let $request = request.clone();
                $(let $payload = _payload.take();)?
                Box::pin(async move { $extract })
            }
        }
    )+};
}
