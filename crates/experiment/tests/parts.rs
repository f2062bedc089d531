//! One run in several parts: the outcome is that of the run in one piece, to the last bit, wherever the network is cut and however many
//! threads there are.

use std::sync::atomic::{AtomicBool, AtomicU64};

use inprofile_core::registry::Registry;
use inprofile_core::rng::Rng;
use inprofile_core::verdict::Cause;
use inprofile_experiment::Scenario;
use inprofile_sim::network::Network;
use inprofile_sim::outcome::Outcome;
use inprofile_sim::parts;
use inprofile_sim::parts::balance::{balanced, best};
use inprofile_sim::parts::cut::Cut;

use crate::random;

fn whole(network: Network) -> Outcome {
    crate::run(network)
}

fn in_parts(network: Network, cut: &Cut, threads: usize) -> Outcome {
    parts::run(network, cut, threads, &AtomicBool::new(false), &AtomicU64::new(0)).expect("it runs")
}

/// Equal but for the number of events: each part has its own for what ends windows and the run, and links catch up at other times.
fn assert_same(whole: &Outcome, mut parts: Outcome, text: &str) {
    parts.events = whole.events;
    // As text: gauges may be NaN.
    for (i, (a, b)) in whole.links.iter().zip(&parts.links).enumerate() {
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "link {i}\n{text}");
    }
    for (i, (a, b)) in whole.flows.iter().zip(&parts.flows).enumerate() {
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "flow {i}\n{text}");
    }
    assert_eq!(format!("{whole:?}"), format!("{parts:?}"), "{text}");
}

/// How many random experiments: INPROFILE_CASES, else a few.
fn cases() -> u64 {
    std::env::var("INPROFILE_CASES").map_or(60, |text| text.parse().expect("INPROFILE_CASES is a number"))
}

#[test]
fn any_cut_leaves_the_same_outcome() {
    let registry = Registry::default();
    let mut divided = 0;
    for number in 0..cases() {
        let drawn = random::draw(number, &registry);
        let network = || drawn.scenario.network(number, false);
        let mut rng = Rng::for_component(number, "cut");
        let most = 2 + rng.below(3);
        let wanted: Vec<u32> = network().nodes.iter().map(|_| rng.below(most)).collect();
        let cut = Cut::wanted(&network(), |node| wanted[node as usize]);
        if cut.parts() < 2 {
            continue;
        }
        divided += 1;
        // Where cores are busy with something else, threads wait for each other long; what is computed is the same.
        let threads = if number % 8 == 0 { 3 } else { 1 };
        let text = format!("{cut:?} on {threads} threads\n{}", drawn.text);
        assert_same(&whole(network()), in_parts(network(), &cut, threads), &text);
    }
    println!("{divided} of {} random experiments in parts", cases());
    assert!(3 * divided > cases(), "{divided} of {} were cut", cases());
}

const TREE: &str = r#"
title = "A tree"
duration = "200 ms"
measure = { from = "50 ms", at = "uplink-1" }
[[trees]]
name = "isp"
root = "core"
levels = [
  { name = "uplink", fan_out = 1, rate = "40 Mbit/s", delay = "2 ms", queue = { aqm = "fq_codel", limit = "100 packets" } },
  { name = "street", fan_out = 4, rate = "12 Mbit/s", delay = "3 ms", queue = { aqm = "red", limit = "30 packets", min_th = "3 packets", max_th = "12 packets", max_p = 0.1 }, marker = { kind = "token_bucket", rate = "8 Mbit/s", depth = "10 packets" } },
]
flows = [
  { name = "gold", count = 2, join = { rate = "30 Mbit/s" }, rtt = "20 ms", contract = "1 Mbit/s", marker = { kind = "token_bucket", depth = "5 packets" } },
  { name = "basic", count = 3, join = { rate = "30 Mbit/s" }, rtt = "14..40 ms", tcp = { profile = "linux", congestion = "bbr" } },
]
[[monitors]]
queue = "street-1-2"
every = "7 ms"
[[monitors]]
flows = "gold-1-1"
every = "10 ms"
"#;

fn tree(set: &[(&str, &str)]) -> Scenario {
    crate::parse_with(TREE, set)
}

