use super::{Signal, *};
use crate::testing::*;

fn params(ecn: bool) -> Params {
    Params { ecn, ..crate::params::defaults() }
}

fn control(p: &Params) -> Control {
    p.build(&CONTEXT).control
}

fn bench(p: &Params, limit: f64) -> Bench {
    Bench::new(AnyAqm::Cobalt(Box::new(p.build(&CONTEXT))), Backlog::Packets(limit)).drawing(1, "cobalt")
}

/// As the link does that has just sent the last packet.
fn depart(b: &mut Bench, at: u64) -> Option<(u32, bool)> {
    let sent = b.depart_at(at);
    if b.queue.packets() == 0 {
        b.queue.went_idle(Time(at));
    }
    sent.map(Left::marked)
}

fn vars(b: &mut Bench) -> &mut Vars {
    let AnyAqm::Cobalt(cobalt) = &mut b.aqm else { unreachable!() };
    &mut cobalt.vars
}

/// When the law signals, asked every `step` from the start on, of packets that have waited for `sojourn(t)`.
fn signals(v: &mut Vars, c: &Control, ms: std::ops::Range<u64>, sojourn: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut at = Vec::new();
    for t in ms {
        let due = v.leaves(Time(t * MS), Duration(sojourn(t) * MS), c) == Signal::Due;
        v.left(Time(t * MS), due, c);
        if due {
            at.push(t);
        }
    }
    at
}

/// CoDel's law: an interval after the first packet that waited too long, then interval/√2, interval/√3, … on, and no earlier.
#[test]
fn signals_follow_the_inverse_square_root() {
    let c = control(&params(false));
    let mut v = Vars::default();
    signals(&mut v, &c, 0..50, |_| 1);
    let at = signals(&mut v, &c, 50..700, |_| 20);
    let mut due = 50.0 + 100.0;
    let mut expected = vec![150];
    for count in 2..20 {
        due += 100.0 / f64::from(count).sqrt();
        if due < 700.0 {
            expected.push((due - 1e-6).ceil() as u64);
        }
    }
    assert_eq!(at, expected);
}

/// Below target there are no signals, and the rate falls along the curve by which it rose: as many steps down in as much
/// time; after a short while below target it goes on from about where it was.
#[test]
fn the_curve_is_gone_back_down() {
    let c = control(&params(false));
    let mut v = Vars::default();
    let up = signals(&mut v, &c, 0..1000, |_| 20).len() as u32;
    assert_eq!(v.count, up + 1);
    let high = v.count;
    let mut counts = Vec::new();
    for t in 1000..2200 {
        assert_eq!(v.leaves(Time(t * MS), Duration(MS), &c), Signal::None);
        v.left(Time(t * MS), false, &c);
        counts.push(v.count);
    }
    assert!(counts.windows(2).all(|w| w[1] == w[0] || w[1] + 1 == w[0]));
    // A little more than a third of the curve's time is spent in its upper half.
    let half = counts.iter().position(|n| *n <= high / 2).expect("it gets there");
    assert!((150..700).contains(&half), "{half}");
    assert_eq!(counts.last(), Some(&0));

    let mut v = Vars::default();
    signals(&mut v, &c, 0..1000, |_| 20);
    let before = v.count;
    signals(&mut v, &c, 1000..1030, |_| 1);
    assert!(v.count + 3 >= before && v.count <= before);
    let again = signals(&mut v, &c, 1030..1060, |_| 20);
    assert!(!again.is_empty(), "at the rate of before, not after an interval");
}

/// Linux: a queue's first dropping state signals with the second packet that is too late, and no interval later; then an interval passes
/// between signals as it does without the variant, and later states begin an interval after they are entered.
#[test]
fn linux_signals_at_once_the_first_time() {
    let c = control(&Params { variant: Variant::Linux, ..params(false) });
    let mut v = Vars::default();
    signals(&mut v, &c, 0..50, |_| 1);
    let at = signals(&mut v, &c, 50..700, |_| 20);
    let mut due = 51.0;
    let mut expected = vec![51];
    for count in 2..40 {
        due += 100.0 / f64::from(count).sqrt();
        // The law plans from the time the state was entered.
        expected.push((due - 1.0 - 1e-6).ceil() as u64);
    }
    expected.retain(|at| *at < 700);
    assert_eq!(at[..14], expected[..14]);
    // Down to the start of the curve, and up again.
    signals(&mut v, &c, 700..3000, |_| 1);
    assert_eq!(v.count, 0);
    assert_eq!(signals(&mut v, &c, 3000..3200, |_| 20), [3100, 3171]);
    // A state entered more than an interval after the last packet left does not wait, either.
    signals(&mut v, &c, 3200..5000, |_| 1);
    assert_eq!(signals(&mut v, &c, 5150..5200, |_| 20), [5151]);
    let exact = control(&params(false));
    assert_eq!(signals(&mut Vars::default(), &exact, 5150..5200, |_| 20), Vec::<u64>::new());
}

