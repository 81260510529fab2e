use http_kit::{FieldError, Fields, Problem};
use values::{EmailAddress, FromText as _};

/// A deleted user's e-mail addresses.
#[derive(Debug)]
pub(crate) struct EraseRequest {
    pub(crate) emails: Vec<EmailAddress>,
}

impl EraseRequest {
    /// Parses the body of a request.
    ///
    /// # Errors
    /// `400` with every invalid field.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let texts: Option<Vec<String>> = fields.required("emails");
        fields.finish()?;
        let emails = texts.iter().flatten().map(|text| {
            EmailAddress::from_text(text)
                .map_err(|invalid| Problem::validation(vec![FieldError::new("emails", invalid)]))
        });
        Ok(Self {
            emails: emails.collect::<Result<_, _>>()?,
        })
    }
}
