//! Properties of ARM and ARD in every reading of the text: conservation, limits, the fixed point.

use crate::rng::Rng;
use proptest::prelude::*;

use super::*;
use crate::verdict::Notes;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
const B: f64 = 60.0;
const T_RD: f64 = 15.0;

/// Hur 2006, §3: b, T_rd, MAX_rem and P_drop are stated; the rest is one of its readings.
fn reading(drop: DropOrder, token: Token, empty: Empty, tpr_floor: TprFloor) -> Params {
    Params {
        tpr_max: Rate(1_200_000),
        bucket: Backlog::Packets(B),
        t_rd: Backlog::Packets(T_RD),
        max_rem: 0.5,
        p_drop: 0.02,
        interval: Duration::from_millis(100_000),
        drop,
        token,
        empty,
        tpr_floor,
        unmetered: Bytes(0),
        act: true,
    }
}

fn readings() -> impl Strategy<Value = Params> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(of, byte, zero, floor)| {
        reading(
            if of { DropOrder::OfRemarked } else { DropOrder::BeforeRemark },
            if byte { Token::Byte } else { Token::Packet },
            if zero { Empty::Zero } else { Empty::BelowOne },
            if floor { TprFloor::LambdaIn } else { TprFloor::None },
        )
    })
}

/// A marker's whole life with packets of 1000 B that come one after the other.
struct Life {
    ard: Ard,
    rng: Rng,
    now: Time,
    /// IN that came and left as IN.
    admitted: u64,
}

impl Life {
    fn new(params: &Params, seed: u64) -> Life {
        let mut ard = params.build(&CONTEXT);
        ard.tick(Time::ZERO, &mut Outbox::default());
        Life { ard, rng: Rng::for_component(seed, "laws"), now: Time::ZERO, admitted: 0 }
    }

    /// A packet after `gap` seconds: the level it found, in packets, and what became of it.
    fn packet(&mut self, gap: f64, colour: Colour) -> (f64, Mark) {
        self.now += Duration((gap * PS_PER_S as f64) as u64);
        let packet = Packet { size: 1000, colour, ..Packet::default() };
        let mut notes = Notes::default();
        let mark = self.ard.mark(self.now, &packet, &mut self.rng, &mut notes);
        self.admitted += u64::from(colour.is_in() && mark == Mark::Pass(Colour::IN));
        let unit = if self.ard.token == Token::Byte { 1000.0 } else { 1.0 };
        (notes.items()[0].1 / unit, mark)
    }
}

/// Hur 2006, Eq. (1): nothing at T_rd, MAX_rem as the bucket runs out, a straight line between.
#[test]
fn remarking_is_linear_from_nothing_to_max_rem() {
    let at = |level: f64| p_rem(level, T_RD, 0.5);
    assert_eq!(at(T_RD), 0.0);
    assert!((at(1e-12) - 0.5).abs() < 1e-12);
    for level in [1.0, 4.0, 7.5, 11.0, 14.0] {
        assert!((at(level) + at(T_RD - level) - 0.5).abs() < 1e-12);
        assert!(at(level) > at(level + 0.5));
    }
    // The same in bytes: it is a share, and has no unit.
    assert_eq!(p_rem(6_000.0, 15_000.0, 0.5), at(6.0));
}

/// Hur 2006, §2.1: "When the leaky bucket runs out of tokens, all arriving excessive IN packets are remarked".
#[test]
fn without_tokens_no_in_packet_gets_by() {
    for empty in [Empty::BelowOne, Empty::Zero] {
        let params = Params {
            max_rem: 0.0,
            p_drop: 0.0,
            ..reading(DropOrder::BeforeRemark, Token::Packet, empty, TprFloor::None)
        };
        let mut life = Life::new(&params, 1);
        for _ in 0..60 {
            assert_eq!(life.packet(0.0, Colour::IN).1, Mark::Pass(Colour::IN));
        }
        for _ in 0..200 {
            assert_eq!(life.packet(0.0, Colour::IN).1, Mark::Pass(Colour::OUT));
        }
        // Half a token later the two readings part; a whole one lets a packet by under both.
        let half = life.packet(0.5 / 150.0, Colour::IN).1;
        assert_eq!(half == Mark::Pass(Colour::IN), empty == Empty::Zero);
        let mut life = Life::new(&params, 1);
        for _ in 0..60 {
            life.packet(0.0, Colour::IN);
        }
        assert_eq!(life.packet(1.01 / 150.0, Colour::IN).1, Mark::Pass(Colour::IN));
    }
}

/// Hur 2006, §3: the two pairs of rates that the paper prints with their TPR, through the meters.
#[test]
fn the_papers_rates_give_its_tpr() {
    for (tpr_max, lambda, tpr) in [(1_200, [494, 546], 570), (6_000, [1658, 4102], 1727)] {
        let params = Params {
            tpr_max: Rate(tpr_max * 1000),
            ..reading(DropOrder::BeforeRemark, Token::Packet, Empty::BelowOne, TprFloor::None)
        };
        let mut ard = params.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "laws");
        ard.tick(Time::ZERO, &mut Outbox::default());
        for (colour, kbit) in [Colour::IN, Colour::OUT].into_iter().zip(lambda) {
            // 100 s at so many kbit/s are so many times 12.5 packets of 1000 B.
            for i in 0..kbit * 25 / 2 {
                let at = Time(i * 100 * PS_PER_S / (kbit * 25 / 2));
                let packet = Packet { size: 1000, colour, ..Packet::default() };
                ard.mark(at, &packet, &mut rng, &mut Silent);
            }
        }
        ard.tick(Time(100 * PS_PER_S), &mut Outbox::default());
        assert_eq!((ard.vars.tpr / 1e3).round(), f64::from(tpr));
    }
}

