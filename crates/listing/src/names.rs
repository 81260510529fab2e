use values::Invalid;

/// An enum of field names, such as those that a list can be sorted by.
pub trait Names: Copy + 'static {
    /// Every value, in the order in which errors list them.
    const ALL: &'static [Self];

    /// The name in the query string.
    fn name(self) -> &'static str;

    /// Finds the value of a name.
    ///
    /// # Errors
    /// `unknown-field`, with a message that lists the allowed names.
    fn of_name(name: &str) -> Result<Self, Invalid> {
        let mut all = Self::ALL.iter().copied();
        all.find(|value| value.name() == name).ok_or_else(|| {
            let message = format!("The field must be one of: {}.", Self::list());
            Invalid::new("unknown-field", message)
        })
    }

    /// All names, separated by commas.
    #[must_use]
    fn list() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|value| value.name()).collect();
        names.join(", ")
    }
}
