//! WRED, and RIO with three colours: RED with a curve for each drop precedence.
//!
//! Green, yellow and red packets share one queue. Each colour has its own thresholds and its own count, so that under
//! congestion red packets are dropped first. The average that a curve is applied to is a choice: that of the whole queue
//! (WRED), that of the packet's colour and all better ones (RIO-C, coupled), or that of its colour alone (RIO-D, decoupled).
//! Source: RFC 2597 §4 asks for it; the averages are those of Clark and Fang 1998 and of Nortel's dsRED; average, curve and
//! count are the [law](super::law)'s, for three colours. Idle time of the link ages all averages; the average of a colour of
//! which no packet arrives does not change.
//! A colour may have a second curve, for packets of ECN-capable transports: they are marked by it, all of them from its max_th
//! on, and dropped only where the first curve drops everything (RFC 3168 §7) or the queue is full. So switches have it (SAI's
//! `SAI_WRED_ATTR_ECN_GREEN_MIN_THRESHOLD` and its like). Non-goal: the peculiarities of published simulators.

use crate::aqm::red::common::{Common, Config, Paths, Thresholds, causes, check_thresholds, show_causes};
use crate::aqm::red::law::{Arrival, Count, EarlyTest, Law, Rule};
use crate::prelude::*;

crate::choice! {
    /// The averages that colours' curves are applied to.
    pub enum Averages {
        /// One average, of the whole queue, for all colours: WRED.
        Shared = "shared",
        /// Of packets of the colour and of all better ones: RIO-C.
        Coupled = "coupled",
        /// Of packets of the colour alone: RIO-D.
        Decoupled = "decoupled",
    }
}

impl Averages {
    /// `[colour][average]`: whether an arrival of this colour is a sample of this average. Where there is one for all, each colour
    /// keeps it.
    #[must_use]
    pub fn takes(self) -> [[bool; 3]; 3] {
        match self {
            Averages::Shared => [[true; 3]; 3],
            Averages::Coupled => [[true, true, true], [false, true, true], [false, false, true]],
            Averages::Decoupled => [[true, false, false], [false, true, false], [false, false, true]],
        }
    }

