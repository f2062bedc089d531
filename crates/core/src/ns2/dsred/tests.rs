use Admission::{Admit, Drop};
use Colour::{Green as G, Red as R, Yellow as Y};

use super::*;
use crate::testing::*;

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
    Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
}

fn params(averages: Averages, w_q: f64) -> Params {
    Params {
        green: thresholds(20.0, 30.0, 0.02),
        yellow: thresholds(10.0, 20.0, 0.1),
        red: Some(thresholds(5.0, 10.0, 0.2)),
        averages,
        w_q,
        mean_packet: None,
    }
}

fn noted(notes: &Notes, what: &str) -> Option<f64> {
    notes.items().iter().find(|(name, _)| *name == what).map(|(_, x)| *x)
}

fn of(colours: [u32; 3]) -> Fake {
    Fake { packets: colours, ..Fake::of(0, 0) }
}

fn packet(colour: Colour) -> Packet {
    Packet { size: 1000, colour, ..Packet::default() }
}

fn arrive(q: &mut DsRed, ms: u64, colour: Colour, waiting: [u32; 3], rng: &mut Rng) -> Admission {
    q.arrive(&packet(colour), At::silent(Time(ms * MS), &mut of(waiting), rng))
}

fn depart(q: &mut DsRed, ms: u64, colour: Colour, left: [u32; 3]) {
    let mut rng = crate::ns2::stream(1);
    q.depart(&packet(colour), At::silent(Time(ms * MS), &mut of(left), &mut rng).since(Time::ZERO));
}

/// On the thresholds: min_th itself never drops, max_th itself only by chance; that is where WRED differs.
#[test]
fn golden_sequence() {
    let verdict = |colour, waiting| {
        let mut q = params(Averages::Coupled, 1.0).build(&CONTEXT);
        arrive(&mut q, 0, colour, waiting, &mut crate::ns2::stream(1))
    };
    assert_eq!(verdict(Y, [5, 5, 90]), Admit);
    assert_eq!(verdict(Y, [10, 11, 0]), Drop(FORCED));
    assert_eq!(verdict(G, [30, 90, 90]), Drop(EARLY)); // ns-2's first number is 0.0003
    assert_eq!(verdict(R, [3, 3, 5]), Drop(FORCED));
}

/// 20.9 packets are 20 to ns-2, and a queue that is full teaches the average nothing.
#[test]
fn cut_off_and_unseen() {
    let p = Params { yellow: thresholds(10.9, 20.9, 0.1), ..params(Averages::Shared, 1.0) };
    let mut q = p.build(&CONTEXT);
    assert_eq!((q.vars.level[1].min_th, q.vars.level[1].max_th), (10.0, 20.0));
    let mut full = Fake { limit: 15.0, ..of([0, 15, 0]) };
    let verdict = q.arrive(&packet(Y), At::silent(Time::ZERO, &mut full, &mut crate::ns2::stream(1)));
    assert_eq!(verdict, Drop(Cause::OVERFLOW));
    assert_eq!(q.vars.level[1].avg, 0.0);
    let fault = |min, max| Params { red: Some(thresholds(min, max, 0.1)), ..p.clone() }.check(&CONTEXT);
    assert_eq!(fault(5.2, 5.8).expect_err("one whole number").field, "red.min_th");
    assert_eq!(fault(5.2, 6.0).expect("a packet apart").len(), 3);
}

/// count·p_b past 1: p_a is negative and stays so; nothing is dropped any more though the average is high.
#[test]
fn the_missing_guard() {
    let mut q =
        Params { yellow: thresholds(0.0, 10.0, 1.0), ..params(Averages::Shared, 1.0) }.build(&CONTEXT);
    let mut rng = crate::ns2::stream(1);
    arrive(&mut q, 0, Y, [0, 6, 0], &mut rng); // p_b 0.6, count 0
    q.vars.level[1].count = 2; // as many let by
    for _ in 0..1000 {
        assert_eq!(arrive(&mut q, 0, Y, [0, 6, 0], &mut rng), Admit);
    }
    assert_eq!(q.division_by_zero, 0);
    // Exactly 1: ns-2 dies of it.
    q.vars.level[1].count = 1;
    assert_eq!(arrive(&mut q, 0, Y, [0, 5, 0], &mut rng), Drop(EARLY));
    assert_eq!(q.division_by_zero, 1);
}

/// Who becomes idle when a packet leaves and this is left.
#[test]
fn idle_by_mode() {
    let idle = |averages, colour, left| {
        let mut q = params(averages, 0.5).build(&CONTEXT);
        q.vars.level.iter_mut().for_each(|l| l.idle = None);
        depart(&mut q, 7, colour, left);
        q.vars.level.map(|l| l.idle.is_some())
    };
    assert_eq!(idle(Averages::Shared, Y, [9, 0, 9]), [true, false, false]);
    assert_eq!(idle(Averages::Shared, Y, [0, 1, 0]), [false; 3]);
    assert_eq!(idle(Averages::Decoupled, R, [9, 9, 0]), [false, false, true]);
    assert_eq!(idle(Averages::Coupled, G, [0, 0, 0]), [true; 3]);
    assert_eq!(idle(Averages::Coupled, G, [0, 1, 0]), [true, false, false]);
    assert_eq!(idle(Averages::Coupled, Y, [1, 0, 0]), [false; 3]);
    assert_eq!(idle(Averages::Coupled, Y, [0, 0, 0]), [false, true, true]);
}

