//! The control socket: one request per connection, a line of JSON, answered by a line of JSON.
//!
//! `{"do": "stats"}`, `{"do": "reload"}`, `{"do": "bypass", "on": true}`, `{"do": "stop"}` →
//! `{"ok": true, …}` or `{"ok": false, "error": "…"}`. The socket has mode 0660; a client must be root, the user that the
//! router runs as, or in the group that the file names; that group has access by an access list where the router may not
//! change the socket's group. Requests are short and must be sent at once. A request whose client has given up is not carried
//! out: what was reported as failed does not happen later.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{self, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value as Json, json};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};

use crate::hub::Hub;
use crate::privileges::Accounts;
use crate::{files, privileges, sys};

/// The mode of the socket's file: for its user and its group.
const MODE: u32 = 0o660;
/// Connections that wait to be taken.
const BACKLOG: i32 = 128;
/// The longest request.
const LONGEST_REQUEST: usize = 4096;
/// How long a request may take to come.
const TO_COME: Duration = Duration::from_secs(1);
/// How long it may wait for its turn. With what the packet thread may take, this is less than the client's patience: who is told that
/// something failed can rely on it.
const TO_BEGIN: Duration = Duration::from_secs(3);
/// How long an answer may take to go.
const TO_GO: Duration = Duration::from_secs(10);
/// Requests that are carried out at a time.
const AT_A_TIME: usize = 4;

/// The socket's file, which is removed when this is dropped: whatever happens after it was opened.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and number of the file that is ours; `None` once it is gone.
    ours: Option<(u64, u64)>,
}

impl SocketFile {
    /// Removes the socket, if what is there is still ours. Once is enough.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&mut self) -> io::Result<()> {
        let Some(ours) = self.ours.take() else { return Ok(()) };
        let there = fs::symlink_metadata(&self.path)?;
        if (there.dev(), there.ino()) == ours { fs::remove_file(&self.path) } else { Ok(()) }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(e) = self.remove() {
            eprintln!("inprofiled: the control socket {} stays: {e}", self.path.display());
        }
    }
}

fn named(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("control socket {}: {e}{}", path.display(), files::remedy(e)))
}

