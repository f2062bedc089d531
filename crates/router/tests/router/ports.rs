//! Interfaces that go and come back while the router runs: deleted, renamed, moved to another network namespace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use inprofile_live::namespace::Namespace;
use inprofile_router::offload;

use crate::bench::{Bench, PROGRAM, QUIET, assert_adds_up, may, plain};
use crate::frames::Udp;
use crate::service::{heard, status, wait_for};

/// Lines of its log, on standard error, that say this.
fn lines(bench: &Bench, text: &str) -> usize {
    bench.errors().lines().filter(|l| l.contains(text)).count()
}

/// Waits until the outside is in use, or not.
fn wait_until_used(bench: &Bench, used: bool) {
    wait_for(&format!("in use: {used}"), || bench.stats()["ports"][1]["in_use"] == used);
}

/// Sends these numbers into one port, and sees them come out of the other.
fn passes(bench: &mut Bench, from: usize, numbers: std::ops::Range<u64>) {
    let frames: Vec<_> = numbers.clone().map(|n| Udp::numbered(n).v4()).collect();
    bench.send(from, &frames);
    let got: Vec<u64> = bench.receive(1 - from, frames.len(), QUIET).iter().map(|got| got.number).collect();
    assert_eq!(got, numbers.collect::<Vec<_>>(), "{}", bench.errors());
}

