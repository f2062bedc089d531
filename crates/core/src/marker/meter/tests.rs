//! The meters against the text of their RFCs, one token at a time; and what holds for all of them.

use super::*;
use crate::marker::Action;
use crate::registry::AnyMarker;
use crate::testing::*;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rfc {
    SrTcm,
    TrTcm,
    Rfc4115(rfc4115::Boundary),
}

/// A meter of either kind: rates in whole bytes a millisecond, the second the peak or excess rate.
#[derive(Clone, Debug)]
struct Setup {
    rfc: Rfc,
    mode: Mode,
    rates: [u64; 2],
    depths: [u64; 2],
}

impl Setup {
    fn build(&self) -> AnyMarker {
        self.build_as(Action::Mark)
    }

    fn build_as(&self, action: Action) -> AnyMarker {
        let rate = |n: u64| Rate(n * 8000);
        let depth = |n: u64| Backlog::Bytes(n as f64);
        let (cir, second) = (Some(rate(self.rates[0])), rate(self.rates[1]));
        let (cbs, other, mode) = (depth(self.depths[0]), depth(self.depths[1]), self.mode);
        match self.rfc {
            Rfc::SrTcm => AnyMarker::SrTcm(Box::new(
                srtcm::Params { cir, cbs, ebs: other, mode, action }.build(&CONTEXT),
            )),
            Rfc::TrTcm => AnyMarker::TrTcm(Box::new(
                trtcm::Params { cir, pir: second, cbs, pbs: other, mode, action }.build(&CONTEXT),
            )),
            Rfc::Rfc4115(boundary) => AnyMarker::Rfc4115(Box::new(
                rfc4115::Params { cir, eir: second, cbs, ebs: other, mode, boundary, action }.build(&CONTEXT),
            )),
        }
    }

    /// The RFC's own words: tokens arrive one by one, at whole multiples of 1/rate; `t` is in units of which
    /// `1,000·rates[0]·rates[1]` are a second, so that these are whole numbers.
    fn by_the_word(&self, arrivals: &[(u64, u32, Colour)]) -> Vec<Colour> {
        let [c, second] = self.rates;
        let (mut t_c, mut t_2) = (self.depths[0], self.depths[1]);
        let mut now = 0;
        arrivals
            .iter()
            .map(|&(t, size, colour)| {
                while now < t {
                    now += 1;
                    // Every `second` units one committed token: rates[0]·1,000 a second.
                    if now % second == 0 {
                        if t_c < self.depths[0] {
                            t_c += 1;
                        } else if self.rfc == Rfc::SrTcm && t_2 < self.depths[1] {
                            t_2 += 1;
                        }
                    }
                    if now % c == 0 && self.rfc != Rfc::SrTcm && t_2 < self.depths[1] {
                        t_2 += 1;
                    }
                }
                let came = if self.mode == Mode::ColourBlind { Colour::Green } else { colour };
                let b = u64::from(size);
                match self.rfc {
                    Rfc::TrTcm => {
                        if came == Colour::Red || t_2 < b {
                            return Colour::Red;
                        }
                        if came == Colour::Yellow || t_c < b {
                            t_2 -= b;
                            return Colour::Yellow;
                        }
                        t_2 -= b;
                        t_c -= b;
                        Colour::Green
                    }
                    rfc => {
                        let short = u64::from(rfc == Rfc::Rfc4115(rfc4115::Boundary::MoreThan));
                        if came == Colour::Green && t_c >= b + short {
                            t_c -= b;
                            return Colour::Green;
                        }
                        if (came == Colour::Green || came == Colour::Yellow) && t_2 >= b + short {
                            t_2 -= b;
                            return Colour::Yellow;
                        }
                        Colour::Red
                    }
                }
            })
            .collect()
    }
}

fn colours(meter: &mut AnyMarker, arrivals: impl IntoIterator<Item = (Time, u32, Colour)>) -> Vec<Colour> {
    let mut rng = Rng::for_component(0, "unused");
    arrivals
        .into_iter()
        .map(|(at, size, colour)| {
            let packet = Packet { size, colour, ..Packet::default() };
            match meter.mark(at, &packet, &mut rng, &mut Silent) {
                Mark::Pass(colour) => colour,
                Mark::Drop(_) => unreachable!("a meter drops nothing"),
            }
        })
        .collect()
}

fn setup() -> impl Strategy<Value = Setup> {
    use rfc4115::Boundary;
    let rfc = prop::sample::select(vec![
        Rfc::SrTcm,
        Rfc::TrTcm,
        Rfc::Rfc4115(Boundary::AtLeast),
        Rfc::Rfc4115(Boundary::MoreThan),
    ]);
    let mode = prop::sample::select(vec![Mode::ColourBlind, Mode::ColourAware]);
    // The peak rate a multiple of the committed one, as trTCM needs it.
    (rfc, mode, 1u64..8, 1u64..4, 60u64..400, 60u64..400).prop_map(|(rfc, mode, c, times, cbs, other)| {
        Setup { rfc, mode, rates: [c, c * times], depths: [cbs, other] }
    })
}

