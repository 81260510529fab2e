use std::time::{SystemTime, UNIX_EPOCH};

use auth::{Signer, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use serde_json::{Value, json};
use values::{Secret, UserId};

use crate::http::Http;

const ISSUER: &str = "countersign";

/// The incarnation of the database that tokens name.
pub const INCARNATION: &str = "test";

/// Makes invalid tokens, without the library that signs valid ones. Some are what an attacker without the private
/// key can make, others only the owner of the key.
#[derive(Debug)]
pub struct Forger {
    key: SigningKey,
    subject: UserId,
    incarnation: String,
}

#[derive(Debug, Clone)]
pub struct Forgery {
    /// What is wrong with it.
    pub what: String,
    pub token: String,
    /// The code of the expected problem.
    pub code: &'static str,
}

impl Forger {
    /// Creates a forger of tokens for `subject`. `key` is the PEM text of the key that the service under test trusts,
    /// `incarnation` that of its database.
    pub fn new(key: &Secret, subject: UserId, incarnation: &str) -> Self {
        Self {
            key: SigningKey::from_pem(key).unwrap(),
            subject,
            incarnation: incarnation.to_owned(),
        }
    }

    /// Returns a valid token, which proves that the others fail for their own reasons.
    pub fn good(&self) -> String {
        forge(&self.key, &header(&self.key), &self.claims())
    }

    pub fn forgeries(&self) -> Vec<Forgery> {
        [
            self.forged_headers(),
            self.forged_keys(),
            self.forged_claims(),
            self.forged_bytes(),
        ]
        .concat()
    }

    fn claims(&self) -> Value {
        let id = self.subject;
        json!({
            "iss": ISSUER, "aud": ISSUER, "sub": id, "id": id, "jti": "1", "iat": now(), "exp": now() + 600,
            "email": "ada@example.com", "username": "ada@example.com", "scope": ["user", "admin"], "epoch": 1,
            "incarnation": self.incarnation
        })
    }

    /// Tokens that the right key signed, so that only the header is wrong.
    fn forged_headers(&self) -> Vec<Forgery> {
        let kid = self.key.public().key_id();
        let headers = [
            json!({"alg": "none", "kid": kid}),
            json!({"alg": "None", "typ": "JWT", "kid": kid}),
            json!({"alg": "RS256", "kid": kid}),
            json!({"alg": "ES256", "kid": kid}),
            json!({"alg": ["EdDSA"], "kid": kid}),
            json!({"kid": kid}),
            json!({"alg": "EdDSA"}),
            json!({"alg": "EdDSA", "kid": 7}),
            json!({"alg": "EdDSA", "kid": "../../etc/passwd"}),
            json!({"alg": "EdDSA", "kid": "' OR 1=1 --"}),
            json!({"alg": "EdDSA", "kid": ""}),
            json!({"alg": "EdDSA", "kid": "\u{0}"}),
            json!({"alg": "EdDSA", "kid": "http://127.0.0.1:1/jwks.json"}),
            json!([]),
        ];
        let forged = headers.iter().map(|header| {
            let token = forge(&self.key, header, &self.claims());
            invalid(format!("the header {header}"), token)
        });
        forged.collect()
    }

    fn forged_keys(&self) -> Vec<Forgery> {
        let stranger = SigningKey::from_pem(&ed25519_pem()).unwrap();
        let (own, claims) = (self.key.public(), self.claims());
        let symmetric = json!({"alg": "HS256", "typ": "JWT", "kid": own.key_id()});
        let jwk = json!(own.jwk());
        let public = BASE64.decode(jwk["x"].as_str().unwrap()).unwrap();
        let embedded = json!({"alg": "EdDSA", "kid": own.key_id(), "jwk": stranger.public().jwk()});
        let remote = json!({"alg": "EdDSA", "kid": own.key_id(), "jku": "http://127.0.0.1:1/"});
        let text = jwk["x"].as_str().unwrap().as_bytes();
        let (trusted, strange) = (header(&self.key), header(&stranger));
        let symmetric = signed(&symmetric, &claims);
        let hmac = |secret: &[u8]| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            let tag = hmac::sign(&key, symmetric.as_bytes());
            format!("{symmetric}.{}", BASE64.encode(tag))
        };
        let by = |header: &Value| forge(&stranger, header, &claims);
        vec![
            invalid("the public key as a symmetric secret", hmac(&public)),
            invalid("the public key's text as a symmetric secret", hmac(text)),
            invalid("another key with the trusted key's id", by(&trusted)),
            invalid("another key with its own id", by(&strange)),
            invalid("a key in the token's header", by(&embedded)),
            invalid("a key at a URL in the token's header", by(&remote)),
        ]
    }

    fn forged_claims(&self) -> Vec<Forgery> {
        let claims = self.claims();
        let missing = claims.as_object().unwrap().keys().map(|name| {
            let mut claims = claims.clone();
            claims.as_object_mut().unwrap().remove(name);
            let token = forge(&self.key, &header(&self.key), &claims);
            invalid(format!("no claim {name}"), token)
        });
        let restored = Forgery {
            code: "token-revoked",
            ..self.wrong_claim("incarnation", json!("another"))
        };
        let wrong = wrong_claims().into_iter();
        let wrong = wrong.map(|(name, value)| self.wrong_claim(name, value));
        let expired = Forgery {
            code: "token-expired",
            ..self.wrong_claim("exp", json!(now() - 31))
        };
        missing.chain(wrong).chain([restored, expired]).collect()
    }

    fn wrong_claim(&self, name: &str, value: Value) -> Forgery {
        let what = format!("the claim {name}: {value}");
        let mut claims = self.claims();
        claims[name] = value;
        invalid(what, forge(&self.key, &header(&self.key), &claims))
    }

    fn forged_bytes(&self) -> Vec<Forgery> {
        let good = self.good();
        let parts: Vec<_> = good.split('.').collect();
        let mut claims = self.claims();
        claims["scope"] = json!(["user"]);
        let other = BASE64.encode(claims.to_string());
        let long = "A".repeat(20_000);
        vec![
            invalid("other claims", format!("{}.{other}.{}", parts[0], parts[2])),
            invalid("no signature", format!("{}.{}.", parts[0], parts[1])),
            invalid("two parts", format!("{}.{}", parts[0], parts[1])),
            invalid("four parts", format!("{good}.{}", parts[2])),
            invalid("a long signature", format!("{good}{long}")),
            invalid("a very long token", format!("{long}.{long}.{long}")),
            invalid("dots", "..".to_owned()),
            invalid("words", "a.b.c".to_owned()),
        ]
    }
}