/// Below T_rd the level is in equilibrium where as much is admitted as fills up: (1 − P_drop)(1 − P_rem)·λ_IN = TPR.
/// As P_rem is a straight line, the *mean* level is that of the fixed point, as long as it stays inside.
#[test]
fn the_level_settles_where_admitted_equals_the_tpr() {
    for drop in [DropOrder::BeforeRemark, DropOrder::OfRemarked] {
        for p_drop in [0.0, 0.02, 0.1] {
            for excess in [1.2, 1.3, 1.4] {
                let params =
                    Params { p_drop, ..reading(drop, Token::Packet, Empty::BelowOne, TprFloor::None) };
                // Only drops that come on top of remarks thin the stream further.
                let kept = if drop == DropOrder::BeforeRemark { 1.0 - p_drop } else { 1.0 };
                let ratio = excess / kept;
                let expected = T_RD * (1.0 - (1.0 - 1.0 / (kept * ratio)) / 0.5);
                let mut life = Life::new(&params, 7);
                let gap = 1.0 / (150.0 * ratio);
                for _ in 0..2_000 {
                    life.packet(gap, Colour::IN);
                }
                let (before, n) = (life.admitted, 100_000);
                let levels: f64 = (0..n).map(|_| life.packet(gap, Colour::IN).0).sum();
                let mean = levels / f64::from(n);
                assert!((mean - expected).abs() < 0.15, "{drop:?} {p_drop} {ratio}: {mean} {expected}");
                let rate = (life.admitted - before) as f64 / (f64::from(n) * gap);
                assert!((rate - 150.0).abs() * f64::from(n) * gap <= B, "{rate}");
            }
        }
    }
}

proptest! {
    /// Hur 2006, §2.1: tokens are conserved. Admitted IN is at most TPR·t + b over any time, and where the bucket
    /// never overflows at least TPR·t − b as well: what the paper calls IN at "the configured TPR".
    #[test]
    fn admitted_in_follows_the_tpr(
        params in readings(),
        gaps in prop::collection::vec(0.0f64..0.012, 300..900),
        seed: u64,
    ) {
        let mut life = Life::new(&params, seed);
        // Emptied first: from here on the level has room above it.
        for _ in 0..50 {
            life.packet(0.0, Colour::IN);
        }
        let (start, before) = (life.now, life.admitted);
        let mut full = false;
        for gap in gaps {
            let (level, _) = life.packet(gap, Colour::IN);
            full |= level >= B;
            let fair = 150.0 * life.now.since(start).secs();
            let admitted = (life.admitted - before) as f64;
            // One more where the last packet may overdraw.
            prop_assert!(admitted <= fair + B + 1.0);
            prop_assert!(full || admitted >= fair - B);
        }
    }

    /// The marker is inert while IN packets over every time stay within TPR·t + b − T_rd.
    #[test]
    fn it_touches_nothing_within_its_allowance(params in readings(), steps in prop::collection::vec((0.0f64..0.02, any::<bool>()), 1..400), seed: u64) {
        let mut life = Life::new(&params, seed);
        // The most that has been used of the allowance: the level the law allows to be the lowest.
        let mut used = 0.0f64;
        for (gap, is_in) in steps {
            used = (used - 150.0 * gap).max(0.0);
            let is_in = is_in && used + 1.0 <= B - T_RD;
            let colour = if is_in { Colour::IN } else { Colour::OUT };
            prop_assert_eq!(life.packet(gap, colour).1, Mark::Pass(colour));
            used += f64::from(u8::from(is_in));
        }
    }

    /// Hur 2006, Eq. (2): only OUT lowers the TPR, it never exceeds TPR_max, and it is above λ_IN exactly where
    /// all arrivals together stay below TPR_max: the text's "always larger" is a statement about traffic.
    #[test]
    fn the_tpr_lies_above_lambda_in_where_the_link_has_room(
        max in 1e5f64..1e8, lambda_in in 1.0f64..1e8, lambda_out in 0.0f64..1e8,
    ) {
        let tpr = |i, o, floor| next_tpr(max, max, i, o, floor);
        prop_assert_eq!(tpr(lambda_in, 0.0, TprFloor::None), max);
        for floor in [TprFloor::None, TprFloor::LambdaIn] {
            prop_assert!(tpr(lambda_in, lambda_out, floor) <= max);
        }
        let plain = tpr(lambda_in, lambda_out, TprFloor::None);
        let room = lambda_in + lambda_out - max;
        if room.abs() > 1e-6 * max {
            prop_assert_eq!(plain >= lambda_in, room < 0.0);
        }
        // Only the mix counts, and more OUT never raises it.
        prop_assert!((tpr(3.0 * lambda_in, 3.0 * lambda_out, TprFloor::None) - plain).abs() <= 1e-9 * max);
        prop_assert!(tpr(lambda_in, lambda_out * 1.1, TprFloor::None) <= plain);
        prop_assert!(tpr(lambda_in, lambda_out, TprFloor::LambdaIn) >= lambda_in.min(max) - 1e-9 * max);
    }

    /// Hur 2006, §2.1: remarked and dropped packets take no token, OUT packets neither.
    #[test]
    fn only_what_leaves_as_in_takes_a_token(params in readings(), ins in prop::collection::vec(any::<bool>(), 1..300), seed: u64) {
        let mut life = Life::new(&params, seed);
        let mut level = B;
        for is_in in ins {
            let (found, mark) = life.packet(0.0, if is_in { Colour::IN } else { Colour::OUT });
            prop_assert!((found - level).abs() < 1e-9);
            level -= f64::from(u8::from(is_in && mark == Mark::Pass(Colour::IN)));
        }
    }
}
