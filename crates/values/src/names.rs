use crate::{FromText, Invalid};

/// An enum whose values have names in queries, responses or the database. [`names!`](macro@crate::names) makes one.
pub trait Names: Copy + 'static {
    /// Every value, in the order of the declaration.
    const ALL: &'static [Self];

    /// The name of the value.
    fn name(self) -> &'static str;

    /// The value of a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }

    /// All names, separated by commas.
    fn list() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|value| value.name()).collect();
        names.join(", ")
    }
}

impl<N: Names> FromText for N {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Self::from_name(text).ok_or_else(|| {
            let message = format!("Must be one of {}.", Self::list());
            Invalid::new("unknown-value", message)
        })
    }
}

/// Declares enums with a name for each value, and implements [`Names`] for them.
#[macro_export]
macro_rules! names {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident { $($(#[$doc:meta])* $value:ident = $text:literal,)+ }
    )+) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $crate::Names for $name {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }
    )+};
}
