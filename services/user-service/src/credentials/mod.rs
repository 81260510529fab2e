//! Credentials of users that can be revoked alone. A token that is issued for one names it, and ends with it: the revocation
//! feed lists the credentials that have ended.
//!
//! A credential is a row while it is valid; deleting the row ends it, and the database adds it to the feed. What revokes all
//! tokens of a user also ends the user's sessions, and a restore of the database ends all credentials.
//!
//! The only kind so far is the session of a browser: see `sessions`.

pub(crate) mod store;

values::names! {
    /// What a credential is.
    pub(crate) enum CredentialKind {
        /// A browser that stays signed in.
        Session = "session",
    }
}
