//! Commands, reloads and CPUs of a running router.

use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::bench::{Bench, assert_adds_up, plain};
use crate::frames::Udp;

mod commands {
    //! An engineer's commands to a running router: `top`, `show customer`, `reload --dry-run`; and what comes with the program.

    use std::process::Command;

    use super::*;
    use crate::bench::PROGRAM;

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
                command
                    .args(["top", "--plain", "-n", "3", "-i", "0.5", "--socket"])
                    .arg(socket)
                    .output()
                    .unwrap()
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
        assert!(
            !ok && errors.contains("there is no customer alicia") && errors.contains("alice"),
            "{errors}"
        );
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
            !ok && text.contains("~ flows: 65536 → 1000")
                && errors.contains("flows can't change while it runs"),
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
            assert!(
                out.status.success() && String::from_utf8_lossy(&out.stdout).contains("dry-run"),
                "{shell}"
            );
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
            .map(|n| {
                ALICE.replace("alice", &format!("c{n}")).replace("10.0.0.1/32", &format!("10.0.0.{n}/32"))
            })
            .concat();
        for cap in [1, 0] {
            let head = format!("[metrics]\nlisten = \"127.0.0.1:9474\"\ncustomers = {cap}\n");
            bench.start(&format!("{head}{}{customers}", plain("4 Mbit/s")));
            for from in 1..=3 {
                let some: Vec<_> =
                    (0..from).map(|n| Udp { from: from as u8, ..Udp::numbered(n) }.v4()).collect();
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
}

mod reload {
    //! Reloads and the bypass, under load.

    use inprofile_core::units::Duration as Span;

    use super::*;
    use crate::bench::QUIET;

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
        assert_eq!(
            (stats["reloads"]["refused"].as_u64(), stats["reloads"]["done"].as_u64()),
            (Some(5), Some(0))
        );
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
        assert_eq!(
            (bench.stats()["mode"].as_str(), bench.figure("directions.0.bypassed")),
            (Some("bypass"), 50)
        );
        bench.obey(&["bypass", "off"]);
        bench.send(0, &frames(50));
        let got = bench.receive(1, 50, QUIET);
        assert!(got.len() == 50 && got.iter().all(|g| g.octet == Some(14 << 2)));
        assert_adds_up(&bench.stats());
    }
}

mod cpus {
    //! One customer's packets on two CPUs at once, between namespaces: they have one rate.

    use std::sync::Barrier;

    use inprofile_live::io::Io;
    use inprofile_live::io::afpacket::{AfPacket, PortOptions};
    use inprofile_live::io::sys::Clock;

    use super::*;
    use crate::bench::figure;
    use crate::kernel::{bench, file};
    use crate::pin::pin;

    const RATE: u64 = 40_000_000;
    /// Deep enough for a thread that waits for its turn.
    const DEPTH: u64 = 2_000_000;
    const SENT_FOR: Duration = Duration::from_secs(3);
    /// Frames of 1,000 B: 64 every 4 ms, three times the rate by each thread.
    const TRAIN: u64 = 64;
    const GAP: Duration = Duration::from_millis(4);

    /// Frames that each CPU has taken in, of all interfaces.
    fn taken_in() -> Vec<u64> {
        let told = fs::read_to_string("/proc/net/softnet_stat").expect("the kernel tells");
        let first = |line: &str| line.split(' ').next().and_then(|n| u64::from_str_radix(n, 16).ok());
        told.lines().map(|line| first(line).expect("a count")).collect()
    }

    #[test]
    fn a_customer_has_one_rate_on_two_cpus() {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            eprintln!("NOT TESTED: there is one CPU");
            return;
        }
        let Some((mut bench, pins)) = bench("kernel-cpus") else { return };
        let tables = format!(
            "[upstream]\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1\"\ncontract = \"{RATE} bit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"{DEPTH} B\" }}\n"
        );
        bench.start(&file(&pins, &tables));
        let (namespace, before, together) = (&bench.namespace, taken_in(), Barrier::new(2));
        let send = |cpu: usize| {
            pin(cpu);
            namespace.within(|| {
                let ports = ["h0", "h1"].map(PortOptions::new);
                let mut host = AfPacket::open(&ports, Clock::start())?;
                let frame = Udp::numbered(cpu as u64).v4();
                let mut sent = 0;
                together.wait();
                let begin = Instant::now();
                let mut last = begin;
                while begin.elapsed() < SENT_FOR {
                    for _ in 0..TRAIN {
                        host.send(0, &frame)?;
                    }
                    host.flush()?;
                    last = Instant::now();
                    sent += TRAIN;
                    thread::sleep(GAP);
                }
                Ok((sent, begin, last))
            })
        };
        let [(one, began, ended), (other, begins, ends)] = thread::scope(|scope| {
            let send = &send;
            let threads = [0, 1].map(|cpu| scope.spawn(move || send(cpu).expect("it sends")));
            threads.map(|t| t.join().expect("it ends"))
        });
        let (sent, took) = ([one, other], ended.max(ends) - began.min(begins));
        let of_cpu: Vec<_> = taken_in().iter().zip(before).map(|(now, before)| now - before).collect();
        let stats = bench.stats();
        assert_adds_up(&stats);
        let of = |path: &str| figure(&stats, &format!("directions.0.{path}"));
        let (arrived, green) = (of("customers.0.arrived"), of("customers.0.sent_bytes.in"));
        assert!(of_cpu[0] >= sent[0] / 2 && of_cpu[1] >= sent[1] / 2, "{of_cpu:?} of {sent:?} on each CPU");
        let left = &stats["directions"][0]["markers"][0]["gauges"]["tokens"];
        let left = left.as_f64().expect("it has tokens");
        // It was full at the first packet.
        let bought = DEPTH as f64 + RATE as f64 / 8.0 * took.as_secs_f64();
        let share = green as f64 / (bought - left);
        println!("{arrived} packets of {sent:?} on two CPUs; IN {green} B, {share:.4} of what was bought");
        assert!(arrived * 1_000 > 3 * bought as u64 / 2, "{arrived} packets are too few to tell");
        assert!(green as f64 <= bought && share > 0.99, "{green} B of {bought} B, {left} B left");
    }
}
