//! Random values, and stable names.

use std::path::Path;

/// Returns a password of 128 random bits in hex digits, which need no escaping in URLs and configuration files.
pub fn password() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Returns eight random hex digits, to tell what one run creates from what others do.
pub fn tag() -> String {
    format!("{:08x}", seed())
}

/// Returns the seed of a run. It is short enough to be typed again.
pub fn seed() -> u64 {
    rand::random::<u32>().into()
}

/// Returns a short, stable name for a path: its FNV-1a hash in eight hex digits. Not for secrets.
pub(crate) fn short_hash(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_differ() {
        assert_ne!(password(), password());
        assert_eq!(password().len(), 32);
    }
}
