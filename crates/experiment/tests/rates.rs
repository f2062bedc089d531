//! Congestion controls that go by delay, by rate or by marks.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;

mod delay_and_rate {
    //! Congestion controls that go by delay or by rate, from an experiment file: LEDBAT and Copa beside Reno, BBR and a paced sender behind short and
    //! long queues.

    /// Two groups of one flow each, the second from 5 s on, over a link of 10 Mbit/s and a round trip of 50 ms; the queue has room for `limit` packets.
    fn file(first: &str, second: Option<&str>, limit: u32) -> String {
        let group = |name: &str, tcp: &str, start: &str| {
            format!(
                "[[flows]]\nname = \"{name}\"\nfrom = \"H*\"\njoin = {{ node = \"L\", rate = \"100 Mbit/s\" }}\nto = \"R\"\nrtt = \"50 ms\"\n\
                 start = \"{start}\"\ntcp = {{ {tcp} }}\n"
            )
        };
        format!(
            r#"
title = "Delay and rate"
duration = "40 s"
measure = {{ from = "20 s", at = "bottleneck" }}
tcp = {{ profile = "linux", congestion = "sack" }}

[[links]]
name = "bottleneck"
from = "L"
to = "R"
rate = "10 Mbit/s"
delay = "1 ms"
queue = {{ aqm = "drop_tail", limit = "{limit} packets" }}

[[monitors]]
queue = "bottleneck"
every = "50 ms"

{}{}"#,
            group("a", first, "0 s"),
            second.map_or(String::new(), |tcp| group("b", tcp, "5 s")),
        )
    }

    /// Goodput of both groups in bit/s, the mean queue in seconds, packets lost over packets sent.
    struct Outcome {
        goodput: Vec<f64>,
        queue: f64,
        loss: f64,
    }

    fn run(text: &str) -> Outcome {
        let scenario = crate::parse(text);
        let outcome = crate::run(scenario.network(1, false));
        let metrics = scenario.metrics(&outcome);
        let value = |name| crate::value(&metrics, name);
        let seconds = 20.0;
        let payload =
            |f: &inprofile_sim::outcome::FlowOutcome| f.window.in_order_payload_bytes as f64 * 8.0 / seconds;
        Outcome {
            goodput: outcome.flows.iter().map(payload).collect(),
            queue: value("queue_mean"),
            loss: value("loss_in"),
        }
    }

    /// RFC 6817 §2.1 to §2.3 and §3.3: alone, the link is full and the queueing delay what it aims at: 83 packets of 1500 B at 100 ms, a fifth of that at
    /// 20 ms; nothing is lost.
    #[test]
    fn ledbat_keeps_the_queue_at_its_target() {
        for (target, packets) in [("100 ms", 83.3), ("20 ms", 16.7)] {
            let o = run(&file(&format!("congestion = \"ledbat\", target = \"{target}\""), None, 400));
            assert!(o.goodput[0] > 9.5e6, "{target}: {:?}", o.goodput);
            assert!((o.queue / packets - 1.0).abs() < 0.15, "{target}: {} packets", o.queue);
            assert_eq!(o.loss, 0.0);
        }
    }

    /// RFC 6817 §2.1: it yields to Reno, which fills the queue beyond the target; two Renos share. It was first, and knows the path
    /// without a queue. §3.3: in a queue shorter than the target it is
    /// no more than Reno.
    #[test]
    fn ledbat_yields_to_reno() {
        let o = run(&file("congestion = \"ledbat\"", Some("congestion = \"sack\""), 400));
        assert!(o.goodput[0] < 0.05 * o.goodput[1] && o.goodput[1] > 8.5e6, "{:?}", o.goodput);
        let reno = run(&file("congestion = \"sack\"", Some("congestion = \"sack\""), 200));
        assert!(reno.goodput[0] > 0.3 * reno.goodput[1], "{:?}", reno.goodput);
        let short = run(&file("congestion = \"ledbat\"", Some("congestion = \"sack\""), 30));
        assert!(short.goodput[0] < 1.3 * short.goodput[1], "{:?}", short.goodput);
    }

