//! The results that a change of code must leave as they are, to the last bit: every figure, count and verdict of runs with each discipline, each
//! marker and the papers' files, against the checksums in `golden/checksums-*.txt`.
//!
//! A checksum that changes on purpose is a decision with its reason; `INPROFILE_RENEW=1 cargo test -p inprofile-experiment --test
//! checksums` rewrites the file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use inprofile_core::registry::Registry;
use inprofile_core::verdict::Cause;
use inprofile_experiment::Scenario;
use inprofile_experiment::text::{Problem, extends};
use inprofile_sim::outcome::{LinkOutcome, Outcome};

/// Two groups of hosts and unmetered datagrams before one queue.
const BASE: &str = r#"
title = "checksums"
duration = "8 s"
measure = { from = "2 s", to = "7 s", at = "core" }
[tcp]
profile = "ns2"
congestion = "newreno"
window = "40 packets"
[[links]]
name = "core"
from = "E"
to = "C"
rate = "2 Mbit/s"
delay = "10 ms"
queue = { QUEUE }
[[flows]]
name = "paid"
count = 4
from = "H*"
join = { node = "E", rate = "10 Mbit/s" }
to = "C"
rtt = "40..70 ms"
start = "uniform 0..1 s"
contract = "300 kbit/s"
marker = { MARKER }
[[flows]]
name = "free"
count = 2
from = "H*"
join = { node = "E", rate = "10 Mbit/s" }
to = "C"
rtt = "50 ms"
start = "uniform 0..1 s"
marker = { kind = "colour", colour = "red" }
[[flows]]
name = "cbr"
from = "H*"
join = { node = "E", rate = "10 Mbit/s" }
to = "C"
rtt = "50 ms"
start = "1 s"
stop = "5 s"
traffic = { kind = "cbr", rate = "200 kbit/s", packet = "300 B" }
[[monitors]]
queue = "core"
every = "500 ms"
"#;

const BUCKET: &str = "kind = \"token_bucket\", depth = \"4 packets\"";
const RIO: &str = "aqm = \"rio\", limit = \"40 packets\", in = { min_th = \"15 packets\", max_th = \"25 packets\", max_p = 0.05 }, out = { min_th = \"4 packets\", max_th = \"12 packets\", max_p = 0.2 }, w_q = 0.02";
const RIO_BYTES: &str = "aqm = \"rio\", limit = \"40000 B\", in = { min_th = \"15000 B\", max_th = \"25000 B\", max_p = 0.05 }, out = { min_th = \"4000 B\", max_th = \"12000 B\", max_p = 0.2 }, w_q = 0.02";
const RED: &str = "aqm = \"red\", limit = \"40 packets\", min_th = \"5 packets\", max_th = \"15 packets\", max_p = 0.1, w_q = 0.02";
const RED_BYTES: &str =
    "aqm = \"red\", limit = \"40000 B\", min_th = \"5000 B\", max_th = \"15000 B\", max_p = 0.1, w_q = 0.02";
const SHORT: &str = "aqm = \"red\", limit = \"10 packets\", min_th = \"3 packets\", max_th = \"30 packets\", max_p = 0.02, w_q = 0.02";
const PLUS: &str = "aqm = \"rio_plus_out\", limit = \"40 packets\", in = { min_th = \"15 packets\", max_th = \"25 packets\", max_p = 0.05 }, total = { min_th = \"6 packets\", max_th = \"18 packets\", max_p = 0.1 }, out = { min_th = \"3 packets\", max_th = \"9 packets\", max_p = 0.2 }, w_q = 0.02";
const THREE: &str = "limit = \"40 packets\", green = { min_th = \"15 packets\", max_th = \"25 packets\", max_p = 0.05 }, yellow = { min_th = \"6 packets\", max_th = \"18 packets\", max_p = 0.1 }, red = { min_th = \"3 packets\", max_th = \"9 packets\", max_p = 0.2 }, w_q = 0.02";
const FDD: &str = "aqm = \"fdd_red\", limit = \"40 packets\", min_th = \"5 packets\", max_th = \"15 packets\", max_p = 0.1, w_q = 0.02";

