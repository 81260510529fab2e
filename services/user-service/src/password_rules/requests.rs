use http_kit::Fields;
use values::Secret;

use super::{NewPassword, PasswordRules};

impl NewPassword {
    /// Reads a required field of a body. `None` means that `fields` holds an error.
    pub(crate) fn read(fields: &mut Fields, name: &str, rules: PasswordRules) -> Option<Self> {
        fields.required::<Secret>(name)?;
        Self::read_optional(fields, name, rules)
    }

    pub(crate) fn read_optional(
        fields: &mut Fields,
        name: &str,
        rules: PasswordRules,
    ) -> Option<Self> {
        let text = fields.optional::<Secret>(name)?;
        Self::parse(&text, rules)
            .map_err(|invalid| fields.reject(name, invalid))
            .ok()
    }
}
