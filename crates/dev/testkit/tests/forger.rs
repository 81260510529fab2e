//! The table of invalid tokens, against the verifier.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use auth::{FeedReader, FeedSource, Rejection, RevocationFeed, Signer, SigningKey, Verifier};
use testkit::{Forger, INCARNATION};
use values::UserId;

const ISSUER: &str = "countersign";

/// A feed that says nothing but the incarnation.
struct Feed;

impl FeedSource for Feed {
    type Error = Infallible;

    async fn read(&self, _: Option<&str>) -> Result<RevocationFeed, Infallible> {
        Ok(RevocationFeed {
            incarnation: INCARNATION.to_owned(),
            ..RevocationFeed::default()
        })
    }
}

#[tokio::test]
async fn every_forged_token_is_rejected_and_the_valid_one_accepted() {
    let pem = testkit::ed25519_pem();
    let key = SigningKey::from_pem(&pem).unwrap();
    let lifetime = Duration::from_secs(60);
    let signer = Signer::new(&key, &[], ISSUER.to_owned(), ISSUER.to_owned(), lifetime);
    let verifier = Arc::new(Verifier::new(ISSUER, ISSUER));
    verifier.set_keys(signer.published());
    let mut reader = FeedReader::new(Arc::clone(&verifier));
    reader.poll(&Feed).await.unwrap();
    let forger = Forger::new(&pem, UserId::generate(), INCARNATION);
    assert!(verifier.verify(&forger.good()).is_ok());
    for forgery in forger.forgeries() {
        let verified = verifier.verify(&forgery.token);
        let expected = matches!(
            (forgery.code, &verified),
            ("token-expired", Err(Rejection::Expired))
                | ("token-revoked", Err(Rejection::Revoked))
                | (
                    "invalid-token",
                    Err(Rejection::Invalid | Rejection::UnknownKey)
                )
        );
        assert!(expected, "{}: {verified:?}", forgery.what);
    }
}
