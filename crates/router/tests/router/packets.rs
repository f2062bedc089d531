//! What passes: plain frames, frames behind tags and labels, and frames that are too long.

use crate::attack::{Ip, Wrap};
use crate::bench::{Bench, QUIET, assert_adds_up, figure, plain};

mod forwarding {
    //! Packets cross, are coloured, and are otherwise left alone.

    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::process::Command;

    use super::*;
    use crate::frames::{Udp, not_ip};

    const CUSTOMERS: &str = r#"
[upstream]
rate = "20 Mbit/s"
queue = { aqm = "drop_tail", limit = "400 packets" }
[[upstream.customers]]
name = "by_prefix"
prefix = ["10.0.0.1", "2001:db8::/64"]
contract = "80 bit/s"
marker = { kind = "token_bucket", depth = "10 packets" }
[[upstream.customers]]
name = "by_port"
port = 7777
contract = "80 bit/s"
marker = { kind = "srtcm", cbs = "5000 B", ebs = "5000 B" }
"#;

    /// 1000 B each, under a packet size of 1000 B; the buckets fill by 10 B a second: not at all.
    #[test]
    fn customers_packets_leave_with_the_dscp_of_their_colour() {
        let Some(mut bench) = Bench::new("colours") else { return };
        bench.start(&format!("packet = \"1000 B\"\nframes.unreadable = \"best_effort\"\n---\n{CUSTOMERS}"));
        // ECT(0) on all: it must survive.
        let base = Udp { octet: 2, ..Udp::numbered(0) };
        let mut sent = Vec::new();
        for number in 0..10 {
            sent.push(Udp { number, ..base }.v4());
            sent.push(Udp { number: 10 + number, ..base }.v6());
        }
        sent.extend((20..40).map(|number| Udp { number, port: 7777, from: 2, ..base }.v4()));
        // Nobody's; a fragment, which its address makes a customer's; and no IP.
        sent.push(Udp { number: 40, from: 3, ..base }.v4());
        sent.push(Udp { number: 41, ..base }.fragment());
        sent.push(not_ip(42));
        bench.send(0, &sent);
        let got = bench.receive(1, 43, QUIET);
        let octets = |range: std::ops::Range<u64>| -> Vec<Option<u8>> {
            let mut of: Vec<_> = got.iter().filter(|g| range.contains(&g.number)).collect();
            of.sort_by_key(|g| g.number);
            of.iter().map(|g| g.octet.map(|o| o >> 2)).collect()
        };
        // One bucket of ten packets for both of a customer's prefixes.
        let (both, green) =
            (octets(0..20), |all: &[Option<u8>]| all.iter().filter(|o| **o == Some(10)).count());
        assert_eq!((both.len(), both.iter().filter(|o| **o == Some(12)).count() + green(&both)), (20, 20));
        assert_eq!(green(&both), 10, "{both:?}");
        // Five green, five yellow, the rest red: RFC 2697.
        let metered = octets(20..40);
        assert_eq!(&metered[..10], [[Some(10); 5], [Some(12); 5]].concat());
        assert!(metered[10..].iter().all(|o| *o == Some(14)), "{metered:?}");
        assert_eq!(octets(40..43), [Some(0), Some(12), None]);
        assert!(got.iter().filter_map(|g| g.octet).all(|o| o & 3 == 2), "ECN as it was");
        // Nothing but the octet and the checksum has changed.
        for (before, after) in sent.iter().filter_map(|f| crate::frames::read(f)).flat_map(|s| {
            got.iter().filter(move |g| g.number == s.number).map(move |g| (s.frame.clone(), g.frame.clone()))
        }) {
            let changed: Vec<usize> = (0..before.len()).filter(|i| before[*i] != after[*i]).collect();
            let v4 = before[12..14] == [8, 0];
            assert!(
                changed.iter().all(|i| if v4 { [15, 24, 25].contains(i) } else { [14, 15].contains(i) }),
                "{changed:?}"
            );
        }
        let stats = bench.stats();
        assert_adds_up(&stats);
        assert_eq!(
            (figure(&stats, "directions.0.passed"), figure(&stats, "directions.0.frames.ipv4_fragment")),
            (0, 1)
        );
        assert_eq!(
            stats["directions"][0]["markers"][1]["left"],
            serde_json::json!({ "in": 5, "out": 5, "red": 10 })
        );
        assert_eq!(bench.tell(&["stats"]).status.code(), Some(0));
    }

