//! The virtual queue in whole numbers: the reference that a datapath without floating point is held to, step by step.
//!
//! Clock in nanoseconds, lengths in bytes, no division but one for the colours' parts and one when the queue runs empty. The
//! backlog is that of [`VirtualBacklog`](super::backlog::VirtualBacklog) exactly, in bits times nanoseconds a second; averages, probabilities and the
//! colours' parts are fixed-point, and [`Bound`] says how far they may be off. With the same arrivals and the same random numbers a
//! verdict differs from the floating-point law's only where the average is within that of a threshold, or the number drawn within that of
//! the probability. A limit, RED, RIO and WRED, with the options of [`Settings::of`]; sizes up to 65,535 B.
//! Non-goal: to be faster than the law it restates.

mod settings;

pub use settings::{Bound, Curve, Factor, LN2, MOST_BYTES, POWERS, Settings};

use crate::aqm::red::{EARLY, FORCED};
use crate::marker::POLICED;
use crate::verdict::Admission;

/// Units of the level in a byte: bits times nanoseconds a second.
pub const BYTE: u64 = 8_000_000_000;
/// One, as a fraction of 32 bits.
const ONE: u64 = 1 << 32;
/// The count while the average is below min_th.
const BELOW: i32 = -1;

/// What an arrival changes. Nothing has arrived yet where all is 0 but [`count`](State::count).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// What waits, in bits times nanoseconds a second.
    pub level: u64,
    /// When it was that much, in ns.
    pub last: u64,
    /// Since when it is 0, in ns, if it is.
    pub empty_since: u64,
    /// Until when idle time has aged the averages, in ns.
    pub aged: u64,
    /// What waits of each colour, in bytes with 16 binary digits after the point.
    pub parts: [u64; 3],
    /// The averages in the order of the curves, in bytes with 16 binary digits after the point.
    pub avg: [u64; 3],
    /// Packets let by since the last drop, by curve; −1 while the average is below min_th.
    pub count: [i32; 3],
}

impl Default for State {
    fn default() -> State {
        State { level: 0, last: 0, empty_since: 0, aged: 0, parts: [0; 3], avg: [0; 3], count: [BELOW; 3] }
    }
}

/// An arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When, in ns.
    pub now: u64,
    /// Its size on the wire.
    pub size: u32,
    /// Its colour, best first.
    pub colour: usize,
    /// Whether its transport understands ECN.
    pub ecn: bool,
    /// A random number of 32 bits.
    pub random: u32,
}

/// ⌊a · b / 2³²⌋, for b up to 2³² and a result of less than 2⁶⁴.
#[must_use]
pub const fn mul_shr32(a: u64, b: u64) -> u64 {
    (a >> 32) * b + (((a & (ONE - 1)) * b) >> 32)
}

/// A level in bytes with 16 binary digits after the point.
const fn bytes16(level: u64) -> u64 {
    ((level / BYTE) << 16) + (((level % BYTE) << 16) / BYTE)
}

/// The whole law: what becomes of an arrival.
#[must_use]
pub fn arrive(s: &Settings, state: &mut State, a: &Arrival) -> Admission {
    look(s, state, a);
    let verdict = test(s, state, a);
    if !matches!(verdict, Admission::Drop(_)) {
        accept(state, a);
    }
    verdict
}

/// Brings level, parts and averages up to date with an arrival.
pub fn look(s: &Settings, state: &mut State, a: &Arrival) {
    drain(s, state, a.now);
    if s.curves == 0 {
        return;
    }
    if state.level == 0 {
        age(s, state, a.now);
    } else {
        sample(s, state, a.colour);
    }
}

/// v ← max(0, v − C·Δt), and the parts in proportion.
fn drain(s: &Settings, state: &mut State, now: u64) {
    if state.level == 0 || now <= state.last {
        return;
    }
    let since = now - state.last;
    // From `drains_in` on the product might not fit, and nothing is left anyway.
    let drained = if since >= s.drains_in { state.level } else { state.level.min(since * s.rate) };
    let left = state.level - drained;
    if left == 0 {
        state.empty_since = state.last + state.level.div_ceil(s.rate);
        state.parts = [0; 3];
    } else {
        let (before, after) = (state.level >> s.shift, left >> s.shift);
        // Where the low digits are all there was next to nothing is left: 0.
        let kept = (after << 32).checked_div(before).unwrap_or(0);
        state.parts = state.parts.map(|part| mul_shr32(part, kept));
    }
    state.level = left;
    state.last = now;
}

