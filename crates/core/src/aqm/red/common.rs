//! The parameters that all REDs share, declared once, the checks of a colour's thresholds, and the configuration made of them, which no
//! arrival changes.
//!
//! Papers use thresholds above the queue's limit and fractional ones: these are warned of, never refused.

use crate::aqm::red::law::{Curve, EARLY, FORCED, Rule, Weight};
use crate::prelude::*;

crate::params! {
    /// The parameters common to all REDs.
    pub struct Common {
        /// Weight of the newest sample in every average.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = false;
        /// After a drop, at least 1/p packets of the colour are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// Typical size on the wire: how fast an idle link ages the averages, and what byte_scaled divides
        /// by. Default: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
    }
}

impl Common {
    /// A typical packet, where the operator says nothing of it a full one.
    #[must_use]
    pub fn packet(&self, context: &Context) -> Bytes {
        self.mean_packet.unwrap_or(context.packet)
    }

    /// How fast averages move.
    #[must_use]
    pub fn weight(&self, context: &Context) -> Weight {
        Weight::new(self.w_q, context.link_rate, self.packet(context))
    }

    /// How curves with a threshold in this unit are read.
    #[must_use]
    pub fn rule(&self, unit: Backlog, byte_scaled: bool, context: &Context) -> Rule {
        Rule {
            gentle: self.gentle,
            wait: self.wait,
            ecn: self.ecn,
            in_bytes: matches!(unit, Backlog::Bytes(_)),
            mean: byte_scaled.then(|| packet_size(self.packet(context))),
        }
    }
}

crate::params! {
    /// The curve of one colour.
    pub struct Thresholds {
        /// Average below which nothing of this colour is dropped. All thresholds have one unit, packets or bytes.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
    }
}

impl Thresholds {
    /// As a curve.
    #[must_use]
    pub fn curve(&self) -> Curve {
        Curve::new(self.min_th.amount(), self.max_th.amount(), self.max_p)
    }
}

/// The paths of a pair of thresholds in the experiment file.
#[derive(Clone, Copy, Debug)]
pub struct Paths {
    /// Of the lower.
    pub min_th: &'static str,
    /// Of the upper.
    pub max_th: &'static str,
}

/// Whether two thresholds make a curve; what is allowed but odd goes to `warnings`.
///
/// # Errors
/// Mixed units, or a lower threshold that is not below the upper.
pub fn check_thresholds(
    min_th: Backlog,
    max_th: Backlog,
    paths: Paths,
    context: &Context,
    warnings: &mut Vec<Warning>,
) -> Result<(), Fault> {
    if !min_th.same_unit(max_th) {
        return Err(Fault {
            field: paths.max_th,
            problem: format!("min_th is {min_th} and max_th is {max_th}: one average can't be in both units"),
            remedy: "both in packets or both in bytes".into(),
        });
    }
    if min_th.amount() >= max_th.amount() {
        return Err(Fault {
            field: paths.min_th,
            problem: format!("min_th ({min_th}) is not below max_th ({max_th})"),
            remedy: "a min_th below max_th; Floyd advises max_th = 3 · min_th".into(),
        });
    }
    for (path, th) in [(paths.min_th, min_th), (paths.max_th, max_th)] {
        if let Some(limit) = context.limit
            && th.bytes(context.packet) > limit.bytes(context.packet)
        {
            let text = format!("{th} is above the queue's limit of {limit}: the average can't get there");
            warnings.push(Warning { field: path, text });
        }
        if th.amount().fract() != 0.0 {
            let text = format!("{th} is not a whole number; kept as it is, the average is not whole either");
            warnings.push(Warning { field: path, text });
        }
    }
    Ok(())
}

/// The part that no arrival changes. Copies of a queue share it: of a million queues alike each keeps one cache line, and this is
/// read from the nearest cache.
#[derive(Clone, Debug)]
pub struct Config<const N: usize> {
    /// Of the averages.
    pub weight: Weight,
    /// By colour, best first.
    pub curves: [Curve; N],
    /// `[colour][average]`: w_q where an arrival of this colour is a sample of this average, else 0.
    pub weights: [[f64; N]; N],
    /// How the curves are read.
    pub rule: Rule,
    /// The treatment of an arrival at a full queue.
    pub full: Full,
}