/// Frames that come in at the inside while the outside is away are counted as dropped.
fn is_refused(bench: &mut Bench, frames: u64) {
    let before = bench.figure("ports.1.refused");
    bench.send(0, &(0..frames).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    wait_for("they are refused", || bench.figure("ports.1.refused") == before + frames);
    assert_adds_up(&bench.stats());
}

/// Whether somebody without privileges can be had here.
fn has_nobody() -> bool {
    may("become another user", fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295"))
}

/// Deleted and made again, without traffic and in the midst of it: the same process goes on, as the user it has become, and
/// puts the new interface's offloads back at its end.
#[test]
fn a_port_that_is_deleted_and_made_again_is_taken_up() {
    if !has_nobody() {
        return;
    }
    let Some(mut bench) = Bench::new("replugged") else { return };
    let manager = UnixDatagram::bind(bench.path("notify.sock")).unwrap();
    fs::set_permissions(bench.path("notify.sock"), fs::Permissions::from_mode(0o666)).unwrap();
    bench.configure(&format!("user = \"nobody\"\n---\n{}", plain("5 Mbit/s")));
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(bench.path("router.toml")).env("NOTIFY_SOCKET", bench.path("notify.sock"));
    bench.start_by(&mut command);
    let pid = bench.pid();
    let before = bench.namespace.within(|| offload::on("wan0")).unwrap();
    assert_eq!(before, Vec::<String>::new());
    for round in 1..=3 {
        passes(&mut bench, 0, 0..20);
        passes(&mut bench, 1, 20..40);
        if round > 1 {
            // Some leave before, some wait for their turn when it goes.
            bench.send(0, &(0..100).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
        }
        bench.link("del wan0");
        wait_until_used(&bench, false);
        wait_for("nothing waits", || bench.figure("directions.0.waiting") == 0);
        let stats = bench.stats();
        assert_eq!(
            (&stats["ports"][1]["there"], &stats["ports"][0]["in_use"]),
            (&false.into(), &true.into())
        );
        is_refused(&mut bench, 30);
        let told = heard(&manager, Duration::from_millis(50)).concat();
        assert!(told.contains("STATUS=`wan0`: the interface was taken away"), "{told}");

        bench.plug();
        wait_until_used(&bench, true);
        assert_eq!(bench.namespace.within(|| offload::on("wan0")).unwrap(), Vec::<String>::new());
        passes(&mut bench, 0, 40..60);
        passes(&mut bench, 1, 60..80);
        let told = heard(&manager, Duration::from_millis(50)).concat();
        assert!(told.contains("STATUS=packets are forwarded"), "{told}");
        assert_eq!(lines(&bench, "was taken away"), round, "one line each time: {}", bench.errors());
        assert_eq!(bench.figure("ports.1.taken_away"), round as u64);
        assert_eq!(bench.figure("ports.0.taken_away"), 0);
        assert_adds_up(&bench.stats());
    }
    assert_eq!((bench.pid(), status(pid, "Uid").contains("65534")), (pid, true));
    bench.signal("-TERM");
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    let after = bench.namespace.within(|| offload::on("wan0")).unwrap();
    assert!(after.iter().any(|f| f == "tx-generic-segmentation"), "restored at the end: {after:?}");
}

/// Without fix_offloads offloads are left alone. What comes back with offloads on stays out of use, until somebody
/// switches them off.
#[test]
fn a_port_that_comes_back_with_offloads_is_out_of_use_until_they_are_off() {
    if !has_nobody() {
        return;
    }
    let Some(mut bench) = Bench::new("unfit") else { return };
    let note = bench.path("elsewhere");
    // As `ethtool -K` would, for good.
    let switch_off = |bench: &Bench| {
        let ports = ["lan0".to_owned(), "wan0".to_owned()];
        let off = bench
            .namespace
            .within(|| offload::switch_off(&ports, true, &offload::look(&ports, true)?, &note, None));
        std::mem::forget(off.unwrap());
    };
    switch_off(&bench);
    bench.configure(&format!("user = \"nobody\"\n---\n{}", plain("5 Mbit/s")));
    let file = bench.path("router.toml");
    let text = fs::read_to_string(&file).unwrap().replace("fix_offloads = true", "fix_offloads = false");
    fs::write(&file, text).unwrap();
    bench.start_again();
    passes(&mut bench, 0, 0..10);
    bench.link("del wan0");
    wait_until_used(&bench, false);
    bench.plug();
    wait_for("it is seen", || bench.stats()["ports"][1]["there"] == true);
    let why = bench.stats()["ports"][1]["out_of_use"].as_str().unwrap().to_owned();
    assert!(why.contains("ethtool -K wan0") && why.contains("gso"), "{why}");
    is_refused(&mut bench, 10);
    bench.send(1, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(0, 1, QUIET).len(), 0, "nothing is taken in there");
    assert_eq!(lines(&bench, "stays out of use"), 1, "said once: {}", bench.errors());
    switch_off(&bench);
    wait_until_used(&bench, true);
    passes(&mut bench, 0, 10..20);
    passes(&mut bench, 1, 20..30);
    assert_adds_up(&bench.stats());
    bench.signal("-TERM");
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    assert_eq!(bench.namespace.within(|| offload::on("wan0")).unwrap(), Vec::<String>::new(), "left alone");
}

/// The name is what the file says: an interface that has another is none of ours, and one that gets it is, wherever it was.
#[test]
fn a_port_that_is_renamed_or_moved_is_taken_away() {
    let Some(mut bench) = Bench::new("renamed") else { return };
    bench.start(&plain("5 Mbit/s"));
    let rename = |bench: &Bench, from: &str, to: &str| {
        bench.link(&format!("set {from} down"));
        bench.link(&format!("set {from} name {to}"));
        bench.link(&format!("set {to} up"));
    };
    passes(&mut bench, 0, 0..10);
    rename(&bench, "wan0", "other0");
    wait_until_used(&bench, false);
    is_refused(&mut bench, 10);
    // What comes there meanwhile isn't ours.
    let before = bench.figure("ports.1.received");
    bench.send(1, &[Udp::numbered(1).v4()]);
    assert_eq!((bench.receive(0, 1, QUIET).len(), bench.figure("ports.1.received")), (0, before));
    rename(&bench, "other0", "wan0");
    wait_until_used(&bench, true);
    passes(&mut bench, 0, 10..20);
    passes(&mut bench, 1, 20..30);

    let away = Namespace::create().expect("a second namespace");
    let sleeper = away.within(|| Command::new("sleep").arg("60").spawn()).expect("sleep runs");
    let mut sleeper = Guard(sleeper);
    bench.link(&format!("set wan0 netns {}", sleeper.0.id()));
    wait_until_used(&bench, false);
    is_refused(&mut bench, 10);
    // Nothing is left of it once the namespace is gone.
    sleeper.end();
    drop(away);
    wait_for("the pair is gone", || !bench.has("h1"));
    bench.plug();
    wait_until_used(&bench, true);
    passes(&mut bench, 0, 30..40);
    passes(&mut bench, 1, 40..50);
    assert_eq!(bench.figure("ports.1.taken_away"), 2);
    assert_adds_up(&bench.stats());
}

/// Gone and there again before anybody looked, with the same number: the socket has lost it all the same.
#[test]
fn a_port_that_is_made_again_at_once_is_another() {
    let Some(mut bench) = Bench::new("at-once") else { return };
    bench.start(&plain("5 Mbit/s"));
    passes(&mut bench, 0, 0..10);
    let before = bench.index("wan0");
    bench.link("del wan0");
    bench.plug_as(&format!("wan0 index {before}"));
    assert_eq!(bench.index("wan0"), before);
    wait_for("it is seen", || bench.figure("ports.1.taken_away") == 1);
    wait_until_used(&bench, true);
    passes(&mut bench, 0, 10..20);
    passes(&mut bench, 1, 20..30);
    assert_adds_up(&bench.stats());
}

/// A process that is ended with the test.
struct Guard(std::process::Child);

impl Guard {
    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}
