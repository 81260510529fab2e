//! Random values and the files that keep them secret.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use crate::{Error, Result};

/// `N` bytes from the system's generator.
///
/// # Errors
/// When the system has none.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(Error::system("reading random bytes"))?;
    Ok(bytes)
}

/// A password of 128 random bits as hex digits, which no url or configuration file has to escape.
///
/// # Errors
/// When the system has no random generator.
pub fn password() -> Result<String> {
    Ok(bytes::<16>()?
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Writes a file that only its owner can read. It appears whole or not at all.
///
/// # Errors
/// When the file or its folder cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("creating", folder))?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(beside)
        .and_then(|mut file| {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(content)
        })
        .map_err(Error::file("writing", beside))?;
    fs::rename(beside, path).map_err(Error::file("writing", path))
}

/// A short stable name for a path: FNV-1a as eight hex digits. Not for secrets.
pub(crate) fn short_hash(path: &Path) -> String {
    let hash = path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/secret");
        write_private(&path, b"x").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn passwords_differ() {
        assert_ne!(password().unwrap(), password().unwrap());
        assert_eq!(password().unwrap().len(), 32);
    }
}
