//! Queues whose shares or means are known.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;

mod flow_queueing {
    //! Flow queueing from an experiment file to the shares of flows: ten TCP flows beside one that sends whatever happens.

    use inprofile_sim::outcome::Outcome;

    const RATE: f64 = 20e6;

    /// TCP without CUBIC's aggressiveness, and 16 of 20 Mbit/s at a constant rate.
    fn run(queue: &str) -> Outcome {
        let text = format!(
            r#"
title = "Ten TCP flows and an unresponsive one"
duration = "12 s"
measure = {{ from = "4 s", to = "12 s" }}
tcp = {{ congestion = "newreno" }}

[[links]]
name = "bottleneck"
from = "R1"
to = "R2"
rate = "20 Mbit/s"
delay = "5 ms"
queue = {{ limit = "200 packets", {queue} }}

[[flows]]
name = "tcp"
count = 10
from = "H*"
join = {{ node = "R1", rate = "1 Gbit/s" }}
to = "R2"
rtt = "20..60 ms"
start = "uniform 0..1 s"

[[flows]]
name = "udp"
from = "H*"
join = {{ node = "R1", rate = "1 Gbit/s" }}
to = "R2"
rtt = "20 ms"
traffic = {{ kind = "cbr", rate = "16 Mbit/s", packet = "1000 B" }}
"#
        );
        let scenario = crate::parse(&text);
        crate::run(scenario.network(1, false))
    }

    /// Rates received in the window of 8 s by the TCP flows and by the other, in fair shares.
    fn shares(queue: &str) -> (Vec<f64>, f64) {
        let outcome = run(queue);
        let rates: Vec<f64> = outcome
            .flows
            .iter()
            .map(|f| f.window.received_bytes.iter().sum::<u64>() as f64 / (RATE / 11.0))
            .collect();
        (rates[..10].to_vec(), rates[10])
    }

