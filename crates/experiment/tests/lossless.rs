//! RDMA over Converged Ethernet, from an experiment file: DCQCN senders at an N:1 incast.

use inprofile_core::registry::Registry;
use inprofile_core::rng::Rng;
use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;

/// So many senders with ports of 10 Gbit/s to one of the same rate, with the paper's thresholds (Figure 14) for a quarter of its rate.
fn incast(senders: u32, queue: &str, tcp: &str) -> String {
    format!(
        r#"
title = "Incast"
duration = "30 ms"
measure = {{ from = "10 ms", at = "port" }}
tcp = {{ profile = "linux", window = "10000 packets", {tcp} }}

[[links]]
name = "port"
from = "S"
to = "R"
rate = "10 Gbit/s"
delay = "2 us"
queue = {{ {queue} }}

[[flows]]
name = "sender"
count = {senders}
from = "H*"
join = {{ node = "S", rate = "10 Gbit/s", limit = "10000 packets" }}
to = "R"
rtt = "20 us"
"#
    )
}

const DCQCN: &str = r#"congestion = "dcqcn", line_rate = "10 Gbit/s""#;
const MARKS: &str = r#"aqm = "wred", limit = "4 MB", w_q = 1.0, green = { min_th = "3.9 MB", max_th = "4 MB", max_p = 1.0 }, yellow = { min_th = "3.9 MB", max_th = "4 MB", max_p = 1.0 }, green_ecn = { min_th = "5 kB", max_th = "200 kB", max_p = 0.01 }"#;

fn run(text: &str) -> (Outcome, impl Fn(&str) -> f64 + use<>) {
    let scenario = crate::parse(text);
    let outcome = crate::run(scenario.network(1, false));
    let metrics = scenario.metrics(&outcome);
    (outcome, move |name: &str| crate::value(&metrics, name))
}

/// Zhu et al., abstract: throughput and fairness. One sender has the port; of several, which begin at its rate all at once, each has its share,
/// the port recovers, and nothing is lost.
#[test]
fn dcqcn_senders_fill_a_port_and_share_it() {
    for (senders, least) in [(1, 0.99), (2, 0.95), (8, 0.7)] {
        let text = incast(senders, MARKS, DCQCN);
        let (_, value) = run(&text.replace("30 ms", "60 ms").replace("10 ms", "30 ms"));
        assert!(value("utilisation") > least, "{senders}: {}", value("utilisation"));
        assert!(value("fi") > 0.97, "{senders}: {}", value("fi"));
        assert_eq!(value("loss_in"), 0.0, "{senders}");
    }
}

fn lost(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|f| f.dropped.iter().sum::<u64>()).sum()
}

/// The same without marks, behind a queue that pauses its links: `limit` is what they may send at most.
fn paused(senders: u32, limit: &str, xoff: &str, xon: &str) -> String {
    let text = incast(senders, &format!("aqm = \"drop_tail\", limit = \"{limit}\""), DCQCN);
    text.replace(
        "queue = { aqm",
        &format!("pause = {{ xoff = \"{xoff}\", xon = \"{xon}\" }}\nqueue = {{ aqm"),
    )
    .replace("duration = \"30 ms\"", "duration = \"4 ms\"")
    .replace("from = \"10 ms\"", "from = \"1 ms\"")
}

