//! Where Linux's `sch_pie` departs from RFC 8033 (as of 6.1; `variant = "linux"`).
//!
//! - The current delay decides whether an arrival is safe; in the RFC it is that of the last update (§4.1). An arrival that finds
//!   exactly two packets' bytes waiting may be dropped; in the RFC it may not.
//! - The burst allowance is reduced by the time between departures, not by updates (§4.4). The update that finds congestion over
//!   renews it and restarts all measurements. While it lasts, nothing is accumulated for §5.4.
//! - A mark at an accumulated probability of 8.5 does not reset the sum (§5.4). At a drop probability of exactly 10 % packets are
//!   still marked (§5.1).
//! - Above a delay of 250 ms each step is larger by 2 %. The probability may exceed 1: only the width of its integer bounds it, at
//!   256. A delay of 0 means an idle queue only if no packet is waiting.
//! - With `delay_from = "dequeue_rate"` the rate, not its inverse, is smoothed, by 1/8, in whole 1/256 B for each tick of 64 ns.
//!
//! Not part of the law: the kernel's timer, whose period is rounded up to whole ticks of its clock, and one tick longer.

use super::{CAP, Control, DelayFrom, EARLY, NOT_TOO_HIGH, Params, QueueState, Vars, step};
use crate::prelude::*;

/// Linux's unit of time in picoseconds, and in seconds.
const TICK: (u64, f64) = (64_000, 64e-9);
/// Above this delay, in seconds, the probability grows by the second more at each update.
const SURGE: (f64, f64) = (0.25, 0.02);
/// The share of the probability that remains after an update of an idle queue.
const DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Where the integer of the probability is full: then it is 1.
const FULL: f64 = 256.0;
/// Fractions of a byte in which the dequeue rate is kept, and the weight of a new sample, as powers of 2.
const RATE: (u32, u32) = (8, 3);

/// Whole ticks between two times.
fn ticks(from: Time, to: Time) -> u64 {
    to.0 / TICK.0 - from.0 / TICK.0
}

impl Vars {
    fn drop_early_linux<W: Why + ?Sized>(
        &mut self,
        c: &Control,
        waiting: u64,
        rng: &mut Rng,
        why: &mut W,
    ) -> bool {
        let p = &c.params;
        let low = self.qdelay < p.target.secs() / 2.0 && self.drop_prob < NOT_TOO_HIGH;
        if self.burst_allowance > Duration(0) || low || waiting < c.safe_bytes {
            return false;
        }
        if p.derandomise
            && let Some(drops) = self.spaced(why)
        {
            return drops;
        }
        let strikes = rng.chance("u", self.drop_prob, why);
        if strikes {
            self.accu_prob = 0.0;
        }
        strikes
    }

    /// An arrival that is within the limit.
    pub(super) fn arrive_linux<W: Why + ?Sized>(
        &mut self,
        c: &Control,
        packet: &Packet,
        state: QueueState,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let early = self.drop_early_linux(c, state.bytes, rng, why);
        let marks = c.params.ecn && packet.ecn.can_mark() && self.drop_prob <= c.params.mark_ecnth;
        if early && !marks {
            self.accu_prob = 0.0;
            return Admission::Drop(EARLY);
        }
        self.backlog = state.bytes + u64::from(packet.size);
        if early { Admission::Mark } else { Admission::Admit }
    }

    /// A packet leaves; `backlog` is what waits behind it.
    pub(super) fn depart_linux(&mut self, p: &Params, now: Time, size: u32, since: Time) {
        let spent = match p.delay_from {
            DelayFrom::Timestamp => {
                self.qdelay = if self.backlog == 0 { 0.0 } else { ticks(since, now) as f64 * TICK.1 };
                // With timestamps, this is when the last packet left.
                self.rate.measuring.replace(now).map_or(0, |last| ticks(last, now))
            }
            DelayFrom::DequeueRate => self.measure_linux(p, now, size),
        };
        self.burst_allowance = Duration(self.burst_allowance.0.saturating_sub(spent * TICK.0));
    }

    /// If a measurement ends with this packet: how many ticks `dq_threshold` bytes took to leave; otherwise 0.
    fn measure_linux(&mut self, p: &Params, now: Time, size: u32) -> u64 {
        let (rate, enough) = (&mut self.rate, self.backlog >= p.dq_threshold.0);
        if rate.measuring.is_none() && enough {
            (rate.measuring, rate.dq_count) = (Some(now), 0);
        }
        let Some(start) = rate.measuring else { return 0 };
        rate.dq_count += u64::from(size);
        let took = ticks(start, now);
        if rate.dq_count < p.dq_threshold.0 || took == 0 {
            return 0;
        }
        let sample = (rate.dq_count << RATE.0) / took;
        rate.avg_dq_rate = match rate.avg_dq_rate {
            0 => sample,
            avg => avg - (avg >> RATE.1) + (sample >> RATE.1),
        };
        (rate.measuring, rate.dq_count) = (enough.then_some(now), 0);
        took
    }

