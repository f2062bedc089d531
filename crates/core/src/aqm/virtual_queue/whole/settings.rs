//! Settings of the virtual queue in whole numbers, made of an operator's, and how far its figures may be off.

use std::sync::LazyLock;

use crate::aqm::red::common::{Common, Thresholds};
use crate::aqm::red::law::Weight;
use crate::aqm::red::rio::Counted;
use crate::aqm::red::wred::Averages;
use crate::aqm::virtual_queue::whole::{BYTE, mul_shr32};
use crate::aqm::virtual_queue::{Law, Params};
use crate::params::{Context, Fault};
use crate::units::{Backlog, Bytes};

/// The most bytes that the virtual queue may hold.
pub const MOST_BYTES: u64 = 1 << 28;
/// The least weight of a sample; a rounded one is then right to 2⁻¹².
const LEAST_W: f64 = 1.0 / (1 << 20) as f64;
/// ln 2 with 32 binary digits after the point.
pub const LN2: u64 = 2_977_044_472;
/// So many halvings leave nothing of an average.
const HALVINGS: u64 = 60;

/// 2^(−i/256) and 2^(−i/65536) for i below 256, with 32 binary digits after the point.
pub static POWERS: LazyLock<[[u64; 256]; 2]> = LazyLock::new(|| {
    [256.0, 65_536.0].map(|parts| std::array::from_fn(|i| fixed(libm::exp2(-(i as f64) / parts))))
});

/// The nearest number with 32 binary digits after the point.
fn fixed(x: f64) -> u64 {
    libm::round(x * 4_294_967_296.0) as u64
}

/// A factor s / 2^k below 2³² of which all 32 digits count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Factor {
    /// s.
    pub s: u32,
    /// k.
    pub k: u32,
}

impl Factor {
    /// The nearest to `x`, which is above 0 and less than 2³¹.
    fn of(x: f64) -> Factor {
        let mut k = (31.0 - libm::floor(libm::log2(x))).clamp(0.0, 63.0);
        if libm::round(libm::ldexp(x, k as i32)) >= 4_294_967_296.0 {
            k -= 1.0;
        }
        Factor { s: libm::round(libm::ldexp(x, k as i32)) as u32, k: k as u32 }
    }

    /// About so many times x, rounded down.
    #[must_use]
    pub const fn times(self, x: u64) -> u64 {
        let product = mul_shr32(x, self.s as u64);
        if self.k >= 32 { product >> (self.k - 32) } else { product << (32 - self.k) }
    }

    /// By how much the product may be off, at most, where it is at most 1 as a fraction of 32 bits.
    fn error(self) -> f64 {
        libm::exp2(-31.0) + libm::exp2(-f64::from(self.k.min(32)))
    }
}

/// A drop curve; lengths are in bytes with 16 binary digits after the point, probabilities have 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Curve {
    /// Below it nothing is dropped.
    pub min_th: u64,
    /// Where the first line ends.
    pub max_th: u64,
    /// From here on everything is dropped.
    pub end: u64,
    /// The probability at max_th.
    pub max_p: u64,
    /// How steeply it rises from min_th on.
    pub slope: Factor,
    /// And from max_th on, if `gentle`.
    pub gentle: Factor,
}

impl Curve {
    fn of(thresholds: &Thresholds, gentle: bool, packet: Bytes) -> Curve {
        let [min, max] = [thresholds.min_th, thresholds.max_th].map(|th| th.bytes(packet) * 65_536.0);
        let one = 4_294_967_296.0;
        Curve {
            min_th: libm::round(min) as u64,
            max_th: libm::round(max) as u64,
            end: libm::round(if gentle { 2.0 * max } else { max }) as u64,
            max_p: fixed(thresholds.max_p),
            slope: Factor::of(thresholds.max_p * one / (max - min)),
            gentle: if gentle && thresholds.max_p < 1.0 {
                Factor::of((1.0 - thresholds.max_p) * one / max)
            } else {
                Factor::default()
            },
        }
    }

    /// p_b at this average, between min_th and the end: less than 1.
    #[must_use]
    pub const fn p(&self, avg: u64) -> u64 {
        let p = if avg < self.max_th {
            self.slope.times(avg.saturating_sub(self.min_th))
        } else {
            self.max_p + self.gentle.times(avg - self.max_th)
        };
        if p > 0xffff_ffff { 0xffff_ffff } else { p }
    }
}

