//! CHOKe, "choose and keep for responsive flows, choose and kill for unresponsive flows": RED that first compares the arrival with a
//! packet drawn from the queue.
//!
//! While the average is above min_th, a waiting packet is drawn at random. Is it of the arrival's flow, both are dropped: a flow is
//! struck in proportion to the square of its share, without anything being kept of any flow. Otherwise RED decides.
//! Source: Pan, Prabhakar and Psounis 2000, Fig. 1, with several `candidates` as an option. As Linux's `sch_choke` does it, a
//! match neither counts as an arrival let by nor restarts RED's count; the paper says nothing of it. RED is [RED](super).
//! Non-goal: fairness among responsive flows.

use crate::aqm::Aqm;
use crate::aqm::red::common::{Common, Config, Paths, causes, check_thresholds, show_causes};
use crate::aqm::red::law::{Curve, Law};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::{Colour, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Counts;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Cause, Why};

/// Dropped together with a waiting packet of its flow.
pub const MATCHED: Cause = Cause::named("matched");

/// The most candidates: each costs a draw and a look into the queue.
const MOST_CANDIDATES: u64 = 64;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Average up to which nothing is dropped. Its unit, packets or bytes, is the average's.
        min_th: Backlog [NON_NEGATIVE];
        /// Average from which everything is dropped. In min_th's unit.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
        /// Waiting packets that each arrival is compared with; those of its flow are dropped with it.
        candidates: u64 [POSITIVE] = 1;
        ..common: Common;
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Choke {
    law: Law<1>,
    candidates: u64,
}

impl Build for Params {
    type Mechanism = Choke;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "min_th", max_th: "max_th" };
        check_thresholds(self.min_th, self.max_th, paths, context, &mut warnings)?;
        if self.candidates > MOST_CANDIDATES {
            return Err(Fault {
                field: "candidates",
                problem: format!("{} packets would be drawn at each arrival", self.candidates),
                remedy: format!("at most {MOST_CANDIDATES}; the paper uses 1 to 5"),
            });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Choke {
        let curve = Curve::new(self.min_th.amount(), self.max_th.amount(), self.max_p);
        let rule = self.common.rule(self.min_th, false, context);
        let config = Config::new(self.common.weight(context), [curve], [[true]], rule);
        Choke { law: Law::new(config), candidates: self.candidates }
    }
}

impl Mechanism for Choke {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("avg", self.law.vars.avg[0]);
        show("p_b", self.law.p_b(0));
    }
}

impl Choke {
    /// Fig. 1: draws candidates, and drops those of the arrival's flow; whether there were any.
    fn draw<Q: Queue + ?Sized, W: Why + ?Sized>(
        &self,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> bool {
        let mut matched = false;
        for candidate in 0..self.candidates {
            if queue.packets() == 0 {
                break;
            }
            let position = rng.below(queue.packets());
            if candidate == 0 {
                // A verdict has room for sixteen figures; there may be more candidates.
                why.note("drawn", f64::from(position));
            }
            if queue.flow_at(position) == Some(packet.flow) {
                matched |= queue.evict(position);
            }
        }
        matched
    }
}

impl Aqm for Choke {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.law.config.rule.ecn
    }

    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let (arrival, avg) = self.law.look(now, packet, queue, why);
        if avg > self.law.config.curves[0].min_th && self.draw(packet, queue, rng, why) {
            return Admission::Drop(MATCHED);
        }
        let test = self.law.test(&arrival, rng, why);
        self.law.conclude(packet, 0, test, queue.fits(packet.size))
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show_causes(causes(queue, &Colour::ALL), ["early", "forced", "overflow", "marked"], show);
        show("matched", queue.dropped_by(MATCHED));
    }
}

#[cfg(test)]
mod tests;
