//! The behaviour that a service manager and an operator rely on: the watchdog, privileges, the control socket, logs.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::{Bench, PROGRAM, QUIET, assert_adds_up, may, plain};
use crate::frames::Udp;

/// A user who is nobody in particular, everywhere.
const NOBODY: u32 = 65_534;

pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < patience, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The messages to the service manager within this time.
pub fn heard(socket: &UnixDatagram, within: Duration) -> Vec<String> {
    let (mut all, until, mut room) = (Vec::new(), Instant::now() + within, [0; 512]);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
        socket.set_read_timeout(Some(left)).unwrap();
        if let Ok(n) = socket.recv(&mut room) {
            all.push(String::from_utf8_lossy(&room[..n]).into_owned());
        }
    }
    all
}

/// A thread that hangs while all others run on.
#[expect(unsafe_code, reason = "ptrace(2) is the only way to stop one thread of another process")]
mod hang {
    use std::io;

    fn check(result: libc::c_long) -> io::Result<()> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Stops the thread, from now on until [`go_on`]. Both by the same thread of ours.
    pub fn stop(thread: i32) -> io::Result<()> {
        // SAFETY: numbers only; the status that is waited for is a local integer.
        unsafe {
            check(libc::ptrace(libc::PTRACE_SEIZE, thread, 0, 0))?;
            check(libc::ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0))?;
            let mut status = 0;
            check(libc::waitpid(thread, &raw mut status, libc::__WALL).into())
        }
    }

    pub fn go_on(thread: i32) -> io::Result<()> {
        // SAFETY: numbers only.
        check(unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, 0, 0) })
    }

    /// Becomes another user, this thread alone: the system call, not the C library's, which takes all threads along.
    pub fn become_user(uid: u32) -> io::Result<()> {
        // SAFETY: numbers only.
        unsafe {
            check(libc::syscall(libc::SYS_setresgid, uid, uid, uid))?;
            check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))
        }
    }
}

/// The thread that minds signals and the watchdog lives, and would go on telling the service manager so; but the main thread,
/// which has the packets, hangs.
#[test]
fn a_packet_loop_that_hangs_is_no_sign_of_life() {
    let Some(mut bench) = Bench::new("watchdog") else { return };
    let manager = UnixDatagram::bind(bench.path("notify.sock")).unwrap();
    bench.configure(&plain("5 Mbit/s"));
    bench.start_by(
        Command::new(PROGRAM)
            .arg("run")
            .arg(bench.path("router.toml"))
            .env("NOTIFY_SOCKET", bench.path("notify.sock"))
            .env("WATCHDOG_USEC", "300000"),
    );
    let first = heard(&manager, Duration::from_millis(600));
    assert!(first[0].starts_with("READY=1"), "{first:?}");
    let alive = |heard: &[String]| heard.iter().filter(|s| s.as_str() == "WATCHDOG=1").count();
    assert!(alive(&first) >= 3, "{first:?}");

    let packets = bench.pid() as i32;
    hang::stop(packets).unwrap();
    // What was under way when it stopped.
    heard(&manager, Duration::from_millis(150));
    assert_eq!(heard(&manager, Duration::from_millis(900)), Vec::<String>::new(), "three times too long");
    // The control thread answers, that there is no answer: the process as a whole is alive.
    let asked = Instant::now();
    let out = bench.tell(&["stats"]);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && asked.elapsed() < Duration::from_secs(9), "{text}");
    hang::go_on(packets).unwrap();
    assert!(alive(&heard(&manager, Duration::from_millis(600))) >= 3);
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1, "it forwards again");
}

/// A line of `/proc/PID/status`.
pub fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).unwrap();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Privileges are those that docs/router.md says, for every thread, and with them it forwards, logs, and ends.
#[test]
fn it_becomes_the_user_it_is_told_to() {
    if !may("become another user", fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295")) {
        return;
    }
    let Some(mut bench) = Bench::new("user") else { return };
    let log = bench.path("router.log");
    bench.start(&format!("user = \"nobody\"\n---\n[log]\nfile = {log:?}\n{}", plain("5 Mbit/s")));
    let nobody = NOBODY.to_string();
    for entry in fs::read_dir(format!("/proc/{}/task", bench.pid())).unwrap() {
        let thread: u32 = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        assert_eq!(status(thread, "Uid"), [nobody.as_str(); 4].join(" "));
        assert_eq!((status(thread, "Gid"), status(thread, "Groups").as_str()), (status(thread, "Uid"), ""));
        // CAP_NET_ADMIN (12), as the ports are to be as they were; nothing to pass on.
        for (set, bits) in [("CapEff", 1 << 12), ("CapPrm", 1 << 12), ("CapInh", 0), ("CapAmb", 0u64)] {
            assert_eq!(u64::from_str_radix(&status(thread, set), 16), Ok(bits), "{set}");
        }
        assert_eq!(status(thread, "NoNewPrivs"), "1");
    }
    let socket = fs::metadata(bench.path("control.sock")).unwrap();
    assert_eq!((socket.mode() & 0o777, socket.uid()), (0o660, NOBODY));
    assert_eq!(fs::metadata(&log).unwrap().uid(), NOBODY);
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1);
    // Its own log it can still open anew.
    bench.signal("-USR1");
    wait_for("the log is opened anew", || fs::read_to_string(&log).unwrap().contains("opened anew"));
    bench.signal("-TERM");
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
}

