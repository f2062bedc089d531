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
use crate::aqm::l4s::dual::{self, Bound, Order};
use crate::aqm::l4s::dual::{Base, Dual, Ramp};
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
        dual::fit(self.classic_weight)?;
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
mod tests {
    //! Curvy RED's base, against RFC 9332, Figure 10.

    use super::*;
    use crate::testing::*;

    const MS: Duration = Duration::from_millis(1);

    fn curve(params: &Params) -> Curve {
        Curve {
            min_th: params.min_th.secs(),
            range: params.range.secs(),
            w_q: params.w_q,
            curviness: params.curviness as f64,
            q_c: 0.0,
        }
    }

    fn bench(params: &Params) -> Bench {
        params.check(&CONTEXT).expect("it fits");
        Bench::new(AnyAqm::CurvyRed(Box::new(params.build(&CONTEXT))), Backlog::Packets(1000.0))
    }

    proptest! {
        /// Lines 5a, 9a and 10a, Classic packets waiting longer than L4S ones: of L4S packets nothing is learnt.
        #[test]
        fn as_the_pseudocode(waits in proptest::collection::vec((0u32..200, 0u32..5, proptest::bool::ANY), 1..200)) {
            let params: Params = defaults();
            let config = params.coupling.config();
            let mut curve = curve(&params);
            let gamma = 1.0 / 32.0;
            let mut q_c = 0.0;
            for (classic, l4s, of_l4s) in waits {
                let (classic, l4s) = (f64::from(classic + 5) * 1e-3, f64::from(l4s) * 1e-3);
                if of_l4s {
                    curve.departs(1 - CLASSIC, l4s, classic);
                } else {
                    curve.departs(CLASSIC, classic, l4s);
                    q_c = gamma * classic + (1.0 - gamma) * q_c;
                }
                let sqrt_p_c = ((q_c - 0.0005) / 0.5f64).max(0.0);
                let p_cl = ((q_c - 0.0005) / 0.25f64).clamp(0.0, 1.0);
                prop_assert!((curve.q_c - q_c).abs() < 1e-12);
                prop_assert!((config.p_c(curve.p_prime()) - sqrt_p_c * sqrt_p_c).abs() < 1e-12);
                prop_assert!((config.p_cl(curve.p_prime()) - p_cl).abs() < 1e-12);
            }
        }
    }

    /// §B.2: with U = 2 L4S has a square, Classic the fourth power; Eq. (1) holds for neither more nor less.
    #[test]
    fn curviness_raises_both() {
        let params = Params { curviness: 2, ..defaults() };
        let mut of_two = curve(&params);
        of_two.q_c = 0.1005;
        // √p_C = 0.2 with U = 1.
        assert!((of_two.p_prime() - 0.04).abs() < 1e-12);
        let k = 4.0;
        let config = Common { k, ..params.coupling }.config();
        assert!(
            (config.p_cl(0.04) - 0.4f64 * 0.4).abs() < 1e-12 && (config.p_c(0.04) - 0.0016).abs() < 1e-12
        );
    }

    /// §A.2: L4S marking saturates at 1/k² raised to the curviness; overload can't be set to begin later.
    #[test]
    fn overload_follows_the_curviness() {
        for (curviness, p_cmax, fits) in
            [(1, 0.25, true), (2, 0.25, false), (2, 0.0625, true), (3, 0.0625, false)]
        {
            let mut params = Params { curviness, ..defaults() };
            params.coupling.p_cmax = Some(p_cmax);
            let checked = params.check(&CONTEXT).map_err(|fault| fault.field);
            assert_eq!(
                checked.map(|_| ()),
                if fits { Ok(()) } else { Err("p_cmax") },
                "{curviness}, {p_cmax}"
            );
        }
    }

    /// A Classic flood finds the delay at which its excess is dropped. Under WRR L4S packets do not wait for it; under TS-FIFO, what is
    /// beyond the time-shift "leaks across" (§4.2.2).
    #[test]
    fn delay_grows_with_the_load() {
        let [by_weight, by_shift] = [Bound::Wrr, Bound::TsFifo].map(flooded);
        assert!(by_weight <= MS, "{by_weight}");
        assert!(by_shift > MS * 100, "{by_shift}");
    }