/// Idle from 7 ms to 10.9: three packets' time, and the arrival's own step; then a step an arrival.
#[test]
fn idle_time_fades_by_whole_packets() {
    let mut q = params(Averages::Decoupled, 0.5).build(&CONTEXT);
    q.vars.level[1].avg = 8.0;
    depart(&mut q, 7, Y, [0; 3]);
    let mut rng = crate::ns2::stream(1);
    q.tell_secs(0.0109);
    assert_eq!(arrive(&mut q, 0, Y, [0; 3], &mut rng), Admit);
    assert_eq!(q.vars.level[1].avg, 0.5);
    assert_eq!(arrive(&mut q, 12, Y, [0, 1, 0], &mut rng), Admit);
    assert_eq!(q.vars.level[1].avg, 0.75);
}

/// ns-2 sets a count of −1 only at a packet that finds the average at or below min_th: a colour's first one that finds it above is the
/// first that counts, and p_a is p_b / (1 − p_b). From a count of −1 it would be p_b.
#[test]
fn a_late_first_packet_counts_as_one() {
    let p = Params { yellow: thresholds(10.0, 20.0, 0.5), ..params(Averages::Shared, 1.0) };
    let mut q = p.build(&CONTEXT);
    let mut notes = Notes::default();
    let second = |q: &mut DsRed, notes: &mut Notes| {
        q.arrive(&packet(Y), At::new(Time::ZERO, &mut of([15, 0, 0]), &mut crate::ns2::stream(7), notes))
    };
    second(&mut q, &mut notes);
    let noted_of = |what| noted(&notes, what).expect("between the thresholds");
    assert_eq!((noted_of("count"), noted_of("p_b")), (1.0, 0.25));
    assert!((noted_of("p_a") - 1.0 / 3.0).abs() < 1e-12);
    // Once the average was below, the count begins at none.
    let mut q = p.build(&CONTEXT);
    arrive(&mut q, 0, Y, [5, 0, 0], &mut crate::ns2::stream(7));
    let mut notes = Notes::default();
    second(&mut q, &mut notes);
    assert_eq!(noted(&notes, "count"), Some(0.0));
}

#[test]
fn an_endless_idle_time_ends() {
    assert_eq!(faded(10.0, 0.002, i64::MAX, std::iter::once(5.0)), f64::from(0.01f32));
}

proptest! {
    /// The law in real numbers: within single precision of an average that takes a sample at each arrival; drops only
    /// between the thresholds or above, and by the number drawn.
    #[test]
    fn agrees_with_the_oracle(
        arrivals in prop::collection::vec((0..3usize, [0..30u32, 0..30u32, 0..30u32]), 1..150),
        averages in prop::sample::select(vec![Averages::Shared, Averages::Coupled, Averages::Decoupled]),
    ) {
        let mut q = params(averages, 0.1).build(&CONTEXT);
        q.vars.level.iter_mut().for_each(|l| l.idle = None);
        let mut rng = crate::ns2::stream(5);
        let mut slow = [0.0f64; 3];
        for (colour, waiting) in arrivals {
            let sums = match averages {
                Averages::Shared => [waiting.iter().sum(); 3],
                Averages::Coupled => [waiting[0], waiting[0] + waiting[1], waiting.iter().sum()],
                Averages::Decoupled => waiting,
            };
            for i in 0..3 {
                let samples = match averages {
                    Averages::Shared => true,
                    Averages::Coupled => i >= colour,
                    Averages::Decoupled => i == colour,
                };
                if samples { slow[i] = 0.9 * slow[i] + 0.1 * f64::from(sums[i]); }
            }
            let mut notes = Notes::default();
            let verdict = q.arrive(&packet(Colour::ALL[colour]), At::new(Time::ZERO, &mut of(waiting), &mut rng, &mut notes));
            let l = q.vars.level[colour];
            prop_assert!((l.avg - slow[colour]).abs() < 1e-4);
            let drawn = noted(&notes, "u");
            prop_assert_eq!(drawn.is_some(), l.avg > l.min_th && l.avg <= l.max_th);
            let expected = match drawn {
                Some(u) if u <= noted(&notes, "p_a").expect("noted with the number") => Drop(EARLY),
                None if l.avg > l.max_th => Drop(FORCED),
                _ => Admit,
            };
            prop_assert_eq!(verdict, expected);
        }
    }
}
