//! DualPI2: an L4S queue that is kept empty by early marks, a Classic queue whose delay a PI controller holds at a target, and one
//! probability behind both.
//!
//! Every `t_update`, p′ moves by the greater of both queues' delays, so that a flood of L4S packets that answer no mark is held to the
//! same target by drops. Source: RFC 9332, Appendix A: §A.2's pseudocode, with §A.1's text where Linux does more.
//! Non-goals: protecting the L4S queue from single flows that fill it (DOCSIS' queue protection), and identifiers of L4S traffic other
//! than the ECN field (§2.3).

use crate::aqm::l4s::coupling::Coupling;
use crate::aqm::l4s::dual::{Base, Dual, Ramp};
use crate::aqm::l4s::order::{self, Bound, Order};
use crate::aqm::l4s::pi::{self, Pi};
use crate::params::{Build, Context, Fault, Warning};
use crate::units::{Duration, Time};

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// L4S packets that waited longer than this are marked now and then (minTh).
        min_th: Duration [NON_NEGATIVE] = Duration::from_micros(800);
        /// From min_th on, the probability of a native mark rises to 1 within this (range); "0 s": a step, as of DCTCP.
        range: Duration [NON_NEGATIVE] = Duration::from_micros(400);
        /// No native mark while the L4S queue has no more packets than this, the one about to leave included (Th_len): on slow links one
        /// packet takes longer than min_th.
        th_len: u64 = 1;
        /// How the priority of the L4S queue is bounded.
        l4s_priority: Bound = Bound::Wrr;
        /// With l4s_priority = "wrr": Classic's share of the bytes while both queues have packets.
        classic_weight: f64 [UNIT_POSITIVE] = 0.0625;
        /// With l4s_priority = "ts_fifo": how much longer than the L4S head the Classic head waits before it is sent first.
        tshift: Duration [POSITIVE] = Duration::from_millis(50);
        ..controller: pi::Params;
    }
}

impl Build for Params {
    type Mechanism = DualPi2;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        order::fit(self.classic_weight)?;
        let mut warnings = self.controller.fit(context)?;
        if self.min_th + self.range > self.controller.target {
            let text = format!(
                "all L4S packets are marked from a delay of {} on, above target ({}): the L4S queue may be the longer one",
                self.min_th + self.range,
                self.controller.target
            );
            warnings.push(Warning { field: "min_th", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> DualPi2 {
        let ramp = Ramp {
            min_th: self.min_th.secs(),
            range: self.range.secs(),
            th_len: u32::try_from(self.th_len).unwrap_or(u32::MAX),
        };
        let order = Order::new(self.l4s_priority, self.classic_weight, self.tshift, context);
        let coupling = Coupling::new(self.controller.coupling.config());
        Dual::new(Pi::new(self.controller.gains()), coupling, ramp, order, context.packet)
    }
}

/// The discipline.
pub type DualPi2 = Dual<Pi>;

impl Base for Pi {
    fn p_prime(&self) -> f64 {
        Pi::p_prime(self)
    }

    /// Figure 8, line 2a.
    fn tick(&mut self, now: Time, [l4s, classic]: [f64; 2]) -> Option<Time> {
        Some(self.update(now, classic.max(l4s)))
    }
}

#[cfg(test)]
mod shares;
#[cfg(test)]
mod tests;
