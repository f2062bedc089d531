//! PIE's laws, by hand and against the pseudocode of RFC 8033, Appendix A, written out once more.

use super::*;
use crate::testing::*;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
const MS: Duration = Duration::from_millis(1);

fn params() -> Params {
    Params { derandomise: false, cap_step: false, ..defaults() }
}

fn packet(ecn: Ecn) -> Packet {
    Packet { size: 1000, ecn, ..Packet::default() }
}

/// A PIE whose clock, delay and queue a test sets.
struct Bench {
    pie: Pie,
    rng: Rng,
    now: Time,
    queue: Fake,
}

impl Bench {
    fn new(params: Params) -> Bench {
        let mut pie = params.build(&CONTEXT);
        // Late enough for packets that have waited.
        let now = Time::ZERO + MS * 10_000;
        pie.tick(now, &mut Outbox::default());
        Bench { pie, rng: Rng::for_component(1, "pie"), now, queue: Fake::of(100, 0) }
    }

    /// At work from a third of 90 packets on.
    fn of_90(delay_from: DelayFrom) -> Bench {
        let mut b = Bench::new(params());
        let context = Context { limit: Some(Backlog::Packets(90.0)), ..CONTEXT };
        b.pie = Params { active_above: Some(1.0 / 3.0), delay_from, ..params() }.build(&context);
        b.pie.tick(b.now, &mut Outbox::default());
        b
    }

    fn arrive(&mut self, ecn: Ecn) -> Admission {
        self.pie.arrive(&packet(ecn), At::silent(self.now, &mut self.queue, &mut self.rng))
    }

    /// A packet leaves that has waited for so long.
    fn depart(&mut self, waited: Duration) {
        let since = self.now - waited;
        let p = packet(Ecn::NotCapable);
        let sent = self.pie.depart(&p, At::silent(self.now, &mut self.queue, &mut self.rng).since(since));
        assert_eq!(sent, Departure::Send);
    }

    /// So many updates, each after a packet that waited for so long.
    fn updates(&mut self, n: u32, waited: Duration) {
        for _ in 0..n {
            self.now += self.pie.control.params.t_update;
            self.depart(waited);
            let next = self.pie.tick(self.now, &mut Outbox::default());
            assert_eq!(next, Some(self.now + self.pie.control.params.t_update));
        }
    }
}

