//! Floyd and Jacobson's efficient algorithm in whole numbers: what `variant = "efficient"` of [RED](super::red) and
//! [RIO](super::rio) decides by.
//!
//! Their Fig. 17 (1993): after a drop the next one's place is drawn, and a packet goes once count·p_b passes the number. So a
//! random number is drawn a drop, not a packet; gaps at a constant average are even on 1 … 1/p_b, with `wait` on 1/p_b … 2/p_b.
//! Averages, thresholds and numbers are [whole](crate::estimate::fixed); so p_b is never computed: count·p_b > u is
//! count·(avg − min_th) > u·(max_th − min_th)/max_p, two products.
//! A [`State`] is all that one queue changes: 32 bytes for RED, 64 for RIO. Queues alike share a [`Config`], and a table of them
//! needs no more than that. What chance decides takes no branch, but for early drops and the first arrival after an average
//! has come over min_th, which are rare; a processor would guess the others wrong at every third arrival.
//! A packet that finds the link idle joins, whatever the average: dropped, it would leave the link idle for longer. So an
//! idle stretch ends with the first arrival, and no state has to remember how much of it has been accounted for.
//! Non-goals: the textbook's spacing, for published results rest on it; ns-2's.

mod curve;

use std::hint::{self, select_unpredictable};
use std::sync::Arc;

use crate::aqm::curve::{Curve, Rule};
use crate::aqm::spacing::{Fate, admission};
use crate::aqm::tally::Tally;
use crate::estimate::ewma::Weight;
use crate::estimate::fixed::{Scale, Step};
use crate::packet::{Ecn, Packet};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::Time;
use crate::verdict::{Admission, Cause, Why};
use curve::WholeCurve;
pub use curve::check;

/// No number has been drawn for the next drop.
const NONE: u32 = 0;

/// What no arrival changes, of a queue that tells `N` colours apart.
#[derive(Clone, Debug)]
pub struct Config<const N: usize> {
    scale: Scale,
    /// By the arrival's colour: the weights of its samples in the averages.
    weights: [[Step; N]; N],
    curves: [WholeCurve; N],
    /// What a number is more than drawn: 1 in 2⁻³² with `wait`.
    wait: u64,
    ages: bool,
    /// Whether a packet's size counts.
    scaled: bool,
    rule: Rule,
    ecn: bool,
}

impl<const N: usize> Config<N> {
    /// `takes[colour][average]`: whether an arrival of this colour is a sample for this average.
    #[must_use]
    pub fn new(
        weight: Weight,
        curves: [Curve; N],
        takes: [[bool; N]; N],
        rule: Rule,
        ecn: bool,
    ) -> Config<N> {
        let scale = Scale::new(&weight, rule.in_bytes);
        let step = |taken: bool| if taken { scale.weight() } else { Step::NONE };
        Config {
            scale,
            weights: takes.map(|of| of.map(step)),
            curves: curves.map(|c| WholeCurve::new(&c, &rule, &scale)),
            wait: u64::from(rule.wait) << 32,
            ages: weight.ages(),
            scaled: rule.mean.is_some(),
            rule,
            ecn,
        }
    }

    /// How the curves are read.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }
}

/// Where the next drop will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    /// The next arrival's count: packets let by since the last drop and itself; 0 after an average below min_th, and again
    /// where a probability near 0 has let 2³² packets by.
    next: u32,
    /// The drawn number in 2⁻³², or [`NONE`].
    number: u32,
}

/// What few arrivals touch.
#[derive(Clone, Debug)]
struct Aside<const N: usize> {
    /// What the counts of 32 bits have run over: early, forced.
    carried: [[u64; 2]; N],
    overflow: [u64; N],
    marked: [u64; N],
}

impl<const N: usize> Default for Aside<N> {
    fn default() -> Aside<N> {
        Aside { carried: [[0; 2]; N], overflow: [0; N], marked: [0; N] }
    }
}

/// All that one queue changes. Colours are numbers below `N`, worst first.
#[derive(Clone, Debug)]
pub struct State<const N: usize> {
    /// In grains.
    avg: [i64; N],
    place: [Place; N],
    /// Drops by chance, and drops above the curve's end.
    dropped: [[u32; 2]; N],
    aside: Option<Box<Aside<N>>>,
}

impl<const N: usize> Default for State<N> {
    fn default() -> State<N> {
        State { avg: [0; N], place: [Place::default(); N], dropped: [[0; 2]; N], aside: None }
    }
}

/// A queue by itself.
#[derive(Clone, Debug)]
pub struct Whole<const N: usize> {
    pub(super) config: Arc<Config<N>>,
    pub(super) state: State<N>,
}

