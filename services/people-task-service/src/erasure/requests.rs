use http_kit::{FieldError, Fields, Problem};
use values::{EmailAddress, FromText as _};

/// What the deletion-worker knows about a deleted user.
#[derive(Debug)]
pub(crate) struct EraseRequest {
    /// The user's e-mail addresses.
    pub(crate) emails: Vec<EmailAddress>,
    /// The incarnation of the database that the user is deleted from. Workers of version 0.1 do not send it.
    pub(crate) incarnation: Option<String>,
}

impl EraseRequest {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `400` with every invalid field.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let texts: Option<Vec<String>> = fields.required("emails");
        let incarnation = fields.optional("incarnation");
        fields.finish()?;
        let emails = texts.iter().flatten().map(|text| {
            EmailAddress::from_text(text)
                .map_err(|invalid| Problem::validation(vec![FieldError::new("emails", invalid)]))
        });
        Ok(Self {
            emails: emails.collect::<Result<_, _>>()?,
            incarnation,
        })
    }
}