    #[test]
    fn the_other_direction_passes_as_it_is() {
        let Some(mut bench) = Bench::new("back") else { return };
        bench.start(&plain("1 Mbit/s"));
        let sent: Vec<_> =
            (0..200).map(|n| Udp { octet: (n % 256) as u8, ..Udp::numbered(n) }.v4()).collect();
        bench.send(1, &sent);
        let got: Vec<_> = bench.receive(0, 200, QUIET).into_iter().map(|g| g.frame).collect();
        assert_eq!(got, sent);
        assert_adds_up(&bench.stats());
    }

    /// RFC 2474 §3, RFC 3168 §5: whatever the code point, it comes out as it came; ECN changes only to CE, and only where it
    /// may.
    #[test]
    fn all_code_points_come_through_congestion() {
        let Some(mut bench) = Bench::new("transparency") else { return };
        bench.start(
            r#"
[upstream]
role = "core"
rate = "4 Mbit/s"
[upstream.queue]
aqm = "rio"
limit = "300 packets"
w_q = 0.2
ecn = true
in = { min_th = "20 packets", max_th = "290 packets", max_p = 0.5 }
out = { min_th = "10 packets", max_th = "280 packets", max_p = 0.5 }
"#,
        );
        // 256 octets, 300 B each, twice as fast as they can leave for a while: the average stays between the thresholds.
        let (mut got, mut number) = (Vec::new(), 0);
        for _ in 0..4 {
            let sent: Vec<_> = (0..=255)
                .map(|octet| {
                    number += 1;
                    Udp { octet, size: 300, ..Udp::numbered(number) }.v4()
                })
                .collect();
            for part in sent.chunks(64) {
                bench.send(0, part);
                got.extend(bench.receive(1, 60, inprofile_core::units::Duration::from_millis(30)));
            }
        }
        got.extend(bench.receive(1, usize::MAX, QUIET));
        let (mut seen, mut marked) = (BTreeSet::new(), 0);
        for g in &got {
            let (was, is) = (((g.number - 1) % 256) as u8, g.octet.unwrap());
            assert_eq!(is >> 2, was >> 2, "DSCP {}", was >> 2);
            if is != was {
                assert!(matches!(was & 3, 1 | 2) && is & 3 == 3, "ECN {} became {}", was & 3, is & 3);
                marked += 1;
            }
            seen.insert(is >> 2);
        }
        assert_eq!(seen.len(), 64);
        let stats = bench.stats();
        assert_adds_up(&stats);
        assert!(marked > 0 && figure(&stats, "directions.0.dropped") > 0, "there was congestion: {stats:#}");
    }