/// Returns a new Ed25519 private key as PEM text, which settings accept.
pub fn ed25519_pem() -> Secret {
    Secret::new(rig::ed25519_pem())
}

/// Asserts that a path which requires a token refuses all forgeries with `401`, and a valid token that is sent in
/// a wrong way.
pub async fn expect_forgeries_refused(http: &Http, path: &str, forger: &Forger) {
    for forgery in forger.forgeries() {
        let reply = http.get(path).bearer(&forgery.token).send().await;
        assert_eq!(
            (reply.status, reply.json["code"].as_str()),
            (401, Some(forgery.code)),
            "{}: {}",
            forgery.what,
            reply.text
        );
        reply.expect_problem(401, forgery.code);
        let challenge = reply.header("www-authenticate").unwrap_or_default();
        assert!(challenge.starts_with("Bearer "), "{}", forgery.what);
    }
    let good = forger.good();
    for value in [
        format!("Bearer {good} {good}"),
        format!("Bearer {good}, Bearer {good}"),
        format!("Bearer={good}"),
        format!("Token {good}"),
        format!("Basic {good}"),
        good.clone(),
    ] {
        let reply = http.get(path).header("authorization", &value).send().await;
        reply.expect_problem(401, "invalid-token");
    }
    let twice = http.get(path).bearer(&good).bearer(&good).send().await;
    twice.expect_problem(401, "invalid-token");
    let separator = if path.contains('?') { '&' } else { '?' };
    for name in ["token", "access_token", "authorization", "jwt"] {
        let path = format!("{path}{separator}{name}={good}");
        let reply = http.get(&path).send().await;
        reply.expect_problem(401, "token-missing");
    }
    expect_missing_tokens(http, path).await;
    // Schemes are case-insensitive (RFC 9110 section 11.1).
    let lower = format!("bearer {good}");
    let reply = http.get(path).header("authorization", &lower).send().await;
    assert_ne!(reply.json["code"], "invalid-token", "{}", reply.text);
}

/// Asserts that what clients send without a token counts as none.
async fn expect_missing_tokens(http: &Http, path: &str) {
    for value in ["", "Bearer", "Bearer ", "Bearer null", "bearer undefined"] {
        let reply = http.get(path).header("authorization", value).send().await;
        reply.expect_problem(401, "token-missing");
    }
}

/// Claims with a wrong value or a value of a wrong type.
fn wrong_claims() -> Vec<(&'static str, Value)> {
    vec![
        ("iss", json!("someone-else")),
        ("iss", json!([ISSUER])),
        ("aud", json!("someone-else")),
        ("aud", json!(Signer::SERVICE_AUDIENCE)),
        ("exp", json!((now() + 60).to_string())),
        ("exp", json!(-1)),
        ("exp", json!(null)),
        ("exp", json!(1e300)),
        ("iat", json!(now() + 3600)),
        ("nbf", json!(now() + 3600)),
        ("id", json!(UserId::generate())),
        ("sub", json!("admin")),
        ("sub", json!({"$ne": null})),
        ("scope", json!("admin")),
        ("scope", json!([1])),
        ("epoch", json!("9")),
        ("epoch", json!(1.5)),
    ]
}

fn invalid(what: impl Into<String>, token: String) -> Forgery {
    Forgery {
        what: what.into(),
        token,
        code: "invalid-token",
    }
}

fn header(key: &SigningKey) -> Value {
    json!({"alg": "EdDSA", "typ": "JWT", "kid": key.public().key_id()})
}

fn signed(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn forge(key: &SigningKey, header: &Value, claims: &Value) -> String {
    let signed = signed(header, claims);
    let signature = BASE64.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs()
}