    /// The update, every `t_update`.
    pub(super) fn update_linux(&mut self, p: &Params) {
        let v = self;
        if p.delay_from == DelayFrom::DequeueRate {
            let waits = (v.backlog << RATE.0).checked_div(v.rate.avg_dq_rate).unwrap_or(0);
            v.qdelay = waits as f64 * TICK.1;
        }
        let mut step = step(v.drop_prob, p.alpha, p.beta, v.qdelay, v.qdelay_old, p.target.secs());
        if p.cap_step && v.drop_prob >= CAP.0 {
            step = step.min(CAP.1);
        }
        if v.qdelay > SURGE.0 {
            step += SURGE.1;
        }
        v.drop_prob = (v.drop_prob + step).max(0.0);
        if v.drop_prob >= FULL {
            v.drop_prob = 1.0;
        } else if v.qdelay == 0.0 && v.qdelay_old == 0.0 && v.backlog == 0 {
            v.drop_prob *= DECAY;
        }
        let half = p.target.secs() / 2.0;
        let measured = p.delay_from == DelayFrom::Timestamp || v.rate.avg_dq_rate > 0;
        if v.qdelay < half && v.qdelay_old < half && v.drop_prob == 0.0 && measured {
            (v.burst_allowance, v.accu_prob) = (p.max_burst, 0.0);
            v.rate = super::DequeueRate::default();
        }
        v.qdelay_old = v.qdelay;
    }

    /// Whether starting over, as an update does that finds congestion over, would change nothing.
    pub(super) fn started_over(&self, p: &Params) -> bool {
        let fresh = super::DequeueRate::default();
        self.burst_allowance == p.max_burst && self.accu_prob == 0.0 && self.rate == fresh
    }
}

#[cfg(test)]
mod tests {
    //! Each departure by hand, and all of them against an oracle in whole numbers, as the kernel keeps them.
    use super::super::{DelayFrom, Params, Variant};
    use super::*;
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
    const MS: Duration = Duration::from_millis(1);

    fn params() -> Params {
        Params { variant: Variant::Linux, ..defaults() }
    }

    /// The law with a queue that a test sets.
    struct Bench {
        control: Control,
        vars: Vars,
        rng: Rng,
        now: Time,
        waiting: u32,
    }

    impl Bench {
        fn new(params: &Params) -> Bench {
            let control = params.control(&CONTEXT);
            let rng = Rng::for_component(1, "pie");
            Bench { vars: control.vars(), control, rng, now: Time::ZERO + MS * 10_000, waiting: 100 }
        }

        /// Past its burst, at this probability and delay.
        fn congested(params: &Params, p: f64, qdelay: f64) -> Bench {
            let mut b = Bench::new(params);
            (b.vars.burst_allowance, b.vars.drop_prob) = (Duration(0), p);
            (b.vars.qdelay, b.vars.qdelay_old) = (qdelay, qdelay);
            b
        }

        fn arrive(&mut self, ecn: Ecn) -> Admission {
            let packet = Packet { size: 1000, ecn, ..Packet::default() };
            let state =
                QueueState { packets: self.waiting, bytes: u64::from(self.waiting) * 1000, fits: true };
            self.vars.arrive(&self.control, &packet, state, &mut self.rng, &mut Silent)
        }

        /// After this time a packet leaves that has waited for so long.
        fn depart(&mut self, after: Duration, waited: Duration) {
            self.now += after;
            let behind = u64::from(self.waiting) * 1000;
            self.vars.depart(&self.control.params, self.now, 1000, self.now - waited, behind);
        }

        fn update(&mut self) {
            self.vars.update(&self.control.params);
        }
    }

    #[test]
    fn the_present_delay_decides_whether_an_arrival_is_safe() {
        let plain = Params { derandomise: false, ..params() };
        let mut b = Bench::congested(&plain, 0.19, 0.030);
        b.vars.qdelay = 0.007;
        assert!((0..500).all(|_| b.arrive(Ecn::NotCapable) == Admission::Admit));
        (b.vars.qdelay, b.vars.qdelay_old) = (0.030, 0.007);
        assert!((0..500).any(|_| b.arrive(Ecn::NotCapable) == Admission::Drop(EARLY)));
    }