/// The state of the path, read and not changed: whether it is a socket that a killed process left behind.
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
    match std::os::unix::net::UnixStream::connect(path) {
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
pub fn open(path: &Path, accounts: &Accounts) -> io::Result<(UnixListener, SocketFile)> {
    let named = |e: io::Error| named(path, &e);
    if look(path)? {
        fs::remove_file(path).map_err(named)?;
    }
    files::trusted_folder(path).map_err(named)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let made = !folder.exists();
    fs::create_dir_all(folder).map_err(named)?;
    let socket = bound(path).map_err(named)?;
    let there = fs::symlink_metadata(path).map_err(named)?;
    let place = SocketFile { path: path.to_owned(), ours: Some((there.dev(), there.ino())) };
    fs::set_permissions(path, fs::Permissions::from_mode(MODE)).map_err(named)?;
    if let Some(account) = accounts.user {
        let group = accounts.group.unwrap_or(account.gid);
        chown(path, Some(account.uid), Some(group)).map_err(named)?;
    } else if let Some(group) = accounts.group {
        // Giving it to a group that we aren't in takes a privilege; letting that group in doesn't.
        chown(path, None, Some(group)).or_else(|_| privileges::grant(path, group, 6)).map_err(named)?;
    }
    if let Some(group) = accounts.group {
        let_through(folder, group, made).map_err(|e| files::at(folder, &e)).map_err(named)?;
    }
    // Nobody is heard before all is as it should be.
    socket.listen(BACKLOG).map_err(named)?;
    Ok((UnixListener::from(OwnedFd::from(socket)), place))
}

/// A socket at this path, which has at no time more rights than [`MODE`]: its file is made with the socket's own mode, less the
/// umask, which other threads' files have too and is left alone.
fn bound(path: &Path) -> io::Result<Socket> {
    let socket = File::from(OwnedFd::from(Socket::new(Domain::UNIX, Type::STREAM, None)?));
    socket.set_permissions(fs::Permissions::from_mode(MODE))?;
    let socket = Socket::from(OwnedFd::from(socket));
    socket.bind(&SockAddr::unix(path)?)?;
    Ok(socket)
}

/// Lets a group through the socket's folder, if that is ours: made by us, or given to us by the service manager. What others
/// have made says itself whom it lets through.
fn let_through(folder: &Path, group: u32, made: bool) -> io::Result<()> {
    let found = fs::metadata(folder)?;
    let (uid, own) = (sys::own_uid(), found.uid() == sys::own_uid());
    let passes = found.mode() & 0o001 != 0 || found.gid() == group && found.mode() & 0o010 != 0;
    if passes || !made && (uid == 0 || !own) { Ok(()) } else { privileges::grant(folder, group, 1) }
}

/// Who answers requests.
#[derive(Debug)]
pub struct Server {
    accounts: Accounts,
    hub: Arc<Hub>,
    /// Requests that are carried out at a time; the others wait.
    at_a_time: Arc<Semaphore>,
}

impl Server {
    /// For these accounts.
    #[must_use]
    pub fn new(accounts: Accounts, hub: Arc<Hub>) -> Server {
        Server { accounts, hub, at_a_time: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// One request, one answer.
    pub async fn serve(self: Arc<Self>, stream: UnixStream) {
        let log = self.hub.log.clone();
        if let Err(e) = self.try_serve(stream).await {
            log.warn("control", "a conversation broke off", &[("why", e.to_string().into())]);
        }
    }

    async fn try_serve(self: Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let (uid, groups) = sys::peer(stream.as_fd())?;
        let group = self.accounts.group;
        let allowed = uid == 0 || uid == sys::own_uid() || group.is_some_and(|g| groups.contains(&g));
        let mut lines = Framed::new(stream, LinesCodec::new_with_max_length(LONGEST_REQUEST));
        // A stranger's is read too: whoever leaves something unread breaks the connection off, answer and all.
        let request = match timeout(TO_COME, lines.next()).await {
            // Another that looked whether anybody is here before it starts.
            Ok(None) => return Ok(()),
            Ok(Some(Ok(line))) => serde_json::from_str::<Json>(&line).map_err(|e| e.to_string()),
            Ok(Some(Err(LinesCodecError::MaxLineLengthExceeded))) => {
                Err(format!("it has more than {LONGEST_REQUEST} bytes"))
            }
            Ok(Some(Err(LinesCodecError::Io(e)))) => return Err(e),
            Err(_) => Err(format!("it took longer than {TO_COME:?}")),
        };
        let answer = match request {
            _ if !allowed => {
                let uid = [("uid", uid.into())];
                self.hub.log.warn("control", "a user without the right was turned away", &uid);
                Some(Err(format!(
                    "user {uid} may not: root, the router's own user and control.group may",
                    uid = uid[0].1
                )))
            }
            Ok(request) => self.carry_out(request, lines.get_ref().as_fd().try_clone_to_owned()?).await?,
            Err(e) => Some(Err(format!("the request can't be read: {e}"))),
        };
        let line = match answer {
            Some(Ok(mut fields)) => {
                fields["ok"] = json!(true);
                fields
            }
            Some(Err(error)) => json!({ "ok": false, "error": error }),
            // Nobody is there any more to be answered.
            None => return Ok(()),
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the answer isn't taken");
        let mut stream = lines.into_inner();
        timeout(TO_GO, stream.write_all(format!("{line}\n").as_bytes())).await.map_err(late)?
    }

    /// `None`: whoever asked has given up before it was begun; then it isn't.
    async fn carry_out(&self, request: Json, asker: OwnedFd) -> io::Result<Option<Result<Json, String>>> {
        let Ok(Ok(turn)) = timeout(TO_BEGIN, Arc::clone(&self.at_a_time).acquire_owned()).await else {
            return Ok(Some(Err("too many requests at a time: nothing was done, ask again".into())));
        };
        let hub = Arc::clone(&self.hub);
        // The turn lasts as long as the work, even if the conversation is broken off meanwhile.
        let work = move || {
            let _turn = turn;
            if sys::hung_up(asker.as_fd())? { Ok(None) } else { Ok(Some(hub.answer(&request))) }
        };
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
    }
}

// The client of the control socket: what `inprofiled stats`, `reload`, `bypass` and `stop` do.

/// The router has answered by then, if only that it can't: this is more than all its own deadlines together.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Nor is it longer.
const LONGEST: u64 = 256 << 20;

/// Asks, and gives the answer.
///
/// # Errors
/// The error of the router or the system, in words.
pub fn ask(socket: &Path, request: &Json) -> Result<Json, String> {
    let answer = talk(socket, request).map_err(|e| {
        let how = match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "\n  is inprofiled running? Say --socket PATH if it listens elsewhere"
            }
            io::ErrorKind::PermissionDenied => {
                "\n  you need to be root, the router's user, or in control.group"
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                "\n  there was no answer; nothing is carried out from now on: `systemctl status inprofiled` shows how it is"
            }
            _ => "",
        };
        format!("control socket {}: {e}{how}", socket.display())
    })?;
    match answer.get("ok").and_then(Json::as_bool) {
        Some(true) => Ok(answer),
        _ => Err(answer
            .get("error")
            .and_then(Json::as_str)
            .unwrap_or("no answer that could be understood")
            .to_owned()),
    }
}

/// The counts since the start.
///
/// # Errors
/// As [`ask`].
pub fn stats(socket: &Path) -> Result<Json, String> {
    let mut answer = ask(socket, &serde_json::json!({ "do": "stats" }))?;
    answer.get_mut("stats").map(Json::take).ok_or_else(|| "an answer without stats".into())
}

fn talk(socket: &Path, request: &Json) -> io::Result<Json> {
    let mut stream = net::UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut text = String::new();
    stream.take(LONGEST).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sockets_file_is_made_with_no_more_rights_than_it_keeps() {
        let path = std::env::temp_dir().join(format!("inprofiled-mode-{}", std::process::id()));
        let socket = bound(&path).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        // Until it listens nobody gets through.
        let refused = std::os::unix::net::UnixStream::connect(&path).unwrap_err();
        socket.listen(BACKLOG).unwrap();
        let let_in = std::os::unix::net::UnixStream::connect(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!((mode & !MODE, refused.kind()), (0, io::ErrorKind::ConnectionRefused), "{mode:o}");
        assert!(let_in.is_ok() && mode & 0o600 == 0o600, "{mode:o}");
    }
}
