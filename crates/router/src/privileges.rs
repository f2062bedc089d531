//! Drops privileges once everything is open: an unprivileged user, and only the capabilities still needed.

use std::io;

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
