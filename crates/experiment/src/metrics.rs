//! The metrics of one run, each over the measured window.

use inprofile_core::packet::Colour;
use inprofile_core::queue::Counts;
use inprofile_sim::outcome::{MarkerOutcome, Measured, Outcome};

use crate::model::{Group, Model};
use crate::traffic::Traffic;

/// One metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The mechanism.
    pub name: &'static str,
    /// In what unit; `1` for a ratio.
    pub unit: &'static str,
    /// How much.
    pub value: f64,
    /// Where: a link's name, `receivers`, `senders` or `edges`.
    pub point: String,
    /// Which bytes count: `wire` with headers, `payload` without.
    pub header: &'static str,
}

/// Jain's index of fairness, (Σx)² / (N·Σx²) (Jain, Chiu and Hawe 1984); `None` if all shares are zero.
#[must_use]
pub fn fairness(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) = shares.fold((0u64, 0.0, 0.0), |(n, s, q), x| (n + 1, s + x, q + x * x));
    (squares > 0.0).then(|| sum * sum / (n as f64 * squares))
}

/// Every metric that has a value in this run.
pub(crate) fn metrics(model: &Model, outcome: &Outcome) -> Vec<Metric> {
    let mut all = Vec::with_capacity(16);
    let window = (model.window.1 - model.window.0).secs();
    let mut put = |name, unit, value: Option<f64>, point: &str, header| {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            all.push(Metric { name, unit, value, point: point.to_owned(), header });
        }
    };
    let bits = |bytes: u64| Some(bytes as f64 * 8.0 / window);

    let payload = |f: &inprofile_sim::outcome::FlowOutcome| f.window.in_order_payload_bytes;
    let shares = compared(model).zip(&outcome.flows).filter(|(c, _)| *c).map(|(_, f)| payload(f) as f64);
    put("fi", "1", fairness(shares), "receivers", "payload");
    put("goodput", "bit/s", bits(outcome.flows.iter().map(payload).sum()), "receivers", "payload");
    let wire = outcome.flows.iter().map(|f| f.window.in_order_wire_bytes).sum();
    put("throughput", "bit/s", bits(wire), "receivers", "wire");

    if model.groups.iter().any(|g| matches!(g.sends(), Traffic::Transfer(..))) {
        let (from, to) = model.window;
        let took: Vec<f64> = outcome
            .flows
            .iter()
            .filter_map(|f| f.completed.filter(|at| (from..to).contains(at)).map(|at| (at - f.start).secs()))
            .collect();
        put("completions", "1", Some(took.len() as f64), "receivers", "payload");
        put(
            "completion_mean",
            "s",
            Some(took.iter().sum::<f64>() / took.len() as f64),
            "receivers",
            "payload",
        );
    }

    let at = model.direction_name(model.at);
    if let Some(link) = outcome.links.get(model.at) {
        let c = &link.window;
        let sent: u64 = c.sent.iter().sum();
        put("lambda_in", "bit/s", bits(c.arrived_bytes[Colour::IN as usize]), &at, "wire");
        put("lambda_out", "bit/s", bits(out_of(&c.arrived_bytes)), &at, "wire");
        put("utilisation", "1", Some(link.sending.secs() / window), &at, "wire");
        put("queue_mean", "packets", Some(link.queue_mean), &at, "wire");
        // Little's law: the mean number of packets that wait to be sent is the rate at which they are sent times their mean wait. Those
        // that are dropped at the head, or evicted, have waited for nothing.
        let to_be_sent = link.queue_mean - link.queue_mean_dropped;
        let delay = (sent > 0).then(|| to_be_sent * window / sent as f64);
        put("delay_mean", "s", delay, &at, "wire");
        let dropped = by_colour(c);
        put("loss_in", "1", share(dropped[0], c.arrived[0]), &at, "wire");
        put("loss_out", "1", share(out_of(&dropped), out_of(&c.arrived)), &at, "wire");
        put("drops", "packets", Some(dropped.iter().sum::<u64>() as f64), &at, "wire");
        if let Some(paused) = link.window_paused {
            put("marks", "packets", Some(c.marked.iter().sum::<u64>() as f64), &at, "wire");
            put("pauses", "1", Some(paused.pauses as f64), &at, "wire");
            put("paused_time", "s", Some(paused.time.secs()), &at, "wire");
        }
    }
    for (name, value) in outcome.measured.iter().flat_map(|m| of_distributions(model, m)) {
        let unit = if name.starts_with("loss_") { "1" } else { "s" };
        put(name, unit, value, &at, "wire");
    }
    let markers = outcome.edges.iter().chain(outcome.flow_markers.iter().filter_map(|m| m.as_deref()));
    let at_edges: u64 = markers.map(|m: &MarkerOutcome| m.window.dropped.iter().sum::<u64>()).sum();
    put("edge_drops", "packets", Some(at_edges as f64), "edges", "wire");
    let timeouts: u64 = outcome.flows.iter().map(|f| u64::from(f.window_tally.timeouts)).sum();
    put("timeouts", "1", Some(timeouts as f64), "senders", "wire");
    let again: u64 = outcome.flows.iter().map(|f| f.window_tally.retransmissions).sum();
    put("retransmissions", "packets", Some(again as f64), "senders", "wire");
    all
}