/// Linux reads a clock of nanoseconds as a packet comes and as it leaves: half of one above target is not above it.
#[test]
fn linuxs_clock_is_in_nanoseconds() {
    for (variant, late) in [(Variant::Exact, true), (Variant::Linux, false)] {
        let mut b = bench(&Params { variant, ..params(false) }, 1000.0);
        for number in 0..3 {
            assert_eq!(b.arrive_at(MS, number, 1000, Ecn::NotCapable), Admission::Admit);
        }
        depart(&mut b, 6 * MS + 500);
        assert_eq!(vars(&mut b).is_dropping(), late, "{variant:?}");
        depart(&mut b, 6 * MS + 1000);
        assert!(vars(&mut b).is_dropping(), "{variant:?}");
    }
}

/// Linux: 1/√count from a table up to 15, of which only the value for 2 is off (four steps from 1: 1/2, 5/8, 0.69336, 0.70671), and by a
/// step of Newton's method beyond, which is never more than it: by 0.16 % less at 16, coming up, and ever closer.
#[test]
fn linux_roots_are_nearly_exact() {
    let mut x = 0;
    for count in 0..200 {
        x = inverse_root(x, count);
        let exact = 1.0 / f64::from(count.max(1)).sqrt();
        let root = f64::from(x) / 4_294_967_296.0;
        let most = match count {
            2 => 0.000_57,
            0..=15 => 3e-8,
            _ => 0.45 / f64::from(count * count),
        };
        let off = root / exact - 1.0;
        assert!((-most..=1e-9).contains(&off), "{count}: {off}");
        if count == 2 {
            assert!((root - 0.706_708).abs() < 1e-6);
        }
    }
    // Up and down alike.
    assert_eq!((inverse_root(0, 2), inverse_root(u32::MAX, 2)), (LINUX_TABLE[2], LINUX_TABLE[2]));
}

/// A target is not reached by a packet that waits for less than four transmissions.
#[test]
fn slow_links_have_a_target_of_four_packets() {
    let slow = Params { mtu_time: Some(Duration::from_millis(12)), ..params(false) };
    let c = control(&slow);
    assert_eq!(c.least, Duration::from_millis(48));
    assert!(signals(&mut Vars::default(), &c, 0..1000, |_| 48).is_empty());
    assert!(!signals(&mut Vars::default(), &c, 0..1000, |_| 49).is_empty());
    // By the link's rate: a millisecond a packet.
    assert_eq!(control(&params(false)).least, Duration::from_millis(4));
}

/// BLUE: 1/256 more for a queue that stays full, once a target at most; 1/4096 less for one found empty.
#[test]
fn blue_moves_once_a_target() {
    let c = control(&params(false));
    let mut v = Vars::default();
    for t in 10..=40 {
        v.full(Time(t * MS), &c);
    }
    // At 10, 16, 22, 28, 34 and 40 ms.
    assert_eq!(v.p_drop, 6.0 / 256.0);
    assert!(v.dropping && v.count == 1);
    v.empty(Time(45 * MS), &c);
    assert_eq!(v.p_drop, 6.0 / 256.0);
    v.empty(Time(46 * MS), &c);
    assert_eq!(v.p_drop, 6.0 / 256.0 - 1.0 / 4096.0);
    assert!(!v.dropping);
    for t in 0..10_000 {
        v.full(Time((100 + 6 * t) * MS), &c);
    }
    assert_eq!(v.p_drop, 1.0);
}

/// A full queue that stays so: BLUE's probability rises, and drops at the head even what could be marked.
#[test]
fn blue_drops_what_codel_would_mark() {
    let mut b = bench(&params(true), 20.0);
    let mut n = 0;
    for t in 0..4000 {
        for _ in 0..3 {
            b.arrive_at(t * MS, n, 1000, Ecn::Ect0);
            n += 1;
        }
        depart(&mut b, t * MS);
    }
    assert!(vars(&mut b).p_drop > 0.5);
    let blue = b.causes.iter().filter(|cause| **cause == BLUE).count();
    assert!(blue > 500, "{blue}");
    assert!(b.causes.iter().all(|cause| *cause == BLUE), "marks are CoDel's");
    // The load is gone: empty once a target, it comes down, and stays above 0 for long.
    let p = vars(&mut b).p_drop;
    while depart(&mut b, 4001 * MS).is_some() {}
    for t in 0..100 {
        b.arrive_at((5000 + 10 * t) * MS, n, 1000, Ecn::Ect0);
        depart(&mut b, (5001 + 10 * t) * MS);
    }
    let fallen = (p - vars(&mut b).p_drop) * 4096.0;
    assert!((98.0..=101.0).contains(&fallen), "{fallen}");
}

