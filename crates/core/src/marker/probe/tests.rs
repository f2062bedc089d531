use super::*;
use crate::testing::*;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1500), limit: None };

fn params() -> Params {
    Params {
        alpha: 0.5,
        a_init: 10.0,
        increase: Increase::Double,
        boundary: Boundary::Shorter,
        loss: Loss::EachReplica,
        a_min: 0.0,
        first_in: 0,
        flows: 4,
    }
}

const SEGMENT: u32 = 1460;

/// The n-th segment (from 1) of the flow that starts with the number `isn`.
fn segment(flow: u32, isn: u32, n: u32) -> Packet {
    let seq = isn.wrapping_add(1).wrapping_add((n - 1).wrapping_mul(SEGMENT));
    Packet { flow: FlowId(flow), size: 1500, payload: SEGMENT, seq, ..Packet::default() }
}

fn syn(flow: u32, isn: u32) -> Packet {
    Packet { flow: FlowId(flow), size: 40, seq: isn, kind: Kind::Syn, ..Packet::default() }
}

fn mark(probe: &mut Probe, packet: &Packet) -> char {
    let mut rng = Rng::for_component(0, "unused");
    match probe.mark(Time::ZERO, packet, &mut rng, &mut Silent) {
        Mark::Pass(Colour::Green) => 'i',
        Mark::Pass(_) => 'O',
        Mark::Drop(_) => unreachable!("it drops nothing"),
    }
}

/// Marks of these segments, after a SYN with number 0.
fn marks(params: &Params, segments: impl IntoIterator<Item = u32>) -> (String, Probe) {
    let mut probe = params.build(&CONTEXT);
    assert_eq!(mark(&mut probe, &syn(0, 0)), 'i');
    let text = segments.into_iter().map(|n| mark(&mut probe, &segment(0, 0, n))).collect();
    (text, probe)
}

fn state(probe: &Probe) -> (u32, f64) {
    (probe.last.length, probe.last.permitted)
}

/// A = 10: 9 IN, the tenth OUT; then A = 21: 20 IN, the 21st OUT.
#[test]
fn golden_sequence_without_loss() {
    let (text, probe) = marks(&params(), 1..=32);
    assert_eq!(text, "iiiiiiiiiOiiiiiiiiiiiiiiiiiiiiOi");
    assert_eq!(state(&probe), (1, 43.0));
}

/// With L ≤ A ten are IN, and after A = 21 twenty-one.
#[test]
fn golden_sequence_with_the_other_boundary() {
    let (text, probe) = marks(&Params { boundary: Boundary::NotLonger, ..params() }, 1..=33);
    assert_eq!(text, "iiiiiiiiiiOiiiiiiiiiiiiiiiiiiiiiO");
    assert_eq!(state(&probe), (0, 43.0));
}

/// The tenth (OUT, A = 21) is lost when 14 have been sent: L = 4, A = 0.5·21 + 0.5·4 = 12.5, L = 0. The next burst is
/// 12 IN (12 < 12.5) and an OUT; A = 26.
#[test]
fn golden_sequence_with_a_lost_probe() {
    let (text, probe) = marks(&params(), (1..=14).chain([10]).chain(15..=27));
    assert_eq!(text, "iiiiiiiiiOiiiiiiiiiiiiiiiiiO");
    assert_eq!(state(&probe), (0, 26.0));
    let counted =
        Stats { marked_in: 25, marked_out: 2, repeated: 1, losses: 1, probes_lost: 1, forgotten: 0 };
    assert_eq!(probe.stats, counted);
}

/// Go-back-N: 8 replicas. Each counts: L = 8 then 0, so A = 9, 4.5, … 9/2⁷ = 0.0703125; the next new packet is OUT
/// (1 < 0.07 is false) and A = 1.140625; then 1 < 1.14 is IN and 2 is OUT.
#[test]
fn golden_sequence_of_a_timeout() {
    let (text, probe) = marks(&params(), (1..=8).chain(1..=8).chain(9..=11));
    assert_eq!(text, "iiiiiiiiiiiiiiiiOiO");
    assert_eq!(state(&probe), (0, 2.0 * 1.140_625 + 1.0));
    // Eight halvings of 10 with L = 0.
    let mut a = 10.0;
    for _ in 0..8 {
        a = after_loss(a, 0, 0.5, 0.0);
    }
    assert!((a - 0.04f64).abs() < 0.001);
}

/// The same, once per window: A = 0.5·10 + 0.5·8 = 9, and eight new packets are IN, the ninth OUT.
#[test]
fn golden_sequence_of_a_timeout_counted_once() {
    let once = Params { loss: Loss::OncePerWindow, ..params() };
    let (text, probe) = marks(&once, (1..=8).chain(1..=8).chain(9..=17));
    assert_eq!(text, "iiiiiiiiiiiiiiiiiiiiiiiiO");
    assert_eq!((probe.stats.repeated, probe.stats.losses), (8, 1));
    // A packet that was sent after the loss was seen, and is repeated, is another loss.
    let (_, probe) = marks(&once, (1..=8).chain(1..=8).chain([9, 10, 9, 10]));
    assert_eq!(probe.stats.losses, 2);
}