    /// The lengths that the averages are of, given those by colour.
    #[must_use]
    pub fn lengths(self, [green, yellow, red]: [f64; 3]) -> [f64; 3] {
        match self {
            Averages::Shared => [green + yellow + red; 3],
            Averages::Coupled => [green, green + yellow, green + yellow + red],
            Averages::Decoupled => [green, yellow, red],
        }
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// For green packets (IN).
        green: Thresholds;
        /// For yellow packets (OUT).
        yellow: Thresholds;
        /// For red packets. Default: as for yellow ones.
        red: Option<Thresholds>;
        /// For green packets of ECN-capable transports: marked by this curve, from its max_th on all of them. Default: as `ecn` says.
        green_ecn: Option<Thresholds>;
        /// For yellow ones.
        yellow_ecn: Option<Thresholds>;
        /// For red ones. Default: as for yellow ones.
        red_ecn: Option<Thresholds>;
        /// What the curves are held against: shared (WRED), coupled (RIO-C) or decoupled averages (RIO-D).
        averages: Averages = Averages::Shared;
        ..common: Common;
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Wred {
    pub(crate) law: Law<3>,
    averages: Averages,
    marks: Option<Box<Marks>>,
}

/// The curves of ECN-capable packets.
#[derive(Clone, Debug)]
struct Marks {
    /// The same averages; curves and counts of its own.
    law: Law<3>,
    /// Which colours have one.
    of: [bool; 3],
}

/// Green, yellow, red: what is set, red as yellow where nothing is said; all checked, in one unit.
///
/// # Errors
/// As [`check_thresholds`], and where the colours have different units.
pub(crate) fn check_colours(
    green: &Thresholds,
    yellow: &Thresholds,
    red: Option<&Thresholds>,
    context: &Context,
) -> Result<Vec<Warning>, Fault> {
    const PATHS: [Paths; 3] = [
        Paths { min_th: "green.min_th", max_th: "green.max_th" },
        Paths { min_th: "yellow.min_th", max_th: "yellow.max_th" },
        Paths { min_th: "red.min_th", max_th: "red.max_th" },
    ];
    let mut warnings = Vec::new();
    for (t, paths) in [green, yellow].into_iter().chain(red).zip(PATHS) {
        check_thresholds(t.min_th, t.max_th, paths, context, &mut warnings)?;
        if !t.min_th.same_unit(green.min_th) {
            return Err(Fault {
                field: paths.min_th,
                problem: format!(
                    "green.min_th is {} and {} is {}: the averages have one unit",
                    green.min_th, paths.min_th, t.min_th
                ),
                remedy: "all thresholds in packets, or all in bytes".into(),
            });
        }
    }
    Ok(warnings)
}

impl Build for Params {
    type Mechanism = Wred;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = check_colours(&self.green, &self.yellow, self.red.as_ref(), context)?;
        self.check_marks(context, &mut warnings)?;
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Wred {
        let colours = [&self.green, &self.yellow, self.red.as_ref().unwrap_or(&self.yellow)];
        let rule = self.common.rule(self.green.min_th, false, context);
        let curves = colours.map(Thresholds::curve);
        let (weight, takes) = (self.common.weight(context), self.averages.takes());
        let given = self.marks();
        let marks = given.iter().any(Option::is_some).then(|| {
            let rule = Rule { ecn: true, gentle: false, ..rule };
            let curves = std::array::from_fn(|i| given[i].map_or(curves[i], Thresholds::curve));
            let law = Law::new(Config::new(weight, curves, takes, rule));
            Box::new(Marks { law, of: given.map(|curve| curve.is_some()) })
        });
        let law = Law::new(Config::new(weight, curves, takes, rule));
        Wred { law, averages: self.averages, marks }
    }
}

impl Params {
    /// Curves for ECN-capable packets, by colour.
    fn marks(&self) -> [Option<&Thresholds>; 3] {
        let yellow = self.yellow_ecn.as_ref();
        [self.green_ecn.as_ref(), yellow, self.red_ecn.as_ref().or(yellow)]
    }

    /// Whether each colour's curve for ECN-capable packets is one, and lies where something is left to mark.
    fn check_marks(&self, context: &Context, warnings: &mut Vec<Warning>) -> Result<(), Fault> {
        const PATHS: [Paths; 3] = [
            Paths { min_th: "green_ecn.min_th", max_th: "green_ecn.max_th" },
            Paths { min_th: "yellow_ecn.min_th", max_th: "yellow_ecn.max_th" },
            Paths { min_th: "red_ecn.min_th", max_th: "red_ecn.max_th" },
        ];
        let drops = [&self.green, &self.yellow, self.red.as_ref().unwrap_or(&self.yellow)];
        let given = [&self.green_ecn, &self.yellow_ecn, &self.red_ecn];
        for ((marks, drops), paths) in given.into_iter().zip(drops).zip(PATHS) {
            let Some(marks) = marks else { continue };
            check_thresholds(marks.min_th, marks.max_th, paths, context, warnings)?;
            if !marks.min_th.same_unit(drops.min_th) {
                return Err(Fault {
                    field: paths.min_th,
                    problem: format!(
                        "{} is {} and green.min_th is {}: the averages have one unit",
                        paths.min_th, marks.min_th, self.green.min_th
                    ),
                    remedy: "all thresholds in packets, or all in bytes".into(),
                });
            }
            self.check_left_to_mark(paths.min_th, marks, drops)?;
        }
        match (&self.yellow_ecn, &self.red_ecn, &self.red) {
            (Some(marks), None, Some(drops)) => self.check_left_to_mark("red_ecn", marks, drops),
            _ => Ok(()),
        }
    }

    /// Whether packets of a colour that are marked by the first curve are not all dropped by the second before.
    fn check_left_to_mark(
        &self,
        field: &'static str,
        marks: &Thresholds,
        drops: &Thresholds,
    ) -> Result<(), Fault> {
        let end = drops.curve().end(self.common.gentle);
        if marks.min_th.amount() < end {
            return Ok(());
        }
        Err(Fault {
            field,
            problem: format!(
                "from an average of {end} on everything of this colour is dropped: nothing would be marked from {} on",
                marks.min_th
            ),
            remedy: "a min_th below the end of the colour's own curve".into(),
        })
    }
}

impl Mechanism for Wred {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        const NAMES: [(&str, &str); 3] =
            [("avg_green", "p_b_green"), ("avg_yellow", "p_b_yellow"), ("avg_red", "p_b_red")];
        for (colour, (avg, p_b)) in NAMES.into_iter().enumerate() {
            show(avg, self.law.vars.avg[colour]);
            show(p_b, self.law.p_b(colour));
        }
        if let Some(marks) = &self.marks {
            const NAMES: [&str; 3] = ["p_mark_green", "p_mark_yellow", "p_mark_red"];
            for (colour, name) in NAMES.into_iter().enumerate().filter(|(colour, _)| marks.of[*colour]) {
                show(name, marks.law.p_b(colour));
            }
        }
    }
}

impl Aqm for Wred {
    fn marks(&self) -> bool {
        self.law.config.rule.ecn || self.marks.is_some()
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let colour = packet.colour as usize;
        let in_bytes = self.law.config.rule.in_bytes;
        let lengths = self.averages.lengths(Colour::ALL.map(|c| at.queue.length_of(c, in_bytes)));
        let arrival =
            Arrival { now: at.now, colour, size: packet.size, lengths, idle: at.queue.idle_since() };
        let avg = self.law.sample(&arrival);
        at.why.note("queued", lengths[colour]);
        at.why.note("avg", avg);
        if let Some(marks) = &mut self.marks {
            marks.law.sample(&arrival);
            let rule = &self.law.config.rule;
            let all_dropped = avg >= self.law.config.curves[colour].end(rule.gentle);
            let by_marks = marks.of[colour] && packet.ecn.can_mark();
            if by_marks && all_dropped {
                // Fig. 2: count is 0 after a drop at the curve's end, whatever it was before; a drop ends the gap, whichever curve it is by.
                marks.law.vars.count[colour] = Count(0);
            } else if by_marks {
                let test = match marks.law.test(&arrival, at.rng, at.why) {
                    EarlyTest::Forced => EarlyTest::Early { markable: true },
                    test => test,
                };
                return marks.law.conclude(packet, colour, test, at.queue.fits(packet.size));
            }
        }
        let test = self.law.test(&arrival, at.rng, at.why);
        self.law.conclude(packet, colour, test, at.queue.fits(packet.size))
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        const NAMES: [[&str; 4]; 3] = [
            ["early_green", "forced_green", "overflow_green", "marked_green"],
            ["early_yellow", "forced_yellow", "overflow_yellow", "marked_yellow"],
            ["early_red", "forced_red", "overflow_red", "marked_red"],
        ];
        for (names, colour) in NAMES.into_iter().zip(Colour::ALL) {
            show_causes(causes(queue, &[colour]), names, show);
        }
    }
}

#[cfg(test)]
mod tests;