/// The last packet of a queue is never dropped: a sender would have nothing to notice it by.
#[test]
fn the_last_packet_is_never_dropped() {
    let mut b = bench(&params(false), 20.0);
    vars(&mut b).p_drop = 1.0;
    assert!(b.admits(0, 0, 1000) && b.admits(0, 1, 1000));
    assert_eq!(depart(&mut b, MS), Some((1, false)));
    assert_eq!((b.dropped, b.causes), (vec![0], vec![BLUE]));
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let check = |target, limit| {
        let p = Params { target: Duration::from_millis(target), ..params(false) };
        crate::params::fields(p.check(&Context { limit: Some(Backlog::Packets(limit)), ..CONTEXT }))
    };
    assert_eq!(check(5, 100.0), Ok(vec![]));
    assert_eq!(check(100, 1000.0), Err("target"));
    assert_eq!(check(5, 5.0), Ok(vec!["target"]));
}

/// The description, step by step, in milliseconds as fractions.
#[derive(Default)]
struct Oracle {
    count: i64,
    next: f64,
    late: bool,
}

impl Oracle {
    fn step(&self) -> f64 {
        100.0 / (self.count.max(1) as f64).sqrt()
    }

    fn leaves(&mut self, now: f64, sojourn: f64, least: f64) -> bool {
        let late = sojourn > 5.0 && sojourn > least;
        let due = self.count > 0 && now >= self.next;
        if late && !self.late {
            self.next = now + self.step();
        }
        self.late = late;
        if late && self.count == 0 {
            self.count = 1;
        }
        let signal = due && late;
        if signal {
            self.count += 1;
            self.next += self.step();
        } else if !late {
            while self.count > 0 && now >= self.next {
                self.count -= 1;
                self.next += self.step();
            }
        }
        if self.count == 0 {
            self.next = now + 100.0;
        } else if now > self.next && !signal {
            self.next = now;
        }
        signal
    }
}

proptest! {
    /// Whatever packets wait for and whenever they leave: the signals are the description's.
    #[test]
    fn agrees_with_the_description(steps in prop::collection::vec((1u64..40, 0u64..3, 0u64..20), 1..500)) {
        let c = control(&params(false));
        let (mut v, mut oracle) = (Vars::default(), Oracle::default());
        let mut now = 0;
        for (pause, high, wait) in steps {
            // Off the law's own grid: no tie that rounding would decide.
            now += pause * MS + 1_234_567;
            let sojourn = wait * MS * (1 + high) / 2 + 7;
            let said = v.leaves(Time(now), Duration(sojourn), &c) == Signal::Due;
            v.left(Time(now), said, &c);
            let ms = |t: u64| t as f64 / MS as f64;
            prop_assert_eq!(said, oracle.leaves(ms(now), ms(sojourn), 4.0));
            prop_assert_eq!(i64::from(v.count), oracle.count);
        }
    }
}

/// Golden: three packets come for each two that leave, into a queue of 30; what became of the first hundred.
#[test]
fn golden_sequence() {
    let mut b = bench(&params(false), 30.0);
    let mut said = String::new();
    let mut n = 0;
    for t in 0..400u64 {
        for _ in 0..1 + t % 2 {
            if let Admission::Drop(_) = b.arrive_at(t * MS, n, 1000, Ecn::NotCapable) {
                said.push('o');
            }
            n += 1;
        }
        let before = b.causes.len();
        depart(&mut b, t * MS);
        for cause in &b.causes[before..] {
            said.push(if *cause == BLUE { 'b' } else { 'c' });
        }
        if t % 20 == 19 {
            said.push('|');
        }
    }
    let expected = "||oc|ocococococ|ocococococ|ocococococ|ococbbococ|bocbbococ|ocococococ|ocbococococb|ococococ|\
                    ococococbbb|bococococ|ococbbbboc|ococococboc|ococbococ|ocbocbocbb|ococbbbococ|ocbocbboc|ococbbbbbbbbcb|";
    assert_eq!(said, expected);
}
