//! Customers behind tags, sessions and labels, as the kernel hands frames over and takes them.

use std::fmt::Write;

use crate::attack::{Ip, Wrap};
use crate::bench::{Bench, QUIET, assert_adds_up, figure};

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
    assert_eq!((got.len(), green), (sent.len(), 11), "three full packets of 1500 B hold 11 of 400: {report}");
    let stats = bench.stats();
    assert_adds_up(&stats);
    assert_eq!(figure(&stats, "directions.0.passed"), 0);
}