    /// draft-ietf-ccwg-bbr §3.1: full use of the link with a queue well below the path's volume (42 packets), however long the queue may
    /// become; and behind a short one, few losses.
    #[test]
    fn bbr_fills_the_link_and_not_the_queue() {
        let o = run(&file("congestion = \"bbr\"", None, 1000));
        assert!(o.goodput[0] > 9.3e6, "{:?}", o.goodput);
        assert!(o.queue < 15.0, "{}", o.queue);
        let short = run(&file("congestion = \"bbr\"", None, 10));
        assert!(short.goodput[0] > 8.8e6 && short.loss < 0.01, "{:?}, {}", short.goodput, short.loss);
    }

    /// Pacing spaces what slow start sends: behind a queue of a quarter of the path's volume it gets further before the first loss.
    #[test]
    fn paced_slow_start_needs_a_shorter_queue() {
        let got = |pacing: bool| {
            let text = file(&format!("congestion = \"cubic\", pacing = {pacing}"), None, 10);
            let early = text.replace("from = \"20 s\"", "from = \"0 s\", to = \"2 s\"");
            run(&early).goodput[0]
        };
        let (paced, unpaced) = (got(true), got(false));
        assert!(paced > 1.1 * unpaced, "{paced} with, {unpaced} without");
    }

    /// Copa (NSDI 2018, §2.2): alone, the link is full with two packets and a little more in the queue; of two flows each has as many there;
    /// it yields to Reno, whose queue it cannot tell from one of its own making.
    #[test]
    fn copa_keeps_a_few_packets_in_the_queue() {
        let o = run(&file("congestion = \"copa\"", None, 400));
        assert!(o.goodput[0] > 9.3e6, "{:?}", o.goodput);
        assert!((1.0..3.5).contains(&o.queue), "{} packets", o.queue);
        assert_eq!(o.loss, 0.0);
        let two = run(&file("congestion = \"copa\"", Some("congestion = \"copa\""), 400));
        assert!(
            two.goodput[0] / two.goodput[1] < 1.3 && two.goodput[1] / two.goodput[0] < 1.3,
            "{:?}",
            two.goodput
        );
        assert!((3.0..6.0).contains(&two.queue), "{} packets", two.queue);
        let reno = run(&file("congestion = \"copa\"", Some("congestion = \"sack\""), 400));
        assert!(reno.goodput[0] < 0.2 * reno.goodput[1], "{:?}", reno.goodput);
    }

    /// Copa's target is below what a short queue holds, and every acknowledgement is judged by it, whatever was lost: slow start's losses are
    /// the only ones.
    #[test]
    fn copa_loses_little_behind_a_short_queue() {
        for (rate, limit) in [(20, 10), (100, 50)] {
            let text = file("congestion = \"copa\"", None, limit)
                .replace("\"100 Mbit/s\"", "\"1 Gbit/s\"")
                .replace("10 Mbit/s", &format!("{rate} Mbit/s"))
                .replace("rtt = \"50 ms\"", "rtt = \"40 ms\"")
                .replace("duration = \"40 s\"", "duration = \"20 s\"")
                .replace("from = \"20 s\"", "from = \"0 s\"");
            let o = run(&text);
            assert!(o.loss < 0.01, "{rate} Mbit/s: {}", o.loss);
            assert!(o.goodput[0] > 0.9e6 * f64::from(rate), "{rate} Mbit/s: {:?}", o.goodput);
        }
    }
}

mod scalable {
    //! Scalable congestion controls, from an experiment file: the laws of their windows, and how they share a link.

    use super::*;

