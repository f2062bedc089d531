//! Metrics and the control socket while somebody uses them badly; what the service manager's socket can do to us.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::{Bench, PROGRAM, QUIET, plain};
use crate::frames::Udp;
use crate::service::{heard, wait_for};

const METRICS: &str = "[metrics]\nlisten = \"127.0.0.1:9474\"\n";

/// Connections on which nothing comes: more than are served at a time.
#[test]
fn idle_connections_do_not_blind_metrics_or_control() {
    let Some(mut bench) = Bench::new("idle") else { return };
    bench.start(&format!("{METRICS}{}", plain("5 Mbit/s")));
    let idle: Vec<TcpStream> =
        bench.namespace.within(|| (0..100).map(|_| TcpStream::connect("127.0.0.1:9474")).collect()).unwrap();
    // A second each would be a hundred; the page is waited for ten.
    assert!(bench.page().contains("inprofiled_uptime_seconds"));
    let idle_control: Vec<UnixStream> =
        (0..100).map(|_| UnixStream::connect(bench.path("control.sock")).unwrap()).collect();
    assert_eq!(bench.stats()["mode"], "normal");
    drop((idle, idle_control));
    assert!(bench.page().contains("200 OK"));
}

/// One that takes its page slowly is given up, and holds nobody up meanwhile.
#[test]
fn a_slow_reader_holds_nobody_up() {
    let Some(mut bench) = Bench::new("slow") else { return };
    let customers: String = (0..200)
        .map(|n| {
            format!(
                "[[upstream.customers]]\nname = \"c{n}\"\nprefix = \"10.0.{n}.0/24\"\nmarker = {{ kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"10 kB\" }}\n"
            )
        })
        .collect();
    // So little that the page doesn't fit into buffers on the way.
    let buffers = ["tcp_wmem", "tcp_rmem"].map(|name| format!("/proc/sys/net/ipv4/{name}"));
    bench.namespace.within(|| buffers.iter().try_for_each(|b| fs::write(b, "4096 4096 8192"))).unwrap();
    bench.start(&format!("{METRICS}{}{customers}", plain("5 Mbit/s")));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut slow = bench.namespace.within(|| TcpStream::connect("127.0.0.1:9474")).unwrap();
        slow.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let slow_done = &done;
        scope.spawn(move || {
            let mut some = [0; 512];
            while let Ok(1..) = slow.read(&mut some) {
                thread::sleep(Duration::from_millis(50));
            }
            slow_done.store(true, Ordering::SeqCst);
        });
        thread::sleep(Duration::from_millis(300));
        for _ in 0..3 {
            let page = bench.page();
            assert!(page.len() > 100_000 && page.ends_with('\n'), "{}", page.len());
        }
        assert!(!done.load(Ordering::SeqCst), "the slow one is still at it");
        // The scope waits for its end: it is cut off.
    });
}

/// Whoever asked has given up, and has been told so: nothing is carried out later.
#[test]
fn a_stop_that_was_given_up_is_not_carried_out() {
    let Some(mut bench) = Bench::new("given-up") else { return };
    bench.start(&plain("5 Mbit/s"));
    bench.signal("-STOP");
    for _ in 0..3 {
        let mut stream = UnixStream::connect(bench.path("control.sock")).unwrap();
        stream.write_all(b"{\"do\": \"stop\"}\n").unwrap();
    }
    bench.signal("-CONT");
    wait_for("it answers", || bench.tell(&["stats"]).status.success());
    thread::sleep(Duration::from_millis(500));
    assert_eq!(bench.stats()["mode"], "normal");
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1);
    // One whose asker waits is.
    bench.obey(&["stop"]);
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
}

/// A file that takes long to read is read beside the watchdog's thread; what is no file at all isn't read.
#[test]
fn a_long_reload_is_no_sign_of_death() {
    let Some(mut bench) = Bench::new("long-reload") else { return };
    let manager = UnixDatagram::bind(bench.path("notify.sock")).unwrap();
    bench.configure(&plain("5 Mbit/s"));
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(bench.path("router.toml"));
    command.env("NOTIFY_SOCKET", bench.path("notify.sock")).env("WATCHDOG_USEC", "150000");
    bench.start_by(&mut command);
    let file = bench.path("router.toml");
    let good = fs::read_to_string(&file).unwrap();
    let mut long = good.clone();
    while long.len() < 12 << 20 {
        long.push_str("[[downstream.customers]]\nname = \"a name\"\n");
    }
    fs::write(&file, long).unwrap();
    heard(&manager, Duration::from_millis(100));
    bench.signal("-HUP");
    let (mut told, until) = (Vec::new(), Instant::now() + Duration::from_secs(60));
    while !told.iter().any(|t: &String| t.starts_with("READY=1")) && Instant::now() < until {
        told.extend(heard(&manager, Duration::from_millis(50)));
    }
    let begun = told.iter().position(|t| t.starts_with("RELOADING=1")).unwrap_or_else(|| panic!("{told:?}"));
    let ended = told.iter().position(|t| t.starts_with("READY=1")).unwrap_or_else(|| panic!("{told:?}"));
    let alive = told[begun..ended].iter().filter(|t| t.as_str() == "WATCHDOG=1").count();
    assert!(alive >= 2, "{alive} signs of life while it read");
    for other in ["/dev/zero", "fifo"] {
        fs::remove_file(&file).unwrap();
        if other == "fifo" {
            assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        } else {
            std::os::unix::fs::symlink(other, &file).unwrap();
        }
        let refused = bench.figure("reloads.refused");
        bench.signal("-HUP");
        wait_for("it is refused", || bench.figure("reloads.refused") == refused + 1);
        let error = bench.stats()["reloads"]["error"].as_str().unwrap().to_owned();
        assert!(error.contains("name a regular file") && error.contains("router.toml"), "{error}");
    }
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1);
}

/// The service manager's socket goes, or was never there: forwarding goes on, and it is said once.
#[test]
fn a_manager_that_cannot_be_told_ends_nothing() {
    let Some(mut bench) = Bench::new("manager") else { return };
    for there in [true, false] {
        let path = bench.path("notify.sock");
        let manager = there.then(|| UnixDatagram::bind(&path).unwrap());
        bench.configure(&plain("5 Mbit/s"));
        let mut command = Command::new(PROGRAM);
        command.arg("run").arg(bench.path("router.toml"));
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
        bench.start_by(&mut command);
        if there {
            fs::remove_file(&path).unwrap();
        }
        drop(manager);
        bench.signal("-HUP");
        wait_for("it is said", || bench.errors().contains("the service manager can't be told"));
        thread::sleep(Duration::from_millis(500));
        bench.send(0, &[Udp::numbered(1).v4()]);
        assert_eq!(bench.receive(1, 1, QUIET).len(), 1, "{}", bench.errors());
        assert_eq!(bench.errors().matches("the service manager can't be told").count(), 1);
        bench.obey(&["stop"]);
        assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    }
}

/// `--fix-offloads` on the command line is not a change of the file.
#[test]
fn a_flag_of_the_command_line_lasts_through_reloads() {
    let Some(mut bench) = Bench::new("flag") else { return };
    bench.configure(&plain("5 Mbit/s"));
    let file = bench.path("router.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("fix_offloads = true\n", "")).unwrap();
    bench.start_by(Command::new(PROGRAM).args(["run", "--fix-offloads"]).arg(&file));
    bench.obey(&["reload"]);
}