/// What no arrival changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// In bit/s.
    pub rate: u64,
    /// The limit as a [level](super::State::level).
    pub most: u64,
    /// In ns: a full virtual queue has then drained.
    pub drains_in: u64,
    /// Weight of a sample, with 32 binary digits after the point.
    pub w: u64,
    /// Halvings of an average in a nanosecond of idle time, with 56 binary digits after the point.
    pub fade: u64,
    /// In ns: so long an idle time leaves nothing of an average.
    pub forgets_in: u64,
    /// By curve.
    pub curve: [Curve; 3],
    /// How many curves there are; 0: the limit alone drops.
    pub curves: u32,
    /// Of a level so many low digits are left out where the colours' parts are scaled.
    pub shift: u32,
    /// By colour, best first: its curve.
    pub row: [u8; 3],
    /// By colour: of which averages it is a sample, a bit for each.
    pub takes: [u8; 3],
    /// By average: the colours whose parts it is the average of, a bit for each.
    pub of: [u8; 3],
    /// No drop before 1/p packets have been let by.
    pub wait: bool,
    /// Packets of ECN-capable transports are marked in place of early drops.
    pub ecn: bool,
}

/// Refuses what this form of the law has not.
fn refuse(is: bool, field: &'static str, what: &str) -> Result<(), Fault> {
    if !is {
        return Ok(());
    }
    Err(Fault {
        field,
        problem: format!("{what} is not among what the virtual queue in whole numbers can do"),
        remedy: "law = \"drop_tail\", \"red\", \"rio\" or \"wred\", without byte_scaled, count = \"shared\" and curves of ECN-capable packets"
            .into(),
    })
}

/// `[colour][average]` as a bit for each average.
fn bits<const N: usize>(takes: [[bool; N]; N]) -> [u8; N] {
    takes.map(|of| of.iter().enumerate().map(|(i, takes)| u8::from(*takes) << i).sum())
}