    #[test]
    fn expedited_packets_go_first() {
        let Some(mut bench) = Bench::new("expedited") else { return };
        bench.start(&format!(
            "{}[[upstream.classes]]\nname = \"voice\"\ndscp = [\"EF\"]\naqm = \"drop_tail\"\nlimit = \"50 packets\"\nrate = \"1 Mbit/s\"\n",
            plain("2 Mbit/s")
        ));
        // 100 packets of 4 ms each wait; EF comes last and is through long before they are.
        let mut sent: Vec<_> = (0..100).map(|n| Udp::numbered(n).v4()).collect();
        sent.extend((100..105).map(|n| Udp { octet: 46 << 2, size: 200, ..Udp::numbered(n) }.v4()));
        bench.send(0, &sent);
        let order: Vec<u64> = bench.receive(1, 105, QUIET).iter().map(|g| g.number).collect();
        assert_eq!(order.len(), 105);
        let last_voice = order.iter().rposition(|n| *n >= 100).unwrap();
        assert!(last_voice < 30, "{order:?}");
        let rest: Vec<u64> = order.into_iter().filter(|n| *n < 100).collect();
        assert_eq!(rest, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn metrics_are_served_and_privileges_gone() {
        let Some(mut bench) = Bench::new("metrics") else { return };
        bench
            .start(&format!("packet = \"1000 B\"\n---\n[metrics]\nlisten = \"127.0.0.1:9474\"\n{CUSTOMERS}"));
        bench.send(0, &(0..30).map(|n| Udp::numbered(n).v4()).collect::<Vec<_>>());
        assert_eq!(bench.receive(1, 30, QUIET).len(), 30);
        let get = |request: &str| {
            let answer = bench.namespace.within(|| {
                let mut stream = TcpStream::connect("127.0.0.1:9474")?;
                stream.write_all(request.as_bytes())?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer)?;
                Ok(answer)
            });
            answer.expect("it is served")
        };
        let page = get("GET /metrics HTTP/1.0\r\n\r\n");
        assert!(page.starts_with("HTTP/1.0 200 OK\r\n"), "{page}");
        for line in [
            "inprofiled_frames_total{direction=\"upstream\"} 30",
            "inprofiled_class_sent_packets_total{direction=\"upstream\",class=\"assured\",colour=\"in\"} 10",
            "inprofiled_class_sent_bytes_total{direction=\"upstream\",class=\"assured\",colour=\"out\"} 20000",
            "inprofiled_marker_packets_total{direction=\"upstream\",marker=\"by_prefix\",event=\"left\",colour=\"out\"} 20",
            "inprofiled_accounts_add_up{direction=\"upstream\"} 1",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
        well_formed(page.split("\r\n\r\n").nth(1).unwrap());
        assert!(get("GET /metrics?x=1 HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 OK\r\n"));
        assert!(get("GET /metricsx HTTP/1.0\r\n\r\n").contains("404"));
        assert!(get("GET / HTTP/1.0\r\n\r\n").contains("404"));
        assert!(get("POST /metrics HTTP/1.0\r\n\r\n").contains("405"));
        assert!(get(&format!("GET /{} HTTP/1.0\r\n", "x".repeat(9000))).contains("431"));

        let status = std::fs::read_to_string(format!("/proc/{}/status", bench.pid())).unwrap();
        let of = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned();
        // What is left: CAP_NET_ADMIN, as the ports are to be as they were.
        assert_eq!(
            (of("CapEff:"), of("CapPrm:"), of("NoNewPrivs:")),
            ("0000000000001000".into(), "0000000000001000".into(), "1".into())
        );
        let mode = Command::new("stat").args(["-c", "%a"]).arg(bench.path("control.sock")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&mode.stdout).trim(), "660");
    }

    /// Every family has its head once, before its samples; no sample comes twice; buckets rise.
    fn well_formed(page: &str) {
        let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(families.insert(rest.split(' ').next().unwrap().to_owned()), "{line}");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
                assert!(samples.insert(name.to_owned()), "{line}");
                let family = name.split('{').next().unwrap();
                let plain = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|s| family.strip_suffix(s))
                    .unwrap_or(family);
                assert!(families.contains(plain) || families.contains(family), "{line}");
            }
        }
        assert!(samples.len() > 100);
    }
}

mod encapsulated {
    //! Customers behind tags, sessions and labels, as the kernel hands frames over and takes them.

    use std::fmt::Write;

    use super::*;

    const FILE: &str = r#"
[upstream]
rate = "20 Mbit/s"
queue = { aqm = "drop_tail", limit = "400 packets" }
best_effort = { aqm = "drop_tail", limit = "400 packets" }
[[upstream.customers]]
name = "alice"
prefix = ["10.0.0.1", "2001:db8::/64"]
contract = "80 bit/s"
marker = { kind = "token_bucket", depth = "3 packets" }
"#;

