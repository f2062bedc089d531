//! TSW2CM and TSW3CM in whole numbers: the reference that a datapath without floating point is held to, packet by packet.
//!
//! Clock in nanoseconds, rates in bits per second with 16 binary digits after the point. A packet makes the estimate
//! ⌊(rate · window + size) / (gap + window)⌋, exactly where window and gap together are below 2³⁴ ns: of each packet less than
//! 2⁻¹⁶ bit/s is lost, and what is lost fades with the estimate. After a longer gap it is right to 2⁻³² of the rate before it. The colours' chances are
//! compared without a division: a random number of 32 bits decides as the floating-point law, but where it is within 2⁻³² of the chance, or the rate within its bound.
//! Source: RFC 2859 §3, §4. Non-goal: to be faster than [`tsw2cm`](super::tsw2cm) and [`tsw3cm`](super::tsw3cm), which it restates.

use crate::packet::Colour;
use crate::units::Duration;

/// The shortest window and the longest, in ns.
pub const WINDOWS: [u64; 2] = [1_000_000, 10_000_000_000];
/// What is lost of the estimate by one packet, in bit/s.
pub const LOST: f64 = 1.0 / 65_536.0;
/// Bits of a digit of the long division.
const DIGIT: u32 = 24;
/// The most that gap and window are together for the division to be exact.
const EXACT: u32 = 34;
/// No estimate is above so much.
const MOST: u64 = 1 << 62;
/// A byte in bits per second times nanoseconds.
const BYTE: u64 = 8_000_000_000;

/// What an operator has set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Committed target rate in bit/s.
    pub ctr: u64,
    /// Peak target rate in bit/s; with two colours none.
    pub ptr: Option<u64>,
    /// Length of the window in ns.
    pub window: u64,
    /// Every packet is OUT while the rate is above the target.
    pub all: bool,
}

impl Settings {
    /// A window in whole nanoseconds, if it is one that fits.
    #[must_use]
    pub fn window(length: Duration) -> Option<u64> {
        let ns = length.0 / 1_000;
        (WINDOWS[0]..=WINDOWS[1]).contains(&ns).then_some(ns)
    }
}

/// The estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// In bit/s with 16 binary digits after the point.
    pub rate: u64,
    /// When the last packet came, in ns.
    pub at: u64,
}

impl State {
    /// RFC 2859 §3: the committed target rate, to begin with.
    #[must_use]
    pub fn new(s: &Settings, at: u64) -> State {
        State { rate: s.ctr << 16, at }
    }
}

/// The estimate after a packet of `size` bytes (RFC 2859 §3, Fig. 2). A clock that runs back stands still.
pub fn packet(window: u64, state: &mut State, now: u64, size: u32) -> u64 {
    let gap = now.saturating_sub(state.at);
    let far = (64 - (gap + window).leading_zeros()).saturating_sub(EXACT);
    let (window, whole) = (window >> far, (gap + window) >> far);
    let bits = (u64::from(size) * BYTE) >> far;
    let mask = (1 << DIGIT) - 1;
    // (rate · window + bits · 2¹⁶) / whole, digit by digit.
    let high = (state.rate >> (2 * DIGIT)) * window;
    let middle = ((high % whole) << DIGIT) + (state.rate >> DIGIT & mask) * window + (bits >> 8);
    let low = ((middle % whole) << DIGIT) + (state.rate & mask) * window + (bits << 16 & mask);
    let rate = ((high / whole) << (2 * DIGIT)) + ((middle / whole) << DIGIT) + low / whole;
    *state = State { rate: rate.min(MOST), at: state.at + gap };
    state.rate
}

