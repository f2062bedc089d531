//! Drops privileges once everything is open: an unprivileged user, and only the capabilities still needed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use crate::config::Config;
use crate::sys::{self, Account, NET_ADMIN};

/// The users and groups that a configuration names, as the system knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// Whom to become.
    pub user: Option<Account>,
    /// Who may use the control socket.
    pub group: Option<u32>,
}

/// Looks them up.
///
/// # Errors
/// `NotFound`, with the name and what to do.
pub fn look_up(config: &Config) -> io::Result<Accounts> {
    let missing = |what: &str, name: &str, how: &str| {
        io::Error::new(io::ErrorKind::NotFound, format!("there is no {what} `{name}`: {how}"))
    };
    let user = match &config.user {
        Some(name) => {
            let how = format!("`useradd --system --shell /usr/sbin/nologin {name}` makes one");
            Some(sys::user(name)?.ok_or_else(|| missing("user", name, &how))?)
        }
        None => None,
    };
    let group = match &config.group {
        Some(name) => {
            let how = format!("`groupadd --system {name}` makes one");
            Some(sys::group(name)?.ok_or_else(|| missing("group", name, &how))?)
        }
        None => None,
    };
    Ok(Accounts { user, group })
}

/// The capabilities still needed once the ports are open; binding them anew takes nothing. It is for closing an interface that comes
/// back to the machine's own stack, and opening both at the end; for their offloads; and for switching a port off when the
/// other's link is lost.
pub const KEPT: [u32; 1] = [NET_ADMIN];

/// Gives up all capabilities but these. Of this thread and those started later: call it before there are others.
///
/// # Errors
/// The system's error.
pub fn drop(accounts: &Accounts, keep: &[u32]) -> io::Result<()> {
    if let Some(account) = accounts.user.filter(|a| a.uid != sys::own_uid()) {
        sys::become_user(account)?;
    }
    sys::keep_capabilities(keep)
}

// An access list for one more group than a file has (acl(5)): the owner of a file may grant that without privileges, whereas
// giving the file to a group that the owner is not in needs CAP_CHOWN.

/// Of what it is an access list (linux/posix_acl_xattr.h), and of which version.
const NAME: &std::ffi::CStr = c"system.posix_acl_access";
const VERSION: u32 = 2;
/// linux/posix_acl.h.
const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;
/// Who is meant where the tag says it.
const UNDEFINED: u32 = u32::MAX;

/// Gives a group these rights (4 read, 2 write, 1 enter or run) to what we own, beside what its mode gives.
///
/// # Errors
/// The system's error: `Unsupported` where the file system has no such lists.
pub fn grant(path: &Path, group: u32, rights: u16) -> io::Result<()> {
    let mode = fs::metadata(path)?.mode() as u16;
    sys::set_attribute(path, NAME, &list(mode, group, rights))
}

/// The list of a file of this mode with one more group, as the kernel takes it.
fn list(mode: u16, group: u32, rights: u16) -> Vec<u8> {
    let (user, own, other) = (mode >> 6 & 7, mode >> 3 & 7, mode & 7);
    let entries = [
        (USER_OBJ, user, UNDEFINED),
        (GROUP_OBJ, own, UNDEFINED),
        (GROUP, rights, group),
        (MASK, own | rights, UNDEFINED),
        (OTHER, other, UNDEFINED),
    ];
    let mut bytes = VERSION.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that `setfacl -m g:7:x` writes for a folder of mode 0750, by `getfattr -e hex`.
    #[test]
    fn a_list_as_setfacl_writes_it() {
        let hex: String = list(0o750, 7, 1).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "0200000001000700ffffffff04000500ffffffff080001000700000010000500ffffffff20000000ffffffff"
        );
    }
}