/// 3 GiB after the last loss, more than half the numbers, a loss is one all the same.
#[test]
fn a_loss_long_after_the_last_one_counts() {
    let once = Params { loss: Loss::OncePerWindow, ..params() };
    let mut probe = once.build(&CONTEXT);
    mark(&mut probe, &syn(0, 0));
    let at = |seq| Packet { seq, ..segment(0, 0, 1) };
    let strides = (0..=48).map(|n| n << 26);
    strides.for_each(|seq| _ = mark(&mut probe, &at(1 + seq)));
    mark(&mut probe, &at(1 + (48 << 26)));
    assert_eq!((probe.stats.repeated, probe.stats.losses), (1, 1));
}

#[test]
fn a_never_falls_below_its_bound() {
    let bounded = Params { a_min: 1.0, ..params() };
    // A = 1 after the timeout: 1 < 1 is false, so the next is OUT, and A = 3.
    let (text, probe) = marks(&bounded, (1..=8).chain(1..=8).chain(9..=12));
    assert_eq!(&text[16..], "OiiO");
    assert_eq!(state(&probe), (0, 7.0));
}

#[test]
fn each_rule_of_growth() {
    let a = |rule, out_loss| increase(rule, 10.0, 0.5, out_loss);
    assert_eq!(a(Increase::Double, 0.0), 21.0);
    assert_eq!(a(Increase::One, 0.0), 11.0);
    assert_eq!(a(Increase::Inverse, 0.0), 20.0);
    assert_eq!(
        [a(Increase::ByOutLoss, 0.0), a(Increase::ByOutLoss, 0.5), a(Increase::ByOutLoss, 1.0)],
        [11.0, 16.0, 21.0]
    );
    let (text, _) = marks(&Params { increase: Increase::One, ..params() }, 1..=33);
    assert_eq!(text, "iiiiiiiiiOiiiiiiiiiiOiiiiiiiiiiiO");
}

/// §2: if every OUT packet is lost and no other, and the loss is seen before anything else is sent, A/(1−α) keeps A.
#[test]
fn the_inverse_rule_is_stationary_under_stop_and_wait() {
    let p = Params { increase: Increase::Inverse, a_init: 8.0, ..params() };
    let mut probe = p.build(&CONTEXT);
    mark(&mut probe, &syn(0, 0));
    let mut n = 0;
    for _ in 0..50 {
        n += 1;
        if mark(&mut probe, &segment(0, 0, n)) == 'O' {
            assert_eq!(probe.last.permitted, 16.0);
            mark(&mut probe, &segment(0, 0, n));
            assert_eq!(state(&probe), (0, 8.0));
        }
    }
    assert_eq!(probe.stats.probes_lost, 50 / 8);
}

/// The share of lost probes: starts at 1; a probe that nobody repeats before the next one got through.
/// Neglia et al. 2003, §4.
#[test]
fn out_loss_follows_the_probes_fate() {
    let p = Params { increase: Increase::ByOutLoss, a_init: 1.0, ..params() };
    // 1 is OUT (1 < 1 is false), its fate open: A = 3. 2, 3 IN? 1 < 3, 2 < 3, and 4 OUT: the first got through, the
    // share falls to 0.5, A = 3 + 1 + 1.5.
    let (text, probe) = marks(&p, 1..=4);
    assert_eq!((text.as_str(), probe.last.out_loss, probe.last.permitted), ("OiiO", 0.5, 5.5));
    // 4 is repeated: lost. The share rises to 0.75; A = 0.5·5.5 + 0.5·0.
    let (_, probe) = marks(&p, (1..=4).chain([4]));
    assert_eq!((probe.last.out_loss, probe.last.permitted), (0.75, 2.75));
}

#[test]
fn acknowledgements_syns_and_datagrams_touch_nothing() {
    let (_, mut probe) = marks(&params(), 1..=5);
    let before = (probe.last, probe.stats.clone());
    let ack = Packet { size: 40, kind: Kind::Ack, colour: Colour::OUT, ..Packet::default() };
    for _ in 0..100 {
        assert_eq!(mark(&mut probe, &ack), 'i');
    }
    let udp = Packet { size: 500, payload: 460, kind: Kind::Datagram, ..Packet::default() };
    assert_eq!(mark(&mut probe, &udp), 'i');
    assert_eq!(mark(&mut probe, &Packet { colour: Colour::OUT, ..udp }), 'O');
    assert_eq!((probe.last, probe.stats.clone()), before);
    // A new SYN is a new connection.
    mark(&mut probe, &syn(0, 5_000_000));
    let text: String = (1..=10).map(|n| mark(&mut probe, &segment(0, 5_000_000, n))).collect();
    assert_eq!(text, "iiiiiiiiiO");
}

#[test]
fn the_first_packets_of_a_flow_can_be_kept_in() {
    let (text, probe) = marks(&Params { first_in: 15, ..params() }, 1..=17);
    assert_eq!(text, "iiiiiiiiiiiiiiiOi");
    assert_eq!(state(&probe), (1, 21.0));
}