/// A stranger is kept out by the socket's mode; and where somebody has opened that, by his credentials.
#[test]
fn a_stranger_may_not_use_the_control_socket() {
    if !may("be a stranger", fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295")) {
        return;
    }
    let Some(mut bench) = Bench::new("stranger") else { return };
    bench.start(&plain("5 Mbit/s"));
    let socket = bench.path("control.sock");
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o660);
    let ask = || {
        thread::scope(|scope| {
            let stranger = scope.spawn(|| {
                hang::become_user(NOBODY)?;
                let mut stream = UnixStream::connect(&socket)?;
                stream.write_all(b"{\"do\": \"stop\"}\n")?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).map(|_| answer)
            });
            stranger.join().unwrap()
        })
    };
    assert_eq!(ask().map_err(|e| e.kind()), Err(io::ErrorKind::PermissionDenied));
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let answer = ask().unwrap();
    assert!(answer.contains("\"ok\":false") && answer.contains("user 65534 may not"), "{answer}");
    wait_for("a line", || bench.errors().contains("a user without the right was turned away"));
    assert_eq!(bench.stats()["mode"], "normal", "it was not stopped");
}

/// As logrotate does it: the file is renamed, then a signal. No line is lost, none is written into the wrong file.
#[test]
fn logs_are_rotated() {
    let Some(mut bench) = Bench::new("rotate") else { return };
    let (log, old) = (bench.path("router.log"), bench.path("router.log.1"));
    bench.start(&format!("[log]\nfile = {log:?}\n{}", plain("5 Mbit/s")));
    bench.obey(&["bypass", "on"]);
    fs::rename(&log, &old).unwrap();
    bench.obey(&["bypass", "off"]);
    bench.signal("-USR1");
    wait_for("a new file", || fs::read_to_string(&log).is_ok_and(|t| t.contains("opened anew")));
    bench.obey(&["bypass", "on"]);
    wait_for("a line", || fs::read_to_string(&log).unwrap().lines().count() == 2);
    let lines =
        |path: &Path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let before = lines(&old);
    assert!(before.last().unwrap().contains("back to normal"), "{before:?}");
    assert_eq!(bench.figure("log.written"), (before.len() + 2) as u64);
    // Where it can't be opened the old one is kept.
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    bench.signal("-USR1");
    wait_for("an error", || bench.figure("log.written") == before.len() as u64 + 3);
    assert_eq!(bench.figure("log.lost"), 0);
}

/// A disk of 64 KiB that is full: lines are lost and counted, packets are not; when there is room, whole lines again.
#[test]
fn a_disk_that_fills_up_costs_lines_until_there_is_room() {
    let Some(mut bench) = Bench::new("tmpfs") else { return };
    let disk = bench.path("disk");
    fs::create_dir(&disk).unwrap();
    let line = format!(
        "mount -t tmpfs -o size=64k,mode=755 tmpfs {0}; head -c 61440 /dev/zero > {0}/other; exec \"$@\"",
        disk.display()
    );
    bench.start_behind(&line, &format!("[log]\nfile = {:?}\n{}", disk.join("router.log"), plain("5 Mbit/s")));
    // 4 KiB are left: some thirty lines.
    for _ in 0..30 {
        bench.obey(&["bypass", "on"]);
        bench.obey(&["bypass", "off"]);
    }
    wait_for("lines are lost", || bench.figure("log.lost") > 5);
    let written = bench.figure("log.written");
    assert!(written > 5, "{written}");
    bench.send(0, &(0..50).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    assert_eq!(bench.receive(1, 50, QUIET).len(), 50);
    let inside = format!("/proc/{}/root{}", bench.pid(), disk.display());
    fs::remove_file(format!("{inside}/other")).unwrap();
    bench.obey(&["bypass", "on"]);
    wait_for("lines are written again", || bench.figure("log.written") > written);
    let text = fs::read_to_string(format!("{inside}/router.log")).unwrap();
    assert!(text.lines().last().unwrap().ends_with('}'), "a whole line: {text}");
    assert_adds_up(&bench.stats());
}
