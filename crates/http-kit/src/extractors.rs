/// Implements [`FromRequest`](actix_web::FromRequest) for types that handlers extract from a request without its body. Each
/// has an expression that makes one of a request, or fails with a problem. It may wait.
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
    ($($type:ty = |$request:ident| $extract:expr;)+) => {$(
        impl actix_web::FromRequest for $type {
            type Error = $crate::Problem;
            type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self, $crate::Problem>>>>;

            fn from_request(
                request: &actix_web::HttpRequest,
                _: &mut actix_web::dev::Payload,
            ) -> Self::Future {
                let $request = request.clone();
                Box::pin(async move { $extract })
            }
        }
    )+};
}