    #[test]
    fn two_packets_that_wait_are_no_longer_safe() {
        let mut b = Bench::congested(&Params { derandomise: false, ..params() }, 1.0, 0.030);
        b.waiting = 1;
        assert_eq!(b.arrive(Ecn::NotCapable), Admission::Admit);
        b.waiting = 2;
        assert_eq!(b.arrive(Ecn::NotCapable), Admission::Drop(EARLY));
    }

    /// The first departure starts the clock; 150 ms are over 15 departures of 10 ms later, whatever updates there are.
    #[test]
    fn departures_use_up_the_burst() {
        let mut b = Bench::new(&params());
        b.depart(MS * 500, MS * 20);
        (0..100).for_each(|_| b.update());
        assert_eq!(b.vars.burst_allowance, MS * 150);
        for left in (0..15).rev() {
            b.vars.drop_prob = 1.0;
            assert_eq!(b.arrive(Ecn::NotCapable), Admission::Admit, "{left} to go");
            assert_eq!(b.vars.accu_prob, 0.0);
            b.depart(MS * 10, MS * 20);
            assert_eq!(b.vars.burst_allowance, MS * (10 * left));
        }
        b.vars.drop_prob = 1.0;
        assert_eq!(b.arrive(Ecn::NotCapable), Admission::Drop(EARLY));
    }

    #[test]
    fn the_burst_is_renewed_by_the_second_update_without_congestion() {
        let mut b = Bench::congested(&params(), 0.0, 0.030);
        b.depart(MS, MS * 2);
        b.update();
        b.arrive(Ecn::NotCapable);
        assert_eq!((b.vars.burst_allowance, b.vars.started_over(&params())), (Duration(0), false));
        b.update();
        assert_eq!((b.vars.burst_allowance, b.vars.started_over(&params())), (MS * 150, true));
    }

    #[test]
    fn a_forced_mark_begins_no_new_sum() {
        let ecn = Params { ecn: true, ..params() };
        let mut b = Bench::congested(&ecn, 0.1, 0.030);
        b.vars.accu_prob = 8.5;
        assert_eq!(b.arrive(Ecn::Ect0), Admission::Mark, "at exactly 10 %");
        assert_eq!(b.arrive(Ecn::Ect0), Admission::Mark, "and the next");
        b.vars.drop_prob = 0.1 + 1e-9;
        assert_eq!(b.arrive(Ecn::Ect0), Admission::Drop(EARLY));
        assert_eq!((b.vars.accu_prob, b.arrive(Ecn::Ect0)), (0.0, Admission::Admit));
    }

    #[test]
    fn the_probability_outgrows_1_until_its_integer_is_full() {
        let mut b = Bench::congested(&params(), 0.99, 0.3);
        b.update();
        assert!((b.vars.drop_prob - 1.03).abs() < 1e-12, "{}", b.vars.drop_prob);
        assert_eq!(b.arrive(Ecn::NotCapable), Admission::Drop(EARLY));
        b.vars.drop_prob = 255.97;
        b.update();
        assert_eq!(b.vars.drop_prob, 1.0);
    }

    #[test]
    fn a_queue_that_holds_a_packet_is_not_idle() {
        let mut b = Bench::congested(&Params { alpha: f64::MIN_POSITIVE, ..params() }, 0.5, 0.0);
        b.vars.backlog = 1000;
        b.update();
        assert_eq!(b.vars.drop_prob, 0.5);
        b.vars.backlog = 0;
        b.update();
        assert_eq!(b.vars.drop_prob, 0.5 * 63.0 / 64.0);
    }

    /// The departure that starts a measurement is counted in it: 17,000 B in 16 ms, 250,000 ticks, 17.4 units a tick; the burst goes by it.
    #[test]
    fn the_dequeue_rate_is_kept_in_whole_units() {
        let mut b = Bench::new(&Params { delay_from: DelayFrom::DequeueRate, ..params() });
        b.waiting = 16;
        (0..40).for_each(|_| b.depart(MS, MS));
        assert_eq!(b.vars.rate.avg_dq_rate, 0, "16,000 B wait: too few");
        b.waiting = 50;
        (0..17).for_each(|_| b.depart(MS, MS));
        assert_eq!((b.vars.rate.avg_dq_rate, b.vars.burst_allowance), (17, MS * 134));
        b.update();
        // 50,000 B · 256 / 17 are 752,941 ticks of 64 ns.
        assert!((b.vars.qdelay - 752_941.0 * 64e-9).abs() < 1e-12);
    }

    #[test]
    fn a_share_of_the_limit_is_refused() {
        let asked = Params { active_above: Some(0.3), ..params() };
        assert_eq!(asked.check(&CONTEXT).map(|_| ()).map_err(|f| f.field), Err("active_above"));
    }

