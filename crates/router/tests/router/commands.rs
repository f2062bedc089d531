//! An engineer's commands to a running router: `top`, `show customer`, `reload --dry-run`; and what comes with the program.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::bench::{Bench, PROGRAM, plain};
use crate::frames::Udp;

const ALICE: &str = "[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1/32\"\ncontract = \"1 Mbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"10 kB\" }\n";

fn said(bench: &Bench, words: &[&str]) -> (bool, String, String) {
    let out = bench.tell(words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

/// A line of a table, by its first word.
fn line<'a>(table: &'a str, first: &str) -> Vec<&'a str> {
    let line =
        table.lines().find(|l| l.starts_with(first)).unwrap_or_else(|| panic!("no {first} in\n{table}"));
    line.split_whitespace().collect()
}

#[test]
fn top_shows_what_a_customer_sends() {
    let Some(mut bench) = Bench::new("top") else { return };
    bench.start(&format!("{}{ALICE}", plain("4 Mbit/s")));
    let (ok, idle, errors) = said(&bench, &["top", "-n", "1", "-i", "0.2"]);
    assert!(ok, "{errors}");
    assert!(
        idle.starts_with("inprofiled: normal, up 0 d 00:00:") && idle.contains("lan0 up | wan0 up"),
        "{idle}"
    );
    assert_eq!(line(&idle, "alice")[1..3], ["up", "0"], "{idle}");
    let table = thread::scope(|scope| {
        let socket = bench.socket.clone();
        let top = scope.spawn(move || {
            let mut command = Command::new(PROGRAM);
            command.args(["top", "--plain", "-n", "3", "-i", "0.5", "--socket"]).arg(socket).output().unwrap()
        });
        // 200 packets of 1000 B each 100 ms: 16 Mbit/s, four times what the link takes.
        for round in 0..18 {
            bench.send(0, &(0..200).map(|n| Udp::numbered(round * 200 + n).v4()).collect::<Vec<_>>());
            thread::sleep(Duration::from_millis(100));
        }
        String::from_utf8(top.join().unwrap().stdout).unwrap()
    });
    let second = table.split("\n\ninprofiled").nth(1).unwrap_or_else(|| panic!("{table}"));
    let alice = line(second, "alice");
    // name, way, offered, M, sent, M, …: she sends more than her contract, and most of it is OUT.
    assert_eq!((alice[1], alice[3]), ("up", "M"), "{table}");
    assert!(alice[2].parse::<f64>().unwrap() > 4.0, "{table}");
    assert!(table.matches("customer  way").count() == 3, "{table}");
    let mut closed = Command::new("sh");
    let words = format!("{PROGRAM} top -i 0.1 --socket {} | head -n 1", bench.socket.display());
    assert!(closed.args(["-c", &words]).status().unwrap().success(), "whoever has seen enough ends it");
}

