//! Each departure by hand, and all of them against an oracle in whole numbers, as the kernel keeps them.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::super::{DelayFrom, Params, Variant};
use super::*;
use crate::packet::Ecn;
use crate::params::{Build as _, Context, defaults};
use crate::units::Bytes;
use crate::verdict::Silent;

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
        let state = QueueState { packets: self.waiting, bytes: u64::from(self.waiting) * 1000, fits: true };
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
