//! `export bpf`: the folder makes the same frames as the program, and is loaded and taken away by its script alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{alice, assert_nothing_left, at_the_ports, bench, burst, file, shell, stop};
use crate::bench::{Bench, QUIET};
use crate::frames::Udp;

/// What an exported folder is loaded by.
fn has_bpftool() -> bool {
    let has = Command::new("bpftool").arg("version").output().is_ok();
    if !has {
        eprintln!(
            "NOT TESTED: there is no bpftool here (Debian: bpftool), by which an exported folder is loaded"
        );
    }
    has
}

/// `inprofiled export bpf` of the bench's file into a folder: its exit code and what it said.
fn export(bench: &Bench, folder: &Path) -> (Option<i32>, String) {
    let out = Command::new(crate::bench::PROGRAM)
        .args(["export", "bpf"])
        .args([&bench.path("router.toml"), folder])
        .output()
        .expect("it runs");
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// The folder's script, in the bench's namespace: whether it did it, and what it said.
fn script(bench: &Bench, folder: &Path, pins: &Path, what: &str) -> (bool, String) {
    let mut command = Command::new("sh");
    command.arg(folder.join("load.sh")).arg(what).env("PINS", pins);
    let out = bench.namespace.within(|| command.output()).expect("sh runs");
    let said = [&out.stdout[..], &out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Frames of customers and of nobody, of two sizes, with code points that are and are not theirs, whole and in fragments, both ways.
fn mixed() -> [Vec<Vec<u8>>; 2] {
    let up = (0..60u64).map(|n| {
        let udp =
            Udp { octet: (n * 37 % 256) as u8, from: [1, 9][usize::from(n % 5 == 4)], ..Udp::numbered(n) };
        match n % 7 {
            3 => udp.v6(),
            5 => udp.fragment(),
            6 => crate::frames::not_ip(n),
            _ => udp.v4(),
        }
    });
    let down = (0..20u64).map(|n| Udp { octet: n as u8 * 4, ..Udp::numbered(n) }.v4());
    [up.collect(), down.collect()]
}

/// What leaves by each port of what is sent to the other.
fn through(bench: &mut Bench) -> [Vec<Vec<u8>>; 2] {
    let [up, down] = mixed();
    bench.send(0, &up);
    let up = bench.receive_frames(1, up.len(), QUIET);
    bench.send(1, &down);
    [up, bench.receive_frames(0, down.len(), QUIET)]
}

/// The daemon and the exported folder make the same frames of the same frames.
#[test]
fn an_exported_folder_decides_as_the_program() {
    let Some((mut bench, pins)) = bench("kernel-export-same") else { return };
    if !has_bpftool() {
        return;
    }
    bench.start(&file(&pins, &alice(10, "80 bit/s")));
    let by_program = through(&mut bench);
    stop(&mut bench);
    let (folder, place) = (bench.path("exported"), pins.0.join("contracts"));
    let (code, text) = export(&bench, &folder);
    assert_eq!(code, Some(0), "{text}");
    bench.link("set dev wan0 promisc on");
    let (done, said) = script(&bench, &folder, &place, "up");
    assert!(done, "{said}");
    let exported = through(&mut bench);
    assert!(by_program[0].len() > 30 && by_program[1].len() == 20, "{}", by_program[0].len());
    assert_eq!(exported, by_program);
    // Somebody else's filter at a port stays, and so does a port that was promiscuous before.
    shell(&bench, "tc filter add dev lan0 ingress pref 7 bpf da bytecode '1,6 0 0 0'");
    let (done, said) = script(&bench, &folder, &place, "down");
    assert!(done, "{said}");
    let left = at_the_ports(&bench);
    assert!(left.contains("pref 7") && !left.contains("pref 1 ") && !left.contains("pref 2 "), "{left}");
    let links = shell(&bench, "ip -o link");
    let promiscuous: Vec<_> = links.lines().filter(|l| l.contains("PROMISC")).collect();
    assert!(promiscuous.len() == 1 && promiscuous[0].contains("wan0"), "{links}");
    assert!(pins.left().is_empty(), "{:?}", pins.left());
}

/// Ports named like VLANs, with dots that a bpffs refuses: run by the program, and by the folder.
#[test]
fn ports_may_have_dots_in_their_names() {
    let Some((mut bench, pins)) = bench("kernel-dots") else { return };
    bench.link("set wan0 down");
    bench.link("set wan0 name wan0.100");
    bench.link("set wan0.100 up");
    let named = |tables: &str| {
        let text = file(&pins, tables);
        bench.configure(&text);
        let file = bench.path("router.toml");
        let text = fs::read_to_string(&file).expect("it is written").replace("\"wan0\"", "\"wan0.100\"");
        fs::write(&file, text).expect("the folder is ours");
    };
    named(&alice(10, "80 bit/s"));
    bench.start_again();
    assert_eq!(burst(&mut bench, 0, 25), (10, 15));
    stop(&mut bench);
    if !has_bpftool() {
        return;
    }
    let (folder, place) = (bench.path("exported"), pins.0.join("contracts"));
    assert_eq!(export(&bench, &folder).0, Some(0));
    let (done, said) = script(&bench, &folder, &place, "up");
    assert!(done, "{said}");
    assert_eq!(burst(&mut bench, 100, 25), (10, 15));
    let (done, said) = script(&bench, &folder, &place, "down");
    assert!(done, "{said}");
    let left = shell(&bench, "tc qdisc show; bpftool net show | grep -F wan0.100 || true");
    assert!(!left.contains("clsact") && !left.contains("wan0.100("), "{left}");
    assert!(pins.left().is_empty(), "{:?}", pins.left());
}

/// A file that asks for what this path has not, or that a folder cannot say, is refused before anything is written.
#[test]
fn what_cannot_be_exported_is_refused() {
    let Some((bench, pins)) = bench("kernel-export-refused") else { return };
    let folder = bench.path("exported");
    let empty = alice(10, "80 bit/s").replace("depth = ", "starts_full = false, depth = ");
    let queued = alice(10, "80 bit/s").replace("[upstream]\n", "[upstream]\nrate = \"1 Mbit/s\"\n");
    for (tables, why) in [(empty, "starts_full = false"), (queued, "nothing is shaped")] {
        bench.configure(&file(&pins, &tables));
        let (code, text) = export(&bench, &folder);
        assert!(code != Some(0) && text.contains(why), "{code:?} {text}");
        assert!(!folder.exists(), "{text}");
    }
}

/// Loaded by the script alone it polices as by the process, and goes without a trace.
#[test]
fn an_exported_folder_polices_without_the_program() {
    let Some((mut bench, pins)) = bench("kernel-export") else { return };
    if !has_bpftool() {
        return;
    }
    bench.configure(&file(&pins, &alice(10, "80 bit/s")).replace("datapath = \"kernel\"\n", ""));
    let (folder, place) = (bench.path("exported"), pins.0.join("contracts"));
    let export = || export(&bench, &folder);
    let (code, text) = export();
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = export();
    assert!(code == Some(1) && text.contains("is there already: name another folder"), "{code:?} {text}");
    let script = |bench: &Bench, what: &str| script(bench, &folder, &place, what);
    let (done, said) = script(&bench, "up");
    assert!(done, "{said}");
    let (again, said) = script(&bench, "up");
    assert!(!again && said.contains("clsact hooks already"), "{said}");
    assert_eq!(burst(&mut bench, 0, 25), (10, 15));
    let back: Vec<_> = (0..20).map(|n| Udp { octet: n as u8 * 4, ..Udp::numbered(n) }.v4()).collect();
    bench.send(1, &back);
    let got: Vec<_> = bench.receive(0, 20, QUIET).into_iter().map(|g| g.frame).collect();
    assert_eq!(got, back);
    let other = Udp { octet: 46 << 2 | 2, from: 9, ..Udp::numbered(8) }.v4();
    bench.send(0, [&other]);
    assert_eq!(bench.receive(1, 1, QUIET)[0].octet, Some(2), "what nobody bought");
    let (done, said) = script(&bench, "counters");
    let hers = said.split("customer alice").nth(1).expect("she has an account");
    assert!(done && hers.contains("\"packets\": 25"), "{said}");
    let (done, said) = script(&bench, "down");
    assert!(done, "{said}");
    assert_nothing_left(&bench, &pins);
    // What cannot be set up leaves nothing half attached.
    bench.link("del wan0");
    let (done, said) = script(&bench, "up");
    assert!(!done && said.contains("there is no interface wan0"), "{said}");
    assert!(pins.left().is_empty(), "{:?}", pins.left());
}