/// avg ← avg + w·(q − avg), for each average that an arrival of this colour is a sample of.
fn sample(s: &Settings, state: &mut State, colour: usize) {
    for i in 0..3 {
        if s.takes[colour] >> i & 1 == 0 {
            continue;
        }
        let q = length(s, state, i);
        let avg = &mut state.avg[i];
        if q >= *avg {
            *avg += mul_shr32(q - *avg, s.w);
        } else {
            *avg -= mul_shr32(*avg - q, s.w);
        }
    }
}

/// The length that this average is of: of the whole queue, or the parts of some colours.
fn length(s: &Settings, state: &State, average: usize) -> u64 {
    match s.of[average] {
        0b111 => bytes16(state.level),
        of => (0..3).filter(|c| of >> c & 1 == 1).map(|c| state.parts[c]).sum(),
    }
}

/// avg ← avg · 2^−(fade · idle time): (1 − w)^m, as if m packets had found an empty queue.
fn age(s: &Settings, state: &mut State, now: u64) {
    let idle = now.saturating_sub(state.empty_since.max(state.aged));
    state.aged = state.aged.max(now);
    if idle >= s.forgets_in {
        state.avg = [0; 3];
    } else if idle > 0 {
        let power = s.fade * idle;
        let kept = exp2_neg(power);
        state.avg = state.avg.map(|avg| mul_shr32(avg, kept) >> (power >> 56));
    }
}

/// 2^−x for the fraction x of a number with 56 binary digits after the point: with 32 of them. Two tables of 256, and a straight line below.
fn exp2_neg(x: u64) -> u64 {
    let (hi, mid) = ((x >> 48 & 0xff) as usize, (x >> 40 & 0xff) as usize);
    let [eight, sixteen] = &*POWERS;
    let coarse = mul_shr32(eight[hi], sixteen[mid]);
    // ln 2 · 2^−16 · rest, rest with 40 digits.
    let fine = mul_shr32(x & ((1 << 40) - 1), LN2) >> 24;
    mul_shr32(coarse, ONE - fine)
}

/// Tests an arrival, up to date with which [`look`] has brought the state: early drops by its curve, then the limit.
#[must_use]
pub fn test(s: &Settings, state: &mut State, a: &Arrival) -> Admission {
    let room = state.level + u64::from(a.size) * BYTE <= s.most;
    if s.curves == 0 {
        return if room { Admission::Admit } else { Admission::Drop(POLICED) };
    }
    let row = usize::from(s.row[a.colour]);
    let (avg, curve, count) = (state.avg[row], &s.curve[row], &mut state.count[row]);
    let mut marked = false;
    if avg < curve.min_th {
        *count = BELOW;
    } else if avg >= curve.end {
        *count = 0;
        return Admission::Drop(FORCED);
    } else {
        *count = count.saturating_add(1);
        if picked(s, curve.p(avg), *count as u64, a.random) {
            *count = 0;
            marked = s.ecn && a.ecn && avg < curve.max_th;
            if !marked {
                return Admission::Drop(EARLY);
            }
        }
    }
    if !room {
        *count = (*count).min(0);
        return Admission::Drop(POLICED);
    }
    if marked { Admission::Mark } else { Admission::Admit }
}

/// u < p / (1 − count·p), or with `wait` u < p / (2 − count·p) and not before count·p is 1; all as fractions of 32 bits.
fn picked(s: &Settings, p: u64, count: u64, random: u32) -> bool {
    let due = count * p;
    if s.wait && due < ONE {
        return false;
    }
    let room = if s.wait { 2 * ONE } else { ONE };
    due >= room || u64::from(random) * (room - due) < p << 32
}

/// A packet that joins makes the level, and its colour's part, so much longer.
pub fn accept(state: &mut State, a: &Arrival) {
    state.last = state.last.max(a.now);
    state.level += u64::from(a.size) * BYTE;
    state.parts[a.colour] += u64::from(a.size) << 16;
}

#[cfg(test)]
mod tests;
