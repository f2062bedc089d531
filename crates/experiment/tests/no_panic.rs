//! No input makes the reader panic: a good file with bytes, keys, values or overrides changed at random.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use proptest::prelude::*;

const FILES: [&str; 4] = [
    include_str!("good/two-flows.toml"),
    include_str!("good/two-flows-otherwise.toml"),
    include_str!("good/mesh.toml"),
    include_str!("good/four-flows.toml"),
];

/// Reads, and if that succeeds does everything a scenario can do.
fn exercise(bytes: &[u8], set: &[(String, String)]) {
    match Scenario::parse_bytes(bytes, "x.toml", set, &Registry::default()) {
        Ok(scenario) => {
            let _ = (scenario.describe(), scenario.canonical(), scenario.warnings());
            if scenario.model().flows() <= 1000 {
                let net = scenario.network(1, false);
                assert_eq!(scenario.flow_rows().count(), net.flows.len());
                let _ = scenario.metrics(&inprofile_sim::outcome::Outcome::default());
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for p in problems {
                assert!(!p.to_string().is_empty());
            }
        }
    }
}

/// Values that have broken parsers before.
fn value() -> impl Strategy<Value = String> {
    let odd = [
        "",
        "0",
        "-1",
        "1e308",
        "nan",
        "-inf",
        "true",
        "[]",
        "{}",
        "[[]]",
        "\"\"",
        "\" \"",
        "1979-05-27",
        "\"1e30 Gbit/s\"",
        "\"0 s\"",
        "\"1 ps\"",
        "\"1000000 s\"",
        "\"uniform 0..0 s\"",
        "\"..\"",
        "\"1..2 ms\"",
        "\"H*\"",
        "\"0 packets\"",
        "\"0.5 packets\"",
        "\"1 B\"",
        "\"1e12 packets\"",
        "\"1 bit/s\"",
        "\"10000 Gbit/s\"",
        "99999999999999999999",
        "0x7fffffffffffffff",
        "1000000",
        "\"ER\"",
        "\"CR2\"",
        "[\"1 ms\"]",
        "[1, \"a\", {}]",
        "{ kind = \"ard\" }",
        "{ aqm = \"red\", limit = \"1 packets\" }",
        "{ kind = \"arm\", tpr_max = \"1 bit/s\", bucket = \"1e12 packets\", t_rd = \"0 packets\" }",
        "\"\\u0000\"",
        "'''\n'''",
    ];
    prop_oneof![
        3 => prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,20}",
        1 => "\"[-+0-9.eE]{0,12} ?(bit/s|Mbit/s|s|ms|us|ps|B|KiB|packets)?\"",
    ]
}

/// Keys of the files, and some that are none.
fn key() -> impl Strategy<Value = String> {
    let parts = [
        "title",
        "duration",
        "measure",
        "from",
        "to",
        "at",
        "seeds",
        "engine",
        "profile",
        "tcp",
        "window",
        "segment",
        "header",
        "links",
        "edge",
        "bottleneck",
        "rate",
        "delay",
        "queue",
        "aqm",
        "limit",
        "in",
        "out",
        "min_th",
        "max_th",
        "max_p",
        "w_q",
        "reverse",
        "flows",
        "count",
        "join",
        "node",
        "rtt",
        "start",
        "contract",
        "marker",
        "kind",
        "depth",
        "edges",
        "ER",
        "tpr_max",
        "bucket",
        "t_rd",
        "interval",
        "monitors",
        "every",
        "0",
        "1",
        "name",
        "",
        "x y",
    ];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 1..5).prop_map(|p| p.join("."))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes(file in 0..FILES.len(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..8)) {
        let mut bytes = FILES[file].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match how {
                _ if bytes.is_empty() => bytes.push(byte),
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => { bytes.remove(at); }
            }
        }
        exercise(&bytes, &[]);
    }

    #[test]
    fn changed_values(file in 0..FILES.len(), lines in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4)) {
        let mut text: Vec<String> = FILES[file].lines().map(str::to_owned).collect();
        for (at, value) in lines {
            let line = &mut text[at.index(FILES[file].lines().count())];
            if let Some((key, _)) = line.split_once('=') {
                *line = format!("{key}= {value}");
            }
        }
        exercise(text.join("\n").as_bytes(), &[]);
    }

    #[test]
    fn lines_left_out_or_doubled(file in 0..FILES.len(), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..6)) {
        let mut lines: Vec<&str> = FILES[file].lines().collect();
        for (at, doubled) in cuts {
            let i = at.index(lines.len());
            if doubled { lines.insert(i, lines[i]) } else { lines.remove(i); }
            if lines.is_empty() { break; }
        }
        exercise(lines.join("\n").as_bytes(), &[]);
    }

    #[test]
    fn any_override(file in 0..FILES.len(), set in prop::collection::vec((key(), value()), 1..4)) {
        exercise(FILES[file].as_bytes(), &set);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&bytes, &[]);
    }
}
