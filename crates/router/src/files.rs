//! Files that a privileged process creates and writes to: nobody else may choose where they are.
//!
//! In a world-writable folder anybody can put a link, or a file of their own, in the place of ours. Such folders are refused,
//! links are not followed (O_NOFOLLOW), and what is opened must be a regular file or a device, not a pipe with somebody else at
//! its other end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::sys::Account;

/// An error with the path it is about.
pub(crate) fn at(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}{}", path.display(), remedy(e)))
}

/// The remedy for a system error, where it is the same whatever was tried.
pub(crate) fn remedy(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        Some(libc::ELOOP) => "\n  a link is there: name the file itself",
        Some(libc::ENOENT) => "\n  its folder has to be there",
        Some(libc::EACCES) => {
            "\n  the user it runs as may not: see `namei -l` on it, and ReadWritePaths= of the unit"
        }
        Some(libc::EROFS) => {
            "\n  nothing can be written there: under the unit, /var/log/inprofiled and /run/inprofiled can, and what ReadWritePaths= names"
        }
        Some(libc::ENOSPC | libc::EDQUOT) => "\n  the disk is full, or the quota used up",
        Some(libc::EMFILE | libc::ENFILE) => "\n  too many files are open: raise LimitNOFILE= (ulimit -n)",
        _ => "",
    }
}

/// Refuses the folder of a path if everybody may write to it, or might put another in its place.
///
/// # Errors
/// `PermissionDenied`, with the folder and what to do; else what the system says.
pub fn trusted_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    for (depth, above) in folder.ancestors().enumerate() {
        let found = match fs::metadata(above) {
            // We create it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|e| at(above, &e))?,
        };
        let (anybody, sticky) = (found.mode() & 0o002 != 0, found.mode() & 0o1000 != 0);
        if anybody && (depth == 0 || !sticky) {
            let text = format!(
                "{}: everybody may write to the folder {}, and could put a link there\n  name one of its own, such as /run/inprofiled or /var/log/inprofiled",
                path.display(),
                above.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    trusted_folder(path)?;
    // So as not to wait for whoever is at the other end of a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.custom_flags(flags).open(path).map_err(|e| at(path, &e))?;
    let kind = file.metadata().map_err(|e| at(path, &e))?.file_type();
    if kind.is_file() || kind.is_char_device() {
        return Ok(file);
    }
    let text =
        format!("{}: neither a file nor a device\n  name another path, or move it away", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Opens a file to append to, or makes it.
///
/// # Errors
/// As [`trusted_folder`]; else what the system says, with the path.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(true))
}

/// Writes a file that only its owner may read.
///
/// # Errors
/// As [`append`].
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = open(path, OpenOptions::new().write(true).create(true).truncate(true).mode(0o600))?;
    file.write_all(text.as_bytes()).map_err(|e| at(path, &e))
}

/// The text of one of our notes; nothing where there is none, or where it isn't safe.
#[must_use]
pub fn read(path: &Path) -> Option<String> {
    open(path, OpenOptions::new().read(true)).and_then(io::read_to_string).ok()
}

/// Gives a note to the user whom the process becomes, to write more there.
pub(crate) fn give(path: &Path, user: Option<Account>) -> io::Result<()> {
    let Some(account) = user else { return Ok(()) };
    std::os::unix::fs::chown(path, Some(account.uid), Some(account.gid)).map_err(|e| at(path, &e))
}

/// Removes a note; where its folder does not allow that, empties it.
pub(crate) fn forget(note: &Path) -> io::Result<()> {
    match fs::remove_file(note) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => write(note, "[]"),
        other => other.map_err(|e| at(note, &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn links_and_folders_of_everybody_are_refused() {
        let folder = std::env::temp_dir().join(format!("inprofiled-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (own, link) = (folder.join("own"), folder.join("link"));
        write(&own, "[]").unwrap();
        assert_eq!(read(&own).as_deref(), Some("[]"));
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o600);
        symlink(&own, &link).unwrap();
        for refused in [write(&link, "x"), append(&link).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("name the file itself"));
        }
        assert_eq!((read(&link), read(&own).as_deref()), (None, Some("[]")));
        for mode in [0o777, 0o1777] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            let refused = append(&own).unwrap_err().to_string();
            assert!(refused.contains("everybody may write to the folder"), "{refused}");
        }
        // One level down it is a matter of the sticky bit.
        let below = folder.join("below");
        fs::create_dir(&below).unwrap();
        assert!(append(&below.join("own")).is_ok());
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(append(&below.join("own")).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
