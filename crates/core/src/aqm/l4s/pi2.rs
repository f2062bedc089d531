//! PI2: one queue whose delay a PI controller holds at a target, with its probability squared for Classic traffic.
//!
//! ECT(1) packets are marked with k·p′, others are dropped, or with ECT(0) marked, with p′²: flows with scalable and with Classic
//! congestion control get about the same rate, but wait in the same queue, for as long.
//! Source: RFC 9332 §2.4 (the base AQM of DualPI2 "with just the squared output and no L4S queue") and §2.5.1.1 (ECT(1) in a Classic
//! queue); De Schepper et al., PI2, CoNEXT 2016. The decision is taken as a packet leaves, as in the RFC's pseudocode.
//! Non-goal: low delay for L4S ([`dualpi2`](super::dualpi2) has a queue for it).

use crate::aqm::l4s::coupling::Coupling;
use crate::aqm::l4s::pi::Pi;
use crate::prelude::*;

/// The operator's settings.
pub use crate::aqm::l4s::pi::Params;

impl Build for Params {
    type Mechanism = Pi2;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        self.fit(context)
    }

    fn build(&self, _: &Context) -> Pi2 {
        Pi2 {
            pi: Pi::new(self.gains()),
            coupling: Coupling::new(self.coupling.config()),
            head: None,
            overflow: 0,
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Pi2 {
    pi: Pi,
    coupling: Coupling,
    /// When the packet at the head arrived, if one waits.
    head: Option<Time>,
    /// Packets dropped because the queue was full.
    overflow: u64,
}

impl Pi2 {
    /// How long the packet at the head has waited, in seconds.
    fn delay(&self, now: Time) -> f64 {
        self.head.map_or(0.0, |came| now.since(came).secs())
    }
}

impl Mechanism for Pi2 {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        Some(self.pi.update(now, self.delay(now)))
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let (p, config) = (self.pi.p_prime(), self.coupling.config());
        show("p_prime", p);
        show("p_c", config.p_c(p));
        show("p_cl", config.p_cl(p));
        show("delay", self.delay(now));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.coupling.stats(show);
        show("overflow", self.overflow);
    }
}

impl Aqm for Pi2 {
    fn serves(&self) -> bool {
        true
    }

    fn l4s(&self) -> bool {
        self.coupling.config().l4s
    }

    fn marks(&self) -> bool {
        self.coupling.config().marks()
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        if !at.queue.fits(packet.size) {
            self.overflow += 1;
            return Admission::Drop(Cause::OVERFLOW);
        }
        if at.queue.packets() == 0 {
            self.head = Some(at.now);
        }
        Admission::Admit
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.head = at.queue.head_since(0);
        at.why.note("sojourn", at.now.since(at.since).secs());
        let p_prime = self.pi.p_prime();
        at.why.note("p_prime", p_prime);
        let waiting = at.queue.bytes() + u64::from(packet.size);
        self.coupling.decide(packet, (p_prime, 0.0), waiting, at.rng, at.why)
    }
}

#[cfg(test)]
mod tests {
    //! PI2 in a real queue, by hand and against the pseudocode of RFC 9332, Appendix A, written out once more.
    use super::*;
    use crate::aqm::l4s::coupling::{Common, OVERLOAD, Saturation};
    use crate::aqm::l4s::pi::step;
    use crate::aqm::red::EARLY;
    use crate::testing::*;

    const MS: Duration = Duration::from_millis(1);

    fn bench(params: &Params) -> Bench {
        params.check(&CONTEXT).expect("it fits");
        Bench::new(AnyAqm::Pi2(Box::new(params.build(&CONTEXT))), Backlog::Packets(1000.0))
    }

    /// RFC 9332 §A.1: "for the default values of Tupdate = 16 ms and RTT_max = 100 ms … alpha = 0.16; beta = 3.2 (discrepancies are due
    /// to rounding)".
    #[test]
    fn gains_by_hand() {
        let default: Params = defaults();
        let g = Params { t_update: Some(MS * 16), ..default.clone() }.gains();
        assert!((g.alpha - 0.16).abs() < 1e-12 && (g.beta - 3.0).abs() < 1e-12);
        // Line 12: min(target, RTT_max/3).
        assert_eq!(default.gains().t_update, MS * 15);
        let short = Params { rtt_max: MS * 30, ..default.clone() }.gains();
        assert_eq!(short.t_update, MS * 10);
        assert!((short.alpha - 0.1 * 0.010 / 0.0009).abs() < 1e-12 && (short.beta - 10.0).abs() < 1e-12);
        let set = Params { alpha: Some(0.3125), beta: Some(3.125), ..default }.gains();
        assert_eq!((set.alpha, set.beta), (0.3125, 3.125));
        // 0.3125 (0.025 − 0.015) + 3.125 (0.025 − 0.021).
        assert!((step(&set, 0.025, 0.021) - (0.003_125 + 0.0125)).abs() < 1e-15);
    }

    /// RFC 9331 §5.1: a PI2 without L4S says so.
    #[test]
    fn l4s_can_be_turned_off() {
        let mut off: Params = defaults();
        off.coupling.l4s = false;
        assert_eq!([defaults(), off].map(|p: Params| bench(&p).aqm.l4s()), [true, false]);
    }

    /// Gains are in Hz: where all times are c times as long, the same happens c times as slowly.
    #[test]
    fn gains_have_the_dimension_of_a_rate() {
        let run = |c: u64| {
            let params = Params { target: MS * 15 * c, rtt_max: MS * 100 * c, ..defaults() };
            let mut pi = Pi::new(params.gains());
            [0, 5, 20, 40, 80, 60, 30, 10, 0, 90].map(|ms| {
                pi.update(Time::ZERO, 0.001 * (ms * c) as f64);
                pi.p_prime()
            })
        };
        for (a, b) in run(1).into_iter().zip(run(7)) {
            assert!((a - b).abs() < 1e-12, "{a} and {b}");
        }
    }

    /// Updates see how long the head has waited: 0 in an empty queue; after a departure, how long the next packet has.
    #[test]
    fn the_delay_is_the_heads() {
        let mut b = bench(&defaults());
        assert_eq!(b.gauge("delay"), 0.0);
        b.to(Time(0) + MS * 3);
        b.arrive(Ecn::NotCapable);
        b.to(Time(0) + MS * 5);
        b.arrive(Ecn::NotCapable);
        b.to(Time(0) + MS * 10);
        assert_eq!(b.gauge("delay"), 0.007);
        b.depart();
        assert_eq!(b.gauge("delay"), 0.005);
        b.depart();
        assert_eq!(b.gauge("delay"), 0.0);
    }

    /// Fixed point: a queue at its target leaves p' as it is; above it p' rises, below it falls.
    #[test]
    fn at_target_nothing_moves() {
        let mut pi = Pi::new(defaults::<Params>().gains());
        for _ in 0..40 {
            pi.update(Time::ZERO, 0.040);
        }
        pi.update(Time::ZERO, 0.015);
        let p = pi.p_prime();
        assert!(p > 0.05);
        for _ in 0..1000 {
            pi.update(Time::ZERO, 0.015);
        }
        assert_eq!(pi.p_prime(), p);
        pi.update(Time::ZERO, 0.016);
        assert!(pi.p_prime() > p);
        (0..2).for_each(|_| {
            pi.update(Time::ZERO, 0.001);
        });
        assert!(pi.p_prime() < p);
        for _ in 0..10_000 {
            pi.update(Time::ZERO, 10.0);
        }
        assert_eq!(pi.p_prime(), 1.0);
        for _ in 0..10_000 {
            pi.update(Time::ZERO, 0.0);
        }
        assert_eq!(pi.p_prime(), 0.0);
    }

    /// Packets at twice the link's rate, half of them ECT(1), none of which slows down: the delay comes to the target, and what is
    /// dropped is the excess, of both kinds alike (RFC 9332 §4.2.3.1: "overload with an unresponsive ECT(1) flow gets no more bandwidth
    /// advantage").
    #[test]
    fn an_unresponsive_flood_is_dropped_down_to_the_rate() {
        let mut b = bench(&defaults());
        let mut dropped = [0u32; 2];
        // Not in turns: evenly spaced drops would hit one kind of Classic packet only.
        let mut kind = Rng::for_component(1, "kind");
        for ms in 0..20_000u64 {
            b.to(Time(0) + MS * ms);
            b.arrive(Ecn::Ect1);
            b.arrive(if kind.below(2) == 0 { Ecn::Ect0 } else { Ecn::NotCapable });
            let before = b.queue.counts().dropped;
            b.depart();
            if ms >= 10_000 {
                let after = b.queue.counts().dropped;
                dropped[0] += (after[OVERLOAD.index()][0] - before[OVERLOAD.index()][0]) as u32;
                dropped[1] += (after[EARLY.index()][0] - before[EARLY.index()][0]) as u32;
            }
        }
        // p'² = 1/2: of 10,000 ECT(1), 5,000 ECT(0) and 5,000 Not-ECT packets half each.
        assert!(dropped[0].abs_diff(7500) < 200 && dropped[1].abs_diff(2500) < 200, "{dropped:?}");
        let delay = b.gauge("delay");
        assert!((delay - 0.015).abs() < 0.003, "{delay}");
        assert!((b.gauge("p_c") - 0.5).abs() < 0.02);
    }

    #[test]
    fn what_can_not_work_is_refused_or_told() {
        let told = |p: Params, c: &Context| {
            p.check(c).map(|w| w.into_iter().map(|w| w.field).collect::<Vec<_>>()).map_err(|f| f.field)
        };
        let common = |common: Common| Params { coupling: common, ..defaults() };
        assert_eq!(told(defaults(), &CONTEXT), Ok(vec![]));
        let often = Params { t_update: Some(Duration(1)), ..defaults() };
        assert_eq!(told(often, &CONTEXT), Err("t_update"));
        assert_eq!(told(Params { rtt_max: Duration(1), ..defaults() }, &CONTEXT), Err("rtt_max"));
        assert_eq!(told(common(Common { k: 0.9, ..defaults() }), &CONTEXT), Err("k"));
        let short = Context { limit: Some(Backlog::Packets(15.0)), ..CONTEXT };
        assert_eq!(told(defaults(), &short), Ok(vec!["target"]), "15 ms at 8 Mbit/s");
        assert_eq!(told(Params { t_update: Some(MS * 16), ..defaults() }, &CONTEXT), Ok(vec!["t_update"]));
        assert_eq!(
            told(common(Common { saturation: Saturation::Delay, ..defaults() }), &CONTEXT),
            Ok(vec![])
        );
    }

    /// Figures 4, 7 and 8, line by line, in seconds, of the one queue that remains without an L4S queue.
    #[derive(Default)]
    struct Oracle {
        alpha: f64,
        beta: f64,
        p_prime: f64,
        prevq: f64,
        lq_count: f64,
        cq_count: f64,
        queue: std::collections::VecDeque<(f64, u8)>,
    }

    impl Oracle {
        fn update(&mut self, now: f64) {
            let curq = self.queue.front().map_or(0.0, |(came, _)| now - came);
            let p = self.p_prime + self.alpha * (curq - 0.015) + self.beta * (curq - self.prevq);
            self.p_prime = p.clamp(0.0, 1.0);
            self.prevq = curq;
        }

        fn recur(count: &mut f64, likelihood: f64) -> bool {
            *count += likelihood;
            if *count > 1.0 {
                *count -= 1.0;
                return true;
            }
            false
        }

        /// The packet that leaves, by the bits of its header, and how many are dropped before.
        fn dequeue(&mut self) -> (Option<u8>, u32) {
            let mut dropped = 0;
            while let Some((_, ecn)) = self.queue.pop_front() {
                let p_c = self.p_prime * self.p_prime;
                let p_cl = if 2.0 * self.p_prime > 1.0 { 1.0 } else { 2.0 * self.p_prime };
                if ecn % 2 == 1 {
                    if p_cl < 1.0 {
                        return (Some(if Self::recur(&mut self.lq_count, p_cl) { 3 } else { ecn }), dropped);
                    }
                    if Self::recur(&mut self.lq_count, p_c) {
                        dropped += 1;
                        continue;
                    }
                    return (Some(if Self::recur(&mut self.lq_count, p_cl) { 3 } else { ecn }), dropped);
                }
                if Self::recur(&mut self.cq_count, p_c) {
                    if ecn == 0 || p_c >= 0.25 {
                        dropped += 1;
                        continue;
                    }
                    return (Some(3), dropped);
                }
                return (Some(ecn), dropped);
            }
            (None, dropped)
        }
    }

    proptest! {
        #[test]
        fn as_the_pseudocode(
            steps in proptest::collection::vec((0u8..4, 0u8..5, 0u64..4), 50..600),
        ) {
            let mut b = bench(&defaults());
            let g = defaults::<Params>().gains();
            let mut oracle = Oracle {
                alpha: 0.1 * 0.015 / 0.01,
                beta: 0.3 / 0.1,
                ..Oracle::default()
            };
            assert!((oracle.alpha - g.alpha).abs() < 1e-15 && (oracle.beta - g.beta).abs() < 1e-15);
            (oracle.alpha, oracle.beta) = (g.alpha, g.beta);
            let (mut now, mut next_update) = (0u64, 0u64);
            for (ecn, arrivals, gap) in steps {
                now += gap;
                while next_update <= now {
                    oracle.update(Time(next_update * MS.0).secs());
                    next_update += 15;
                }
                b.to(Time(now * MS.0));
                assert!((b.gauge("p_prime") - oracle.p_prime).abs() < 1e-9);
                // Rounding decides no mark: sums of these may come to 1 exactly.
                oracle.p_prime = b.gauge("p_prime");
                for _ in 0..arrivals {
                    b.arrive(Ecn::of_octet(ecn));
                    oracle.queue.push_back((b.now.secs(), ecn));
                }
                let before = b.dropped.len();
                let sent = b.depart();
                prop_assert_eq!((sent.map(|p| p.ecn.bits()), (b.dropped.len() - before) as u32), oracle.dequeue());
                prop_assert_eq!(b.queue.packets() as usize, oracle.queue.len());
            }
        }
    }

    /// An ECT(1) and an ECT(0) packet by turns, from 100 ms on a Not-ECT one every third millisecond too.
    #[test]
    fn golden_sequence() {
        let left = bench(&defaults()).golden(400, |t| {
            let mut come = vec![if t % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 }];
            come.extend((t >= 100 && t % 3 == 0).then_some(Ecn::NotCapable));
            come
        });
        let expected = [
            "10101010101010101010101010101010101010101010101010",
            "10101010101010101010101010101010101010101010101010",
            "101n010n101n010n101n010n101n010n101n010n101n010n10",
            "1n010n101n010n101n010nm01n010n101n010n101n010n10mn",
            "010n101n010n10mn010n101n010n10mn010n101n010nm01n01",
            "0n101n0m0n101n010nm01n010nm01n010n10mn010n10mn010n",
            "10mnm10n10mn010n10mn010n10mn010nm01n010nm01n0m0x10m",
            "n010nm01n010nm01n0m0n10mnm10nm01n0m0n10mn0m0n10mx01",
        ];
        assert_eq!(left, expected, "\n{left:#?}");
    }
}
