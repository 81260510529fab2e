use http_kit::{FieldValue, Fields, Problem};
use outbound::{InvalidUrl, TargetUrl};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaFormat};
use values::{FromText, Invalid, Names as _, TaskId, WebhookId, bounded_text};

use crate::error::TaskError;
use crate::header_keys::HeaderKeys;
use crate::status::WebhookEvent;
use crate::tasks::TaskField;
use crate::webhook_options::{
    self, BodyTemplate, CallMethod, Include, NewHeaders, Success, WebhookOptions,
};
use crate::webhook_signature::WebhookSecret;

const MAX_URL: usize = 2_048;
/// Base64 of 24 to 64 bytes after the prefix.
const SECRET_PATTERN: &str = "^whsec_([A-Za-z0-9+/]{4}){8,20}([A-Za-z0-9+/]{4}([A-Za-z0-9+/][AQgw]==)?|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// A new webhook.
#[derive(Debug, ToSchema)]
pub(crate) struct RegisterWebhookRequest {
    #[serde(flatten)]
    pub(crate) webhook: NewWebhookFields,
    /// The task's id.
    #[schema(rename = "taskId")]
    pub(crate) task: TaskId,
}

impl RegisterWebhookRequest {
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let webhook = NewWebhookFields::read(&mut fields);
        let task = fields.required("taskId");
        let request = webhook
            .zip(task)
            .map(|(webhook, task)| Self { webhook, task });
        fields.finish_with(request)
    }
}

/// The fields of a new webhook.
#[derive(Debug, ToSchema)]
pub(crate) struct NewWebhookFields {
    /// Where to send the call: http or https, without user name and password. It is kept and called byte for byte as
    /// given; only what no request line can have is percent-encoded, and the fragment is not sent.
    pub(crate) url: WebhookUrl,
    /// A signing secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. With it, calls also
    /// carry a `v1` signature, which is the only one of calls with a `body` of their own. It is never returned.
    #[schema(inline)]
    pub(crate) secret: Option<WebhookSecret>,
    /// What to call it for. By default that is the decision, `approved` or `rejected`; under
    /// `/plugins/appmixer/utils/tasks` also `due`, which happens when `decisionBy` passes while the task is pending. Of
    /// `cancelled`, which happens when the task is withdrawn, only webhooks hear that name it.
    #[schema(inline)]
    pub(crate) events: Option<Events>,
    /// Fields that the body has beside the usual ones. `metadata` is for the task's creator and administrators.
    #[schema(inline)]
    pub(crate) include: Option<Include>,
    /// Headers of the calls: at most 10, with at most 4 KiB of names and values together. Responses have their names only.
    /// Names that HTTP, the signature or the client sets are refused. They go over https, or to an origin that the
    /// operator lists in `WEBHOOK_ENGINE_ORIGINS`. They need `WEBHOOK_HEADER_KEYS` of the operator.
    #[schema(inline)]
    pub(crate) headers: Option<NewHeaders>,
    /// The method of the calls, by default `POST`.
    #[schema(inline)]
    pub(crate) method: Option<CallMethod>,
    /// The body of the calls, in place of the task: any JSON of at most 16 KiB. A string that is exactly `{{name}}` becomes
    /// that value as JSON, and `{{name}}` inside of a longer string its text (nothing for null). Names are the fields of a
    /// task, those that `include` can name, and `metadata.` with a key. Nothing else is evaluated.
    #[schema(inline)]
    pub(crate) body: Option<BodyTemplate>,
    /// When a call has succeeded, in place of any status of 2xx: `status` lists the statuses; with `pointer`, the answer must
    /// be JSON of at most 64 KiB that has this place (an empty string is the whole answer), and with `value` exactly that
    /// there. Any other answer is a failed attempt, which is repeated. `410`, `429` and `503` always mean the same.
    #[schema(inline)]
    pub(crate) success: Option<Success>,
}

impl NewWebhookFields {
    /// Parses the fields of a webhook in a body. It returns `None` only if it has recorded an error.
    pub(crate) fn read(fields: &mut Fields) -> Option<Self> {
        let url = fields.required("url");
        Some(Self {
            secret: fields.optional("secret"),
            events: fields.optional("events"),
            include: fields.optional("include"),
            headers: fields.optional("headers"),
            method: fields.optional("method"),
            body: fields.optional("body"),
            success: fields.optional("success"),
            // Last, so that every other error is recorded.
            url: url?,
        })
    }