    #[test]
    fn an_unresponsive_flow_gets_its_share_and_no_more() {
        let (tcp, udp) = shares(r#"aqm = "drop_tail""#);
        assert!(udp > 7.0 && tcp.iter().all(|share| *share < 0.8), "{tcp:?} {udp}");
        for aqm in ["fq_codel", "fq_pie", "sfq"] {
            let (tcp, udp) = shares(&format!("aqm = \"{aqm}\""));
            // It gets what the others leave of theirs, too.
            assert!((1.0..1.6).contains(&udp), "{aqm}: {tcp:?} {udp}");
            assert!(tcp.iter().all(|share| (0.65..1.4).contains(share)), "{aqm}: {tcp:?} {udp}");
        }
    }

    /// RFC 8290 §6.1, §5.3: with one queue, as with any number that all collide in, there is no isolation.
    #[test]
    fn with_one_queue_there_is_no_isolation() {
        let (tcp, udp) = shares(r#"aqm = "fq_codel", flows = 1"#);
        assert!(udp > 7.0 && tcp.iter().all(|share| *share < 0.8), "{tcp:?} {udp}");
    }
}

mod queueing_theory {
    //! Queues whose mean is known: Poisson arrivals at one server, by Pollaczek and Khinchine's formula for M/G/1,
    //! W = λ·E\[S²\] / 2(1 − ρ); ρ/(1 − ρ) service times for exponential ones (M/M/1), half of that for constant ones (M/D/1).

    use inprofile_experiment::Severity;

    use super::*;

    /// A link of 8 Mbit/s, so that 1,000 B take a millisecond.
    const LINK: &str = r#"
title = "M/G/1"
duration = "210 s"
measure = { from = "10 s", to = "210 s" }
[[links]]
name = "link"
from = "A"
to = "B"
rate = "8 Mbit/s"
delay = "1 ms"
queue = { aqm = "drop_tail", limit = "100000 packets" }
"#;

    fn read(traffic: &str) -> Result<Scenario, String> {
        let text = format!(
            "{LINK}[[flows]]\nname = \"udp\"\nfrom = \"A\"\nto = \"B\"\ntraffic = {{ kind = \"poisson\", {traffic} }}\n"
        );
        let said =
            |problems: Vec<inprofile_experiment::Problem>| problems.iter().map(ToString::to_string).collect();
        Scenario::parse(&text, "queueing", &[], &Registry::default()).map_err(said)
    }

    /// Mean and the half of its 99.9 % confidence interval over ten seeds, of the wait (ms), the queue (packets) and the rate (Mbit/s).
    fn measured(traffic: &str) -> [(f64, f64); 3] {
        // Student's t for 9 degrees of freedom.
        const T: f64 = 4.781;
        let scenario = read(traffic).unwrap();
        let runs: Vec<[f64; 3]> = (1..=10)
            .map(|seed| {
                let outcome = crate::run(scenario.network(seed, false));
                let metrics = scenario.metrics(&outcome);
                let value = |name| crate::value(&metrics, name);
                [1e3 * value("delay_mean"), value("queue_mean"), 1e-6 * value("throughput")]
            })
            .collect();
        let n = runs.len() as f64;
        std::array::from_fn(|i| {
            let mean = runs.iter().map(|r| r[i]).sum::<f64>() / n;
            let variance = runs.iter().map(|r| (r[i] - mean) * (r[i] - mean)).sum::<f64>() / (n - 1.0);
            (mean, T * (variance / n).sqrt())
        })
    }

    #[test]
    fn waits_and_queues_are_those_of_pollaczek_and_khinchine() {
        // The second moment of the service time, in ms²: of 1, 2 exponential, and of what bounds leave of 500 B between 200 B and 1500 B:
        // the mean is 0.2 + 0.5·(e^−0.4 − e^−3) = 0.510, E[S²] = 0.04 + ∫ 2x·e^(−x/0.5) dx from 0.2 to 1.5 = 0.04 + 0.7·e^−0.4 − 2·e^−3.
        let (a, b) = (libm::exp(-0.4), libm::exp(-3.0));
        let bounded = (0.2 + 0.5 * (a - b), 0.04 + 0.7 * a - 2.0 * b);
        for (sizes, rho, mean, second) in [
            ("packet = \"1000 B\"", 0.7, 1.0, 1.0),
            ("packet = \"1000 B\", sizes = \"exponential\"", 0.5, 1.0, 2.0),
            ("packet = \"1000 B\", sizes = \"exponential\"", 0.8, 1.0, 2.0),
            (
                "packet = \"500 B\", sizes = \"exponential\", smallest = \"200 B\", largest = \"1500 B\"",
                0.7,
                bounded.0,
                bounded.1,
            ),
        ] {
            let lambda = rho / mean;
            let wait = lambda * second / (2.0 * (1.0 - rho));
            let [(w, w_half), (q, q_half), (rate, rate_half)] =
                measured(&format!("rate = \"{} kbit/s\", {sizes}", (8000.0 * rho).round()));
            eprintln!(
                "{sizes}, {rho}: wait {w} ± {w_half} ms, theory {wait}; queue {q} ± {q_half}, theory {}",
                lambda * wait
            );
            assert!((w - wait).abs() <= w_half && w_half < 0.06 * wait, "{sizes}: {w} ± {w_half}, {wait}");
            let queue = lambda * wait;
            assert!((q - queue).abs() <= q_half, "{sizes}: {q} ± {q_half}, {queue}");
            assert!((rate - 8.0 * rho).abs() <= rate_half, "{sizes}: {rate} ± {rate_half}");
        }
    }

    #[test]
    fn bounds_that_do_not_go_together_are_refused() {
        let exponential = "rate = \"1 Mbit/s\", sizes = \"exponential\"";
        for (traffic, said) in [
            (
                "rate = \"1 Mbit/s\", largest = \"1500 B\"".to_owned(),
                "packets of one size have no other bounds",
            ),
            (format!("{exponential}, smallest = \"20 B\""), "a packet has 29 to 65535 B"),
            (format!("{exponential}, largest = \"900 B\""), "a mean of 1000 B is not between 29 B and 900 B"),
            (format!("{exponential}, smallest = \"1200 B\""), "is not between 1200 B and 65535 B"),
            (format!("{exponential}, shape = 2"), "only a Pareto distribution has a shape"),
            ("rate = \"1 Mbit/s\", sizes = \"pareto\", shape = 1".into(), "has no mean"),
            ("sizes = \"exponential\"".into(), "rate"),
        ] {
            let problem = read(&traffic).err().unwrap_or_default();
            assert!(problem.contains(said), "{traffic}: {problem}");
        }
        let cut = read(&format!("{exponential}, largest = \"1500 B\"")).unwrap();
        let [warning] = cut.warnings() else { panic!("{:?}", cut.warnings()) };
        assert_eq!(warning.severity, Severity::Warning);
        // 29 + 1000·(e^−0.029 − e^−1.5) B.
        assert!(
            warning.problem.contains("the mean of the sizes is 777 B, not 1000 B"),
            "{}",
            warning.problem
        );
    }
}