/// Quantiles of the queueing delay at the measured link, and how many flows lose packets together there, beside a random choice.
fn of_distributions(model: &Model, measured: &Measured) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    let waits = measured.queueing.iter().find(|(link, _)| *link as usize == model.at);
    let all = waits.map(|(_, waits)| waits.delays.together(|_, _| true)).unwrap_or_default();
    let shares = [("delay_p50", 0.5), ("delay_p90", 0.9), ("delay_p99", 0.99), ("delay_p99_9", 0.999)];
    let quantiles = shares.map(|(name, share)| (name, all.quantile(share)));
    let losses = &measured.losses;
    let together =
        [("loss_synchronisation", losses.synchronisation), ("loss_synchronisation_random", losses.random)];
    quantiles.into_iter().chain(together)
}

/// Which flows fairness compares: those with unlimited data, if there are any, else all.
fn compared(model: &Model) -> impl Iterator<Item = bool> + '_ {
    let bulk = |g: &Group| g.sends() == Traffic::Bulk && g.count > 0;
    let some = model.groups.iter().any(bulk);
    model.groups.iter().flat_map(move |g| std::iter::repeat_n(!some || bulk(g), g.count))
}

/// All that is not IN: OUT packets, and red ones where a third precedence is used.
fn out_of(by_colour: &[u64; 3]) -> u64 {
    by_colour[1] + by_colour[2]
}

fn by_colour(counts: &Counts) -> [u64; 3] {
    Colour::ALL.map(|c| counts.dropped_of(c))
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use inprofile_core::registry::Registry;
    use inprofile_core::units::Duration;
    use inprofile_sim::outcome::{FlowCounts, FlowOutcome, LinkOutcome, MarkerCounts};
    use inprofile_sim::tcp::Tally;

    #[test]
    fn fairness_is_jains() {
        assert_eq!(fairness([3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(fairness([1.0, 0.0, 0.0, 0.0].into_iter()), Some(0.25));
        let x = [1.0, 2.0, 3.0];
        assert!((fairness(x.into_iter()).unwrap() - 36.0 / 42.0).abs() < 1e-15);
        assert_eq!(fairness([0.0, 0.0].into_iter()), None);
        assert_eq!(fairness(std::iter::empty()), None);
    }

    /// Two flows over a link of 1.2 Mbit/s, measured for 15 s.
    fn outcome() -> (Scenario, Outcome) {
        let text = include_str!("../tests/good/two-flows.toml");
        let scenario = Scenario::parse(text, "two-flows.toml", &[], &Registry::default()).unwrap();
        let flow = |payload: u64| FlowOutcome {
            window: FlowCounts {
                in_order_payload_bytes: payload,
                in_order_wire_bytes: payload / 1000 * 1040,
                ..FlowCounts::default()
            },
            window_tally: Tally { timeouts: 2, retransmissions: 5, ..Tally::default() },
            ..FlowOutcome::default()
        };
        let mut link = LinkOutcome { queue_mean: 12.0, queue_mean_dropped: 2.0, ..LinkOutcome::default() };
        link.window.arrived = [800, 200, 100];
        link.window.arrived_bytes = [832_000, 208_000, 104_000];
        link.window.sent = [796, 180, 60];
        link.window.sent_bytes = [827_840, 187_200, 62_400];
        // Three quarters of 15 s.
        link.sending = Duration::from_millis(11_250);
        link.window.dropped[0] = [4, 20, 30];
        link.window.dropped[2] = [0, 0, 10];
        let marker = MarkerOutcome {
            window: MarkerCounts { dropped: [7, 1, 0], ..MarkerCounts::default() },
            ..MarkerOutcome::default()
        };
        let outcome = Outcome {
            flows: vec![flow(600_000), flow(300_000)],
            links: vec![LinkOutcome::default(), LinkOutcome::default(), link, LinkOutcome::default()],
            edges: vec![marker],
            flow_markers: vec![Some(Box::default()), None],
            ..Outcome::default()
        };
        (scenario, outcome)
    }

    fn value(all: &[Metric], name: &str) -> Option<f64> {
        all.iter().find(|m| m.name == name).map(|m| m.value)
    }

    #[test]
    fn each_figure_by_hand() {
        let (scenario, outcome) = outcome();
        let all = scenario.metrics(&outcome);
        let by_hand = [
            ("fi", 0.9),
            ("goodput", 480_000.0),
            ("throughput", 499_200.0),
            ("lambda_in", 832_000.0 * 8.0 / 15.0),
            ("lambda_out", 312_000.0 * 8.0 / 15.0),
            ("utilisation", 0.75),
            ("queue_mean", 12.0),
            ("delay_mean", 10.0 / (1036.0 / 15.0)),
            ("loss_in", 4.0 / 800.0),
            ("loss_out", 60.0 / 300.0),
            ("drops", 64.0),
            ("edge_drops", 8.0),
            ("timeouts", 4.0),
            ("retransmissions", 10.0),
        ];
        assert_eq!(all.iter().map(|m| m.name).collect::<Vec<_>>(), by_hand.map(|(n, _)| n));
        for (name, expected) in by_hand {
            let got = value(&all, name).unwrap();
            assert!((got - expected).abs() <= 1e-12 * expected, "{name}: {got}, by hand {expected}");
        }
        assert_eq!(all[3].point, "bottleneck");
        assert_eq!((all[0].header, all[2].header), ("payload", "wire"));
    }

    #[test]
    fn what_has_no_value_is_absent_not_nan() {
        let (scenario, mut outcome) = outcome();
        outcome.links[2] = LinkOutcome::default();
        outcome.flows.iter_mut().for_each(|f| f.window = FlowCounts::default());
        let all = scenario.metrics(&outcome);
        for name in ["fi", "delay_mean", "loss_in", "loss_out"] {
            assert_eq!(value(&all, name), None, "{name}");
        }
        assert_eq!(value(&all, "utilisation"), Some(0.0));
        assert!(all.iter().all(|m| m.value.is_finite()));
    }
}