impl<const N: usize> Whole<N> {
    pub(super) fn new(config: Config<N>) -> Whole<N> {
        Whole { config: Arc::new(config), state: State::default() }
    }

    /// The averages as of the last arrival.
    pub(super) fn averages(&self) -> [f64; N] {
        self.state.averages(&self.config)
    }

    /// The chance of a drop at this colour's average.
    pub(super) fn p_b(&self, colour: usize) -> f64 {
        let curve = &self.config.curves[colour];
        match self.state.avg[colour] - curve.min_th {
            below if below < 0 => 0.0,
            above if above as u64 >= curve.span => 1.0,
            above => curve.p_b(above) as f64 / curve.reach as f64,
        }
    }
}

/// An arrival, as averages and curves see it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<const N: usize> {
    /// When.
    pub now: Time,
    /// Its colour's number.
    pub colour: usize,
    /// What each average averages, in packets or bytes.
    pub lengths: [u64; N],
    /// Since when the link has had nothing to send, if it has not.
    pub idle: Option<Time>,
    /// The packet's size on the wire.
    pub size: u32,
    /// Whether a mark may stand in for an early drop: its transport understands that.
    pub markable: bool,
    /// Whether the packet is within the queue's limit.
    pub fits: bool,
}

impl<const N: usize> Arrival<N> {
    /// At `queue`, which is so long.
    #[inline(always)]
    pub fn new<Q: Queue + ?Sized>(
        now: Time,
        colour: usize,
        lengths: [u64; N],
        packet: &Packet,
        queue: &Q,
    ) -> Self {
        Arrival {
            now,
            colour,
            lengths,
            idle: queue.idle_since(),
            size: packet.size,
            markable: packet.ecn != Ecn::NotCapable,
            fits: queue.fits(packet.size),
        }
    }
}

impl Place {
    /// One arrival at p_b in parts of `reach`: whether it is the one to go.
    fn test<W: Why + ?Sized>(&mut self, p_b: u64, reach: u64, wait: u64, rng: &mut Rng, why: &mut W) -> bool {
        if self.number == NONE && self.is_due(p_b, reach, wait) {
            self.draw(rng);
        }
        why.note("count", f64::from(self.next));
        why.note("p_b", p_b as f64 / reach as f64);
        why.note("u", f64::from(self.number) / (1u64 << 32) as f64);
        let due = self.is_due(p_b, reach, wait);
        if due {
            self.next = 0;
            self.draw(rng);
        }
        self.next = self.next.wrapping_add(1);
        due
    }

    /// Whether count·p_b is past the number, or could be past one that is not drawn yet.
    #[inline(always)]
    fn is_due(self, p_b: u64, reach: u64, wait: u64) -> bool {
        let due = u128::from(u64::from(self.next) << 32) * u128::from(p_b);
        due > u128::from(u64::from(self.number) + wait) * u128::from(reach)
    }

    /// Evenly above 0 and below 1, in 2⁻³².
    fn draw(&mut self, rng: &mut Rng) {
        self.number = (rng.uniform() * f64::from(u32::MAX)) as u32 + 1;
    }

    /// After a drop that no number decided.
    fn restart(&mut self) {
        *self = Place { next: 1, number: NONE };
    }
}

impl<const N: usize> State<N> {
    /// Decides on an arrival: what `arrive` of [RED](super::red) and [RIO](super::rio) comes to.
    ///
    /// What is common, the link busy and neither chance nor limit against the packet, is decided here; the rest, and whatever
    /// someone wants explained, by [`State::decide_in_full`], which knows all cases.
    #[inline(always)]
    pub fn decide<W: Why + ?Sized>(
        &mut self,
        c: &Config<N>,
        a: Arrival<N>,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        if a.idle.is_some() | !a.fits | c.scaled | why.asks() {
            return self.decide_in_full(c, a, rng, why);
        }
        let averages = self.sampled(c, &a);
        let (curve, place) = (&c.curves[a.colour], self.place[a.colour]);
        // N is 1 or 2.
        let avg = select_unpredictable(a.colour == N - 1, averages[N - 1], averages[0]);
        let above = avg - curve.min_th;
        let inside = (above as u64) < curve.span;
        let due = place.is_due(above as u64, curve.reach, c.wait);
        if (inside & due) | (above >= curve.bend) {
            return self.decide_in_full(c, a, rng, why);
        }
        self.avg = averages;
        let forced = above >= curve.span as i64;
        self.place[a.colour] = Place {
            next: select_unpredictable(inside, place.next.wrapping_add(1), u32::from(forced)),
            number: select_unpredictable(inside, place.number, NONE),
        };
        let count = &mut self.dropped[a.colour][1];
        let run_over;
        (*count, run_over) = count.overflowing_add(u32::from(forced));
        if run_over {
            self.carry(a.colour, 1);
        }
        select_unpredictable(forced, Admission::Drop(Cause::Forced), Admission::Admit)
    }

