//! `datapath = "kernel"` between namespaces: it forwards without the process, is taken over, reloaded, and leaves nothing behind.

mod export;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

use crate::attack::{Ip, Wrap};
use crate::bench::{Bench, QUIET, assert_adds_up, figure};
use crate::frames::Udp;

/// A file system for pins, for as long as a test.
pub struct Pins(PathBuf);

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

impl Pins {
    /// Folders of pins.
    fn left(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(&self.0).expect("it is mounted").map(|e| e.expect("it can be read").path());
        all.filter(|p| p.is_dir()).collect()
    }
}

/// A bench with a place for pins; `None` where the kernel gives nobody any and ALLOW_MISSING says that this is fine.
pub fn bench(name: &str) -> Option<(Bench, Pins)> {
    let bench = Bench::new(name)?;
    let folder = env::temp_dir().join(format!("inprofiled-pins-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the test");
    let mounted =
        Command::new("mount").args(["-t", "bpf", "bpf"]).arg(&folder).output().expect("mount is installed");
    let allowed = env::var("ALLOW_MISSING").is_ok_and(|v| v.split(',').any(|w| w == "bpf"));
    if !mounted.status.success() {
        let why = String::from_utf8_lossy(&mounted.stderr).into_owned();
        eprintln!("NOT TESTED: no bpffs can be mounted: {why}");
        assert!(allowed, "this test mounts a bpffs: {why}; ALLOW_MISSING=bpf leaves it out");
        return None;
    }
    Some((bench, Pins(folder)))
}

/// How programs are put at the ports.
const ATTACHED: [&str; 2] = ["tcx", "clsact"];

/// A file with these tables.
pub fn file(pins: &Pins, tables: &str) -> String {
    file_by("auto", pins, tables)
}

/// The same, with programs put at the ports so.
fn file_by(attach: &str, pins: &Pins, tables: &str) -> String {
    let head = format!("datapath = \"kernel\"\nattach = \"{attach}\"\npacket = \"1000 B\"");
    format!("{head}\npins = {:?}\n---\n{tables}", pins.0)
}

/// Alice's bucket of so many packets of 1000 B fills by next to nothing.
fn alice(packets: u32, contract: &str) -> String {
    format!(
        "[upstream]\n[[upstream.customers]]\nname = \"alice\"\nprefix = [\"10.0.0.1\", \"2001:db8::/64\"]\ncontract = \"{contract}\"\nmarker = {{ kind = \"token_bucket\", depth = \"{packets} packets\" }}\n"
    )
}

/// So many packets of hers, and how many leave as IN and as OUT.
fn burst(bench: &mut Bench, from: u64, packets: u64) -> (usize, usize) {
    let sent: Vec<_> = (from..from + packets).map(|n| Udp::numbered(n).v4()).collect();
    bench.send(0, &sent);
    let got = bench.receive(1, packets as usize, QUIET);
    let of = |dscp| got.iter().filter(|g| g.octet.map(|o| o >> 2) == Some(dscp)).count();
    (of(10), of(12))
}

/// What a line of sh in the bench's namespace prints.
fn shell(bench: &Bench, line: &str) -> String {
    let out = bench.namespace.within(|| Command::new("sh").args(["-c", line]).output()).expect("sh runs");
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// What tc and bpftool show at the ports.
fn at_the_ports(bench: &Bench) -> String {
    shell(
        bench,
        "for i in lan0 wan0; do tc filter show dev $i ingress; tc filter show dev $i egress; done; bpftool net show 2>/dev/null | grep -E 'lan0|wan0' || true",
    )
}

fn assert_nothing_left(bench: &Bench, pins: &Pins) {
    assert_eq!((at_the_ports(bench).as_str(), pins.left()), ("", vec![]));
}

/// An orderly end.
fn stop(bench: &mut Bench) {
    bench.obey(&["stop"]);
    assert_eq!(bench.ended(), Some(0), "{}", bench.errors());
}

/// Programs of ours that are filters.
fn filters(bench: &Bench) -> usize {
    at_the_ports(bench).lines().filter(|l| l.starts_with("filter") && l.contains(" inprofiled ")).count()
}

fn customer(stats: &Json) -> (u64, u64, u64) {
    let of = |key: &str| figure(stats, &format!("directions.0.customers.0.{key}"));
    (of("arrived"), of("sent.in"), of("sent.out"))
}

#[test]
fn contracts_are_kept_in_the_kernel_and_nothing_stays_behind() {
    for attach in ATTACHED {
        let Some((mut bench, pins)) = bench(&format!("kernel-{attach}")) else { return };
        bench.start(&file_by(attach, &pins, &alice(10, "80 bit/s")));
        assert_eq!(burst(&mut bench, 0, 25), (10, 15));
        // Back it goes as it is, and others' packets are bleached.
        let back: Vec<_> = (0..20).map(|n| Udp { octet: n as u8 * 4, ..Udp::numbered(n) }.v4()).collect();
        bench.send(1, &back);
        let got: Vec<_> = bench.receive(0, 20, QUIET).into_iter().map(|g| g.frame).collect();
        assert_eq!(got, back);
        let other = Udp { octet: 2, from: 9, ..Udp::numbered(7) }.v6();
        bench.send(0, [&other]);
        assert_eq!(bench.receive(1, 1, QUIET)[0].octet, Some(12 << 2 | 2), "her prefix of IPv6");
        let other = Udp { octet: 46 << 2 | 2, from: 9, ..Udp::numbered(8) }.v4();
        bench.send(0, [&other]);
        assert_eq!(bench.receive(1, 1, QUIET)[0].octet, Some(2));
        let stats = bench.stats();
        assert_adds_up(&stats);
        assert_eq!(customer(&stats), (26, 10, 16), "{stats:#}");
        let shown = bench.tell(&["show", "customer", "alice"]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains("alice"), "{shown:?}");
        assert!(!at_the_ports(&bench).is_empty() && pins.left().len() == 1);
        // The bypass, and back.
        bench.obey(&["bypass", "on"]);
        assert_eq!(burst(&mut bench, 100, 5), (0, 0));
        bench.obey(&["bypass", "off"]);
        assert_eq!(burst(&mut bench, 200, 5), (0, 5));
        stop(&mut bench);
        assert_nothing_left(&bench, &pins);
    }
}

/// Kill −9: contracts are kept on, the next start takes over, no bucket is filled and no count is lost.
#[test]
fn a_killed_process_is_not_missed() {
    for attach in ATTACHED {
        let Some((mut bench, pins)) = bench(&format!("killed-{attach}")) else { return };
        bench.start(&file_by(attach, &pins, &alice(30, "80 bit/s")));
        assert_eq!(burst(&mut bench, 0, 10), (10, 0));
        bench.signal("-9");
        bench.ended();
        assert_eq!(burst(&mut bench, 100, 25), (20, 5), "while there is no process");
        bench.start_again();
        let stats = bench.stats();
        assert_eq!(customer(&stats), (35, 30, 5), "{stats:#}");
        assert_adds_up(&stats);
        assert_eq!(burst(&mut bench, 200, 10), (0, 10), "its bucket is as empty as it was");
        // Killed again, and released by hand.
        bench.signal("-9");
        bench.ended();
        release(&bench, &pins, "lan0");
        release(&bench, &pins, "wan0");
        assert_nothing_left(&bench, &pins);
    }
}

/// Under load, from one set of rules to another: no frame is lost, who stays keeps tokens and counts, and who is new begins with none.
#[test]
fn a_reload_holds_no_packet_and_fills_no_bucket() {
    for attach in ATTACHED {
        let Some((mut bench, pins)) = bench(&format!("kernel-reload-{attach}")) else { return };
        bench.start(&file_by(attach, &pins, &alice(10, "80 bit/s")));
        assert_eq!(burst(&mut bench, 0, 10), (10, 0));
        let (mut sent, rounds) = (0u64, 20);
        for round in 0..rounds {
            let depth = if round % 2 == 0 { 400 } else { 10 };
            bench.configure(&file_by(attach, &pins, &alice(depth, "160 bit/s")));
            let frames: Vec<_> = (0..50).map(|i| Udp::numbered(1000 + sent + i).v4()).collect();
            sent += 50;
            bench.send(0, &frames);
            bench.obey(&["reload"]);
        }
        let got = bench.receive(1, sent as usize, QUIET);
        assert_eq!(got.len() as u64, sent);
        let green = got.iter().filter(|g| g.octet == Some(10 << 2)).count();
        assert!(green <= 1, "{green} of a bucket that was empty");
        let stats = bench.stats();
        assert_eq!(customer(&stats).0, 10 + sent);
        assert_eq!(figure(&stats, "reloads.done"), rounds);
        assert_adds_up(&stats);
        // Another name: a new account, and an empty one.
        bench.configure(&file_by(attach, &pins, &alice(400, "160 bit/s").replace("alice", "bob")));
        bench.obey(&["reload"]);
        assert_eq!(burst(&mut bench, 9000, 10), (0, 10));
        // What this datapath can't do is refused, and what was goes on.
        bench.configure(&file(
            &pins,
            &format!("{}rate = \"1 Mbit/s\"\n", alice(10, "1 kbit/s").split_once("[[").unwrap().0),
        ));
        let refused = bench.tell(&["reload"]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && text.contains("nothing is shaped in the kernel's datapath"),
            "{text}"
        );
        assert_eq!(burst(&mut bench, 9100, 10), (0, 10));
    }
}

/// A class that is given a virtual queue by a reload, and loses it by another: what came is what was sent and what was dropped.
#[test]
fn counts_of_a_class_outlive_its_queue() {
    let Some((mut bench, pins)) = bench("kernel-queue") else { return };
    let plain = alice(10, "80 bit/s");
    let queue = "[upstream]\nqueue = { aqm = \"virtual_queue\", virtual_rate = \"80 bit/s\", virtual_limit = \"5000 B\", law = \"drop_tail\" }\n";
    let queued = plain.replace("[upstream]\n", queue);
    bench.start(&file(&pins, &plain));
    let mut came = 0;
    for (tables, left) in [(&plain, 20), (&queued, 25), (&plain, 45)] {
        bench.configure(&file(&pins, tables));
        bench.obey(&["reload"]);
        let (green, yellow) = burst(&mut bench, 100 * came, 20);
        came += 20;
        let stats = bench.stats();
        assert_adds_up(&stats);
        let classes = stats["directions"][0]["classes"].as_array().expect("it has classes");
        let assured = classes.iter().find(|c| figure(c, "sent.in") > 0).expect("her class");
        let of = |key: &str| ["in", "out", "red"].map(|c| figure(assured, &format!("{key}.{c}")));
        let dropped: u64 =
            ["early", "forced", "policed"].iter().flat_map(|c| of(&format!("dropped.{c}"))).sum();
        let (arrived, sent) = (of("arrived").iter().sum::<u64>(), of("sent").iter().sum::<u64>());
        assert_eq!((arrived, sent, dropped), (came, left, came - left), "{green} {yellow} {assured:#}");
        let (bytes, sent) = (of("arrived_bytes").iter().sum::<u64>(), of("sent_bytes").iter().sum::<u64>());
        assert_eq!((bytes, sent), (1_000 * came, 1_000 * left), "{assured:#}");
    }
}

/// Tags that the kernel has taken off and put beside the frame: known by, bleached, and put back.
#[test]
fn tags_beside_the_frame_are_read_and_bleached() {
    let Some((mut bench, pins)) = bench("kernel-tags") else { return };
    let tables = "[upstream]\n[[upstream.customers]]\nname = \"vlan\"\nvlan = [5, \"6.7\"]\ncontract = \"8 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"10 packets\" }\n";
    bench.start(&file(&pins, tables));
    for (wraps, octet) in [
        (vec![Wrap::Tag(0x8100, 0xe005)], 10 << 2),
        (vec![Wrap::Tag(0x8100, 0x0005)], 10 << 2),
        (vec![Wrap::Tag(0x88a8, 0xa006), Wrap::Tag(0x8100, 0x6007)], 10 << 2),
        (vec![Wrap::Tag(0x88a8, 0xf009), Wrap::Tag(0x9100, 0xe007)], 0),
        (vec![Wrap::Tag(0x8100, 0xe005), Wrap::Pppoe(3)], 10 << 2),
        (vec![Wrap::Tag(0x8100, 0x2009), Wrap::Mpls(2, 5)], 0),
    ] {
        for v6 in [false, true] {
            let ip = Ip { v6, bytes: 600, octet: 46 << 2, wraps: wraps.clone(), ..Ip::default() };
            let metered = Ip { octet: 0, ..ip.clone() };
            let sent = if octet == 0 { ip } else { metered }.frame();
            let clear: Vec<_> = wraps
                .iter()
                .map(|w| match *w {
                    Wrap::Tag(kind, tci) => Wrap::Tag(kind, tci & 0x1fff),
                    Wrap::Mpls(labels, _) => Wrap::Mpls(labels, 0),
                    other => other,
                })
                .collect();
            let expected = Ip { v6, bytes: 600, octet, wraps: clear, ..Ip::default() }.frame();
            bench.send(0, [&sent.0]);
            let got = bench.receive_frames(1, 1, QUIET);
            assert_eq!(got, [expected.0], "{wraps:?}, IPv6: {v6}");
        }
    }
    assert_adds_up(&bench.stats());
}

/// A port that goes, and comes back, which its program has gone with.
#[test]
fn a_port_that_comes_back_is_policed_again() {
    for attach in ATTACHED {
        let Some((mut bench, pins)) = bench(&format!("kernel-port-{attach}")) else { return };
        bench.start(&file_by(attach, &pins, &alice(30, "80 bit/s")));
        assert_eq!(burst(&mut bench, 0, 10), (10, 0));
        bench.link("del wan0");
        crate::service::wait_for("it is seen", || bench.stats()["ports"][1]["in_use"] == false);
        bench.send(0, &[Udp::numbered(77).v4()]);
        crate::service::wait_for("it is refused", || bench.figure("ports.1.refused") == 1);
        bench.plug();
        crate::service::wait_for("it is taken up", || bench.stats()["ports"][1]["in_use"] == true);
        assert_eq!(burst(&mut bench, 100, 25), (19, 6));
        let back: Vec<_> = (0..5).map(|n| Udp::numbered(n).v4()).collect();
        bench.send(1, &back);
        assert_eq!(bench.receive(0, 5, QUIET).len(), 5);
        stop(&mut bench);
        assert_nothing_left(&bench, &pins);
    }
}

/// `inprofiled release` of a port.
fn release(bench: &Bench, pins: &Pins, port: &str) {
    let mut command = Command::new(crate::bench::PROGRAM);
    command.args(["release", port, "--pins"]).arg(&pins.0);
    let out = bench.namespace.within(|| command.output()).expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// What can't be set up is said, and leaves nothing half attached.
#[test]
fn a_start_that_is_refused_leaves_nothing() {
    let Some((bench, pins)) = bench("kernel-refused") else { return };
    bench.configure(
        &file(&pins, &alice(10, "80 bit/s")).replace(&format!("{:?}", pins.0), "\"/tmp/nowhere\""),
    );
    let (code, text) = bench.refused();
    assert!(code == Some(1) && text.contains("`mount -t bpf bpf /tmp`"), "{code:?} {text}");
    assert_nothing_left(&bench, &pins);
    // Somebody else's filter where the port is closed to the machine.
    shell(
        &bench,
        "tc qdisc add dev wan0 clsact && tc filter add dev wan0 ingress pref 1 bpf bytecode '1,6 0 0 0' da",
    );
    bench.configure(&file(&pins, &alice(10, "80 bit/s")));
    let (code, text) = bench.refused();
    assert!(code == Some(1) && text.contains("wan0"), "{code:?} {text}");
    assert!(pins.left().is_empty(), "{:?}", pins.left());
    let left = at_the_ports(&bench);
    assert!(!left.contains("lan0") && !left.contains("inside"), "{left}");
}

mod filters {
    //! Programs as filters of clsact, and from filters to links of tcx and back.

    use super::{
        alice, assert_nothing_left, at_the_ports, bench, burst, customer, file_by, filters, release, shell,
        stop,
    };
    use crate::bench::{Bench, QUIET};
    use crate::frames::Udp;

    /// Programs that are filters of clsact: what others have there stays, and what others take away or put before them is put right.
    #[test]
    fn filters_are_asked_first_and_others_stay() {
        let Some((mut bench, pins)) = bench("kernel-filters") else { return };
        shell(
            &bench,
            "tc qdisc add dev lan0 clsact && tc filter add dev lan0 ingress pref 7 bpf da bytecode '1,6 0 0 2'",
        );
        bench.start(&file_by("clsact", &pins, &alice(40, "80 bit/s")));
        assert_eq!(burst(&mut bench, 0, 10), (10, 0));
        let back = |bench: &Bench| crate::service::wait_for("it is put back", || filters(bench) == 4);
        // The programs alone, and all that is at a port.
        shell(&bench, "tc filter del dev lan0 ingress pref 1 && tc filter del dev wan0 egress pref 1");
        back(&bench);
        assert_eq!(burst(&mut bench, 100, 10), (10, 0));
        shell(&bench, "tc qdisc del dev wan0 clsact");
        back(&bench);
        assert_eq!(burst(&mut bench, 200, 10), (10, 0));
        // Closed again while there is no process: that filter is the newest, and the next start comes before it.
        bench.signal("-9");
        bench.ended();
        assert_eq!(burst(&mut bench, 300, 5), (5, 0), "while there is no process");
        shell(&bench, "tc filter del dev wan0 ingress handle 0x696e7072 pref 1 bpf");
        bench.start_again();
        assert_eq!(burst(&mut bench, 400, 10), (5, 5));
        let reply: Vec<_> = (0..5).map(|n| Udp::numbered(n).v4()).collect();
        bench.send(1, &reply);
        assert_eq!(bench.receive(0, 5, QUIET).len(), 5);
        stop(&mut bench);
        let left = at_the_ports(&bench);
        assert!(
            left.contains("pref 7") && !left.contains("inprofiled") && !left.contains("pref 1 "),
            "{left}"
        );
        assert!(pins.left().is_empty(), "{:?}", pins.left());
    }

    /// From links to filters and back by kills and starts: tokens stay, and nothing of the other way does.
    #[test]
    fn links_and_filters_take_each_other_over() {
        let Some((mut bench, pins)) = bench("kernel-ways") else { return };
        for (n, attach) in ["tcx", "clsact", "clsact", "tcx", "clsact"].into_iter().enumerate() {
            bench.start(&file_by(attach, &pins, &alice(50, "80 bit/s")));
            assert_eq!(burst(&mut bench, 100 * n as u64, 10), (10, 0), "{attach}");
            assert_eq!(filters(&bench), if attach == "tcx" { 0 } else { 4 }, "{attach}");
            bench.signal("-9");
            bench.ended();
        }
        bench.start_again();
        assert_eq!(customer(&bench.stats()), (50, 50, 0));
        bench.signal("-9");
        bench.ended();
        // Released by one of its ports the pair forwards no more.
        release(&bench, &pins, "lan0");
        assert_eq!(burst(&mut bench, 900, 5), (0, 0));
        release(&bench, &pins, "wan0");
        assert_nothing_left(&bench, &pins);
    }
}
