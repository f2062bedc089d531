//! Faults around a router, tried.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use inprofile_core::units::Duration as Span;
use inprofile_router::offload;
use inprofile_router::privileges::{self, Accounts};

use crate::bench::{Bench, QUIET, assert_adds_up, figure, plain};
use crate::frames::{Udp, not_ip};

#[test]
fn a_port_goes_down_and_comes_up_again() {
    let Some(mut bench) = Bench::new("down") else { return };
    bench.start(&plain("50 Mbit/s"));
    let some = |from: u64| (from..from + 20).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>();
    bench.send(0, &some(0));
    assert_eq!(bench.receive(1, 20, QUIET).len(), 20);
    for port in ["wan0", "lan0"] {
        bench.link(&format!("set {port} down"));
        bench.send(0, &some(100));
        assert!(bench.receive(1, 1, Span::from_millis(100)).is_empty());
        bench.link(&format!("set {port} up"));
        thread::sleep(Duration::from_millis(100));
        bench.send(0, &some(200));
        assert_eq!(bench.receive(1, 20, QUIET).len(), 20, "{}", bench.errors());
    }
    // What the outside could not take was counted as refused there.
    let stats = bench.stats();
    assert_adds_up(&stats);
    assert_eq!(figure(&stats, "ports.1.refused"), 20);
}