/// Milliseconds since the last packet, size, colour.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, Colour)>> {
    prop::collection::vec((0u64..40, 1u32..200, prop::sample::select(Colour::ALL.to_vec())), 1..120)
}

proptest! {
    #[test]
    fn agrees_with_the_words_of_its_rfc(setup in setup(), steps in arrivals()) {
        let unit = setup.rates[0] * setup.rates[1];
        let mut t = 0;
        // On the grid at which every token of either kind arrives, so that all of them are whole.
        let slow: Vec<_> = steps.iter().map(|&(ms, size, c)| { t += ms * unit; (t, size, c) }).collect();
        let fast = slow.iter().map(|&(t, size, c)| (Time(t / unit * 1_000_000_000), size, c));
        prop_assert_eq!(colours(&mut setup.build(), fast), setup.by_the_word(&slow));
    }

    /// RFC 2475 §2.3.3.3: a policer drops exactly what the meter would make red; the rest has the same colours.
    #[test]
    fn a_policer_drops_what_would_be_red(setup in setup(), steps in arrivals()) {
        let (mut meter, mut policer) = (setup.build(), setup.build_as(Action::Drop));
        let mut rng = Rng::for_component(0, "unused");
        let mut t = 0;
        for (us, size, colour) in steps {
            t += us * 700_000_001;
            let packet = Packet { size, colour, ..Packet::default() };
            let metered = meter.mark(Time(t), &packet, &mut rng, &mut Silent);
            let policed = policer.mark(Time(t), &packet, &mut rng, &mut Silent);
            let red = metered == Mark::Pass(Colour::Red);
            prop_assert_eq!(policed, if red { Mark::Drop(crate::marker::POLICED) } else { metered });
        }
        let stats = |m: &AnyMarker| { let mut all = Vec::new(); m.stats(&mut |n, c| all.push((n, c))); all };
        prop_assert_eq!(stats(&meter), stats(&policer));
    }

    /// RFC 2697 §3, 2698 §3, 4115 §3: in the colour-aware mode no packet is improved.
    #[test]
    fn colour_aware_never_improves(setup in setup(), steps in arrivals()) {
        let setup = Setup { mode: Mode::ColourAware, ..setup };
        let mut t = 0;
        let came: Vec<_> = steps.iter()
            .map(|&(us, size, c)| { t += us * 999_999_937; (Time(t), size, c) }).collect();
        for (left, came) in colours(&mut setup.build(), came.iter().copied()).iter().zip(&came) {
            prop_assert!(*left >= came.2);
        }
    }

    /// Over any stretch of time t: green at most cir·t + cbs; all that is not red at most what both buckets give.
    #[test]
    fn conforms(setup in setup(), steps in arrivals()) {
        let mut t = 0;
        let came: Vec<_> = steps.iter()
            .map(|&(us, size, c)| { t += us * 700_000_001; (Time(t), size, c) }).collect();
        let left = colours(&mut setup.build(), came.iter().copied());
        for from in 0..came.len() {
            let (mut green, mut passed) = (0u128, 0u128);
            for to in from..came.len() {
                let size = u128::from(came[to].1) * BYTE;
                green += if left[to] == Colour::Green { size } else { 0 };
                passed += if left[to] == Colour::Red { 0 } else { size };
                let span = u128::from(came[to].0.0 - came[from].0.0);
                let give = |i: usize| u128::from(setup.rates[i] * 8000) * span + u128::from(setup.depths[i]) * BYTE;
                prop_assert!(green <= give(0));
                let most = match setup.rfc {
                    Rfc::SrTcm => give(0) + u128::from(setup.depths[1]) * BYTE,
                    Rfc::TrTcm => give(1),
                    Rfc::Rfc4115(_) => give(0) + give(1),
                };
                prop_assert!(passed <= most);
            }
        }
    }
}

/// A million packets at an odd rate and odd times: no token is lost or made, to the last grain.
#[test]
fn nothing_drifts() {
    let params = srtcm::Params {
        cir: Some(Rate(1_234_567)),
        cbs: Backlog::Bytes(1e9),
        ebs: Backlog::Bytes(0.0),
        mode: Mode::ColourBlind,
        action: Action::Mark,
    };
    let mut meter = AnyMarker::SrTcm(Box::new(params.build(&CONTEXT)));
    let mut rng = Rng::for_component(0, "unused");
    let (mut at, mut taken) = (Time::ZERO, 0u128);
    let all = Packet { size: 1_000_000_000, ..Packet::default() };
    assert_eq!(meter.mark(at, &all, &mut rng, &mut Silent), Mark::Pass(Colour::Green));
    for i in 0..1_000_000u64 {
        at += Duration(1_000_000_007 + i % 13);
        let packet = Packet { size: 1 + (i % 300) as u32, ..Packet::default() };
        if meter.mark(at, &packet, &mut rng, &mut Silent) == Mark::Pass(Colour::Green) {
            taken += u128::from(packet.size) * BYTE;
        }
    }
    let mut tokens = 0.0;
    meter.gauges(at, &mut |name, value| {
        if name == "tc" {
            tokens = value
        }
    });
    let exact = u128::from(at.0) * 1_234_567 - taken;
    assert_eq!(tokens, exact as f64 / BYTE as f64);
}

