//! The control socket: one request a connection, a line of JSON, answered by a line of JSON.
//!
//! `{"do": "stats"}`, `{"do": "reload"}`, `{"do": "bypass", "on": true}`, `{"do": "stop"}` →
//! `{"ok": true, …}` or `{"ok": false, "error": "…"}`. The socket has mode 0660; who connects must be root, the user the
//! router runs as, or in the group the file names; that group is let in by an access list where the router may not give the
//! socket away. Requests are short and must come at once.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::config::SOCKET;
use crate::hub::Hub;
use crate::privileges::People;
use crate::{acl, files, sys};

/// The longest request.
const LONGEST_REQUEST: usize = 4096;
/// How long a request may take to come, and an answer to go.
const PATIENCE: Duration = Duration::from_secs(1);

/// The socket's place in the file system, which is taken back when this goes: whatever happens after it was opened.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Device and number of the file that is ours; `None` once it is gone.
    ours: Option<(u64, u64)>,
}

impl Place {
    /// Removes the socket, if what is there is still ours. Once is enough.
    ///
    /// # Errors
    /// What the system says.
    pub fn leave(&mut self) -> io::Result<()> {
        let Some(ours) = self.ours.take() else { return Ok(()) };
        let there = fs::symlink_metadata(&self.path)?;
        if (there.dev(), there.ino()) == ours { fs::remove_file(&self.path) } else { Ok(()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(e) = self.leave() {
            eprintln!("inprofiled: the control socket {} stays: {e}", self.path.display());
        }
    }
}

fn named(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("control socket {}: {e}{}", path.display(), files::remedy(e)))
}

/// What is at the path, looked at and not touched: whether it is a socket that a killed process left behind.
///
/// # Errors
/// `AddrInUse` if another router has it; `AlreadyExists` if there is something that is no socket.
pub fn look(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(named(path, &e)),
        Ok(there) if !there.file_type().is_socket() => {
            let text = "something is there that is no socket, and stays\n  name another path in control.socket, or move it away";
            return Err(named(path, &io::Error::new(io::ErrorKind::AlreadyExists, text)));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => {
            let text = format!("another inprofiled answers at {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Err(e) => Err(named(path, &e)),
    }
}

/// Opens the socket.
///
/// # Errors
/// As [`look`]; else what the system says, with the path.
pub fn open(path: &Path, people: &People) -> io::Result<(UnixListener, Place)> {
    let named = |e: io::Error| named(path, &e);
    if look(path)? {
        fs::remove_file(path).map_err(named)?;
    }
    files::trusted_folder(path).map_err(named)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let made = !folder.exists();
    fs::create_dir_all(folder).map_err(named)?;
    let listener = sys::with_umask(0o117, || UnixListener::bind(path)).map_err(named)?;
    let there = fs::symlink_metadata(path).map_err(named)?;
    let place = Place { path: path.to_owned(), ours: Some((there.dev(), there.ino())) };
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(named)?;
    if let Some(account) = people.user {
        let group = people.group.unwrap_or(account.gid);
        chown(path, Some(account.uid), Some(group)).map_err(named)?;
    } else if let Some(group) = people.group {
        // Giving it to a group that we aren't in takes a privilege; letting that group in doesn't.
        chown(path, None, Some(group)).or_else(|_| acl::grant(path, group, 6)).map_err(named)?;
    }
    if let Some(group) = people.group {
        let_through(folder, group, made).map_err(|e| files::at(folder, &e)).map_err(named)?;
    }
    Ok((listener, place))
}

/// Lets a group through the socket's folder, if that is ours: made by us, or given to us by the service manager. What others
/// have made says itself whom it lets through.
fn let_through(folder: &Path, group: u32, made: bool) -> io::Result<()> {
    let found = fs::metadata(folder)?;
    let (uid, own) = (sys::own_uid(), found.uid() == sys::own_uid());
    let passes = found.mode() & 0o001 != 0 || found.gid() == group && found.mode() & 0o010 != 0;
    if passes || !made && (uid == 0 || !own) { Ok(()) } else { acl::grant(folder, group, 1) }
}

/// Answers for ever.
pub fn serve(listener: &UnixListener, people: &People, hub: &Hub) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if let Err(e) = converse(stream, people, hub) {
                    hub.log.warn("control", "a conversation broke off", &[("why", e.to_string().into())]);
                }
            }
            Err(e) => {
                hub.log.warn("control", "no connection could be taken", &[("why", e.to_string().into())]);
                std::thread::sleep(PATIENCE);
            }
        }
    }
}

fn converse(mut stream: UnixStream, people: &People, hub: &Hub) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (uid, groups) = sys::peer(&stream)?;
    let allowed = uid == 0 || uid == sys::own_uid() || people.group.is_some_and(|g| groups.contains(&g));
    // A stranger's is read too: whoever leaves something unread breaks the connection off, answer and all.
    let request = request(&mut stream);
    let answer = if allowed {
        match request {
            Ok(Some(request)) => hub.answer(&request),
            // Another that looked whether anybody is here before it starts.
            Ok(None) => return Ok(()),
            Err(e) => Err(format!("the request can't be read: {e}")),
        }
    } else {
        hub.log.warn("control", "a user without the right was turned away", &[("uid", uid.into())]);
        Err(format!("user {uid} may not: root, the router's own user and control.group may"))
    };
    let mut line = match answer {
        Ok(mut fields) => {
            fields["ok"] = json!(true);
            fields
        }
        Err(error) => json!({ "ok": false, "error": error }),
    }
    .to_string();
    line.push('\n');
    stream.write_all(line.as_bytes())
}

/// One line of JSON, bounded in length and time; `None` if whoever connected left without a word.
fn request(stream: &mut UnixStream) -> io::Result<Option<Json>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 512];
    let started = std::time::Instant::now();
    let slow = || io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {PATIENCE:?}"));
    while !bytes.contains(&b'\n') {
        let n = match stream.read(&mut chunk) {
            // As the system says that the time to read is over.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(slow()),
            other => other?,
        };
        bytes.extend_from_slice(&chunk[..n]);
        if bytes.len() > LONGEST_REQUEST {
            let text = format!("it has more than {LONGEST_REQUEST} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if started.elapsed() > PATIENCE {
            return Err(slow());
        }
        if n == 0 {
            break;
        }
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).map(Some).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// What a client without a word of its own uses.
#[must_use]
pub fn default_socket() -> &'static Path {
    Path::new(SOCKET)
}