/// Queues, each with its options.
fn queues() -> Vec<String> {
    let mut all = vec![
        "aqm = \"drop_tail\", limit = \"20 packets\", limit_rule = \"waiting\"".to_owned(),
        "aqm = \"drop_tail\", limit = \"20 packets\", limit_rule = \"ns2\"".to_owned(),
        "aqm = \"drop_tail\", limit = \"20000 B\"".to_owned(),
        "aqm = \"ared\", limit = \"40 packets\", target_delay = \"40 ms\"".to_owned(),
        "aqm = \"dwred\", limit = \"40 packets\", w_q = 0.02".to_owned(),
        "aqm = \"dwred\", limit = \"40 packets\", fallback_max_th = \"15 packets\", colours = \"both\", in_factor = 1.5, gentle = true, ecn = true".to_owned(),
    ];
    let mut with = |base: &str, options: &[&str]| {
        all.extend(options.iter().map(|more| format!("{base}{more}")));
    };
    with(
        RED,
        &[
            "",
            ", gentle = false",
            ", wait = true",
            ", ecn = true",
            ", byte_scaled = true",
            ", variant = \"ns2\"",
            ", variant = \"ns2\", gentle = false, wait = true, ecn = true",
            ", variant = \"ns2\", byte_scaled = true, mean_packet = \"500 B\"",
        ],
    );
    with(RED_BYTES, &["", ", wait = true, byte_scaled = true", ", variant = \"ns2\""]);
    let drop = [
        "",
        ", drop = \"front\"",
        ", drop = \"random\"",
        ", drop = \"front\", variant = \"ns2\"",
        ", drop = \"random\", variant = \"ns2\"",
    ];
    with(SHORT, &drop);
    with(
        RIO,
        &[
            "",
            ", avg_update = \"every_arrival\"",
            ", avg_update = \"own_colour\"",
            ", avg_update = \"ns2\"",
            ", gentle = true, wait = true, ecn = true, watch = true",
            ", byte_scaled = true, mean_packet = \"500 B\"",
            ", count = \"shared\", wait = true",
            ", variant = \"ns2\"",
            ", variant = \"ns2\", avg_update = \"every_arrival\"",
            ", variant = \"ns2\", avg_update = \"own_colour\", wait = true",
            ", variant = \"ns2\", avg_update = \"ns2\", gentle = true, ecn = true",
        ],
    );
    with(
        RIO_BYTES,
        &["", ", byte_scaled = true, gentle = true", ", variant = \"ns2\", avg_update = \"ns2\""],
    );
    with(
        PLUS,
        &[
            "",
            ", strictness = 0.5, watch = true",
            ", counts = \"joint\", avg_update = \"clark_fang\", gentle = true, ecn = true",
            ", byte_scaled = true, wait = true",
            ", count = \"shared\"",
            ", variant = \"ns2\", counts = \"joint\"",
        ],
    );
    for averages in ["shared", "coupled", "decoupled"] {
        let three =
            |aqm: &str, more: &str| format!("aqm = \"{aqm}\", {THREE}, averages = \"{averages}\"{more}");
        all.extend([
            three("wred", ""),
            three("wred", ", gentle = true, wait = true, ecn = true"),
            three("dsred", ""),
        ]);
    }
    let fdd = [
        "",
        ", latest = \"newest\", charge = \"partner\", ties = \"first\"",
        ", victim_packet = \"random\", no_packet = \"defer\", ecn = true",
        ", victim_flow = \"random\", victim_packet = \"tail\", applies_to = \"early\"",
        ", rtt = \"with_queue\", rtt_source = \"oracle\", idle_penalty = \"keep\", idle_from = \"arrival\"",
        ", variant = \"ns2\", no_packet = \"next_victim\", idle_penalty = \"never\"",
    ];
    all.extend(fdd.iter().map(|more| format!("{FDD}{more}")));
    let virtual_queue = |law: &str, settings: &str| {
        format!(
            "aqm = \"virtual_queue\", limit = \"80 packets\", virtual_rate = \"1.9 Mbit/s\", virtual_limit = \"40 packets\", law = \"{law}\"{settings}"
        )
    };
    let settings_of = |law: &str| {
        let (_, settings) = law.split_once("packets\", ").expect("its limit comes first");
        settings.to_owned()
    };
    all.push(virtual_queue("drop_tail", ""));
    for (law, queue) in [("red", RED), ("rio", RIO), ("rio_plus_out", PLUS), ("wred", THREE)] {
        all.push(virtual_queue(law, &format!(", {law} = {{ {} }}", settings_of(queue))));
    }
    all.push(virtual_queue("ared", ", ared = { target_delay = \"40 ms\" }"));
    all
}

