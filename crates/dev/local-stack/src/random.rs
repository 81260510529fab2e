//! Random values, and stable names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Returns `N` bytes from the system's random number generator.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("reading random bytes")?;
    Ok(bytes)
}

/// Returns a password of 128 random bits in hex digits, which need no escaping in URLs and configuration files.
pub fn password() -> Result<String> {
    Ok(format!("{:032x}", u128::from_be_bytes(bytes()?)))
}

/// Returns eight random hex digits, to tell what one run creates from what others do.
pub fn tag() -> Result<String> {
    Ok(format!("{:08x}", seed()?))
}

/// Returns the seed of a run. It is short enough to be typed again.
pub fn seed() -> Result<u64> {
    Ok(u32::from_be_bytes(bytes()?).into())
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
        assert_ne!(password().unwrap(), password().unwrap());
        assert_eq!(password().unwrap().len(), 32);
    }
}