    /// Frames of the customer's and a stranger's in every wrapping come out once, unchanged but for DSCP, checksum and the classes of
    /// tags and labels: hers as AF11 as long as her bucket lasts, his as best effort.
    #[test]
    fn customers_are_found_behind_tags_sessions_and_labels() {
        let Some(mut bench) = Bench::new("encapsulated") else { return };
        bench.start(FILE);
        let outer = Wrap::Tag(0x88a8, 0xa005);
        let wraps: [Vec<Wrap>; 6] = [
            vec![],
            vec![Wrap::Tag(0x8100, 0xe064)],
            vec![outer, Wrap::Tag(0x8100, 0x2006)],
            vec![outer, Wrap::Pppoe(7)],
            vec![Wrap::Mpls(2, 5)],
            vec![outer, Wrap::Mpls(1, 3)],
        ];
        let mut sent = Vec::new();
        for (n, wraps) in wraps.iter().enumerate() {
            for (v6, from) in [(false, 1), (true, 1), (false, 77)] {
                let port = 1000 + (n * 3 + usize::from(v6) + usize::from(from)) as u16;
                // EF: what she has not bought; ECT(0) stays.
                let octet = if from == 77 { 46 << 2 | 2 } else { 2 };
                sent.push(
                    Ip { v6, from, octet, port, bytes: 400, wraps: wraps.clone(), ..Ip::default() }.frame(),
                );
            }
        }
        bench.send(0, &sent.iter().map(|f| f.0.clone()).collect::<Vec<_>>());
        let got = bench.receive_frames(1, sent.len(), QUIET);
        let (mut green, mut report) = (0, String::new());
        for before in &sent {
            let at = before.at();
            let whole = |f: &&Vec<u8>| {
                f.len() == before.0.len() && f[at + 20..] == before.0[at + 20..] && f[..12] == before.0[..12]
            };
            let mut same = got.iter().filter(whole);
            let (Some(after), None) = (same.next(), same.next()) else {
                panic!("not once: {:02x?}", &before.0[..at + 20])
            };
            let after = crate::attack::Frame(after.clone());
            let _ = write!(report, "{:?} ", after.dscp());
            let stranger = before.0[at] >> 4 == 4 && before.0[at + 15] == 77;
            match after.dscp() {
                Some(10) if !stranger => green += 1,
                Some(12) if !stranger => {}
                Some(0) if stranger => {}
                other => panic!("{other:?} from {before:02x?}"),
            }
            assert!(!after.has_link_class() && !after.has_wrong_checksum(), "{:02x?}", &after.0[..at + 20]);
        }
        assert_eq!(
            (got.len(), green),
            (sent.len(), 11),
            "three full packets of 1500 B hold 11 of 400: {report}"
        );
        let stats = bench.stats();
        assert_adds_up(&stats);
        assert_eq!(figure(&stats, "directions.0.passed"), 0);
    }
}

mod mtu {
    //! Ports with unequal MTUs: what is too long for the one it would leave by is refused before it costs anybody anything.

    use inprofile_core::units::Duration as Span;

    use super::*;
    use crate::attack::Frame;

    fn frame(bytes: usize, wraps: Vec<Wrap>) -> Vec<u8> {
        let Frame(frame) = Ip { bytes, wraps, ..Ip::default() }.frame();
        frame
    }

    #[test]
    fn what_is_too_long_for_the_port_ahead_is_refused_before_it_is_queued() {
        let Some(mut bench) = Bench::new("mtu") else { return };
        bench.link("set h0 mtu 9000");
        bench.link("set lan0 mtu 9000");
        bench.start(&format!("packet = \"9000 B\"\n---\n{}", plain("1 Mbit/s")));
        let tag = || vec![Wrap::Tag(0x8100, 5)];
        let long = [frame(4000, vec![]), frame(1501, vec![]), frame(1501, tag()), frame(9000, vec![])];
        let fit = [frame(1500, vec![]), frame(1500, tag()), frame(100, vec![])];
        bench.send(0, long.iter().chain(&fit));
        assert_eq!(bench.receive_frames(1, fit.len(), QUIET).len(), fit.len());
        let stats = bench.stats();
        assert_adds_up(&stats);
        let of = |path| figure(&stats, path);
        assert_eq!(of("directions.0.refusals.too_long"), long.len() as u64);
        assert_eq!((of("directions.0.sent"), of("ports.1.refused")), (fit.len() as u64, 0));
        // Whoever sets it while the router runs is heard within a second.
        bench.link("set wan0 mtu 9000");
        bench.link("set h1 mtu 9000");
        std::thread::sleep(std::time::Duration::from_millis(2_500));
        let jumbo = [frame(1501, vec![])];
        bench.send(0, &jumbo);
        assert_eq!(bench.receive_frames(1, 1, Span::from_millis(2_000)).len(), 1, "{}", bench.errors());
    }
}