crate::choice! {
    /// Which packet goes when an arrival finds the queue full. What chance picks is always the arrival.
    pub enum DropAt {
        /// The arrival.
        Tail = "tail",
        /// The next to leave.
        Front = "front",
        /// Any, with equal chances, the arrival included.
        Random = "random",
    }
}

/// The treatment of an arrival at a full queue.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// Which packet goes.
    pub drop: DropAt,
    /// Typical size on the wire in bytes, for a limit that is read in such packets.
    pub mean_packet: u32,
}

impl<const N: usize> Config<N> {
    /// `takes[colour][average]`: whether an arrival of this colour is a sample of this average.
    #[must_use]
    pub fn new(weight: Weight, curves: [Curve; N], takes: [[bool; N]; N], rule: Rule) -> Config<N> {
        let weights = takes.map(|of| of.map(|takes| if takes { weight.w_q } else { 0.0 }));
        Config { weight, curves, weights, rule, full: Full { drop: DropAt::Tail, mean_packet: 0 } }
    }
}

/// A packet size as [`Rule::mean`] takes it: at least 1, so that it divides.
#[must_use]
pub fn packet_size(packet: Bytes) -> u32 {
    u32::try_from(packet.0).unwrap_or(u32::MAX).max(1)
}

/// A queue's counts of packets of these colours: dropped early, forced, on overflow, and marked.
pub(crate) fn causes(queue: &Counts, of: &[Colour]) -> [u64; 4] {
    let sum = |counts: [u64; 3]| of.iter().map(|colour| counts[*colour as usize]).sum();
    let by = |cause: Cause| sum(queue.dropped[cause.index()]);
    [by(EARLY), by(FORCED), by(Cause::OVERFLOW), sum(queue.marked)]
}

/// Shows these counts under their names.
pub(crate) fn show_causes(
    counts: [u64; 4],
    names: [&'static str; 4],
    show: &mut dyn FnMut(&'static str, u64),
) {
    names.into_iter().zip(counts).for_each(|(name, n)| show(name, n));
}

/// Shows those of IN and of OUT packets, cause by cause.
pub(crate) fn show_in_and_out(queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
    const NAMES: [[&str; 2]; 4] = [
        ["early_in", "early_out"],
        ["forced_in", "forced_out"],
        ["overflow_in", "overflow_out"],
        ["marked_in", "marked_out"],
    ];
    let [ins, outs] = [&Colour::ALL[..1], &Colour::ALL[1..]].map(|of| causes(queue, of));
    for ([name_in, name_out], (n_in, n_out)) in NAMES.into_iter().zip(ins.into_iter().zip(outs)) {
        show(name_in, n_in);
        show(name_out, n_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_that_make_no_curve_are_refused() {
        let context = Context {
            link_rate: None,
            contract: None,
            packet: Bytes(1000),
            limit: Some(Backlog::Packets(50.0)),
        };
        let paths = Paths { min_th: "min_th", max_th: "max_th" };
        let check = |min, max| {
            let mut warnings = Vec::new();
            check_thresholds(min, max, paths, &context, &mut warnings)
                .map(|()| warnings.iter().map(|w| w.field).collect::<Vec<_>>())
                .map_err(|f| f.field)
        };
        use Backlog::{Bytes as B, Packets as P};
        assert_eq!(check(P(5.0), P(15.0)), Ok(vec![]));
        assert_eq!(check(P(15.0), P(15.0)), Err("min_th"));
        assert_eq!(check(P(5.0), B(15_000.0)), Err("max_th"));
        assert_eq!(check(P(0.1), P(60.0)), Ok(vec!["min_th", "max_th"]));
        assert_eq!(check(B(5_000.0), B(50_001.0)), Ok(vec!["max_th"]));
    }
}
