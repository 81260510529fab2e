//! The table of invalid tokens, against the verifier.

use std::time::Duration;

use auth::{Rejection, Signer, SigningKey, Verifier};
use testkit::Forger;
use values::UserId;

const ISSUER: &str = "countersign";

#[test]
fn every_forged_token_is_rejected_and_the_valid_one_accepted() {
    let pem = SigningKey::generate_pem();
    let key = SigningKey::from_pem(&pem).unwrap();
    let lifetime = Duration::from_secs(60);
    let signer = Signer::new(&key, &[], ISSUER.to_owned(), ISSUER.to_owned(), lifetime);
    let verifier = Verifier::new(ISSUER, ISSUER);
    verifier.set_keys(signer.published());
    let forger = Forger::new(&pem, UserId::generate());
    assert!(verifier.verify(&forger.good()).is_ok());
    for forgery in forger.forgeries() {
        let verified = verifier.verify(&forgery.token);
        let expected = matches!(
            (forgery.code, &verified),
            ("token-expired", Err(Rejection::Expired))
                | (
                    "invalid-token",
                    Err(Rejection::Invalid | Rejection::UnknownKey)
                )
        );
        assert!(expected, "{}: {verified:?}", forgery.what);
    }
}