const MARKERS: [&str; 21] = [
    BUCKET,
    "kind = \"token_bucket\", depth = \"1.5 packets\", conforms = \"more_than\", starts_full = false",
    "kind = \"tsw2cm\"",
    "kind = \"tsw2cm\", variant = \"ns2\", excess = \"all\"",
    "kind = \"tsw3cm\", ptr = \"450 kbit/s\"",
    "kind = \"tsw3cm\", ptr = \"450 kbit/s\", variant = \"ns2\"",
    "kind = \"arm\", tpr_max = \"500 kbit/s\", bucket = \"10 packets\", t_rd = \"6 packets\", interval = \"1 s\"",
    "kind = \"ard\", tpr_max = \"500 kbit/s\", bucket = \"10 packets\", t_rd = \"6 packets\", interval = \"1 s\", p_drop = 0.1",
    "kind = \"blind_drop\", p = 0.02",
    "kind = \"probe\"",
    "kind = \"probe\", loss = \"once_per_window\", increase = \"A+1\"",
    "kind = \"every_nth\", n = 7",
    "kind = \"every_nth\", n = 5, repeated_in = true, small_window = 4",
    "kind = \"twam\"",
    "kind = \"srtcm\", cbs = \"3 packets\", ebs = \"6 packets\"",
    "kind = \"srtcm\", cbs = \"3 packets\", ebs = \"6 packets\", mode = \"colour_aware\"",
    "kind = \"trtcm\", pir = \"500 kbit/s\", cbs = \"3 packets\", pbs = \"6 packets\"",
    "kind = \"trtcm\", pir = \"500 kbit/s\", cbs = \"3 packets\", pbs = \"6 packets\", mode = \"colour_aware\"",
    "kind = \"rfc4115\", eir = \"200 kbit/s\", cbs = \"3 packets\", ebs = \"6 packets\"",
    "kind = \"colour\", colour = \"out\"",
    "kind = \"fair_policer\", burst = \"8 packets\"",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// FNV-1a of whatever is written to it, 64 bits.
struct Sum(u64);

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }
    fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }
    fn figure(&mut self, name: &str, value: f64) {
        self.text(name);
        self.number(value.to_bits());
    }

    fn link(&mut self, l: &LinkOutcome) {
        for counts in [&l.total, &l.window] {
            let rows = [counts.arrived, counts.arrived_bytes, counts.sent, counts.sent_bytes, counts.marked];
            rows.iter().flatten().for_each(|n| self.number(*n));
            // By name, so that another discipline's cause changes nothing.
            for cause in Cause::ALL {
                let dropped = counts.dropped[cause.index()];
                if dropped != [0; 3] {
                    self.text(cause.name());
                    dropped.iter().for_each(|n| self.number(*n));
                }
            }
        }
        self.figure("queue_mean", l.queue_mean);
        self.number(l.sending.0);
        self.number(l.waiting);
        for (name, n) in &l.stats {
            self.text(name);
            self.number(*n);
        }
        l.gauges.iter().for_each(|(name, value)| self.figure(name, *value));
        for (flow, name, value) in &l.by_flow {
            self.number(u64::from(*flow));
            self.figure(name, *value);
        }
        l.classes.iter().for_each(|class| self.link(class));
    }

    fn outcome(&mut self, scenario: &Scenario, o: &Outcome) {
        for m in scenario.metrics(o) {
            self.figure(m.name, m.value);
        }
        for f in &o.flows {
            let c = &f.total;
            for row in [c.sent, c.sent_bytes, c.received, c.received_bytes] {
                row.iter().for_each(|n| self.number(*n));
            }
            self.number(c.in_order_wire_bytes);
            self.number(f.in_flight);
            self.number(f.start.0);
            f.acks.iter().for_each(|n| self.number(*n));
        }
        o.links.iter().for_each(|l| self.link(l));
        let of_flows = o.flow_markers.iter().flatten().map(AsRef::as_ref);
        for m in o.edges.iter().chain(of_flows) {
            for counts in [&m.total, &m.window] {
                let rows =
                    [counts.arrived, counts.arrived_bytes, counts.left, counts.left_bytes, counts.dropped];
                rows.iter().flatten().for_each(|n| self.number(*n));
            }
            for (name, n) in &m.stats {
                self.text(name);
                self.number(*n);
            }
            m.gauges.iter().for_each(|(name, value)| self.figure(name, *value));
        }
        for d in &o.drops {
            self.number(u64::from(d.flow));
            self.text(&format!("{:?}", d.place));
            self.text(d.cause.name());
            d.packets.iter().for_each(|n| self.number(*n));
        }
        for s in &o.series {
            s.times.iter().for_each(|t| self.number(t.0));
            for (name, values) in &s.columns {
                values.iter().for_each(|v| self.figure(name, *v));
            }
        }
        for v in &o.verdicts {
            self.number(v.at.0);
            self.number(v.packet);
            self.text(v.verdict);
            self.text(v.cause.map_or("", Cause::name));
            v.why.iter().for_each(|(name, value)| self.figure(name, *value));
        }
    }
}

