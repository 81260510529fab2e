//! Files and folders that other users of the machine cannot read, whatever the umask is: they hold secrets, or links that
//! act for a user.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, set_permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;
/// Others can reach files in it whose names they know, and cannot list it.
const REACHABLE_FOLDER: u32 = 0o711;

/// What failed with a file, as the context of an error.
pub(crate) fn failed(action: &str, path: impl AsRef<Path>) -> impl FnOnce() -> String {
    move || format!("{action} {}", path.as_ref().display())
}

/// Creates a folder, if it is missing, that only its owner can open. Folders on the way to it are reachable for the
/// database server, which may have its own in them.
pub fn create_folder(path: &Path) -> Result<()> {
    create(path, FOLDER)
}

/// Creates a folder, if it is missing, for other folders. The database server of root runs as another user, so that user
/// can reach what is in it.
pub fn create_reachable_folder(path: &Path) -> Result<()> {
    let is_root = nix::unistd::geteuid().is_root();
    create(path, if is_root { REACHABLE_FOLDER } else { FOLDER })
}

fn create(path: &Path, mode: u32) -> Result<()> {
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
        && !parent.is_dir()
    {
        create_reachable_folder(parent)?;
    }
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(mode).create(path);
    created
        .and_then(|()| set_permissions(path, Permissions::from_mode(mode)))
        .with_context(failed("creating", path))
}

/// Removes a folder with all that is in it, if it exists.
pub fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(failed("removing", path))
        }
        _ => Ok(()),
    }
}

/// Writes a file atomically.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        create_folder(folder)?;
    }
    let draft = path.with_added_extension("new");
    truncate(&draft)?
        .write_all(content)
        .with_context(failed("writing", &draft))?;
    fs::rename(&draft, path).with_context(failed("writing", path))
}

pub fn write_json(path: &Path, content: &impl Serialize) -> Result<()> {
    write(path, serde_json::to_string_pretty(content)?.as_bytes())
}

pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.with_context(failed("reading", path))?,
    };
    serde_json::from_str(&text).with_context(failed("reading", path))
}

/// Opens a file for appending. It is created, if it is missing.
pub fn append(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().append(true))
}

/// Opens an empty file in place of what is in it.
pub fn truncate(path: &Path) -> Result<File> {
    open(path, OpenOptions::new().write(true).truncate(true))
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let opened = options.create(true).mode(FILE).open(path);
    opened
        .and_then(|file| {
            // A file of an earlier run may be readable for others. A pipe is no file.
            if file.metadata()?.is_file() {
                file.set_permissions(Permissions::from_mode(FILE))?;
            }
            Ok(file)
        })
        .with_context(failed("opening", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_folders_that_were_open_become_private() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, log) = (folder.path().join("a/b"), folder.path().join("log"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(&log, "before\n").unwrap();
        set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        set_permissions(&log, Permissions::from_mode(0o644)).unwrap();
        create_folder(&inner).unwrap();
        append(&log).unwrap();
        assert_eq!((mode(&inner), mode(&log)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&log).unwrap(), "before\n");
        truncate(&log).unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), "");
        assert_eq!(mode(&log), 0o600);
        let reachable = folder.path().join("c/d");
        create_reachable_folder(&reachable).unwrap();
        assert_eq!(mode(&reachable) & 0o066, 0);
    }

    #[test]
    fn a_private_file_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/secret");
        write(&path, b"x").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn the_folders_above_a_private_one_are_as_reachable_as_the_servers_need() {
        let folder = tempfile::tempdir().unwrap();
        create_reachable_folder(&folder.path().join("x")).unwrap();
        let private = folder.path().join("tool/secrets");
        create_folder(&private).unwrap();
        let above = mode(&folder.path().join("tool"));
        assert_eq!(above, mode(&folder.path().join("x")));
        assert_eq!(mode(&private), 0o700);
    }
}