#[test]
fn three_cuts_of_a_tree_on_any_number_of_threads() {
    let scenario = tree(&[]);
    let network = || scenario.network(1, false);
    on_three_cuts(&network, &whole(network()), TREE);
}

fn on_three_cuts(network: &impl Fn() -> Network, once: &Outcome, text: &str) {
    let nodes = network().nodes.len() as u32;
    let cuts = [
        // Hosts in one, the tree in the other.
        Cut::wanted(&network(), |node| u32::from(node < 6)),
        Cut::wanted(&network(), |node| node % 3),
        // Every node by itself.
        Cut::wanted(&network(), |node| node),
    ];
    assert_eq!(cuts.each_ref().map(Cut::parts), [2, 3, nodes]);
    for (cut, threads) in cuts.iter().flat_map(|cut| [1, 2, 3, 8].map(|threads| (cut, threads))) {
        assert_same(
            once,
            in_parts(network(), cut, threads),
            &format!("{cut:?} on {threads} threads\n{text}"),
        );
    }
}

/// Links as they are in the field, both ways at both levels: what is drawn for each packet is drawn where its link begins.
#[test]
fn links_of_the_field_are_the_same_in_parts() {
    let loss = "loss = { kind = \"gilbert_elliott\", to_bad = 0.02, to_good = 0.3 }";
    let filter = "reverse = { rate = \"100 kbit/s\", queue = { aqm = \"drop_tail\", limit = \"50 packets\" }, ack_filter = true";
    let of_uplink = [
        "jitter = { kind = \"normal\", mean = \"2 ms\", deviation = \"1 ms\" }, reverse = { jitter = { kind = \"pareto\", mean = \"1 ms\", most = \"9 ms\", reorder = true } }".into(),
        format!("access = {{ kind = \"slots\", every = \"4 ms\", length = \"2 ms\", request = \"3 ms\" }}, {filter} }}"),
        format!("access = {{ kind = \"bursts\", overhead = \"300 us\", contention = \"700 us\" }}, {filter}, {loss} }}"),
        format!("trace = \"0\\n0\\n2\\n5\\n\", {loss}, reverse = {{ access = {{ kind = \"bursts\", overhead = \"1 ms\" }} }}"),
    ];
    let of_street = [
        format!("{loss}, {filter}, jitter = {{ kind = \"uniform\", to = \"5 ms\" }} }}"),
        "jitter = { kind = \"share\", share = 0.05, delay = \"8 ms\", reorder = true }, reverse = { trace = \"1\\n4\\n\" }".into(),
        "delays = { steps = [{ at = \"60 ms\", delay = \"9 ms\" }], repeat = \"110 ms\" }".into(),
        format!("jitter = {{ kind = \"exponential\", mean = \"2 ms\", hold = \"20 ms\" }}, {filter} }}"),
    ];
    let (mut lost, mut gone) = (0, 0);
    for (uplink, street) in of_uplink.iter().zip(&of_street) {
        let text = TREE
            .replace("delay = \"2 ms\",", &format!("delay = \"2 ms\", {uplink},"))
            .replace("delay = \"3 ms\",", &format!("delay = \"3 ms\", {street},"));
        let scenario = crate::parse(&text);
        let network = || scenario.network(1, false);
        let once = whole(network());
        lost += once.flows.iter().map(|f| f.dropped[Cause::LINK_ERROR.index()]).sum::<u64>();
        // Links come in pairs, there and back.
        gone += once.links.iter().skip(1).step_by(2).map(|l| l.total.dropped_by(Cause::EVICTED)).sum::<u64>();
        on_three_cuts(&network, &once, &text);
    }
    assert!(lost > 20 && gone > 100, "{lost} lost on the way, {gone} acknowledgements gone");
}

/// Not run: at a hundred times the rates there is enough to do between meetings.
#[test]
fn a_tree_is_cut_where_parts_have_about_as_much_to_do() {
    let rates = [("uplink", "4 Gbit/s"), ("street", "1.2 Gbit/s")]
        .map(|(l, r)| (format!("trees.isp.levels.{l}.rate"), r));
    let network = tree(&rates.each_ref().map(|(key, rate)| (key.as_str(), *rate))).network(1, false);
    let found = balanced(&network, 2);
    assert_eq!((found.cut.parts(), found.whole), (2, None));
    assert!(found.largest < 0.65, "{found:?}");
    assert!(found.speed_up > 1.1 && found.cut.lookahead().0 >= 2_000_000_000, "{found:?}");
    let slow = balanced(&tree(&[]).network(1, false), 2);
    assert_eq!(slow.whole, Some("waiting and what crosses would cost more than parts save"));
}

