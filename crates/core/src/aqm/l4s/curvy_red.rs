//! Dual-queue Curvy RED: DualPI2's structure over a RED without thresholds in packets: the square root of the Classic probability grows
//! with the average delay of the Classic queue.
//!
//! √p_C = (Q_C − min_th)/range, p_CL = k √p_C: a soft target, so that delay rather than loss grows with the number of flows. `curviness`
//! (U) raises both to that power. Source: RFC 9332, Appendix B, floating point (Figures 9 and 10), and overload by §A.2, which it
//! asks for "in exactly the same way": there Q_C also follows the L4S queue where that is the longer one, as otherwise it would stand
//! still while no Classic packet leaves.
//! Figure 9 prints `minTh = 500 ms`, twice its own buffer of 250 ms, in which no packet would ever be marked or dropped by it; the integer
//! variant (Figure 11) has none. The default here is 500 µs.
//! Non-goal: a range of round-trip times as wide as DualPI2's (§B.1).

use crate::aqm::l4s::coupling::{CLASSIC, Common, Coupling};
use crate::aqm::l4s::dual::{Base, Dual, Ramp};
use crate::aqm::l4s::order::{self, Bound, Order};
use crate::mechanism::Gauge;
use crate::params::{Build, Context, Fault, Warning};
use crate::units::Duration;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Nothing is dropped or marked by the average delay of the Classic queue below this (minTh).
        min_th: Duration [NON_NEGATIVE] = Duration::from_micros(500);
        /// Above min_th, the average delay within which the Classic probability would rise to 1 (range_C = 2^S_C s).
        range: Duration [POSITIVE] = Duration::from_millis(500);
        /// Weight of the newest sample in that average (gamma = 2^-g_C).
        w_q: f64 [UNIT_POSITIVE] = 0.03125;
        /// The probability of a coupled mark goes by this power of the delay, that of a Classic drop by twice this power (U).
        curviness: u64 [POSITIVE] = 1;
        /// L4S packets that waited this long are marked (T): about five full packets at the link's rate.
        step_th: Duration [POSITIVE] = Duration::from_millis(1);
        /// How the priority of the L4S queue is bounded.
        l4s_priority: Bound = Bound::TsFifo;
        /// With l4s_priority = "wrr": Classic's share of the bytes while both queues have packets.
        classic_weight: f64 [UNIT_POSITIVE] = 0.0625;
        /// With l4s_priority = "ts_fifo": how much longer than the L4S head the Classic head waits before it is sent first.
        tshift: Duration [POSITIVE] = Duration::from_millis(50);
        ..coupling: Common { derandomise = false };
    }
}

/// U is "a small positive integer" (§B.1).
const MOST_CURVINESS: u64 = 8;

impl Build for Params {
    type Mechanism = CurvyRed;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        order::fit(self.classic_weight)?;
        let mut warnings = self.coupling.check(context)?;
        if self.curviness > MOST_CURVINESS {
            return Err(Fault {
                field: "curviness",
                problem: format!(
                    "curviness = {}: no delay below min_th + range would be noticed",
                    self.curviness
                ),
                remedy: format!("curviness = 1 (RFC 9332 §B.1), or another of at most {MOST_CURVINESS}"),
            });
        }
        self.coupling.check_overload(self.coupling_factor())?;
        if let (Some(limit), Some(rate)) = (context.limit, context.link_rate)
            && rate.bytes_in(self.min_th) >= limit.bytes(context.packet)
        {
            let text = format!(
                "a full queue ({limit}) delays by less than min_th ({}): the limit drops, Curvy RED never does",
                self.min_th
            );
            warnings.push(Warning { field: "min_th", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> CurvyRed {
        let curve = Curve {
            min_th: self.min_th.secs(),
            range: self.range.secs(),
            w_q: self.w_q,
            curviness: self.curviness as f64,
            q_c: 0.0,
        };
        let ramp = Ramp { min_th: self.step_th.secs(), range: 0.0, th_len: 0 };
        let order = Order::new(self.l4s_priority, self.classic_weight, self.tshift, context);
        let coupling = Coupling::new(Common { k: self.coupling_factor(), ..self.coupling.clone() }.config());
        Dual::new(curve, coupling, ramp, order, context.packet)
    }
}

impl Params {
    /// Between probabilities that the curviness has raised: (k √p_C)^U = k^U · √p_C^U.
    fn coupling_factor(&self) -> f64 {
        libm::pow(self.coupling.k, self.curviness as f64)
    }
}

/// The discipline.
pub type CurvyRed = Dual<Curve>;

/// The average delay of the Classic queue, and what follows from it.
#[derive(Clone, Debug)]
pub struct Curve {
    min_th: f64,
    range: f64,
    w_q: f64,
    curviness: f64,
    /// Q_C, in seconds.
    q_c: f64,
}

impl Base for Curve {
    const MOVES_AT_DEPARTURE: bool = true;

    /// Figure 10, line 10a, raised to the curviness.
    fn p_prime(&self) -> f64 {
        let sqrt_p_c = ((self.q_c - self.min_th) / self.range).clamp(0.0, 1.0);
        libm::pow(sqrt_p_c, self.curviness)
    }

    /// Figure 10, line 9a; by the longer of both queues (Figure 8, line 2a).
    fn departs(&mut self, kind: usize, waited: f64, other: f64) {
        if kind == CLASSIC || waited > other {
            self.q_c += self.w_q * (waited.max(other) - self.q_c);
        }
    }

    fn gauges(&self, show: Gauge<'_>) {
        show("q_c", self.q_c);
    }
}

#[cfg(test)]
mod tests;