#[test]
fn what_cannot_be_is_refused_and_what_is_odd_is_remarked_on() {
    let rate = |n| Some(Rate(n));
    let b = Backlog::Bytes;
    let sr = |cir, cbs, ebs| srtcm::Params {
        cir,
        cbs: b(cbs),
        ebs: b(ebs),
        mode: Mode::ColourBlind,
        action: Action::Mark,
    };
    assert_eq!(sr(None, 1e4, 0.0).check(&CONTEXT).map_err(|f| f.field), Err("cir"));
    assert_eq!(sr(rate(1), 999.0, 999.0).check(&CONTEXT).map_err(|f| f.field), Err("cbs"));
    assert_eq!(sr(rate(1), 0.0, 1e4).check(&CONTEXT).map(|w| w.len()), Ok(1));
    assert_eq!(sr(rate(1), 1e4, 0.0).check(&CONTEXT), Ok(Vec::new()));
    let contracted = Context { contract: Some(Rate(5)), ..CONTEXT };
    assert_eq!(sr(None, 1e4, 0.0).check(&contracted), Ok(Vec::new()));

    let tr = |pir, cbs, pbs| trtcm::Params {
        cir: rate(100),
        pir: Rate(pir),
        cbs: b(cbs),
        pbs: b(pbs),
        mode: Mode::ColourBlind,
        action: Action::Mark,
    };
    assert_eq!(tr(99, 1e4, 1e4).check(&CONTEXT).map_err(|f| f.field), Err("pir"));
    assert_eq!(tr(100, 1e4, 999.0).check(&CONTEXT).map_err(|f| f.field), Err("pbs"));
    assert_eq!(tr(100, 2e4, 1e4).check(&CONTEXT).map(|w| w.len()), Ok(1));
    assert_eq!(tr(100, 1e4, 1e4).check(&CONTEXT), Ok(Vec::new()));

    let excess = |cbs, ebs| rfc4115::Params {
        cir: rate(100),
        eir: Rate(1),
        cbs: b(cbs),
        ebs: b(ebs),
        mode: Mode::ColourAware,
        boundary: rfc4115::Boundary::AtLeast,
        action: Action::Mark,
    };
    assert_eq!(excess(1.0, 1.0).check(&CONTEXT).map_err(|f| f.field), Err("cbs"));
    assert_eq!(excess(1e4, 0.0).check(&CONTEXT).map(|w| w[0].field), Ok("ebs"));
    assert_eq!(excess(1e4, 1e4).check(&CONTEXT), Ok(Vec::new()));

    // RFC 4115 §3, the prose: a packet of the bucket's whole depth does not conform.
    let beyond = |cbs, ebs| {
        rfc4115::Params { boundary: rfc4115::Boundary::MoreThan, ..excess(cbs, ebs) }.check(&CONTEXT)
    };
    assert_eq!(excess(1e3, 1e3).check(&CONTEXT), Ok(Vec::new()));
    assert_eq!(beyond(1e3, 1e3).map_err(|f| f.field), Err("cbs"));
    assert_eq!(beyond(1e3, 1001.0).map(|w| w[0].field), Ok("cbs"));
    assert_eq!(beyond(1001.0, 1e3).map(|w| w[0].field), Ok("ebs"));
    assert_eq!(beyond(1001.0, 1001.0), Ok(Vec::new()));
}

#[test]
fn counts_by_the_colour_that_left() {
    let params = srtcm::Params {
        cir: Some(Rate(8)),
        cbs: Backlog::Packets(2.0),
        ebs: Backlog::Packets(1.0),
        mode: Mode::ColourBlind,
        action: Action::Mark,
    };
    let mut meter = params.build(&CONTEXT);
    let mut rng = Rng::for_component(0, "unused");
    for _ in 0..7 {
        meter.mark(Time::ZERO, &Packet { size: 1000, ..Packet::default() }, &mut rng, &mut Silent);
    }
    assert_eq!(meter_stats(&meter), [("green", 2), ("yellow", 1), ("red", 4)]);
}

fn meter_stats(meter: &impl Marker) -> Vec<(&'static str, u64)> {
    let mut all = Vec::new();
    meter.stats(&mut |name, count| all.push((name, count)));
    all
}
