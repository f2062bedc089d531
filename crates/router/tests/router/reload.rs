//! Reloads and the bypass, under load.

use std::time::{Duration, Instant};

use inprofile_core::units::Duration as Span;

use crate::bench::{Bench, QUIET, assert_adds_up, plain};
use crate::frames::Udp;

/// Bursts that wait in the queue, and reloads between them: rates, disciplines, markers and classes change, and no packet
/// is lost or overtaken.
#[test]
fn reloads_under_load_lose_no_packet() {
    let Some(mut bench) = Bench::new("reload") else { return };
    let rio = r#"queue = { aqm = "rio", limit = "500 packets", in = { min_th = "400 packets", max_th = "499 packets", max_p = 0.01 }, out = { min_th = "400 packets", max_th = "498 packets", max_p = 0.01 } }"#;
    let customer = "[[upstream.customers]]\nname = \"a\"\nprefix = \"10.0.0.0/8\"\nmarker = { kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"10 kB\" }\n";
    let versions = [
        plain("10 Mbit/s"),
        format!("[upstream]\nrate = \"12 Mbit/s\"\n{rio}\n{customer}"),
        format!(
            "[upstream]\nrate = \"9 Mbit/s\"\n{rio}\naggregate = {{ kind = \"arm\", tpr_max = \"8 Mbit/s\", bucket = \"60 packets\", t_rd = \"15 packets\", interval = \"1 s\", max_rem = 0.5 }}\n{customer}"
        ),
        format!(
            "{}[[upstream.classes]]\nname = \"voice\"\ndscp = [\"EF\"]\naqm = \"drop_tail\"\nlimit = \"50 packets\"\nrate = \"1 Mbit/s\"\n",
            plain("11 Mbit/s")
        ),
        "[downstream]\nrate = \"5 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"50 packets\" }\n"
            .to_owned(),
    ];
    bench.start(&versions[0]);
    let (mut got, mut number, rounds) = (Vec::new(), 0, 20);
    for round in 0..rounds {
        let burst: Vec<_> = (0..40).map(|i| Udp::numbered(number + i).v4()).collect();
        number += 40;
        bench.send(0, &burst);
        bench.configure(&versions[(round + 1) % versions.len()]);
        if round % 2 == 0 {
            bench.obey(&["reload"]);
        } else {
            bench.signal("-HUP");
        }
        got.extend(bench.receive(1, 40, Span::from_millis(20)));
    }
    got.extend(bench.receive(1, number as usize - got.len(), QUIET));
    let order: Vec<u64> = got.iter().map(|g| g.number).collect();
    assert_eq!(order, (0..number).collect::<Vec<_>>(), "none lost, none overtaken");
    let stats = bench.stats();
    assert_adds_up(&stats);
    assert!(stats["reloads"]["done"].as_u64().unwrap() >= rounds as u64 / 2, "{:#}", stats["reloads"]);
    assert_eq!(stats["reloads"]["refused"], 0);
}

#[test]
fn a_broken_file_changes_nothing_and_says_why() {
    let Some(mut bench) = Bench::new("broken") else { return };
    bench.start(&plain("1 Mbit/s"));
    for (broken, why) in [
        (plain("1 Mbit/s").replace("limit", "limt"), "did you mean \"limit\""),
        ("[upstream\n".into(), "error"),
        (plain("0 bit/s"), "a rate must be above 0"),
        (format!("packet = \"900 B\"\n---\n{}", plain("1 Mbit/s")), "packet can't change while it runs"),
    ] {
        bench.configure(&broken);
        let out = bench.tell(&["reload"]);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1));
        assert!(text.contains(why), "{text}");
    }
    std::fs::remove_file(bench.path("router.toml")).unwrap();
    assert_eq!(bench.tell(&["reload"]).status.code(), Some(1));
    let stats = bench.stats();
    assert_eq!((stats["reloads"]["refused"].as_u64(), stats["reloads"]["done"].as_u64()), (Some(5), Some(0)));
    assert!(stats["reloads"]["error"].as_str().unwrap().contains("router.toml"));
    assert!(bench.errors().contains("\"event\":\"reload\""));
    // Forwarding goes on at the rate it had: 20 packets of 8 ms.
    let started = Instant::now();
    bench.send(0, &(0..20).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
    assert_eq!(bench.receive(1, 20, QUIET).len(), 20);
    assert!(started.elapsed() > Duration::from_millis(19 * 8));
}

#[test]
fn the_bypass_lets_everything_pass_and_comes_back() {
    let Some(mut bench) = Bench::new("bypass") else { return };
    bench.start(&format!(
        "{}[[upstream.customers]]\nname = \"a\"\nprefix = \"0.0.0.0/0\"\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n",
        plain("800 kbit/s")
    ));
    let frames = |from: u64| (from..from + 50).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>();
    bench.obey(&["bypass", "on"]);
    // 10 ms each at the set rate: 500 ms; but they pass at once and unmarked.
    let started = Instant::now();
    bench.send(0, &frames(0));
    let got = bench.receive(1, 50, QUIET);
    assert!(got.len() == 50 && started.elapsed() < Duration::from_millis(400), "{:?}", started.elapsed());
    assert!(got.iter().all(|g| g.octet == Some(0)));
    assert_eq!((bench.stats()["mode"].as_str(), bench.figure("directions.0.bypassed")), (Some("bypass"), 50));
    bench.obey(&["bypass", "off"]);
    bench.send(0, &frames(50));
    let got = bench.receive(1, 50, QUIET);
    assert!(got.len() == 50 && got.iter().all(|g| g.octet == Some(14 << 2)));
    assert_adds_up(&bench.stats());
}