    /// The averages with this arrival's samples.
    #[inline(always)]
    fn sampled(&self, c: &Config<N>, a: &Arrival<N>) -> [i64; N] {
        std::array::from_fn(|i| c.scale.sample(self.avg[i], c.weights[a.colour][i], a.lengths[i]))
    }

    /// Every case of [`State::decide`].
    #[cold]
    #[inline(never)]
    fn decide_in_full<W: Why + ?Sized>(
        &mut self,
        c: &Config<N>,
        a: Arrival<N>,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let fate = self.test(c, &a, rng, why);
        let verdict = admission(fate, c.rule.law, c.ecn && a.markable, a.fits);
        match verdict {
            Admission::Admit => {}
            Admission::Mark => self.aside.get_or_insert_default().marked[a.colour] += 1,
            Admission::Drop(Cause::Early) => self.count(a.colour, 0),
            Admission::Drop(Cause::Forced) => self.count(a.colour, 1),
            Admission::Drop(_) => {
                self.aside.get_or_insert_default().overflow[a.colour] += 1;
                self.restart(a.colour);
            }
        }
        verdict
    }

    /// Brings the averages up to date with an arrival and tests it against its colour's curve.
    pub fn test<W: Why + ?Sized>(
        &mut self,
        c: &Config<N>,
        a: &Arrival<N>,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        match a.idle {
            Some(since) if c.ages => {
                let left = c.scale.left_after(a.now.since(since));
                self.avg = self.avg.map(|avg| Scale::fade(avg, left));
            }
            _ => self.avg = self.sampled(c, a),
        }
        if why.asks() {
            let names = [("queued", "avg"), ("queued_in", "avg_in")];
            for ((queued, avg), (length, grains)) in names.into_iter().zip(a.lengths.iter().zip(self.avg)) {
                why.note(queued, *length as f64);
                why.note(avg, c.scale.amount(grains));
            }
        }
        let (curve, place) = (&c.curves[a.colour], &mut self.place[a.colour]);
        let above = self.avg[a.colour] - curve.min_th;
        if above < 0 {
            *place = Place::default();
            return Fate::Pass;
        }
        if a.idle.is_some() {
            place.next = place.next.wrapping_add(1);
            return Fate::Pass;
        }
        if above as u64 >= curve.span {
            place.restart();
            return Fate::Forced;
        }
        let mut p_b = curve.p_b(above);
        if let Some(mean) = c.rule.mean {
            p_b = u64::try_from(u128::from(p_b) * u128::from(a.size) / u128::from(mean)).unwrap_or(u64::MAX);
        }
        match place.test(p_b, curve.reach, c.wait, rng, why) {
            true => Fate::Early { markable: true },
            false => Fate::Pass,
        }
    }

    fn count(&mut self, colour: usize, cause: usize) {
        let count = &mut self.dropped[colour][cause];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carry(colour, cause);
        }
    }

    /// A count has run over its 32 bits.
    #[cold]
    #[inline(never)]
    fn carry(&mut self, colour: usize, cause: usize) {
        self.aside.get_or_insert_default().carried[colour][cause] += 1 << 32;
    }

    /// A packet of this colour was dropped that the test had let by.
    pub fn restart(&mut self, colour: usize) {
        if self.place[colour].next != 0 {
            self.place[colour].restart();
        }
    }

    /// Has the processor fetch the state: who decides on a burst touches all its queues first, so that the ways to memory are
    /// gone together.
    #[inline(always)]
    pub fn touch(&self) {
        hint::black_box(self.avg[0]);
    }

    /// The averages as of the last arrival.
    #[must_use]
    pub fn averages(&self, c: &Config<N>) -> [f64; N] {
        self.avg.map(|avg| c.scale.amount(avg))
    }

    /// Counts of this colour since the start of the run.
    #[must_use]
    pub fn tally(&self, colour: usize) -> Tally {
        let [early, forced] = self.dropped[colour].map(u64::from);
        match &self.aside {
            None => Tally::of([early, forced, 0, 0]),
            Some(aside) => {
                let [more_early, more_forced] = aside.carried[colour];
                let (overflow, marked) = (aside.overflow[colour], aside.marked[colour]);
                Tally::of([early + more_early, forced + more_forced, overflow, marked])
            }
        }
    }
}

#[cfg(test)]
mod tests;