/// The colour at an estimate, by a random number of 32 bits (RFC 2859 §4; Bouras and Sevasti 2004, §5.2).
#[must_use]
pub fn colour(s: &Settings, rate: u64, random: u32) -> Colour {
    let (ctr, ptr) = (s.ctr << 16, s.ptr.map_or(u64::MAX, |p| p << 16));
    // u < (rate − target) / rate.
    let drawn = crate::aqm::virtual_queue::whole::mul_shr32(rate, random.into());
    if rate > ptr && drawn < rate - ptr {
        return Colour::Red;
    }
    if rate > ctr && (s.all || drawn < rate - ctr) {
        return Colour::Yellow;
    }
    Colour::Green
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::{Marker, tsw2cm, tsw3cm};
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

    /// What the law in floating point drew, and the rate it decided by.
    #[derive(Default)]
    struct Noted {
        u: Option<f64>,
        rate: f64,
    }

    impl Why for Noted {
        fn note(&mut self, what: &'static str, value: f64) {
            match what {
                "u" => self.u = Some(value),
                _ => self.rate = value,
            }
        }
    }

    /// The quotient by 128 bits.
    #[test]
    fn the_long_division_is_exact() {
        let mut rng = Rng::for_component(1, "division");
        for _ in 0..100_000 {
            let mut up_to = |bits: f64| libm::exp2(rng.uniform() * bits) as u64;
            let (window, gap) = (up_to(33.0).max(WINDOWS[0]), up_to(33.0) - 1);
            let size = up_to(17.0) as u32;
            let before = State { rate: up_to(60.0), at: 0 };
            let mut state = before;
            packet(window, &mut state, gap, size);
            let all =
                u128::from(before.rate) * u128::from(window) + ((u128::from(size) * u128::from(BYTE)) << 16);
            assert_eq!(u128::from(state.rate), (all / u128::from(gap + window)).min(MOST.into()));
        }
    }

    /// So many packets through both: how many colours differ, each of which the bound explains.
    fn beside(s: Settings, seed: u64, packets: u64, load: f64) -> u64 {
        let win_length = Duration(s.window * 1_000);
        let excess = if s.all { tsw2cm::Excess::All } else { tsw2cm::Excess::Share };
        let mut two = tsw2cm::Params { ctr: Some(Rate(s.ctr)), win_length, excess }.build(&CONTEXT);
        let ptr = Rate(s.ptr.unwrap_or(s.ctr));
        let mut three = tsw3cm::Params { ctr: Some(Rate(s.ctr)), ptr, win_length }.build(&CONTEXT);
        let (mut rng, mut draws) = (Rng::for_component(seed, "gaps"), Rng::for_component(seed, "draws"));
        let (mut state, mut now, mut differ, mut most) = (State::new(&s, 0), 0u64, 0, 0.0f64);
        for n in 1..=packets {
            let size = 40 + (rng.uniform() * 1460.0) as u32;
            now += match n % 500 {
                0 => (rng.uniform() * 60e9) as u64,
                1..=5 => 0,
                _ => (rng.uniform() * 2.0 * f64::from(size) * 8e9 / (s.ctr as f64 * load)) as u64,
            };
            let (of, mut why) = (Packet { size, ..Packet::default() }, Noted::default());
            let at = Time(now.saturating_mul(1_000));
            let mark = match s.ptr {
                Some(_) => three.mark(at, &of, &mut draws, &mut why),
                None => two.mark(at, &of, &mut draws, &mut why),
            };
            let random = why.u.map_or(0, |u| (u * 4_294_967_296.0) as u32);
            let rate = packet(s.window, &mut state, now, size);
            most = most.max(why.rate);
            // The larger part is floating point's, whose clock counts seconds.
            let (whole, off) = (rate as f64 * LOST, n as f64 * LOST + most * 1e-7);
            assert!((whole - why.rate).abs() <= off, "packet {n}: {whole} for {}", why.rate);
            if Mark::Pass(colour(&s, rate, random)) != mark {
                differ += 1;
                // Beside a chance, or a target: u · rate is within the bound of rate − target.
                let beside = |target: u64| {
                    let u = why.u.unwrap_or(0.0);
                    (u * why.rate - (why.rate - target as f64)).abs() <= 2.0 * off + why.rate * 2e-9
                };
                assert!(
                    beside(s.ctr) || s.ptr.is_some_and(beside),
                    "packet {n}: {mark:?}, {why:?}",
                    why = why.u
                );
            }
        }
        differ
    }

    #[test]
    fn packets_are_coloured_as_in_floating_point() {
        for (ctr, window, load) in [
            (64_000, 1_000_000_000, 1.5),
            (10_000_000, 1_000_000_000, 3.0),
            (1_000_000_000, 10_000_000, 1.1),
            (10_000_000_000, 10_000_000_000, 1.02),
        ] {
            for (ptr, all) in [(None, false), (None, true), (Some(ctr + ctr / 2), false)] {
                let differ = beside(Settings { ctr, ptr, window, all }, 1, 20_000, load);
                assert!(differ < 20, "{differ} of 20,000 differ at {ctr} bit/s, {ptr:?}, all: {all}");
            }
        }
    }

    #[test]
    fn windows_that_fit() {
        assert_eq!(Settings::window(Duration::from_millis(1)), Some(1_000_000));
        assert_eq!(Settings::window(Duration::from_millis(10_000)), Some(WINDOWS[1]));
        assert_eq!(Settings::window(Duration::from_millis(10_001)), None);
        assert_eq!(Settings::window(Duration(999_999_000)), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn no_colour_differs_beyond_the_bound(ctr in 10_000u64..10_000_000_000, peak in 0u64..3, window in 1_000_000u64..10_000_000_000, load in 0.5f64..4.0, seed in 0u64..1000) {
            let ptr = (peak > 0).then_some(ctr * peak);
            beside(Settings { ctr, ptr, window, all: false }, seed, 1_000, load);
        }
    }
}