/// What crosses is foretold within 15 %: from rates, of senders that fill the links.
#[test]
fn what_crosses_is_foretold() {
    let scenario = tree(&[("duration", "4 s")]);
    let network = || scenario.network(1, false);
    let found = best(&network(), 2);
    assert_eq!(found.cut.parts(), 2);
    let reached = AtomicU64::new(0);
    let (_, windows) = parts::run_counted(network(), &found.cut, 1, &AtomicBool::new(false), &reached, &|| 0)
        .expect("it runs");
    let each_second = windows.crossed as f64 / 4.0;
    assert!((each_second / found.crossing - 1.0).abs() < 0.15, "{each_second} of {}", found.crossing);
    // The last window begins within its lookahead, and what has no event, before the end.
    assert!((3_900_000_000_000..4_000_000_000_001).contains(&reached.into_inner()));
}

#[test]
fn what_is_seen_at_once_stays_together() {
    let network = tree(&[("trees.isp.levels.street.delay", "0 s")]).network(1, false);
    let cut = Cut::wanted(&network, |node| node);
    let at = |name: &str| cut.part_of(network.nodes.iter().position(|n| n == name).unwrap() as u32);
    assert_eq!([at("street-1-1"), at("street-1-4")], [at("uplink-1"); 2]);
    assert_ne!(at("core"), at("uplink-1"));
    let traced = balanced(&tree(&[]).network(1, true), 2);
    assert_eq!(
        (traced.cut.parts(), traced.whole),
        (1, Some("a trace numbers packets in the order of the whole run"))
    );
}

/// Two ends, one link: acknowledgements that carry AccECN's option by turns, and are lost. One without the option must not be taken for
/// one with what its slot had before.
#[test]
fn an_acknowledgement_without_an_option_has_none_in_the_other_part() {
    let text = r#"
title = "Options"
duration = "10 s"
[tcp]
profile = "linux"
congestion = "cubic"
ecn = true
accurate_ecn = true
accurate_ecn_option = true
window = "100 packets"
[[links]]
name = "l0"
from = "A"
to = "B"
rate = "2 Mbit/s"
delay = "5 ms"
loss = { kind = "independent", share = 0.02 }
queue = { aqm = "red", limit = "30 packets", min_th = "3 packets", max_th = "12 packets", max_p = 0.1, ecn = true }
reverse = { rate = "2 Mbit/s", delay = "5 ms", queue = { aqm = "drop_tail", limit = "100 packets" }, loss = { kind = "independent", share = 0.3 } }
[[flows]]
name = "b"
count = 3
from = "A"
to = "B"
"#;
    for seed in 1..=3 {
        same_in_two(text, seed, 2);
    }
}

/// The marker of an edge is told of windows, and of transfers that are over: their ends stay with it.
#[test]
fn who_is_told_of_a_window_is_told_of_its_end() {
    let text = r#"
title = "Told"
duration = "5 s"
[[links]]
name = "l0"
from = "A"
to = "B"
rate = "2 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "30 packets" }
[[links]]
name = "l1"
from = "B"
to = "C"
rate = "2 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "30 packets" }
[[edges]]
node = "B"
marker = { kind = "twam", window_source = "oracle" }
[[flows]]
name = "t"
count = 3
from = "A"
to = "C"
start = { every = "300 ms" }
contract = "200 kbit/s"
traffic = { kind = "transfer", size = "40 kB" }
"#;
    same_in_two(text, 1, 1);
}

/// Each node wants a part of its own; the outcome is that of the run in one piece, and there are so many parts.
fn same_in_two(text: &str, seed: u64, parts: u32) {
    let scenario = crate::parse(text);
    let network = || scenario.network(seed, false);
    let cut = Cut::wanted(&network(), |node| node);
    assert_eq!(cut.parts(), parts);
    assert_same(&whole(network()), in_parts(network(), &cut, 2), text);
}