    /// As the kernel reckons: probabilities in parts of 2^56, times in ticks.
    struct Oracle {
        prob: u64,
        accu_prob: u64,
        qdelay: u64,
        qdelay_old: u64,
        burst: u64,
        last: Option<u64>,
    }

    const ONE: u64 = (1 << 56) - 1;
    const SECOND: u64 = 15_625_000;
    const TARGET: u64 = SECOND * 15 / 1000;

    impl Oracle {
        /// `None`: too close to a bound for whole numbers and fractions to agree.
        fn drops(&mut self, bytes: u64, random: &mut impl FnMut() -> f64) -> Option<bool> {
            if self.burst > 0 || (self.qdelay < TARGET / 2 && self.prob < ONE / 5) || bytes < 2000 {
                return Some(false);
            }
            self.accu_prob = if self.prob == 0 { 0 } else { self.accu_prob + self.prob };
            let near = |bound: u64| self.accu_prob.abs_diff(bound) < 1 << 20;
            if near(ONE / 100 * 85) || near(ONE / 2 * 17) || self.prob.abs_diff(ONE / 5) < 1 << 20 {
                return None;
            }
            let drops = self.accu_prob >= ONE / 100 * 85
                && (self.accu_prob >= ONE / 2 * 17
                    || self.prob >= ONE
                    || (self.prob > 0 && random() * (ONE as f64) < self.prob as f64));
            if drops {
                self.accu_prob = 0;
            }
            Some(drops)
        }

        fn depart(&mut self, now: u64, since: u64, behind: u64) {
            self.qdelay = if behind == 0 { 0 } else { now - since };
            let between = self.last.replace(now).map_or(0, |last| now - last);
            self.burst = self.burst.saturating_sub(between);
        }

        fn update(&mut self, behind: u64) {
            let (mut alpha, mut beta) = ((2 * (ONE / SECOND)) >> 4, (20 * (ONE / SECOND)) >> 4);
            let mut power = 10;
            while power <= 1_000_000 && self.prob < ONE / power {
                let shift = if power == 10 { 1 } else { 2 };
                (alpha, beta, power) = (alpha >> shift, beta >> shift, power * 10);
            }
            let mut delta = alpha as i64 * (self.qdelay as i64 - TARGET as i64)
                + beta as i64 * (self.qdelay as i64 - self.qdelay_old as i64);
            if delta > (ONE / 50) as i64 && self.prob >= ONE / 10 {
                delta = (ONE / 100 * 2) as i64;
            }
            if self.qdelay > SECOND / 4 {
                delta += (ONE / 50) as i64;
            }
            self.prob = self.prob.saturating_add_signed(delta);
            if self.qdelay == 0 && self.qdelay_old == 0 && behind == 0 {
                self.prob -= self.prob / 64;
            }
            if self.qdelay < TARGET / 2 && self.qdelay_old < TARGET / 2 && self.prob == 0 {
                (self.burst, self.accu_prob, self.last) = (SECOND * 150 / 1000, 0, None);
            }
            self.qdelay_old = self.qdelay;
        }
    }

    proptest! {
        #[test]
        fn as_in_whole_numbers(
            steps in prop::collection::vec((0u32..40, 0u64..120, 1u64..9, prop::bool::weighted(0.3)), 1..400),
            seed: u64,
        ) {
            let mut b = Bench::new(&params());
            b.rng = Rng::for_component(seed, "pie");
            let mut theirs = Rng::for_component(seed, "pie");
            let mut oracle =
                Oracle { prob: 0, accu_prob: 0, qdelay: 0, qdelay_old: 0, burst: SECOND * 150 / 1000, last: None };
            for (waiting, delay, gap, update) in steps {
                b.waiting = waiting;
                let Some(drops) = oracle.drops(u64::from(waiting) * 1000, &mut || theirs.uniform()) else { return Ok(()) };
                prop_assert_eq!(b.arrive(Ecn::NotCapable) == Admission::Drop(EARLY), drops);
                b.depart(MS * gap, MS * delay);
                let tick = |t: Time| t.0 / 64_000;
                oracle.depart(tick(b.now), tick(b.now - MS * delay), u64::from(waiting));
                if update {
                    b.update();
                    oracle.update(u64::from(waiting));
                }
                prop_assert!((b.vars.drop_prob - oracle.prob as f64 / ONE as f64).abs() < 1e-7, "{} {}", b.vars.drop_prob, oracle.prob as f64 / ONE as f64);
                prop_assert_eq!(b.vars.burst_allowance.0 / 64_000, oracle.burst);
            }
        }
    }
}
