use actix_web::web::{Data, PathConfig, ServiceConfig, get, to};
use actix_web::{HttpRequest, HttpResponse};
use utoipa::Modify;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};

use crate::{Health, Problem, Routes, healthz, readyz};

/// A service's OpenAPI document, and the routes that it names.
#[derive(Debug)]
pub struct Document {
    json: String,
    routes: Routes,
}

impl Document {
    /// Serializes the document once, for all requests.
    ///
    /// # Errors
    /// The document cannot be serialized.
    pub fn new(document: &OpenApi) -> Result<Self, serde_json::Error> {
        Ok(Self {
            json: document.to_json()?,
            routes: Routes::of(document),
        })
    }
}

/// Adds the security scheme `bearer` to a document.
#[derive(Debug)]
pub struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("The access token of sign-in or sign-up, or an API key (`csk_…`). What each call needs of a key is in the API guide; a key without it gets `403`."));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    }
}

/// Completes the operations of a document: one that names no `security` takes an access token, one without a tag gets `tag`,
/// and the name of its handler is its identifier in camel case, unless it has another. A parameter such as `userId` that has no
/// description gets one.
#[must_use]
pub fn complete(mut document: OpenApi, tag: &str) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        let methods = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        for operation in methods.into_iter().flatten() {
            let bearer = || vec![SecurityRequirement::new("bearer", Vec::<String>::new())];
            operation.security.get_or_insert_with(bearer);
            let tags = operation.tags.get_or_insert_default();
            if tags.is_empty() {
                tags.push(tag.to_owned());
            }
            operation.operation_id = operation.operation_id.as_deref().map(camel_case);
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && let Some(what) = parameter.name.strip_suffix("Id")
                {
                    let id = format!("The {what}'s id: 24 lower-case hexadecimal digits.");
                    parameter.description.get_or_insert(id);
                }
            }
        }
    }
    document
}

fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut starts_word = false;
    for letter in name.chars() {
        match letter {
            '_' => starts_word = true,
            _ if std::mem::take(&mut starts_word) => camel.push(letter.to_ascii_uppercase()),
            _ => camel.push(letter),
        }
    }
    camel
}

/// Adds what both services have in addition to their own routes: `/healthz`, `/readyz`, `/openapi.json`, `404` for
/// a path parameter of the wrong form, and `404` or `405` for requests that no route takes.
pub fn mount(config: &mut ServiceConfig, health: Data<Health>, document: Data<Document>) {
    config
        .app_data(health)
        .app_data(document)
        .app_data(PathConfig::default().error_handler(|_, _| Problem::not_found("path").into()))
        .route("/healthz", get().to(healthz))
        .route("/readyz", get().to(readyz))
        .route("/openapi.json", get().to(openapi_json))
        .default_service(to(fallback));
}

async fn openapi_json(document: Data<Document>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(document.json.clone())
}

async fn fallback(request: HttpRequest, document: Data<Document>) -> Result<HttpResponse, Problem> {
    Err(document.routes.refuse(&request))
}