#[test]
fn steps_by_hand() {
    // alpha (0.025 − 0.015) + beta (0.025 − 0.021) = 0.00125 + 0.005, and its parts.
    for (p, scale) in
        [(0.0, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (0.05, 2.0), (0.1, 1.0)]
    {
        let got = step(p, 0.125, 1.25, 0.025, 0.021, 0.015);
        assert!((got - 0.006_25 / scale).abs() < 1e-15, "at {p}: {got}");
    }
}

#[test]
fn at_target_nothing_moves() {
    let mut b = Bench::new(params());
    b.updates(1, MS * 15);
    b.pie.vars.drop_prob = 0.03;
    b.updates(100, MS * 15);
    assert_eq!(b.pie.vars.drop_prob, 0.03);
}

#[test]
fn above_target_it_rises_below_it_falls() {
    let mut b = Bench::new(params());
    b.updates(1, MS * 40);
    let mut last = b.pie.vars.drop_prob;
    for _ in 0..200 {
        b.updates(1, MS * 40);
        assert!(b.pie.vars.drop_prob > last && b.pie.vars.drop_prob <= 1.0);
        last = b.pie.vars.drop_prob;
    }
    b.updates(1, MS * 5);
    last = b.pie.vars.drop_prob;
    for _ in 0..200 {
        b.updates(1, MS * 5);
        assert!(b.pie.vars.drop_prob < last || b.pie.vars.drop_prob == 0.0);
        last = b.pie.vars.drop_prob;
    }
}

/// §4.2: an idle queue's probability has a time constant of about 50 updates.
#[test]
fn an_empty_queue_forgets() {
    for (variant, each) in [(Variant::Rfc8033, 0.98), (Variant::Linux, 63.0 / 64.0)] {
        // Without the controller's own step.
        let mut b = Bench::new(Params { variant, alpha: f64::MIN_POSITIVE, ..params() });
        b.queue = Fake::of(0, 0);
        b.pie.vars.drop_prob = 0.5;
        b.updates(50, MS * 40);
        assert!((b.pie.vars.drop_prob - 0.5 * libm::pow(each, 50.0)).abs() < 1e-12);
    }
}

/// The last packet out leaves no delay behind, however long it waited.
#[test]
fn an_empty_queue_delays_nobody() {
    let mut b = Bench::new(params());
    b.now += MS * 500;
    b.depart(MS * 400);
    assert_eq!(b.pie.vars.qdelay, 0.4);
    b.queue = Fake::of(0, 0);
    b.depart(MS * 400);
    assert_eq!(b.pie.vars.qdelay, 0.0);
}

/// §4.4: a burst of max_burst is let by whatever its delay; then not.
#[test]
fn a_burst_is_let_by() {
    let mut b = Bench::new(params());
    for update in 0..10 {
        b.pie.vars.drop_prob = 1.0;
        assert_eq!(b.arrive(Ecn::NotCapable), Admission::Admit, "{update} updates into the burst");
        b.updates(1, MS * 200);
    }
    b.pie.vars.drop_prob = 1.0;
    assert_eq!(b.arrive(Ecn::NotCapable), Admission::Drop(EARLY));
    // Congestion is over: the next burst is let by again.
    b.updates(2, MS * 2);
    b.pie.vars.drop_prob = 0.0;
    assert_eq!(b.arrive(Ecn::NotCapable), Admission::Admit);
    assert_eq!(b.pie.vars.burst_allowance, MS * 150);
}

fn congested(p: f64, of: Params) -> Bench {
    let mut b = Bench::new(of);
    b.updates(20, MS * 30);
    b.pie.vars.drop_prob = p;
    b.pie.vars.accu_prob = 0.0;
    b
}

/// §4.1: work conserving.
#[test]
fn a_couple_of_packets_are_never_dropped() {
    let mut b = congested(1.0, params());
    b.queue = Fake::of(2, 0);
    assert_eq!(b.arrive(Ecn::NotCapable), Admission::Admit);
    b.queue = Fake::of(3, 0);
    assert_eq!(b.arrive(Ecn::NotCapable), Admission::Drop(EARLY));
}

#[test]
fn below_half_the_target_only_a_high_probability_drops() {
    let mut b = congested(0.1999, params());
    b.pie.vars.qdelay_old = 0.007;
    assert!((0..1000).all(|_| b.arrive(Ecn::NotCapable) == Admission::Admit));
    b.pie.vars.drop_prob = 0.2;
    assert!((0..1000).any(|_| b.arrive(Ecn::NotCapable) == Admission::Drop(EARLY)));
}

/// §5.1: below 10 % it marks what it can; from there on it drops.
#[test]
fn marks_while_the_probability_is_low() {
    for (p, struck) in [(0.099, Admission::Mark), (0.1, Admission::Drop(EARLY))] {
        let mut b = congested(p, Params { ecn: true, ..params() });
        let verdicts: Vec<_> = (0..2000).map(|_| b.arrive(Ecn::Ect0)).collect();
        assert!(verdicts.contains(&struck));
        assert!(verdicts.iter().all(|v| *v == struck || *v == Admission::Admit));
        assert!((0..2000).all(|_| b.arrive(Ecn::NotCapable) != Admission::Mark));
    }
}

/// §5.5: from 10 % on it grows by 2 % at most; Linux adds 2 % above 250 ms.
#[test]
fn steps_are_capped() {
    let grown = |variant, cap_step| {
        let mut b = congested(0.3, Params { variant, cap_step, ..params() });
        b.pie.vars.qdelay_old = 0.3;
        b.updates(1, MS * 600);
        b.pie.vars.drop_prob - 0.3
    };
    let own = 0.125 * 0.585 + 1.25 * 0.3;
    for (variant, cap, want) in
        [(Variant::Rfc8033, false, own), (Variant::Rfc8033, true, 0.02), (Variant::Linux, true, 0.04)]
    {
        assert!((grown(variant, cap) - want).abs() < 1e-12, "{variant:?} {cap}: {}", grown(variant, cap));
    }
}

/// §5.2: 1,000 B every millisecond: 17 packets until 16,384 B have left.
#[test]
fn the_dequeue_rate_is_measured_while_enough_waits() {
    let each_millisecond = |b: &mut Bench| {
        (0..40).for_each(|_| {
            b.now += MS;
            b.depart(MS);
        });
    };
    let mut b = Bench::new(Params { delay_from: DelayFrom::DequeueRate, ..params() });
    b.queue = Fake::of(16, 0);
    each_millisecond(&mut b);
    assert_eq!(b.pie.vars.rate, DequeueRate::default(), "16,000 B wait: too few");
    b.queue = Fake::of(50, 0);
    each_millisecond(&mut b);
    assert!((b.pie.vars.rate.avg_dq_time - 0.017).abs() < 1e-12);
    b.updates(1, MS);
    // 50,000 B at 16,384 B in 17 ms.
    assert!((b.pie.vars.qdelay - 50_000.0 * 0.017 / 16_384.0).abs() < 1e-12);
}

/// §5.3: at work from a third of the limit on, until congestion is over.
#[test]
fn works_from_a_share_of_the_limit_on() {
    let mut b = Bench::of_90(DelayFrom::Timestamp);
    b.queue = Fake::of(29, 0);
    b.arrive(Ecn::NotCapable);
    b.updates(30, MS * 100);
    assert_eq!((b.pie.vars.active, b.pie.vars.drop_prob), (false, 0.0));
    b.queue = Fake::of(30, 0);
    b.arrive(Ecn::NotCapable);
    b.updates(30, MS * 100);
    assert!(b.pie.vars.active && b.pie.vars.drop_prob > 0.0);
    b.updates(2, MS);
    b.pie.vars.drop_prob = 0.0;
    b.arrive(Ecn::NotCapable);
    assert!(!b.pie.vars.active);
}

/// Twice as much arrives as leaves: once at work it stays so, by either measure of the delay, and drops.
#[test]
fn stays_at_work_under_overload() {
    for delay_from in [DelayFrom::Timestamp, DelayFrom::DequeueRate] {
        let mut b = Bench::of_90(delay_from);
        let mut dropped = 0;
        for ms in 1..=2000u32 {
            b.now += MS;
            b.queue = Fake::of((ms * 2).min(80), 0);
            for _ in 0..2 {
                dropped += u32::from(b.arrive(Ecn::NotCapable) == Admission::Drop(EARLY));
            }
            b.depart(MS * u64::from((ms * 2).min(80)));
            if ms % 15 == 0 {
                b.pie.tick(b.now, &mut Outbox::default());
            }
        }
        assert!(b.pie.vars.active && dropped > 100, "{delay_from:?}: {dropped}");
    }
}

#[test]
fn what_can_not_work_is_refused_or_told() {
    let context = |packets, rate| context(Some(Rate(rate)), Backlog::Packets(packets));
    let by_rate = Params { delay_from: DelayFrom::DequeueRate, ..params() };
    let field = |p: &Params, c| p.check(&c).map(|w| w.len()).map_err(|f| f.field);
    assert_eq!(field(&params(), context(1000.0, 10_000_000)), Ok(0));
    assert_eq!(field(&params(), context(18.0, 10_000_000)), Ok(1), "14.4 ms");
    assert_eq!(field(&by_rate, context(16.0, 1_000_000)), Err("dq_threshold"));
    assert_eq!(field(&by_rate, context(17.0, 1_000_000)), Ok(0));
    let heavy = Params { dq_threshold: Bytes(65_537), ..params() };
    assert_eq!(field(&heavy, context(1000.0, 1_000_000)), Err("dq_threshold"));
    let seldom = |ms| Params { t_update: MS * ms, ..params() };
    assert_eq!(field(&seldom(60), context(1000.0, 10_000_000)), Ok(0));
    let told = seldom(61).check(&context(1000.0, 10_000_000)).map(|w| w[0].field);
    assert_eq!(told, Ok("t_update"));
}

/// Appendix A, line by line, in seconds; with `options` what Appendix B adds to it, which is §5.1, §5.4 and §5.5.
#[derive(Default)]
struct Oracle {
    options: bool,
    burst_allowance: f64,
    drop_prob: f64,
    qdelay_old: f64,
    current_qdelay: f64,
    accu_prob: f64,
}

impl Oracle {
    fn enque(
        &mut self,
        byte_length: u64,
        full: bool,
        ecn: bool,
        random: &mut impl FnMut() -> f64,
    ) -> Admission {
        if full {
            self.accu_prob = 0.0;
            return Admission::Drop(Cause::OVERFLOW);
        }
        if self.drop_prob == 0.0 && self.current_qdelay < 0.015 / 2.0 && self.qdelay_old < 0.015 / 2.0 {
            self.burst_allowance = 0.150;
        }
        // §4.4: "bypassing the random drop process".
        if self.burst_allowance > 0.0 || !self.drop_early(byte_length, random) {
            return Admission::Admit;
        }
        self.accu_prob = 0.0;
        // §5.1
        if ecn && self.drop_prob < 0.1 { Admission::Mark } else { Admission::Drop(EARLY) }
    }

    fn drop_early(&mut self, byte_length: u64, random: &mut impl FnMut() -> f64) -> bool {
        if (self.qdelay_old < 0.015 / 2.0 && self.drop_prob < 0.2) || byte_length <= 2 * 1000 {
            return false;
        }
        if self.options {
            // §5.4
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        // No number is drawn where none decides.
        self.drop_prob >= 1.0 || (self.drop_prob > 0.0 && random() < self.drop_prob)
    }

    fn calculate_drop_prob(&mut self) {
        let raised = 0.125 * (self.current_qdelay - 0.015) + 1.25 * (self.current_qdelay - self.qdelay_old);
        let scales = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
        let mut p = scales.iter().find(|(below, _)| self.drop_prob < *below).map_or(raised, |s| raised / s.1);
        if self.options && self.drop_prob >= 0.1 && raised > 0.02 {
            // §5.5
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        let left = self.burst_allowance - 0.015;
        // Ten times 15 ms are 150 ms, but for rounding.
        self.burst_allowance = if left < 1e-9 { 0.0 } else { left };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// Without options, and with them, as the operator gets it.
    #[test]
    fn as_the_pseudocode(
        options: bool,
        steps in proptest::collection::vec((0u32..60, 0u64..120, prop::bool::weighted(0.3), prop::bool::ANY), 1..600),
        limit in 40u32..60,
        seed: u64,
    ) {
        let mut b = Bench::new(if options { Params { ecn: true, ..defaults() } } else { params() });
        b.rng = Rng::for_component(seed, "pie");
        let mut theirs = Rng::for_component(seed, "pie");
        let mut oracle = Oracle { options, burst_allowance: 0.150, ..Oracle::default() };
        for (waiting, delay, update, ecn) in steps {
            b.queue = Fake { limit: f64::from(limit), ..Fake::of(waiting, 0) };
            let expected = oracle.enque(
                u64::from(waiting) * 1000, waiting >= limit, ecn && options, &mut || theirs.uniform());
            prop_assert_eq!(b.arrive(if ecn { Ecn::Ect0 } else { Ecn::NotCapable }), expected);
            if waiting > 0 {
                let waited = MS * delay;
                b.depart(waited);
                oracle.current_qdelay = waited.secs();
            }
            if update {
                b.now += MS * 15;
                b.pie.tick(b.now, &mut Outbox::default());
                oracle.calculate_drop_prob();
            }
            prop_assert!((b.pie.vars.drop_prob - oracle.drop_prob).abs() < 1e-12);
            prop_assert!((b.pie.vars.accu_prob - oracle.accu_prob).abs() < 1e-9);
        }
    }

    /// §5.4: gaps between drops at a constant probability.
    #[test]
    fn drops_are_spaced(p in 0.002f64..0.2, seed: u64) {
        let mut b = congested(p, Params { derandomise: true, ..params() });
        b.rng = Rng::for_component(seed, "pie");
        let mut gap = 0u32;
        for _ in 0..20_000 {
            gap += 1;
            if b.arrive(Ecn::NotCapable) == Admission::Drop(EARLY) {
                prop_assert!(f64::from(gap) * p >= 0.85 - 1e-9, "{gap} packets at {p}");
                prop_assert!(f64::from(gap - 1) * p <= 8.5 + 1e-9, "{gap} packets at {p}");
                gap = 0;
            }
        }
    }

    /// Without derandomisation the share of drops is the probability.
    #[test]
    fn drops_at_its_probability(p in 0.02f64..0.9, seed: u64) {
        let mut b = congested(p, params());
        b.rng = Rng::for_component(seed, "pie");
        let n = 20_000;
        let drops = (0..n).filter(|_| b.arrive(Ecn::NotCapable) == Admission::Drop(EARLY)).count() as f64;
        let sigma = (p * (1.0 - p) / f64::from(n)).sqrt();
        prop_assert!((drops / f64::from(n) - p).abs() < 6.0 * sigma);
    }
}

/// A golden sequence: an arrival each millisecond, every second one ECN-capable, behind packets that wait for a delay that rises to 150 ms
/// within 600 ms and falls from there. m: marked, x: dropped; a line is 100 ms, from 300 ms on.
#[test]
fn golden_sequence() {
    let mut b = Bench::new(Params { ecn: true, ..defaults() });
    let verdict = |t: u32| {
        b.now += MS;
        b.queue = Fake::of(30, 0);
        b.depart(MS * u64::from(if t < 600 { t / 4 } else { 150 - (t - 600) * 3 / 8 }));
        if t % 15 == 14 {
            b.pie.tick(b.now, &mut Outbox::default());
        }
        match b.arrive(if t.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotCapable }) {
            Admission::Admit => '.',
            Admission::Mark => 'm',
            Admission::Drop(_) => 'x',
        }
    };
    let verdicts: String = (0..1000).map(verdict).collect();
    let expected = [
        "..............................m..........................................x...................x......",
        ".....................x...........x..........m................x..................x...................",
        "x.......x...................x..............x.........x....x.........x....x.....x.....x.....x........",
        "...x......x.........x.....x...x...x......x..x...x..x..x.....x......x...x....x..x...x......x..x......",
        ".x.........x........x.....x..........x..............x..x....x....x....x.......x....x......x.........",
        ".x..x..x.......x..x....x..x..x...x......x..x....x....x..x...x....x..x...x...x..x..x...x...x.........",
        "..x..x....x......x....x...x..x.........x....x..x..x...x...x..x..x..x...x..x...x.........x...x....x..",
    ];
    assert_eq!(verdicts, ".".repeat(300) + &expected.concat());
}
