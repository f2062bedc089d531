//! RIO, RED with IN and OUT: two REDs in one queue, so that OUT packets go first.
//!
//! An IN packet is tested by the average of the IN packets waiting, an OUT packet by the average of all:
//! as the queue grows OUT packets are dropped early, then all of them, and only what IN packets
//! themselves build up costs IN packets. Each colour has its own curve and its own count.
//! Source: Clark and Fang 1998; curve, count and idle time as in [RED](super::red).
//! Link idle time ages both averages, at whichever arrival ends it. Out of profile is every colour but green.
//! [`Textbook`] computes in doubles, by Fig. 2 or ns-2's reading of it; `variant = "efficient"` is Fig. 17 in
//! [whole numbers](super::efficient). Non-goal: more than two drop precedences (WRED, RIO-C with three).

mod averages;
mod textbook;

use crate::aqm::curve::{self, Curve, Law, Rule, Variant};
use crate::aqm::efficient::{self, Arrival, State, Whole};
use crate::aqm::out_seen::OutSeen;
use crate::aqm::tally::Tally;
use crate::aqm::thresholds::{Paths, check_thresholds};
use crate::aqm::{Aqm, FlowGauge};
use crate::estimate::ewma::Weight;
use crate::marker::Gauge;
use crate::packet::{Colour, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Signal;
use crate::units::{Backlog, Bytes, Time};
use crate::verdict::{Admission, Why};

pub use textbook::Textbook;

crate::choice! {
    /// At which arrivals the averages take a sample.
    pub enum AvgUpdate {
        /// The total at every arrival, IN's at IN arrivals (Clark and Fang 1998).
        ClarkFang = "clark_fang",
        /// Both at every arrival.
        EveryArrival = "every_arrival",
        /// Each at arrivals of its own colour only: the total at OUT, IN's at IN arrivals (the prose of Clark and Fang 1998 and
        /// of Kim 1999 §2.2, read to the letter).
        OwnColour = "own_colour",
        /// Both at IN arrivals only: a known fault of ns-2's Queue/RED/RIO.
        Ns2 = "ns2",
    }
}

impl AvgUpdate {
    /// `[colour][average]`, OUT and the total first: whether an arrival of this colour is a sample for this average, at an arrival
    /// that finds the link busy.
    #[must_use]
    pub fn takes(self) -> [[bool; 2]; 2] {
        match self {
            AvgUpdate::ClarkFang => [[true, false], [true, true]],
            AvgUpdate::EveryArrival => [[true, true], [true, true]],
            AvgUpdate::OwnColour => [[true, false], [false, true]],
            AvgUpdate::Ns2 => [[false, false], [true, true]],
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
    pub(super) fn curve(&self) -> Curve {
        Curve::new(self.min_th.amount(), self.max_th.amount(), self.max_p)
    }
}

crate::params! {
    /// What an operator sets.
    pub struct Params {
        /// For IN packets, on the average of IN packets waiting.
        r#in: Thresholds;
        /// For OUT packets, on the average of all packets waiting.
        out: Thresholds;
        /// Weight of the newest sample in both averages.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = false;
        /// After a drop, at least 1/p packets of the colour are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// At which arrivals the averages take a sample.
        avg_update: AvgUpdate = AvgUpdate::ClarkFang;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Typical size on the wire: how fast an idle link ages the averages, and what byte_scaled divides
        /// by. Left out: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
        /// Floyd and Jacobson's algorithm for curve, count and idle time, their efficient one, or ns-2's.
        variant: Variant = Variant::Floyd93;
        /// Keeps, by flow, the mean of avg − avg_in over the flow's IN packets as they join.
        watch: bool = false;
    }
}

impl Build for Params {
    type Mechanism = Rio;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "in.min_th", max_th: "in.max_th" };
        check_thresholds(self.r#in.min_th, self.r#in.max_th, paths, context, &mut warnings)?;
        let paths = Paths { min_th: "out.min_th", max_th: "out.max_th" };
        check_thresholds(self.out.min_th, self.out.max_th, paths, context, &mut warnings)?;
        if !self.r#in.min_th.same_unit(self.out.min_th) {
            return Err(Fault {
                field: "out.min_th",
                problem: format!(
                    "in.min_th is {} and out.min_th is {}: the averages have one unit",
                    self.r#in.min_th, self.out.min_th
                ),
                remedy: "all four thresholds in packets, or all in bytes".into(),
            });
        }
        if self.variant == Variant::Efficient {
            if self.avg_update == AvgUpdate::Ns2 {
                return Err(Fault {
                    field: "avg_update",
                    problem: "variant = \"efficient\" does not know ns-2's fault".into(),
                    remedy: "another avg_update, such as \"clark_fang\", or another variant".into(),
                });
            }
            let curves = [(&self.r#in, "in.min_th", "in.max_th"), (&self.out, "out.min_th", "out.max_th")];
            for (t, min_th, max_th) in curves {
                efficient::check(self.w_q, t.min_th, t.max_th, t.max_p, Paths { min_th, max_th })?;
            }
        }
        if self.r#in.min_th.amount() < self.out.max_th.amount() {
            let text = format!(
                "in.min_th ({}) is below out.max_th ({}): IN packets may be dropped while OUT packets still join",
                self.r#in.min_th, self.out.max_th
            );
            warnings.push(Warning { field: "in.min_th", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Rio {
        match self.variant {
            Variant::Efficient => {
                Rio::Efficient(Whole::new(self.whole(context)), self.watch.then(Box::<OutSeen>::default))
            }
            _ => Rio::Textbook(self.textbook(context)),
        }
    }
}

impl Params {
    /// What a table of queues with `variant = "efficient"` shares; each of them needs no more than a [`State`] of its own.
    #[must_use]
    pub fn whole(&self, context: &Context) -> efficient::Config<2> {
        let curves = [self.out.curve(), self.r#in.curve()];
        let takes = self.avg_update.takes();
        efficient::Config::new(
            self.weight(context),
            curves,
            takes,
            self.rule(Law::Floyd93, context),
            self.ecn,
        )
    }

    fn weight(&self, context: &Context) -> Weight {
        Weight::new(self.w_q, context.link_rate, self.mean_packet.unwrap_or(context.packet))
    }

    fn rule(&self, law: Law, context: &Context) -> Rule {
        let mean = self.mean_packet.unwrap_or(context.packet);
        Rule {
            law,
            gentle: self.gentle,
            wait: self.wait,
            in_bytes: matches!(self.out.min_th, Backlog::Bytes(_)),
            mean: self.byte_scaled.then(|| curve::size_of(mean)),
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub enum Rio {
    /// `floyd93` and `ns2`.
    Textbook(Textbook),
    /// `efficient`, OUT first; and what flows see, where that is watched.
    Efficient(Whole<2>, Option<Box<OutSeen>>),
}

impl State<2> {
    /// Decides on an arrival at one of the queues that share `c`.
    #[inline(always)]
    pub fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        c: &efficient::Config<2>,
        now: Time,
        packet: &Packet,
        queue: &Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let lengths = if c.rule().in_bytes {
            [queue.bytes(), queue.bytes_of(Colour::IN)]
        } else {
            [u64::from(queue.packets()), u64::from(queue.packets_of(Colour::IN))]
        };
        let colour = usize::from(packet.colour.is_in());
        self.decide(c, Arrival::new(now, colour, lengths, packet, queue), rng, why)
    }
}

impl Aqm for Rio {
    const KEEPS_TIME: bool = false;

    fn tell_secs(&mut self, secs: f64) {
        if let Rio::Textbook(rio) = self {
            rio.tell_secs(secs);
        }
    }

    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        match self {
            Rio::Textbook(rio) => rio.arrive(now, packet, queue, rng, why),
            Rio::Efficient(rio, watch) => {
                let verdict = rio.state.arrive(&rio.config, now, packet, queue, rng, why);
                if let Some(seen) = watch
                    && packet.colour.is_in()
                    && !matches!(verdict, Admission::Drop(_))
                {
                    let [all, ins] = rio.averages();
                    seen.note(packet.flow, all - ins);
                }
                verdict
            }
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        match self {
            Rio::Textbook(rio) => rio.gauges(now, show),
            Rio::Efficient(rio, _) => {
                let [all, ins] = rio.averages();
                show("avg", all);
                show("avg_in", ins);
                show("p_b_in", rio.p_b(1));
                show("p_b_out", rio.p_b(0));
            }
        }
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        match self {
            Rio::Textbook(rio) => rio.signal(now, signal),
            Rio::Efficient(_, watch) => OutSeen::signal(watch.as_deref_mut(), signal),
        }
    }

    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>) {
        match self {
            Rio::Textbook(rio) => rio.flow_gauges(now, show),
            Rio::Efficient(_, Some(seen)) => seen.show(show),
            Rio::Efficient(_, None) => {}
        }
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        match self {
            Rio::Textbook(rio) => Aqm::stats(rio, show),
            Rio::Efficient(rio, _) => Tally::show_both(&rio.state.tally(1), &rio.state.tally(0), show),
        }
    }
}

#[cfg(test)]
mod tests;
