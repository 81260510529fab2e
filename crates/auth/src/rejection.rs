/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It is malformed, or from another issuer, or for another audience.
    #[error("the token is not valid")]
    Invalid,
    /// Its key is unknown, or not yet known.
    #[error("the token's key is unknown")]
    UnknownKey,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// The user's epoch was raised since it was issued: the password or the user was changed, or the user was deleted.
    /// Or it is of another incarnation of the database, such as one before a restore.
    #[error("the token was revoked")]
    Revoked,
    /// The epochs of its incarnation are not yet known.
    #[error("the token cannot be verified yet")]
    NotReady,
}
