//! Reads a file named by the user, if it is a regular file of bounded size: a pipe or a device may never end.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The largest configuration that is read, in bytes.
pub const LARGEST: u64 = 16 << 20;

/// The bytes of a regular file of at most [`LARGEST`].
///
/// # Errors
/// As [`File::open`]; also if it is not a regular file or is larger, with what to name instead.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fit(&std::fs::metadata(path)?)?;
    let file = open(path)?;
    // Checked again on the open file: the path may name something else by now.
    fit(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

/// Without waiting for a writer, should the path name a pipe.
fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        /// `O_NONBLOCK` on Linux.
        const AT_ONCE: i32 = 0o4000;
        options.custom_flags(AT_ONCE);
    }
    options.open(path)
}

fn fit(found: &Metadata) -> Result<()> {
    let kind = found.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "a pipe, a device or a socket" };
        let text =
            format!("is {what}: name a regular file; what a program prints has to be written to one first");
        return Err(Error::new(ErrorKind::InvalidInput, text));
    }
    if found.len() > LARGEST { Err(too_large(found.len())) } else { Ok(()) }
}

fn too_large(size: u64) -> Error {
    let text = format!("has {size} B, and {LARGEST} are read at most: name the file that was meant");
    Error::new(ErrorKind::InvalidInput, text)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_a_file_is_read() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            let refused = read(Path::new(path)).unwrap_err();
            assert!(refused.to_string().contains("name a regular file"), "{path}: {refused}");
        }
        let place = std::env::temp_dir().join(format!("inprofile-file-{}", std::process::id()));
        let file = File::create(&place).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        assert!(read(&place).unwrap_err().to_string().contains("are read at most"));
        std::fs::write(&place, "a = 1").unwrap();
        assert_eq!(read(&place).unwrap(), b"a = 1");
        std::fs::remove_file(&place).unwrap();
        assert_eq!(read(&place).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