#[test]
fn at_its_end_it_sends_what_waits_and_restores_offloads() {
    let Some(mut bench) = Bench::new("drain") else { return };
    bench.start(&plain("1 Mbit/s"));
    assert!(bench.path("control.offloads").exists(), "what was switched off is noted");
    bench.send(0, &(0..200).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    thread::sleep(Duration::from_millis(100));
    assert!(bench.figure("directions.0.waiting") > 100);
    bench.signal("-TERM");
    // 8 ms each: 1.6 s.
    assert_eq!(bench.receive(1, 200, QUIET).len(), 200);
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    assert!(!bench.path("control.sock").exists() && !bench.path("control.offloads").exists());
    assert!(bench.errors().contains("\"left_behind\":0"), "{}", bench.errors());
}

#[test]
fn killed_in_the_middle_it_starts_again() {
    let Some(mut bench) = Bench::new("killed") else { return };
    bench.start(&plain("5 Mbit/s"));
    bench.send(0, &(0..100).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    bench.signal("-KILL");
    assert_eq!(bench.ended(), None);
    assert!(bench.path("control.sock").exists(), "it could not clean up");
    bench.receive(1, usize::MAX, Span::from_millis(100));
    // Meanwhile nothing is forwarded, not even twice.
    bench.send(0, &[Udp::numbered(500).v4()]);
    assert!(bench.receive(1, 1, Span::from_millis(100)).is_empty());
    bench.start_again();
    bench.send(0, &(600..650).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    let got: Vec<u64> = bench.receive(1, 50, QUIET).iter().map(|g| g.number).collect();
    assert_eq!(got, (600..650).collect::<Vec<_>>());
    // The note of the first was not forgotten: the second restores what the first had switched off.
    bench.obey(&["stop"]);
    assert_eq!(bench.ended(), Some(0));
    assert!(!bench.path("control.offloads").exists());
}

/// Only one may have the ports and the socket.
#[test]
fn a_second_router_is_refused() {
    let Some(mut bench) = Bench::new("second") else { return };
    bench.start(&plain("5 Mbit/s"));
    let (code, said) = bench.refused();
    assert!(code == Some(1) && said.contains("another inprofiled answers"), "{said}");
    bench.send(0, &[Udp::numbered(1).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1);
    bench.obey(&["stop"]);
    assert_eq!(bench.ended(), Some(0));
    assert!(!bench.errors().contains("broke off"), "that somebody looked is no event: {}", bench.errors());
}

/// A path that is no socket is somebody's file, whatever `control.socket` says.
#[test]
fn a_file_at_the_sockets_place_stays() {
    let Some(bench) = Bench::new("file") else { return };
    bench.configure(&plain("5 Mbit/s"));
    let (socket, precious) = (bench.path("control.sock"), bench.path("precious"));
    fs::write(&precious, "precious").unwrap();
    for link in [false, true] {
        if link {
            std::os::unix::fs::symlink(&precious, &socket).unwrap();
        } else {
            fs::copy(&precious, &socket).unwrap();
        }
        let (code, said) = bench.refused();
        assert!(code == Some(1) && said.contains("something is there that is no socket"), "{said}");
        assert_eq!(fs::read_to_string(&socket).unwrap(), "precious");
        assert_eq!(fs::symlink_metadata(&socket).unwrap().is_symlink(), link);
        fs::remove_file(&socket).unwrap();
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
}

/// The features of both ports that `fix_offloads` is about.
fn features(bench: &Bench) -> [Vec<String>; 2] {
    ["lan0", "wan0"].map(|port| bench.namespace.within(|| offload::on(port)).expect("the system tells"))
}

#[test]
fn all_offloads_are_off_while_it_runs_and_back_at_its_end() {
    let Some(mut bench) = Bench::new("offloads") else { return };
    let before = features(&bench);
    assert!(before[0].iter().any(|f| f.starts_with("tx-tcp")), "veth has them on: {before:?}");
    bench.start(&plain("5 Mbit/s"));
    assert_eq!(features(&bench), [Vec::<String>::new(), Vec::new()]);
    bench.signal("-TERM");
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
    assert_eq!(features(&bench), before);
}

/// Whatever is refused after the socket was opened or offloads were switched: both are as they were.
#[test]
fn a_start_that_is_refused_leaves_nothing_behind() {
    let Some(bench) = Bench::new("refused") else { return };
    let before = features(&bench);
    let taken = bench.namespace.within(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = taken.local_addr().unwrap();
    bench.configure(&format!("[metrics]\nlisten = \"{address}\"\n{}", plain("5 Mbit/s")));
    let (code, said) = bench.refused();
    assert!(code == Some(1) && said.contains(&format!("metrics at {address}")), "{said}");
    assert!(said.contains("another program listens there") && said.contains("metrics.listen"), "{said}");
    for name in ["control.sock", "control.offloads"] {
        assert!(!bench.path(name).exists(), "{name}");
    }
    assert_eq!(features(&bench), before);
    // A fault in between, after they were switched: what holds them goes, and they are back.
    let (ports, note) = (["lan0", "wan0"].map(str::to_owned), bench.path("note"));
    bench
        .namespace
        .within(|| {
            let off = offload::switch_off(&ports, true, &offload::look(&ports, true)?, &note, None)?;
            assert!(off.changed().count() > 0 && offload::on("lan0")?.is_empty());
            drop(off);
            Ok(())
        })
        .unwrap();
    assert_eq!((features(&bench), note.exists()), (before, false));
}

/// An offload that was never switched is not restored by the next start.
#[test]
fn without_the_right_to_switch_offloads_nothing_is_noted() {
    let Some(bench) = Bench::new("noright") else { return };
    let (ports, note, before) = (["lan0", "wan0"].map(str::to_owned), bench.path("note"), features(&bench));
    let said = bench.namespace.within(|| {
        let all = offload::look(&ports, true)?;
        // Of this thread alone.
        privileges::drop(&Accounts { user: None, group: None }, &[])?;
        Ok(offload::switch_off(&ports, true, &all, &note, None).map(drop).map_err(|e| e.to_string()))
    });
    let said = said.unwrap().unwrap_err();
    assert!(said.contains("interface `lan0`") && said.contains("CAP_NET_ADMIN"), "{said}");
    assert_eq!((features(&bench), note.exists()), (before, false));
}

#[test]
fn offloads_are_named_once_each() {
    let Some(bench) = Bench::new("named") else { return };
    let said = bench.namespace.within(|| offload::look(&["lan0".to_owned()], false).map(drop)).unwrap_err();
    assert_eq!(said.to_string().matches("tx off").count(), 1, "{said}");
}

#[test]
fn a_full_disk_costs_lines_not_packets() {
    let Some(mut bench) = Bench::new("disk") else { return };
    // Takes nothing, as a full disk: ENOSPC.
    bench.start(&format!("[log]\nfile = \"/dev/full\"\n{}", plain("5 Mbit/s")));
    bench.send(0, &(0..50).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    assert_eq!(bench.receive(1, 50, QUIET).len(), 50);
    bench.obey(&["bypass", "on"]);
    bench.obey(&["bypass", "off"]);
    let patience = Instant::now() + Duration::from_secs(5);
    while bench.figure("log.lost") < 3 {
        assert!(Instant::now() < patience, "{:#}", bench.stats()["log"]);
    }
    assert_eq!(bench.figure("log.written"), 0);
    assert!(bench.errors().contains("the log can't be written"), "{}", bench.errors());
}

/// A request that is too long, never comes, or means nothing: answered or dropped, and the next is served.
#[test]
fn bad_requests_do_no_harm() {
    let Some(mut bench) = Bench::new("requests") else { return };
    bench.start(&plain("5 Mbit/s"));
    let socket = bench.path("control.sock");
    let ask = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The router may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    for (bytes, why) in [
        (b"{\"do\": \"dance\"}\n".to_vec(), "is stats, customer, reload, bypass or stop"),
        (b"no json\n".to_vec(), "can't be read"),
        (b"{\"do\": \"bypass\"}\n".to_vec(), "true or false"),
        (vec![b'['; 4000], "can't be read"),
    ] {
        let answer = ask(&bytes);
        assert!(answer.contains(why) && answer.contains("\"ok\":false"), "{answer}");
    }
    ask(&vec![b' '; 1 << 20]);
    // One that says nothing holds the next up for no more than a second.
    let mut idle = UnixStream::connect(&socket).unwrap();
    assert_eq!(bench.stats()["mode"], "normal");
    let mut answer = String::new();
    idle.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("can't be read: it took longer than 1s"), "{answer}");
}

/// How many of a flood's packets are fragments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fragments {
    Few,
    Most,
}

fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// So many packets of 60 bytes, each of a flow of its own, with fragments and rubbish among them.
fn flood(bench: &mut Bench, flows: u32, fragments: Fragments) {
    bench.start(&format!(
        "flows = 4096\n---\n{}[[upstream.customers]]\nname = \"all\"\nprefix = \"0.0.0.0/0\"\nmarker = {{ kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"10 kB\" }}\n",
        plain("20 Mbit/s")
    ));
    let before = memory_kib(bench.pid());
    let mut batch = Vec::new();
    for n in 0..flows {
        let packet = Udp { from: (n >> 16) as u8, port: n as u16, size: 60, ..Udp::numbered(u64::from(n)) };
        batch.push(match n % 64 {
            5 => packet.fragment(),
            n if fragments == Fragments::Most && n > 7 => packet.fragment(),
            6 => not_ip(u64::from(n)),
            7 => packet.v4()[..30].to_vec(),
            _ => packet.v4(),
        });
        if batch.len() == 512 {
            bench.send(0, &batch);
            batch.clear();
            // Whatever comes out is taken, so that this end isn't the bottleneck.
            bench.receive(1, 400, Span::from_millis(1));
        }
    }
    bench.send(0, &batch);
    bench.receive(1, usize::MAX, QUIET);
    let stats = bench.stats();
    assert_adds_up(&stats);
    let came = figure(&stats, "directions.0.came") + figure(&stats, "ports.0.missed");
    assert_eq!(came + bench.lost_from("h0"), u64::from(flows));
    assert!(
        figure(&stats, "directions.0.frames.truncated") > 0
            && figure(&stats, "directions.0.frames.ipv4_fragment") > 0
    );
    assert!(
        figure(&stats, "directions.0.flows_replaced") > 0 && figure(&stats, "directions.0.flows") <= 4096
    );
    // A queue of 400 packets and a table of fixed size: nothing else may grow.
    let after = memory_kib(bench.pid());
    assert!(after < before + 8 * 1024, "{before} KiB before, {after} KiB after");
    bench.send(0, &[Udp::numbered(u64::MAX).v4()]);
    assert_eq!(bench.receive(1, 1, QUIET).len(), 1, "forwarding goes on");
}

#[test]
fn a_flood_of_new_flows_stays_within_bounds() {
    let Some(mut bench) = Bench::new("flood") else { return };
    flood(&mut bench, 30_000, Fragments::Few);
}

#[test]
fn a_flood_of_fragments_stays_within_bounds() {
    let Some(mut bench) = Bench::new("fragments") else { return };
    flood(&mut bench, 30_000, Fragments::Most);
    assert!(bench.figure("directions.0.frames.ipv4_fragment") > 26_000);
}

#[test]
#[ignore = "a minute: make soak"]
fn a_million_flows_stay_within_bounds() {
    let Some(mut bench) = Bench::new("million") else { return };
    flood(&mut bench, 1_000_000, Fragments::Few);
}

#[test]
#[ignore = "half a minute: make soak"]
fn a_million_fragments_stay_within_bounds() {
    let Some(mut bench) = Bench::new("fragments2") else { return };
    flood(&mut bench, 1_000_000, Fragments::Most);
    assert!(bench.figure("directions.0.frames.ipv4_fragment") > 800_000);
}
