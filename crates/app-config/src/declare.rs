/// Declares types of settings, and implements [`Settings`](crate::Settings) for them. The documentation of a field is the
/// purpose of its setting, except for `required` ones, whose purpose completes a sentence, and for those with settings of
/// their own.
///
/// Each field says which method of the [`Reader`](crate::Reader) reads it, with the arguments of that method. `part` reads a
/// field that has settings of its own, and `by` calls a function that takes the reader. `checked by` names a function that
/// refuses settings that contradict each other.
///
/// ```
/// app_config::settings! {
///     /// How passwords are hashed.
///     pub struct PasswordSettings {
///         /// The cost of hashing.
///         pub cost: u32 = between("COST", "12", "4", "31"),
///         /// Another key.
///         pub other_key: Option<String> = optional("OTHER_KEY"),
///     }
/// }
///
/// let settings = app_config::describe::<PasswordSettings>().unwrap();
/// assert_eq!(settings[0].purpose, "The cost of hashing.");
/// ```
#[macro_export]
macro_rules! settings {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident $(checked by $check:path)? {
            $(
                $(#[doc = $purpose:literal])*
                $field_visibility:vis $field:ident: $type:ty = $how:ident($($argument:expr),*),
            )+
        }
    )+) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone)]
        $visibility struct $name {
            $(
                $(#[doc = $purpose])*
                $field_visibility $field: $type,
            )+
        }

        impl $crate::Settings for $name {
            fn read(reader: &mut $crate::Reader) -> Result<Self, $crate::Error> {
                let settings = Self {
                    $($field: $crate::settings!(
                        @read reader, $type, concat!($($purpose),*).trim_start(), $how($($argument),*)
                    )?,)+
                };
                $($check(&settings)?;)?
                Ok(settings)
            }
        }
    )+};
    (@read $reader:ident, $type:ty, $purpose:expr, required($name:expr, $completion:expr)) => {
        $reader.required($name, $completion)
    };
    (@read $reader:ident, $type:ty, $purpose:expr, part()) => {
        <$type as $crate::Settings>::read($reader)
    };
    (@read $reader:ident, $type:ty, $purpose:expr, by($function:expr)) => {
        $function($reader)
    };
    (@read $reader:ident, $type:ty, $purpose:expr, $how:ident($($argument:expr),+)) => {
        $reader.$how($($argument,)+ $purpose)
    };
}
