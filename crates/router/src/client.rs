//! The client of the control socket: what `inprofiled stats`, `reload`, `bypass` and `stop` do.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;

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
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut text = String::new();
    stream.take(LONGEST).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}