    /// The longest that an L4S packet waits beside such a flood.
    fn flooded(l4s_priority: Bound) -> Duration {
        let mut b = bench(&Params { l4s_priority, ..defaults() });
        let mut waits = Vec::new();
        for t in 0..40_000u64 {
            b.to(crate::units::Time::ZERO + MS * t);
            if t % 10 == 0 {
                b.arrive(Ecn::Ect1);
            }
            if t % 10 != 3 {
                b.arrive(Ecn::NotCapable);
            }
            if t % 4 == 1 {
                b.arrive(Ecn::NotCapable);
            }
            if let Some(p) = b.depart().filter(|p| p.ecn.is_l4s()) {
                waits.push(p.waited);
            }
        }
        assert!(b.conserves());
        let q_c = b.gauge("q_c");
        let p_c = b.gauge("p_c");
        // 1.15 arrive for the 0.9 that are left.
        assert!((p_c - (1.15 - 0.9) / 1.15).abs() < 0.03, "{p_c}");
        assert!((q_c - (0.0005 + 0.5 * libm::sqrt(p_c))).abs() < 1e-9, "{q_c}");
        waits.into_iter().max().expect("some left")
    }

    /// Overload by L4S alone: Q_C follows the queue there is, and L4S packets are dropped with the Classic probability (§A.2).
    #[test]
    fn an_l4s_flood_is_dropped() {
        let mut b = bench(&defaults());
        for t in 0..40_000u64 {
            b.to(crate::units::Time::ZERO + MS * t);
            b.arrive(Ecn::Ect1);
            b.arrive(Ecn::Ect1);
            b.depart();
        }
        let dropped = b.stat("l4s_dropped") as f64 / b.stat("l4s") as f64;
        assert!((dropped - 0.5).abs() < 0.02, "{dropped}");
        assert_eq!(b.stat("overflow"), 0);
    }

    /// Once Classic traffic has ended, its last average does not mark L4S packets for ever.
    #[test]
    fn a_stale_average_is_forgotten() {
        let mut curve = curve(&defaults());
        curve.q_c = 0.2;
        assert!(curve.p_prime() > 0.3);
        for _ in 0..500 {
            curve.departs(1 - CLASSIC, 0.0002, 0.0);
        }
        assert_eq!(curve.p_prime(), 0.0);
    }

    #[test]
    fn what_can_not_work_is_refused_or_told() {
        let told = |p: &Params, c: &Context| {
            p.check(c).map(|w| w.into_iter().map(|w| w.field).collect::<Vec<_>>()).map_err(|f| f.field)
        };
        assert_eq!(told(&defaults(), &CONTEXT), Ok(vec![]));
        // Figure 9's own 500 ms, in Figure 9's own buffer.
        let figure9 = Params { min_th: MS * 500, ..defaults() };
        let buffer =
            Context { limit: Some(Backlog::Bytes(250_000.0)), link_rate: Some(Rate(8_000_000)), ..CONTEXT };
        assert_eq!(told(&figure9, &buffer), Ok(vec!["min_th"]));
        assert_eq!(told(&Params { curviness: 9, ..defaults() }, &CONTEXT), Err("curviness"));
        assert_eq!(told(&Params { classic_weight: 0.7, ..defaults() }, &CONTEXT), Err("classic_weight"));
    }

    /// An ECT(1) packet every third millisecond, an ECT(0) one every other, and from 100 ms on a Not-ECT one every other.
    #[test]
    fn golden_sequence() {
        let come = [(Ecn::Ect1, 3, 0), (Ecn::Ect0, 2, 0), (Ecn::NotCapable, 2, 100)];
        let left = bench(&defaults()).golden(400, |t| {
            let now = come.iter().filter(|(_, every, from)| t >= *from && t % every == 0);
            now.map(|(ecn, ..)| *ecn).collect()
        });
        let expected = [
            "10010-10010-10010-10010-10010-10010-10010-10010-10",
            "010-10010-10010-10010-10010-10010-10010-10010-1001",
            "0n10n10n10n10n10n10n10n10n10n10n10n10n10n10n10n10n",
            "10n10n10nm0n10n10nm0n10n10n10n10n10n10n10n10nm0n10",
            "n10n10n10n10n10n10n10n10n10n10n10n10n10n10n10n10nm",
            "0nm0n0nm0nm0n0nm0nm0n0nm0nm0n0nm0nm0n0nm0nm0n0nm0n",
            "m0n0nm0nm0n0nm0nm0nmnm0nm0n0nm0nm0n0nm0nm0n0nm0nm0",
            "n0nm0nm0n0nm0nm0n0nm0nm0n0nm0nm0n0nm0nm0n0nm0nm0n0",
        ];
        assert_eq!(left, expected, "\n{left:#?}");
    }
}