    /// The names of the fields by which a caller shapes the request itself.
    pub(crate) fn shaping(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("headers", self.headers.is_some()),
            ("method", self.method.is_some()),
            ("body", self.body.is_some()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// The name of the field by which calls tell the task's metadata.
    pub(crate) fn telling_metadata(&self) -> Option<&'static str> {
        let includes = |include: &Include| include.0.contains(&TaskField::Metadata);
        if self.include.as_ref().is_some_and(includes) {
            return Some("include");
        }
        let body = self.body.as_ref();
        body.is_some_and(|body| body.names_metadata)
            .then_some("body")
    }

    /// How the calls of the webhook differ from others; `None` if they do not.
    pub(crate) fn options(
        &self,
        keys: &HeaderKeys,
        webhook: WebhookId,
    ) -> Result<Option<WebhookOptions>, TaskError> {
        if self.include.is_none() && self.success.is_none() && self.shaping().next().is_none() {
            return Ok(None);
        }
        let seal = |headers: &NewHeaders| {
            let sealed = keys.seal(webhook, &headers.0);
            sealed.ok_or(TaskError::NoHeaderKeys)
        };
        let include = self.include.iter().flat_map(|include| &include.0);
        Ok(Some(WebhookOptions {
            version: webhook_options::VERSION,
            include: include.map(|field| field.name().to_owned()).collect(),
            headers: self.headers.as_ref().map(seal).transpose()?,
            method: self.method,
            body: self.body.as_ref().map(|body| body.json.clone()),
            success: self.success.clone(),
        }))
    }
}

/// Where a webhook is sent: http or https, at most 2,048 characters, kept and called as given.
#[derive(Debug, Clone)]
pub(crate) struct WebhookUrl {
    given: String,
    target: TargetUrl,
}

impl WebhookUrl {
    /// The URL, byte for byte as given.
    pub(crate) fn as_str(&self) -> &str {
        &self.given
    }

    /// The URL, to check its address.
    pub(crate) fn parsed(&self) -> &Url {
        self.target.parsed()
    }
}

impl FromText for WebhookUrl {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        bounded_text(text, 1, MAX_URL)?;
        let target = TargetUrl::parse_new(text).map_err(|invalid| match invalid {
            InvalidUrl::Malformed => Invalid::new(
                "invalid-url",
                "Must be a URL that begins with http:// or https:// and a host of at most 253 characters.",
            ),
            InvalidUrl::Credentials => Invalid::new(
                "credentials-in-url",
                "Must not contain a user name or a password. Send them with `headers`: {\"Authorization\": \"Basic …\"}.",
            ),
        })?;
        let given = text.to_owned();
        Ok(Self { given, target })
    }
}

http_kit::text_fields! {
    WebhookUrl = ObjectBuilder::new()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .max_length(Some(MAX_URL))
        .examples(["https://engine.example.com/flows/1?correlationId=42"]);
    WebhookSecret = ObjectBuilder::new().pattern(Some(SECRET_PATTERN));
}

/// The events that a webhook is called for, at least one.
#[derive(Debug, Clone)]
pub(crate) struct Events(pub(crate) Vec<WebhookEvent>);

impl FieldValue for Events {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let names = Vec::<String>::from_json(value)?;
        if names.is_empty() {
            return Err(Invalid::new("too-short", "Must name at least one event."));
        }
        let events = names.iter().map(|name| WebhookEvent::from_text(name));
        events.collect::<Result<_, _>>().map(Self)
    }
}

http_kit::schemas! {
    Events = {
        let events = ArrayBuilder::new().items(WebhookEvent::schema());
        events.min_items(Some(1))
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use values::FromText as _;

    use super::WebhookUrl;

    #[test]
    fn a_url_is_kept_byte_for_byte() {
        for text in [
            "http://engine.example.com/flows/1?correlationId=a%2Fb&correlationInPort=in",
            "HTTPS://Engine.Example.com:443/%7euser/../x?b=2&a=1#part",
            "http://127.0.0.1:8090",
            "http://[::1]/a'b?c=d e|ü",
        ] {
            assert_eq!(WebhookUrl::from_text(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn only_http_and_https_urls_are_valid() {
        for text in [
            "",
            "engine.example.com",
            "/flows/1",
            "ftp://engine.example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "http://",
            " http://engine.example.com/",
            "http://engine.example.com/\n",
            "http://engine.exa\tmple.com/",
            "http://engine.example.com/\0",
        ] {
            assert!(WebhookUrl::from_text(text).is_err(), "{text:?}");
        }
        let refused = WebhookUrl::from_text("http://user:password@engine.example.com/");
        assert_eq!(refused.unwrap_err().code, "credentials-in-url");
        let long = format!("http://example.com/{}", "a".repeat(2_048 - 19));
        assert!(WebhookUrl::from_text(&long).is_ok());
        assert!(WebhookUrl::from_text(&format!("{long}a")).is_err());
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = WebhookUrl::from_text(&text);
        }

        #[test]
        fn a_valid_url_is_http_with_a_host(
            text in "[hH][tT]{1,2}[pP][sS]?[:/]{1,3}[ -~é]{0,40}",
        ) {
            if let Ok(url) = WebhookUrl::from_text(&text) {
                prop_assert_eq!(url.as_str(), text);
                let parsed = url.parsed();
                prop_assert!(matches!(parsed.scheme(), "http" | "https"));
                prop_assert!(parsed.has_host());
                prop_assert_eq!(&url::Url::parse(parsed.as_str()).unwrap(), parsed);
            }
        }
    }
}