impl Settings {
    /// The settings of an operator, whose [check](crate::params::Build::check) has passed.
    ///
    /// # Errors
    /// If a law or an option has no form in whole numbers, or a number is beyond its range.
    pub fn of(p: &Params, context: &Context) -> Result<Settings, Fault> {
        let packet = context.packet;
        let bytes = p.virtual_limit.bytes(packet);
        refuse(bytes > MOST_BYTES as f64, "virtual_limit", "more than 2^28 B")?;
        let most = bytes as u64 * BYTE;
        let rate = p.virtual_rate.0;
        let limit = Settings {
            rate,
            most,
            drains_in: most / rate + 1,
            shift: (most.ilog2() + 1).saturating_sub(32),
            of: [0b111; 3],
            ..Settings::default()
        };
        match (p.law, &p.red, &p.rio, &p.wred) {
            (Law::DropTail, ..) => Ok(limit),
            (Law::Red, Some(red), ..) => {
                refuse(red.byte_scaled, "red.byte_scaled", "byte_scaled")?;
                let thresholds = Thresholds { min_th: red.min_th, max_th: red.max_th, max_p: red.max_p };
                let takes = [0b001; 3];
                Settings { takes, ..limit }.with("red.w_q", &red.common, &[&thresholds], context)
            }
            (Law::Rio, _, Some(rio), _) => {
                refuse(rio.byte_scaled, "rio.byte_scaled", "byte_scaled")?;
                refuse(rio.count == Counted::Shared, "rio.count", "count = \"shared\"")?;
                let [green, out] = bits(rio.avg_update.takes());
                let (row, takes, of) = ([0, 1, 1], [green, out, out], [0b001, 0b111, 0b111]);
                Settings { row, takes, of, ..limit }.with(
                    "rio.w_q",
                    &rio.common,
                    &[&rio.r#in, &rio.out],
                    context,
                )
            }
            (Law::Wred, .., Some(wred)) => {
                let marks = wred.green_ecn.is_some() || wred.yellow_ecn.is_some() || wred.red_ecn.is_some();
                refuse(marks, "wred", "a curve of ECN-capable packets")?;
                let (row, takes) = ([0, 1, 2], bits(wred.averages.takes()));
                let of = match wred.averages {
                    Averages::Shared => [0b111; 3],
                    Averages::Coupled => [0b001, 0b011, 0b111],
                    Averages::Decoupled => [0b001, 0b010, 0b100],
                };
                let curves = [&wred.green, &wred.yellow, wred.red.as_ref().unwrap_or(&wred.yellow)];
                Settings { row, takes, of, ..limit }.with("wred.w_q", &wred.common, &curves, context)
            }
            _ => refuse(true, "law", "this law").map(|()| limit),
        }
    }

    /// These, with curves and what all of them share.
    fn with(
        self,
        w_q: &'static str,
        common: &Common,
        curves: &[&Thresholds],
        context: &Context,
    ) -> Result<Settings, Fault> {
        refuse(common.w_q < LEAST_W, w_q, "a w_q below 2^-20")?;
        let mut s = self;
        for (curve, thresholds) in s.curve.iter_mut().zip(curves) {
            *curve = Curve::of(thresholds, common.gentle, context.packet);
        }
        let halvings = Settings::halvings(self.rate, common, context);
        let per_ns = halvings * libm::exp2(56.0);
        let most = (HALVINGS << 56) as f64;
        (s.fade, s.forgets_in) =
            if per_ns < most { (libm::round(per_ns) as u64, (most / per_ns) as u64) } else { (0, 1) };
        s.w = fixed(common.w_q);
        s.curves = curves.len() as u32;
        (s.wait, s.ecn) = (common.wait, common.ecn);
        Ok(s)
    }

    /// Halvings in a nanosecond of idle time.
    fn halvings(rate: u64, common: &Common, context: &Context) -> f64 {
        let weight = Weight::new(common.w_q, Some(crate::units::Rate(rate)), common.packet(context));
        -libm::log2(1.0 - weight.w_q) * weight.ptc / 1e9
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> Backlog {
        Backlog::Bytes((self.most / BYTE) as f64)
    }
}

/// How far the fixed-point figures may be from the real ones, in bytes, given the same arrivals and verdicts.
///
/// A level is never off. A part is off by [`part`](Bound::part) more with each drain. A sample of a length that is off by e_q leaves an average off by
/// e ← (1 − w)·e + w·e_q + [`sample`](Bound::sample), so never by more than e_q + `sample` / w between idle times; an idle time of
/// t ns that leaves φ of it, by e ← φ·e + φ·avg·([`idle`](Bound::idle) + t·[`idle_ns`](Bound::idle_ns)) + 2⁻¹⁶.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Of a length that is the sum of all.
    pub total: f64,
    /// Of a part, with each drain.
    pub part: f64,
    /// Of an average, with each sample.
    pub sample: f64,
    /// Of an average, as a share of it, with each idle time: an idle time begins on a whole nanosecond.
    pub idle: f64,
    /// And for each nanosecond of it.
    pub idle_ns: f64,
}

impl Bound {
    /// Of these settings.
    #[must_use]
    pub fn of(s: &Settings) -> Bound {
        let (digit, most) = (1.0 / 65_536.0, (s.most / BYTE) as f64);
        let unit = (1u64 << s.shift) as f64 / BYTE as f64;
        let ln2 = std::f64::consts::LN_2;
        let fade = s.fade as f64 / libm::exp2(56.0);
        Bound {
            total: digit,
            part: 3.0 * unit + digit,
            // The weight is right to half its last digit.
            sample: digit + most * libm::exp2(-33.0),
            idle: libm::exp2(-28.0) + ln2 * fade,
            idle_ns: ln2 * libm::exp2(-57.0),
        }
    }

    /// How far p_b may be off where the average is off by so many bytes.
    #[must_use]
    pub fn p(&self, curve: &Curve, avg: f64) -> f64 {
        let steep = |f: Factor| f64::from(f.s) * libm::exp2(-f64::from(f.k) - 16.0);
        // On either side of max_th, between whose lines an average may have slipped.
        let slope = steep(curve.slope).max(steep(curve.gentle));
        (avg + 2.0 / 65_536.0) * slope + curve.slope.error() + curve.gentle.error()
    }
}