fn stat(outcome: &Outcome, name: &str) -> f64 {
    let link = &outcome.links[0];
    let counts = link.stats.iter().map(|(n, v)| (*n, *v as f64)).chain(link.gauges.iter().copied());
    counts.into_iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// IEEE 802.1Q §36: links are paused and nothing is lost while the headroom suffices, which `check` tells; the port is never idle. With less,
/// packets are lost, and it says so before.
#[test]
fn a_paused_link_loses_nothing_while_the_headroom_suffices() {
    for senders in [2, 5] {
        let (outcome, value) = run(&paused(senders, "10 MB", "30 kB", "20 kB"));
        assert_eq!(value("loss_in"), 0.0);
        assert!(value("utilisation") > 0.999, "{}", value("utilisation"));
        assert!(value("fi") > 0.99, "each link has its own count: {}", value("fi"));
        assert!(stat(&outcome, "pauses") > 10.0 && stat(&outcome, "paused_time") > 1e-3);
        // 10 Gbit/s over 2 · 8 µs, and two packets of 1500 B.
        let most = 30_000.0 + 20_000.0 + 3_000.0;
        assert!(stat(&outcome, "ingress_most") > 30_000.0 && stat(&outcome, "ingress_most") <= most);
        let enough = f64::from(senders) * most;
        let limit = |bytes: f64| paused(senders, &format!("{bytes} B"), "30 kB", "20 kB");
        let (_, value) = run(&limit(enough));
        assert_eq!(value("loss_in"), 0.0, "{senders}");
        assert!(warnings(&limit(enough)).is_empty(), "{:?}", warnings(&limit(enough)));
        let said = warnings(&limit(enough - 1.0));
        assert!(said.iter().any(|w| w.contains("before all links have paused")), "{said:?}");
        // Half of what check asks for: the links are not paused before the room ends.
        let (outcome, _) = run(&limit(0.5 * enough));
        assert!(lost(&outcome) > 0, "{senders}: {:?}", outcome.links[0].stats);
    }
}

fn warnings(text: &str) -> Vec<String> {
    let scenario = crate::parse(text);
    scenario.warnings().iter().map(|w| w.problem.clone()).collect()
}

/// A flow that begins at a rate which its port does not have is warned of.
#[test]
fn a_line_rate_above_the_ports_is_warned_of() {
    let text = incast(2, MARKS, DCQCN);
    assert!(warnings(&text).is_empty(), "{:?}", warnings(&text));
    let said = warnings(&incast(2, MARKS, "congestion = \"dcqcn\", line_rate = \"40 Gbit/s\""));
    assert!(
        said.iter().any(|w| w.contains("a port of 10 Gbit/s, but DCQCN's line_rate is 40 Gbit/s")),
        "{said:?}"
    );
    assert!(warnings(&incast(2, MARKS, "congestion = \"dctcp\"")).is_empty());
    // Where nothing is written it is the port's.
    let unsaid = incast(2, MARKS, "congestion = \"dcqcn\"");
    assert!(warnings(&unsaid).is_empty(), "{:?}", warnings(&unsaid));
    assert_eq!(run(&unsaid).1("goodput"), run(&text).1("goodput"));
}

/// A pause spreads: the link before the paused one fills its own queue, which pauses those before it; where it does not, that queue loses.
#[test]
fn a_pause_spreads_to_the_links_before() {
    let two = |pause: &str| {
        paused(4, "10 MB", "30 kB", "20 kB")
            .replace("node = \"S\"", "node = \"T\"")
            .replace("[[flows]]", &format!(
                "[[links]]\nname = \"trunk\"\nfrom = \"T\"\nto = \"S\"\nrate = \"20 Gbit/s\"\ndelay = \"2 us\"\n{pause}queue = {{ aqm = \"drop_tail\", limit = \"300 kB\" }}\n\n[[flows]]"
            ))
    };
    assert_eq!(lost(&run(&two("pause = { xoff = \"30 kB\", xon = \"20 kB\" }\n")).0), 0);
    assert!(lost(&run(&two("")).0) > 0);
}

/// Switches in a line, whose links differ in rate and delay both ways, with pausing queues; hosts anywhere that send anywhere, as DCQCN, CUBIC or
/// without congestion control. `limits`: of each queue.
fn lossless_line(seed: u64, limits: &[u64]) -> String {
    let mut rng = Rng::for_component(seed, "lossless line");
    let mut text = String::from(
        "title = \"Lossless\"\nduration = \"200 ms\"\ntcp = { profile = \"linux\", window = \"10000 packets\" }\n",
    );
    let switches = 2 + rng.below(3);
    for at in 0..switches {
        let mut direction = |limit: u64| {
            let (rate, delay) = (1 + rng.below(10), rng.below(2000));
            let xoff = 3000 + rng.below(60_000);
            let xon = rng.below(xoff);
            let raised = match rng.below(2) {
                0 => String::new(),
                _ => format!(
                    ", alpha = {}, pool = \"{} B\"",
                    f64::from(1 + rng.below(32)) / 16.0,
                    rng.below(200_000)
                ),
            };
            format!(
                "rate = \"{rate} Gbit/s\"\ndelay = \"{delay} ns\"\npause = {{ xoff = \"{xoff} B\", xon = \"{xon} B\"{raised} }}\n\
                 queue = {{ aqm = \"drop_tail\", limit = \"{limit} B\" }}\n"
            )
        };
        let there = direction(limits[2 * at as usize]);
        let back = direction(limits[2 * at as usize + 1]);
        text += &format!(
            "[[links]]\nname = \"k{at}\"\nfrom = \"S{at}\"\nto = \"S{}\"\n{there}[links.reverse]\n{back}",
            at + 1
        );
    }
    for (group, limit) in (0..2 + rng.below(4)).zip(&limits[8..]) {
        let from = rng.below(switches + 1);
        let to = (from + 1 + rng.below(switches)) % (switches + 1);
        let port = 1 + rng.below(10);
        let (count, size) = (1 + rng.below(5), 1 + rng.below(60));
        let how = match rng.below(3) {
            0 => format!(
                "tcp = {{ congestion = \"dcqcn\", line_rate = \"{port} Gbit/s\" }}\ntraffic = {{ kind = \"transfer\", size = \"{size}0 kB\" }}"
            ),
            1 => format!("traffic = {{ kind = \"transfer\", size = \"{size}0 kB\" }}"),
            _ => format!(
                "stop = \"1 ms\"\ntraffic = {{ kind = \"cbr\", rate = \"{port} Gbit/s\", packet = \"1000 B\" }}"
            ),
        };
        text += &format!(
            "[[links]]\nname = \"k{}\"\nfrom = \"S{to}\"\nto = \"R{group}\"\nrate = \"{} Gbit/s\"\ndelay = \"1 us\"\n\
             pause = {{ xoff = \"20 kB\", xon = \"10 kB\" }}\nqueue = {{ aqm = \"drop_tail\", limit = \"{limit} B\" }}\n\
             [links.reverse]\nqueue = {{ aqm = \"drop_tail\", limit = \"100000 packets\" }}\n",
            10 + group,
            1 + rng.below(10),
        );
        text += &format!(
            "[[flows]]\nname = \"g{group}\"\ncount = {count}\nfrom = \"H*\"\nto = \"R{group}\"\nrtt = \"40..60 us\"\nstart = \"uniform 0..500 us\"\n\
             join = {{ node = \"S{from}\", rate = \"{port} Gbit/s\", limit = \"100000 packets\" }}\n{how}\n"
        );
    }
    text
}

/// What begins at the node before the queue, of which no pause can tell, is warned of.
#[test]
fn what_no_pause_reaches_is_warned_of() {
    let text = paused(2, "10 MB", "30 kB", "20 kB");
    assert!(warnings(&text).is_empty(), "{:?}", warnings(&text));
    let said = warnings(
        &text
            .replace(
                "from = \"H*\"\njoin = { node = \"S\", rate = \"10 Gbit/s\", limit = \"10000 packets\" }",
                "from = \"S\"",
            )
            .replace("rtt = \"20 us\"\n", ""),
    );
    assert!(said.iter().any(|w| w.contains("no pause reaches what begins")), "{said:?}");
    let trunk = "[[links]]\nname = \"trunk\"\nfrom = \"T\"\nto = \"S\"\nrate = \"20 Gbit/s\"\ndelay = \"2 us\"\nqueue = { aqm = \"drop_tail\", limit = \"300 kB\" }\n";
    let two = text.replace("node = \"S\"", "node = \"T\"").replace("[[flows]]", &format!("{trunk}[[flows]]"));
    assert!(warnings(&two).is_empty(), "{:?}", warnings(&two));
    let varying = two.replace(
        "delay = \"2 us\"\nqueue",
        "delay = \"2 us\"\njitter = { kind = \"exponential\", mean = \"2 us\", most = \"20 us\" }\nqueue",
    );
    let said = warnings(&varying);
    assert!(said.iter().any(|w| w.contains("delays vary on trunk")), "{said:?}");
}

/// What `check` asks each queue to hold, in the order of `lossless_line`'s limits.
fn asked(text: &str) -> Vec<u64> {
    let scenario = crate::parse(text);
    let mut limits = vec![1500; 16];
    for warning in scenario.warnings().iter().filter(|w| w.path.ends_with("pause")) {
        let number =
            |text: &str| text.split([' ', '.']).next().and_then(|n| n.parse::<u64>().ok()).expect("a number");
        let link = number(&warning.path["links.k".len()..]);
        let back = u64::from(warning.path.contains("reverse"));
        let at = if link < 10 { 2 * link + back } else { link - 2 };
        let remedy = warning.remedy.strip_prefix("write limit = \"").expect("it says how much");
        limits[at as usize] = number(remedy);
    }
    limits
}

/// Whatever line of switches: with the room that `check` asks for nothing is lost, every pause ends, and what was sent arrives.
#[test]
fn with_the_room_that_check_asks_for_nothing_is_lost() {
    let mut pauses = 0.0;
    for seed in 0..40 {
        let limits = asked(&lossless_line(seed, &[1500; 16]));
        let text = lossless_line(seed, &limits);
        assert_eq!(asked(&text), vec![1500; 16], "{seed}");
        let (outcome, _) = run(&text);
        assert_eq!(lost(&outcome), 0, "{seed}\n{text}");
        for (link, counts) in outcome.links.iter().enumerate() {
            assert_eq!(counts.waiting, 0, "{seed}: link {link} waits for ever\n{text}");
        }
        assert!(outcome.flows.iter().all(|f| f.in_flight == 0), "{seed}\n{text}");
        let counts = outcome.links.iter().flat_map(|l| &l.stats);
        pauses += counts.filter(|(n, _)| *n == "pauses").map(|(_, v)| *v as f64).sum::<f64>();
    }
    assert!(pauses > 400.0, "{pauses}");
}

/// Choudhury and Hahne 1998, eq. 1: what a link may have waiting is alpha times what is free, so that n links come to n·alpha/(1 + n·alpha) of the pool,
/// and each to less the more there are.
#[test]
fn thresholds_fall_with_what_is_free_of_the_pool() {
    let most = |senders: u32| {
        let text = paused(senders, "10 MB", "1500 B", "1500 B")
            .replace("xon = \"1500 B\"", "xon = \"1500 B\", alpha = 0.25, pool = \"1 MB\"");
        let (outcome, value) = run(&text);
        assert_eq!(value("loss_in"), 0.0, "{senders}");
        (stat(&outcome, "ingress_most"), value("queue_mean"))
    };
    for senders in [2_u32, 8] {
        let (n, alpha, pool) = (f64::from(senders), 0.25, 1e6);
        let (one, all) = most(senders);
        // What is on the way when a link is paused (20 kB and two packets) comes on top.
        let each = alpha * pool / (1.0 + n * alpha);
        assert!(one > each && one < alpha * pool / (1.0 + alpha) + 25_000.0, "{senders}: {one}");
        assert!(
            (1500.0 * all - n * each).abs() < 0.12 * n * each + 25_000.0,
            "{senders}: {all} and {each} each"
        );
    }
    let fixed = paused(2, "10 MB", "30 kB", "20 kB");
    let none = fixed.replace("xon = \"20 kB\"", "xon = \"20 kB\", alpha = 1.0, pool = \"0 B\"");
    assert_eq!(stat(&run(&fixed).0, "pauses"), stat(&run(&none).0, "pauses"));
}

/// A link that would go on above the mark at which it is paused, one that names half of it, and one with classes.
#[test]
fn a_pause_that_cannot_be_is_refused() {
    let said = |text: &str| {
        let problems = Scenario::parse(text, "file.toml", &[], &Registry::default()).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<String>()
    };
    let text = paused(2, "10 MB", "30 kB", "31 kB");
    assert!(said(&text).contains("a link would go on at 31000 B, above the 30000 B"), "{}", said(&text));
    let text = paused(2, "10 MB", "30 kB", "20 kB").replace(", xon = \"20 kB\"", "");
    assert!(said(&text).contains("xon"), "{}", said(&text));
    let moving = |keys: &str| {
        paused(2, "10 MB", "30 kB", "20 kB").replace(" }\nqueue", &format!(", {keys} }}\nqueue"))
    };
    assert!(said(&moving("alpha = 0.5")).contains("pool"), "{}", said(&moving("alpha = 0.5")));
    let below = moving("alpha = -1.0, pool = \"1 MB\"");
    assert!(said(&below).contains("no weight of the free pool"), "{}", said(&below));
    let class = "scheduler = \"priority\", classes = [{ name = \"a\", aqm = \"drop_tail\", limit = \"1 MB\" }, { name = \"b\", aqm = \"drop_tail\", limit = \"1 MB\" }]";
    let text = paused(2, "10 MB", "30 kB", "20 kB").replace("aqm = \"drop_tail\", limit = \"10 MB\"", class);
    let text = text.replace("rtt = \"20 us\"", "rtt = \"20 us\"\nclass = \"a\"");
    assert!(said(&text).contains("a link with classes pauses nobody"), "{}", said(&text));
    assert!(
        said(&text).contains("give the class that must lose nothing a link of its own"),
        "{}",
        said(&text)
    );
}
