//! WRED, and RIO with three colours: RED with a curve for each drop precedence.
//!
//! Green, yellow and red packets share one queue; each colour has its own thresholds and its own count, so that under congestion
//! red goes first. What the curves are held against is a choice: one average of the whole queue (WRED), for each colour the
//! average of it and of all better ones (RIO-C, coupled), or of it alone (RIO-D, decoupled).
//! Source: RFC 2597 §4 asks for it; the averages are those of Clark and Fang 1998 and of ns-2's dsRED; curve, count and
//! idle time as in [RED](super::red). Link idle time ages all averages; a colour that doesn't come for a while keeps its average meanwhile.
//! Non-goal: ns-2's own readings, which are [dsRED](super::dsred).

use crate::aqm::Aqm;
use crate::aqm::curve::{Curve, Law, Rule};
use crate::aqm::rio::Thresholds;
use crate::aqm::spacing::{Countdown, Found, admission};
use crate::aqm::tally::Tally;
use crate::aqm::thresholds::{Paths, check_thresholds};
use crate::estimate::ewma::{QueueAverage, Weight};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::{Colour, Ecn, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::{Backlog, Bytes, Time};
use crate::verdict::{Admission, Cause, Why};

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
    /// Which averages an arrival of `colour` is a sample for.
    pub(crate) fn sampled(self, colour: usize) -> std::ops::RangeInclusive<usize> {
        match self {
            Averages::Shared => 0..=0,
            Averages::Coupled => colour..=2,
            Averages::Decoupled => colour..=colour,
        }
    }

    /// Which average `colour` goes by.
    pub(crate) fn of(self, colour: usize) -> usize {
        if self == Averages::Shared { 0 } else { colour }
    }

    /// The length that average `i` is an average of, given the lengths by colour.
    pub(crate) fn length(self, i: usize, by_colour: [f64; 3]) -> f64 {
        match self {
            Averages::Shared => by_colour.iter().sum(),
            Averages::Coupled => by_colour[..=i].iter().sum(),
            Averages::Decoupled => by_colour[i],
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
        /// For red packets. Left out: as for yellow ones.
        red: Option<Thresholds>;
        /// What the curves are held against: shared (WRED), coupled (RIO-C) or decoupled averages (RIO-D).
        averages: Averages = Averages::Shared;
        /// Weight of the newest sample in every average.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = false;
        /// After a drop, at least 1/p packets of the colour are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// Typical size on the wire: how fast an idle link ages the averages. Left out: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
    }
}

/// All that an arrival touches, by colour.
#[derive(Clone, Debug)]
pub struct Vars {
    average: [QueueAverage; 3],
    curve: [Curve; 3],
    count: [Countdown; 3],
    weight: Weight,
    rule: Rule,
    averages: Averages,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Wred {
    vars: Vars,
    /// By colour.
    stats: [Tally; 3],
    ecn: bool,
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
        let mean = self.mean_packet.unwrap_or(context.packet);
        let colours = [&self.green, &self.yellow, self.red.as_ref().unwrap_or(&self.yellow)];
        Wred {
            vars: Vars {
                average: [QueueAverage::default(); 3],
                curve: colours.map(Thresholds::curve),
                count: [Countdown::default(); 3],
                weight: Weight::new(self.w_q, context.link_rate, mean),
                rule: Rule {
                    law: Law::Floyd93,
                    gentle: self.gentle,
                    wait: self.wait,
                    in_bytes: matches!(self.green.min_th, Backlog::Bytes(_)),
                    mean: None,
                },
                averages: self.averages,
            },
            stats: [Tally::default(); 3],
            ecn: self.ecn,
        }
    }
}

impl Vars {
    /// Takes an arrival of `colour` into the averages; gives its own.
    #[inline]
    fn update(&mut self, now: Time, colour: usize, lengths: [f64; 3], idle: Option<Time>) -> f64 {
        if let Some(since) = idle {
            for a in &mut self.average {
                a.age(&self.weight, now, since);
            }
        } else {
            for i in self.averages.sampled(colour) {
                self.average[i].sample(&self.weight, now, self.averages.length(i, lengths), None);
            }
        }
        self.average[self.averages.of(colour)].get()
    }
}

/// Waiting packets, or bytes, by colour.
pub(crate) fn lengths<Q: Queue + ?Sized>(queue: &Q, in_bytes: bool) -> [f64; 3] {
    Colour::ALL.map(|c| if in_bytes { queue.bytes_of(c) as f64 } else { f64::from(queue.packets_of(c)) })
}

impl Mechanism for Wred {
    fn keeps_time(&self) -> bool {
        false
    }

    fn sees_reverse(&self) -> bool {
        false
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let v = &self.vars;
        for (colour, (avg, p)) in
            [("avg_green", "p_b_green"), ("avg_yellow", "p_b_yellow"), ("avg_red", "p_b_red")]
                .into_iter()
                .enumerate()
        {
            let average = v.average[v.averages.of(colour)].get();
            show(avg, average);
            show(p, v.curve[colour].p_b(average, v.rule.gentle));
        }
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        const NAMES: [[&str; 4]; 3] = [
            ["early_green", "forced_green", "overflow_green", "marked_green"],
            ["early_yellow", "forced_yellow", "overflow_yellow", "marked_yellow"],
            ["early_red", "forced_red", "overflow_red", "marked_red"],
        ];
        for (names, tally) in NAMES.into_iter().zip(&self.stats) {
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
        let v = &mut self.vars;
        let colour = packet.colour as usize;
        let lengths = lengths(queue, v.rule.in_bytes);
        let avg = v.update(now, colour, lengths, queue.idle_since());
        let queued = v.averages.length(v.averages.of(colour), lengths);
        why.note("queued", queued);
        why.note("avg", avg);
        let found = Found { avg, size: packet.size };
        let fate = v.count[colour].test(&v.curve[colour], &v.rule, found, || queued, rng, why);
        let can_mark = self.ecn && packet.ecn != Ecn::NotCapable;
        let verdict = admission(fate, v.rule.law, can_mark, queue.fits(packet.size));
        self.stats[colour].count(verdict);
        if verdict == Admission::Drop(Cause::OVERFLOW) {
            v.count[colour].restart();
        }
        verdict
    }
}

#[cfg(test)]
mod tests;
