//! RIO, RED with IN and OUT: two REDs in one queue, so that OUT packets go first.
//!
//! An IN packet is tested by the average of the IN packets waiting, an OUT packet by the average of all:
//! as the queue grows OUT packets are dropped early, then all of them, and only what IN packets
//! themselves build up costs IN packets. Each colour has its own curve and its own count.
//! Source: Clark and Fang 1998; curve, count and idle time as in [RED](super::red).
//! Link idle time ages both averages, at whichever arrival ends it. Out of profile is every colour but green.
//! Non-goal: more than two drop precedences (WRED, RIO-C with three).

mod averages;
mod discipline;

use crate::aqm::curve::{self, Curve, Law, Rule, Variant};
use crate::aqm::thresholds::{Paths, check_thresholds};
use crate::estimate::ewma::Weight;
use crate::params::{Build, Context, Fault, Warning};
use crate::units::{Backlog, Bytes};

pub use discipline::Rio;

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
        /// Floyd and Jacobson's algorithm for curve, count and idle time, or ns-2's.
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
        self.discipline(context)
    }
}

impl Params {
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

#[cfg(test)]
mod tests;