#[test]
fn show_customer_says_contract_and_counts() {
    let Some(mut bench) = Bench::new("show") else { return };
    bench.start(&format!("{}{ALICE}", plain("4 Mbit/s")));
    bench.send(0, &(0..10).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    thread::sleep(Duration::from_millis(100));
    let (ok, text, errors) = said(&bench, &["show", "customer", "alice"]);
    assert!(ok, "{errors}");
    for part in [
        "alice\n",
        "upstream\n",
        "contract",
        "1 Mbit/s",
        "10.0.0.1/32",
        "now: offered",
        "10 packets, 10000 B",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let (ok, json, _) = said(&bench, &["show", "customer", "alice", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(ok && json["directions"][0]["counts"]["arrived"] == 10, "{json:#}");
    let (ok, _, errors) = said(&bench, &["show", "customer", "alicia"]);
    assert!(!ok && errors.contains("there is no customer alicia") && errors.contains("alice"), "{errors}");
}

#[test]
fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let Some(mut bench) = Bench::new("dry-run") else { return };
    bench.start(&format!("{}{ALICE}", plain("4 Mbit/s")));
    let (ok, text, errors) = said(&bench, &["reload", "--dry-run"]);
    assert!(ok && text == "nothing changes\n", "{text}{errors}");
    let bob = ALICE.replace("alice", "bob").replace("10.0.0.1/32", "10.0.0.2/32");
    bench.configure(&format!("{}{}{bob}", plain("5 Mbit/s"), ALICE.replace("1 Mbit/s", "2 Mbit/s")));
    let (ok, text, errors) = said(&bench, &["reload", "--dry-run"]);
    assert!(ok, "{errors}");
    for part in [
        "~ upstream.rate: 4 Mbit/s → 5 Mbit/s\n",
        "~ upstream.customers.alice.contract: 1 Mbit/s → 2 Mbit/s\n",
        "+ upstream.customers.bob: ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(bench.figure("reloads.done") + bench.figure("reloads.refused"), 0);
    // What a reload would refuse, and what is wrong.
    bench.configure(&format!("flows = 1000\n---\n{}", plain("4 Mbit/s")));
    let (ok, text, errors) = said(&bench, &["reload", "--dry-run"]);
    assert!(
        !ok && text.contains("~ flows: 65536 → 1000") && errors.contains("flows can't change while it runs"),
        "{text}{errors}"
    );
    bench.configure(&plain("4 Mbit/s").replace("limit", "limt"));
    let (ok, _, errors) = said(&bench, &["reload", "--dry-run"]);
    assert!(!ok && errors.contains("did you mean \"limit\""), "{errors}");
    assert_eq!(bench.figure("reloads.refused"), 0);
}

/// Man pages and completions are made of the same declaration as the help.
#[test]
fn the_program_documents_itself() {
    let folder = std::env::temp_dir().join(format!("inprofiled-man-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    assert!(Command::new(PROGRAM).arg("man").arg(&folder).status().unwrap().success());
    let page = fs::read_to_string(folder.join("inprofiled-top.1")).unwrap();
    assert!(page.contains(".TH inprofiled-top 1") && page.contains("interval"), "{page}");
    assert!(fs::read_to_string(folder.join("inprofiled.1")).unwrap().contains("inprofiled\\-reload(1)"));
    fs::remove_dir_all(&folder).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let out = Command::new(PROGRAM).args(["completions", shell]).output().unwrap();
        assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("dry-run"), "{shell}");
    }
    let out = Command::new(PROGRAM).arg("relaod").output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && said.contains("'reload'"), "{said}");
}

/// Ten thousand customers are not ten thousand series of every family: those beyond the cap are added up, and nothing is lost.
#[test]
fn customers_beyond_the_cap_are_added_up() {
    let Some(mut bench) = Bench::new("cap") else { return };
    let customers: String = ["1", "2", "3"]
        .map(|n| ALICE.replace("alice", &format!("c{n}")).replace("10.0.0.1/32", &format!("10.0.0.{n}/32")))
        .concat();
    for cap in [1, 0] {
        let head = format!("[metrics]\nlisten = \"127.0.0.1:9474\"\ncustomers = {cap}\n");
        bench.start(&format!("{head}{}{customers}", plain("4 Mbit/s")));
        for from in 1..=3 {
            let some: Vec<_> = (0..from).map(|n| Udp { from: from as u8, ..Udp::numbered(n) }.v4()).collect();
            bench.send(0, &some);
        }
        thread::sleep(Duration::from_millis(200));
        let page = bench.page();
        let of = |name: &str| {
            format!("customer_arrived_packets_total{{direction=\"upstream\",customer=\"{name}\"}}")
        };
        let rest = if cap == 1 { 5 } else { 6 };
        assert!(page.contains(&format!("{} {rest}\n", of("(others)"))), "{page}");
        assert_eq!(page.contains(&format!("{} 1\n", of("c1"))), cap == 1);
        assert!(
            !page.contains("c2") && page.contains("inprofiled_customers{direction=\"upstream\"} 3"),
            "{page}"
        );
        assert_eq!(page.contains("marker=\"c1\""), cap == 1);
        bench.obey(&["stop"]);
        assert_eq!(bench.ended(), Some(0));
    }
}