#[test]
fn flows_at_an_edge_are_kept_apart_and_the_silent_one_makes_room() {
    let mut probe = params().build(&CONTEXT);
    let mut text = String::new();
    for n in 1..=11 {
        for flow in 0..4 {
            text.push(mark(&mut probe, &segment(flow, 77 * flow, n)));
        }
    }
    assert_eq!(text, format!("{}OOOOiiii", "i".repeat(36)));
    assert_eq!(probe.stats.forgotten, 0);
    // A fifth: the first is forgotten, and starts over with what it sends next.
    mark(&mut probe, &segment(4, 0, 1));
    assert_eq!(probe.stats.forgotten, 1);
    let text: String = (12..=22).map(|n| mark(&mut probe, &segment(0, 0, n))).collect();
    assert_eq!(text, "iiiiiiiiiOi");
}

#[test]
fn what_cannot_be_is_refused() {
    let one = Params { alpha: 1.0, increase: Increase::Inverse, ..params() };
    assert_eq!(one.check(&CONTEXT).map_err(|f| f.field), Err("alpha"));
    assert_eq!(Params { alpha: 0.0, ..params() }.check(&CONTEXT).map(|w| w[0].field), Ok("alpha"));
    assert_eq!(Params { alpha: 0.5, ..one }.check(&CONTEXT).map(|w| w[0].field), Ok("a_min"));
    assert_eq!(params().check(&CONTEXT), Ok(Vec::new()));
}

fn options() -> impl Strategy<Value = Params> {
    let increase = prop::sample::select(vec![Increase::Double, Increase::One, Increase::Inverse]);
    (0.0f64..0.99, 0.0f64..30.0, increase, any::<bool>(), any::<bool>(), 0.0f64..3.0, 0u64..30).prop_map(
        |(alpha, a_init, increase, longer, once, a_min, first_in)| Params {
            alpha,
            a_init,
            increase,
            boundary: if longer { Boundary::NotLonger } else { Boundary::Shorter },
            loss: if once { Loss::OncePerWindow } else { Loss::EachReplica },
            a_min,
            first_in,
            flows: 1,
        },
    )
}

/// Segments as a sender might number them: mostly forward, once in `every` back by a few and on from there.
pub(super) fn walk(every: u32, most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec((0..every, 0u32..9), 1..most).prop_map(|steps| {
        let mut next = 1u32;
        let mut all = Vec::new();
        for (dice, back) in steps {
            if dice == 0 {
                next = next.saturating_sub(back).max(1);
            }
            all.push(next);
            next += 1;
        }
        all
    })
}

proptest! {
    /// Neglia et al. 2003 §2: Fig. 1 over whole numbers of segments without end, whatever number the flow starts with.
    #[test]
    fn agrees_with_the_flow_chart_across_the_wrap(p in options(), isn: u32, segments in walk(12, 400)) {
        let mut probe = p.build(&CONTEXT);
        mark(&mut probe, &syn(0, isn));
        let (mut highest, mut length, mut a) = (0u32, 0u32, p.a_init.max(p.a_min));
        let (mut seen_loss_up_to, mut sent) = (0u32, 0u64);
        for n in segments {
            let fast = mark(&mut probe, &segment(0, isn, n));
            let slow = if n <= highest {
                if p.loss == Loss::EachReplica || n > seen_loss_up_to {
                    a = ((1.0 - p.alpha) * a + p.alpha * f64::from(length)).max(p.a_min);
                    length = 0;
                    seen_loss_up_to = highest;
                }
                'i'
            } else {
                highest = n;
                sent += 1;
                length += 1;
                let l = f64::from(length);
                if (if p.boundary == Boundary::NotLonger { l <= a } else { l < a }) || sent <= p.first_in {
                    'i'
                } else {
                    length = 0;
                    a = match p.increase {
                        Increase::Double => 2.0 * a + 1.0,
                        Increase::One => a + 1.0,
                        _ => a / (1.0 - p.alpha),
                    };
                    'O'
                }
            };
            prop_assert_eq!(fast, slow);
            prop_assert_eq!(state(&probe), (length, a));
        }
    }

    /// A stays a number within its bounds; what is repeated is never OUT; every packet with data is counted once.
    #[test]
    fn keeps_its_bounds(p in options(), segments in walk(12, 400), by_loss: bool) {
        let p = if by_loss { Params { increase: Increase::ByOutLoss, ..p } } else { p };
        let (text, probe) = marks(&p, segments.iter().copied());
        prop_assert!(probe.last.permitted >= p.a_min && !probe.last.permitted.is_nan());
        prop_assert!((0.0..=1.0).contains(&probe.last.out_loss));
        let s = &probe.stats;
        prop_assert_eq!(s.marked_in + s.marked_out + s.repeated, segments.len() as u64);
        prop_assert_eq!(text.matches('O').count() as u64, s.marked_out);
        let mut highest = 0;
        for (n, mark) in segments.iter().zip(text.chars()) {
            prop_assert!(*n > highest || mark == 'i');
            highest = highest.max(*n);
        }
    }
}
