//! WRED, and RIO with three colours: RED with a curve for each drop precedence.
//!
//! Green, yellow and red packets share one queue. Each colour has its own thresholds and its own count, so that under
//! congestion red packets are dropped first. The average that a curve is applied to is a choice: that of the whole queue
//! (WRED), that of the packet's colour and all better ones (RIO-C, coupled), or that of its colour alone (RIO-D, decoupled).
//! Source: RFC 2597 §4 asks for it; the averages are those of Clark and Fang 1998 and of Nortel's dsRED; average, curve and
//! count are the [law](super::law)'s, for three colours. Idle time of the link ages all averages; the average of a colour of
//! which no packet arrives does not change. Non-goal: the peculiarities of published simulators.

use crate::aqm::Aqm;
use crate::aqm::red::common::{Common, Paths, Thresholds, check_thresholds};
use crate::aqm::red::curve::Config;
use crate::aqm::red::law::{Arrival, Law};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::{Colour, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::Time;
use crate::verdict::{Admission, Why};

crate::choice! {
    /// What a colour's curve is held against.
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
    /// What an operator sets.
    pub struct Params {
        /// For green packets (IN).
        green: Thresholds;
        /// For yellow packets (OUT).
        yellow: Thresholds;
        /// For red packets. Default: as for yellow ones.
        red: Option<Thresholds>;
        /// What the curves are held against: shared (WRED), coupled (RIO-C) or decoupled averages (RIO-D).
        averages: Averages = Averages::Shared;
        ..common: Common;
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Wred {
    law: Law<3>,
    averages: Averages,
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
        check_colours(&self.green, &self.yellow, self.red.as_ref(), context)
    }

    fn build(&self, context: &Context) -> Wred {
        let colours = [&self.green, &self.yellow, self.red.as_ref().unwrap_or(&self.yellow)];
        let rule = self.common.rule(self.green.min_th, false, context);
        let curves = colours.map(Thresholds::curve);
        let config = Config::new(self.common.weight(context), curves, self.averages.takes(), rule);
        Wred { law: Law::new(config), averages: self.averages }
    }
}

impl Mechanism for Wred {
    fn keeps_time(&self) -> bool {
        false
    }

    fn sees_reverse(&self) -> bool {
        false
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        const NAMES: [(&str, &str); 3] =
            [("avg_green", "p_b_green"), ("avg_yellow", "p_b_yellow"), ("avg_red", "p_b_red")];
        for (colour, (avg, p_b)) in NAMES.into_iter().enumerate() {
            show(avg, self.law.vars.avg[colour]);
            show(p_b, self.law.p_b(colour));
        }
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        const NAMES: [[&str; 4]; 3] = [
            ["early_green", "forced_green", "overflow_green", "marked_green"],
            ["early_yellow", "forced_yellow", "overflow_yellow", "marked_yellow"],
            ["early_red", "forced_red", "overflow_red", "marked_red"],
        ];
        for (names, tally) in NAMES.into_iter().zip(&self.law.tally) {
            tally.show(names, show);
        }
    }
}

impl Aqm for Wred {
    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let colour = packet.colour as usize;
        let in_bytes = self.law.config.rule.in_bytes;
        let waiting = |c| if in_bytes { queue.bytes_of(c) as f64 } else { f64::from(queue.packets_of(c)) };
        let lengths = self.averages.lengths(Colour::ALL.map(waiting));
        let arrival = Arrival { now, colour, size: packet.size, lengths, idle: queue.idle_since() };
        let avg = self.law.sample(&arrival);
        why.note("queued", lengths[colour]);
        why.note("avg", avg);
        let test = self.law.test(&arrival, rng, why);
        self.law.conclude(packet, colour, test, queue.fits(packet.size))
    }
}

#[cfg(test)]
mod tests;