    /// Groups `one` and `two` of a connection each over a link of 20 Mbit/s with this queue; from 10 s on is measured.
    fn file(queue: &str, groups: [(&str, &str); 2], seconds: u32) -> String {
        let group = |name: &str, (rtt, tcp): (&str, &str)| {
            format!(
                r#"
[[flows]]
name = "{name}"
from = "H*"
join = {{ node = "edge", rate = "1 Gbit/s" }}
to = "server"
rtt = "{rtt}"
start = "uniform 0..1 s"
tcp = {{ {tcp} }}
"#
            )
        };
        format!(
            r#"
title = "Two connections"
duration = "{seconds} s"
measure = {{ from = "10 s", at = "link" }}
tcp = {{ profile = "linux" }}

[[links]]
name = "link"
from = "edge"
to = "server"
rate = "20 Mbit/s"
delay = "1 ms"
queue = {{ {queue} }}
{}{}"#,
            group("one", groups[0]),
            group("two", groups[1]),
        )
    }

    /// The payload that each group delivered.
    fn rates(text: &str, seed: u64) -> [f64; 2] {
        let scenario = crate::parse(text);
        let outcome = crate::run(scenario.network(seed, false));
        [0, 1].map(|f| outcome.flows[f].window.in_order_payload_bytes as f64)
    }

    /// The ratio of the first group's rate to the second's, geometric mean and 95 % interval over six seeds.
    fn ratio(queue: &str, groups: [(&str, &str); 2]) -> [f64; 3] {
        let text = file(queue, groups, 20);
        let logs = [1, 2, 3, 4, 5, 6].map(|seed| {
            let [one, two] = rates(&text, seed);
            libm::log(one / two)
        });
        let mean = logs.iter().sum::<f64>() / 6.0;
        let variance = logs.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 5.0;
        // Student's t with five degrees of freedom.
        let half = 2.571 * (variance / 6.0).sqrt();
        [mean, mean - half, mean + half].map(libm::exp)
    }

    const DUALPI2: &str = r#"aqm = "dualpi2", limit = "500 packets""#;
    const PRAGUE: &str = r#"congestion = "prague""#;

    /// Two of the same round-trip time share an L queue alike.
    #[test]
    fn two_prague_connections_share_alike() {
        let [mean, low, high] = ratio(DUALPI2, [("20 ms", PRAGUE), ("20 ms", PRAGUE)]);
        assert!((0.85..1.18).contains(&mean) && low < 1.15 && high > 0.87, "{mean} ({low} to {high})");
    }

    /// RFC 9332 §2.1 and Appendix A: the coupling k = 2 lets a scalable connection and a classic one get about the same rate.
    #[test]
    fn prague_and_cubic_share_a_coupled_link() {
        let cubic = r#"congestion = "cubic", ecn = true"#;
        let [mean, low, high] = ratio(DUALPI2, [("20 ms", PRAGUE), ("20 ms", cubic)]);
        assert!(low > 0.6 && high < 1.7, "{mean} ({low} to {high})");
    }

