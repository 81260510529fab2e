/// Declares the actions that a service logs, with their names in the table. A constraint of the table must list
/// the same names.
#[macro_export]
macro_rules! actions {
    (
        $(#[$doc:meta])*
        $visibility:vis enum $name:ident { $($action:ident = $text:literal,)+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $name {
            $($action,)+
        }

        impl $name {
            #[cfg(test)]
            const NAMES: &[&str] = &[$($text),+];

            /// The name in the table.
            fn name(self) -> &'static str {
                match self {
                    $(Self::$action => $text,)+
                }
            }
        }
    };
}