/// The checksums of a run as it is and of the same traced.
fn checksums(text: &str, file: &str, set: &[(&str, &str)], seed: u64) -> [u64; 2] {
    let refused = |problems: Vec<Problem>| -> Scenario { panic!("{file}: {problems:#?}") };
    let scenario = extends::bases(text, file, &inprofile_experiment::text::file::read)
        .and_then(|bases| {
            Scenario::parse_extended(text, file, &bases, &crate::overrides(set), &Registry::default())
        })
        .unwrap_or_else(refused);
    [false, true].map(|traced| {
        let network = scenario.network(seed, traced);
        let outcome = crate::run(network);
        let mut sum = Sum(0xcbf2_9ce4_8422_2325);
        sum.outcome(&scenario, &outcome);
        sum.0
    })
}

fn base(queue: &str, marker: &str) -> String {
    BASE.replace("QUEUE", queue).replace("MARKER", marker)
}

/// Compares with the golden file's part of this name, or writes it.
fn compare(part: &str, rows: &[(String, [u64; 2])]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/checksums-{part}.txt"));
    let text = rows.iter().fold(String::new(), |mut text, (name, [plain, traced])| {
        writeln!(text, "{plain:016x} {traced:016x} {name}").expect("a string takes everything");
        text
    });
    if std::env::var_os("INPROFILE_RENEW").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &text).expect("the golden file");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file");
    let differ: Vec<_> = text.lines().zip(golden.lines()).filter(|(ours, theirs)| ours != theirs).collect();
    assert!(differ.is_empty(), "{} of {}: {differ:#?}", differ.len(), rows.len());
    assert_eq!(text.lines().count(), golden.lines().count());
}

#[test]
fn every_discipline() {
    let mut rows = Vec::new();
    for (i, queue) in (1..).zip(queues()) {
        let ns2_engine = if queue.contains("ns2") || queue.contains("dsred") { "ns2" } else { "exact" };
        let ecn = if queue.contains("ecn") { "true" } else { "false" };
        let profile = if ecn == "true" { "\"rfc\"" } else { "\"ns2\"" };
        let engine = format!("\"{ns2_engine}\"");
        let set = [("tcp.profile", profile), ("tcp.ecn", ecn), ("engine.profile", &*engine)];
        let set = if ecn == "true" { &set[..2] } else { &set[..] };
        let text = base(&queue, BUCKET);
        rows.push((queue, checksums(&text, "queue.toml", set, i)));
    }
    compare("disciplines", &rows);
}

#[test]
fn every_marker() {
    let rows = (1..).zip(MARKERS).map(|(seed, marker)| {
        let ns2 = if marker.contains("ns2") || marker == BUCKET { "\"ns2\"" } else { "\"exact\"" };
        let sums = checksums(&base(RIO, marker), "marker.toml", &[("engine.profile", ns2)], seed);
        (marker.to_owned(), sums)
    });
    compare("markers", &rows.collect::<Vec<_>>());
}

#[test]
fn the_papers_files() {
    let papers = root().join("python/inprofile/papers");
    let mut files: Vec<PathBuf> = Vec::new();
    for paper in ["ard", "fdd_red", "probe", "rio_plus_out", "twam"] {
        let folder = std::fs::read_dir(papers.join(paper)).expect("a paper's folder");
        files.extend(folder.map(|entry| entry.expect("an entry").path()).filter(|path| {
            // What experiments have in common is none by itself.
            let whole =
                !["advice.toml", "network.toml", "paper.toml"].iter().any(|other| path.ends_with(other));
            whole && path.extension().is_some_and(|e| e == "toml")
        }));
    }
    files.push(root().join("python/inprofile/experiment/starter.toml"));
    files.sort();
    let mut rows = Vec::new();
    for path in files {
        let name =
            path.strip_prefix(root().join("python/inprofile")).expect("one of ours").display().to_string();
        let text = std::fs::read_to_string(&path).expect("an experiment");
        let set = [("duration", "\"6 s\""), ("measure.from", "\"1 s\""), ("measure.to", "\"6 s\"")];
        // The bursts of this one begin after the end of so short a run.
        let early = ("flows.ef.start", "\"2 s\"");
        let set: Vec<_> = set.into_iter().chain(name.contains("priority-queue").then_some(early)).collect();
        for seed in [1, 2] {
            rows.push((format!("{name} {seed}"), checksums(&text, &path.display().to_string(), &set, seed)));
        }
    }
    compare("papers", &rows);
}