    /// RFC 9331 §4.3, Prague's draft §2.4.4: 500 round trips after slow start a connection of 10 ms has no advantage over one of 25 ms;
    /// without a virtual round-trip time it has, about the inverse ratio of the two.
    #[test]
    fn short_round_trips_have_no_advantage() {
        let ratio = |tcp: &str| {
            let [short, long] = rates(&file(DUALPI2, [("10 ms", tcp), ("25 ms", PRAGUE)], 50), 1);
            short / long
        };
        let (independent, dependent) = (ratio(PRAGUE), ratio(r#"congestion = "prague", rtt_virt = "0 s""#));
        assert!((0.6..1.67).contains(&independent), "{independent}");
        assert!((1.8..4.5).contains(&dependent), "{dependent}");
    }

    /// RFC 9331 §4.1: what is ECT(1) joins the L4S queue, where DCTCP, unpaced, has less than CUBIC beside it; ECT(0)
    /// is marked by the square, and takes the link.
    #[test]
    fn dctcp_may_be_l4s_traffic() {
        let cubic = r#"congestion = "cubic", ecn = true"#;
        let share = |tcp: &str| {
            let [dctcp, other] = rates(&file(DUALPI2, [("20 ms", tcp), ("20 ms", cubic)], 20), 1);
            dctcp / other
        };
        let l4s = share(r#"congestion = "dctcp", ect1 = true"#);
        let classic = share(r#"congestion = "dctcp""#);
        assert!((0.1..1.0).contains(&l4s), "{l4s}");
        assert!(classic > 3.0, "{classic}");
    }

    /// RFC 9768 §3.1.2: with a receiver that lacks what is asked for, the sender is what it is where it asks for less, to the last byte.
    #[test]
    fn what_the_receiver_lacks_is_as_if_it_were_not_asked_for() {
        // Its SYN is ECT(1) all the same, which this queue takes for ECT(0).
        let pie = r#"aqm = "pie", limit = "100 packets", ecn = true"#;
        let outcome = |tcp: &str| {
            let cubic = r#"congestion = "cubic", ecn = true"#;
            rates(&file(pie, [("20 ms", tcp), ("20 ms", cubic)], 20), 1)
        };
        let asked = [
            (
                r#"congestion = "prague", receiver_ecn = "classic""#,
                r#"congestion = "prague", accurate_ecn = false"#,
            ),
            (r#"congestion = "prague", receiver_ecn = "accurate""#, PRAGUE),
            (r#"congestion = "dctcp", receiver_ecn = "dctcp""#, r#"congestion = "dctcp""#),
            (r#"congestion = "dctcp", receiver_ecn = "none""#, r#"congestion = "sack""#),
            (r#"ecn = true, accurate_ecn = true, receiver_ecn = "classic""#, "ecn = true"),
            (r#"ecn = true, receiver_ecn = "accurate""#, "ecn = true"),
            (r#"ecn = true, receiver_ecn = "none""#, "ecn = false"),
            (
                r#"profile = "rfc", congestion = "sack", ecn = true, receiver_ecn = "none""#,
                r#"profile = "rfc", congestion = "sack""#,
            ),
        ];
        for (more, less) in asked {
            assert_eq!(outcome(more), outcome(less), "{more}");
        }
        assert_ne!(outcome(PRAGUE), outcome(asked[0].0));
    }

    fn problems(queue: &str, tcp: &str) -> Vec<String> {
        let text = file(queue, [("20 ms", tcp), ("20 ms", "")], 20);
        match Scenario::parse(&text, "two.toml", &[], &Registry::default()) {
            Ok(scenario) => scenario.warnings().iter().map(ToString::to_string).collect(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }

    /// Contradictions are named, with a remedy; sensible files are not.
    #[test]
    fn what_cannot_be_meant_is_named() {
        let drop_tail = r#"aqm = "drop_tail", limit = "100 packets""#;
        let pie = r#"aqm = "pie", limit = "100 packets", ecn = true"#;
        let cases = [
            (drop_tail, PRAGUE, "one sends ECT(1), but drop_tail at link does not mark"),
            (pie, PRAGUE, "L4S flows would take far more than their share"),
            (pie, PRAGUE, "congestion = \"cubic\" in the group's tcp"),
            (
                DUALPI2,
                r#"congestion = "prague", accurate_ecn = false"#,
                "no L4S sender: its packets are ECT(0)",
            ),
            (
                DUALPI2,
                r#"congestion = "prague", receiver_ecn = "classic""#,
                "no L4S sender: its packets are ECT(0)",
            ),
            (DUALPI2, r#"congestion = "prague", receiver_ecn = "classic""#, "remove receiver_ecn, unless"),
            (
                DUALPI2,
                r#"congestion = "prague", receiver_ecn = "none""#,
                "prague's packets are not ECT, and its window is Reno's",
            ),
            (
                pie,
                r#"congestion = "dctcp", receiver_ecn = "none""#,
                "dctcp's packets are not ECT, and its window is Reno's",
            ),
            (pie, r#"congestion = "dctcp", receiver_ecn = "classic""#, "it counts marks that were none"),
            (pie, r#"ecn = true, receiver_ecn = "none""#, "cubic's packets are not ECT, and none is marked"),
            (
                pie,
                r#"ecn = true, accurate_ecn = true, receiver_ecn = "classic""#,
                "cubic is told of marks by ECN-Echo",
            ),
            (pie, "ecn = true, accurate_ecn_option = true", "write accurate_ecn = true"),
            (pie, r#"receiver_ecn = "accurate""#, "write ecn = true, or remove receiver_ecn"),
            (pie, r#"ecn = true, receiver_ecn = "nonce""#, "classic"),
            (DUALPI2, r#"congestion = "prague", ecn = false"#, "and has no other measure"),
            (DUALPI2, r#"congestion = "dctcp", ecn = false"#, "remove ecn, or write congestion = \"cubic\""),
            (DUALPI2, r#"profile = "rfc", congestion = "prague""#, "only the linux profile has prague"),
            (
                DUALPI2,
                r#"profile = "rfc", accurate_ecn = true, ecn = true"#,
                "only the linux profile has accurate feedback",
            ),
            (DUALPI2, "accurate_ecn = true", "without ECN nothing is marked"),
            (DUALPI2, r#"rtt_virt = "5 ms""#, "is prague's; cubic has none"),
            (DUALPI2, r#"congestion = "prague", ect1 = true"#, "is dctcp's; prague has none"),
            (
                drop_tail,
                r#"congestion = "dctcp", ect1 = true"#,
                "one sends ECT(1), but drop_tail at link does not mark",
            ),
        ];
        for (queue, tcp, said) in cases {
            let problems = problems(queue, tcp);
            assert!(problems.iter().any(|p| p.contains(said)), "{tcp}: {problems:?} and not {said}");
        }
        for (queue, tcp) in [
            (DUALPI2, PRAGUE),
            (pie, r#"congestion = "dctcp""#),
            (pie, r#"ecn = true, accurate_ecn = true"#),
            (pie, r#"congestion = "prague", accurate_ecn = false"#),
            (pie, r#"congestion = "prague", receiver_ecn = "classic""#),
            (pie, r#"congestion = "dctcp", ect1 = true, receiver_ecn = "none""#),
        ] {
            let problems: Vec<_> =
                problems(queue, tcp).into_iter().filter(|p| p.contains("ECT(1)")).collect();
            assert!(problems.is_empty(), "{tcp}: {problems:?}");
        }
    }

    /// RFC 9768 §3.2.3: where most acknowledgements are lost on a narrow way back, the field of three bits has mostly wrapped, and the safest likely case takes
    /// packets for marked that were not. With the option the link stays full.
    #[test]
    fn the_option_tells_what_lost_acknowledgements_had() {
        let back = r#"reverse = { rate = "32 kbit/s", delay = "1 ms", queue = { aqm = "drop_tail", limit = "4 packets" } }"#;
        let rate = |option: bool, back: &str| {
            let tcp = format!(r#"congestion = "prague", accurate_ecn_option = {option}"#);
            let text = file(DUALPI2, [("20 ms", &tcp), ("20 ms", &tcp)], 20);
            rates(&text.replacen("delay = \"1 ms\"", &format!("delay = \"1 ms\"\n{back}"), 1), 1)
                .iter()
                .sum::<f64>()
        };
        let wide = rate(false, "");
        assert!((rate(true, "") / wide - 1.0).abs() < 0.02, "{} and {wide}", rate(true, ""));
        let (with, without) = (rate(true, back), rate(false, back));
        assert!(
            with > 0.9 * wide && without < 0.5 * wide,
            "{with} with it, {without} without, {wide} where none is lost"
        );
    }
}
