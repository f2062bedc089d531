//! The control socket: one request a connection, a line of JSON, answered by a line of JSON.
//!
//! `{"do": "stats"}`, `{"do": "reload"}`, `{"do": "bypass", "on": true}`, `{"do": "stop"}` →
//! `{"ok": true, …}` or `{"ok": false, "error": "…"}`. The socket has mode 0660; who connects must be root, the user the
//! router runs as, or in the group the file names. Requests are short and must come at once.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::config::SOCKET;
use crate::privileges::People;
use crate::run::Hub;
use crate::sys;

/// The longest request.
const LONGEST_REQUEST: usize = 4096;
/// How long a request may take to come, and an answer to go.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens the socket.
///
/// # Errors
/// `AddrInUse` if another router has it; else what the system says, with the path.
pub fn open(path: &Path, people: &People) -> io::Result<UnixListener> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("control socket {}: {e}", path.display()));
    if UnixStream::connect(path).is_ok() {
        let text = format!("another inprofiled answers at {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    match fs::remove_file(path) {
        // One that was killed leaves its socket behind.
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(e)),
        _ => {}
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(named)?;
    }
    let listener = sys::with_umask(0o117, || UnixListener::bind(path)).map_err(named)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(named)?;
    let owner = people.user.map(|a| a.uid);
    let group = people.group.or(people.user.map(|a| a.gid));
    if owner.is_some() || group.is_some() {
        std::os::unix::fs::chown(path, owner, group).map_err(named)?;
    }
    Ok(listener)
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
            Ok(request) => hub.answer(&request),
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

/// One line of JSON, bounded in length and time.
fn request(stream: &mut UnixStream) -> io::Result<Json> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 512];
    let started = std::time::Instant::now();
    while !bytes.contains(&b'\n') {
        let n = stream.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..n]);
        if bytes.len() > LONGEST_REQUEST || started.elapsed() > PATIENCE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("more than {LONGEST_REQUEST} bytes, or too slow"),
            ));
        }
        if n == 0 {
            break;
        }
    }
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    serde_json::from_slice(line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// What a client without a word of its own uses.
#[must_use]
pub fn default_socket() -> &'static Path {
    Path::new(SOCKET)
}
