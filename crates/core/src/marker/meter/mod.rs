//! What the three-colour meters of RFC 2697, 2698 and 4115 share: exact token buckets, modes, counts.
//!
//! A token is a byte, and tokens are counted in units of 1/8,000,000,000,000 of one, so that a rate in bits per second times a
//! time in picoseconds is a whole number of units: nothing is rounded, however long the run and whatever the rate. The RFCs add
//! tokens one by one, "CIR times per second"; here they arrive continuously, which is the same at the times of those additions
//! and never more than a byte ahead in between.
//! Buckets start full, and their depths are whole bytes. Non-goal: marking by anything but size and time.

pub mod rfc4115;
pub mod srtcm;
#[cfg(test)]
mod tests;
pub mod trtcm;

use crate::mechanism::Gauge;
use crate::packet::{Colour, Packet};
use crate::params::{Context, Fault, Warning};
use crate::units::{Backlog, PS_PER_S, Rate, Time};

/// Grains in a byte.
const BYTE: u128 = 8 * PS_PER_S as u128;

crate::choice! {
    /// Whether a meter looks at the colour a packet comes with.
    pub enum Mode {
        /// Every packet counts as green.
        ColourBlind = "colour_blind",
        /// A packet never leaves better than it came.
        ColourAware = "colour_aware",
    }
}

impl Mode {
    /// Both.
    pub const ALL: [Mode; 2] = [Mode::ColourBlind, Mode::ColourAware];

    /// The colour that the meter takes the packet to have.
    #[inline]
    fn sees(self, packet: &Packet) -> Colour {
        match self {
            Mode::ColourBlind => Colour::Green,
            Mode::ColourAware => packet.colour,
        }
    }
}

/// Tokens of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// In grains, at most `depth`.
    tokens: u128,
    /// In grains.
    depth: u128,
}

impl Bucket {
    /// Full.
    fn new(depth: Backlog, context: &Context) -> Bucket {
        // A cast of a fraction leaves the whole bytes, one of too much the most there can be.
        let depth = u128::from(depth.bytes(context.packet) as u64) * BYTE;
        Bucket { tokens: depth, depth }
    }

    /// Takes in grains; what does not fit is handed back.
    #[inline]
    fn pour(&mut self, grains: u128) -> u128 {
        let all = self.tokens.saturating_add(grains);
        self.tokens = all.min(self.depth);
        all - self.tokens
    }

    /// Whether there is a token for each byte.
    #[inline]
    fn holds(&self, size: u32) -> bool {
        self.tokens >= u128::from(size) * BYTE
    }

    /// Whether there is a token for each byte and more.
    #[inline]
    fn exceeds(&self, size: u32) -> bool {
        self.tokens > u128::from(size) * BYTE
    }

    /// Takes a token for each byte; there must be so many.
    #[inline]
    fn take(&mut self, size: u32) {
        self.tokens -= u128::from(size) * BYTE;
    }

    /// Holds no more than so many bytes from now on.
    fn keep_at_most(&mut self, bytes: f64) {
        self.tokens = self.tokens.min(u128::from(bytes.max(0.0) as u64) * BYTE);
    }

    /// For a monitor.
    fn bytes(&self) -> f64 {
        self.tokens as f64 / BYTE as f64
    }
}

/// What flows in at `rate` from `at` to `now`.
#[inline]
fn inflow(rate: Rate, at: Time, now: Time) -> u128 {
    u128::from(rate.0) * u128::from(now.since(at).0)
}

/// Packets by the colour they left with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By [`Colour`].
    pub left: [u64; 3],
}

impl Stats {
    #[inline]
    fn count(&mut self, colour: Colour) -> Colour {
        self.left[colour as usize] += 1;
        colour
    }

    fn show(&self, show: &mut dyn FnMut(&'static str, u64)) {
        for (name, count) in ["green", "yellow", "red"].into_iter().zip(self.left) {
            show(name, count);
        }
    }
}

fn show_buckets(show: Gauge<'_>, buckets: [(&'static str, &Bucket); 2]) {
    for (name, bucket) in buckets {
        show(name, bucket.bytes());
    }
}

/// The committed rate: what was set, or the flow's contract.
fn committed(cir: Option<Rate>, context: &Context) -> Result<Rate, Fault> {
    cir.or(context.contract).ok_or_else(|| Fault {
        field: "cir",
        problem: "the meter has no committed rate, and its flow has no contract to take it from".into(),
        remedy: "contract = \"250 kbit/s\" in the flow, or cir = \"250 kbit/s\" here".into(),
    })
}

/// Whether a full packet fits into a bucket of this depth.
fn fits(depth: Backlog, context: &Context) -> bool {
    depth.bytes(context.packet) >= context.packet.0 as f64
}

/// A bucket without which every full packet would be red.
fn needed(field: &'static str, depth: Backlog, context: &Context) -> Result<(), Fault> {
    if fits(depth, context) {
        return Ok(());
    }
    let packet = context.packet;
    Err(Fault {
        field,
        problem: format!(
            "a depth of {depth} is less than a packet of {packet}: every full packet would be red"
        ),
        remedy: format!("at least \"{packet}\" or \"1 packets\""),
    })
}

/// Two buckets without either of which every full packet would be red.
fn one_needed(cbs: Backlog, ebs: Backlog, context: &Context) -> Result<(), Fault> {
    if fits(cbs, context) || fits(ebs, context) {
        return Ok(());
    }
    let packet = context.packet;
    Err(Fault {
        field: "cbs",
        problem: format!(
            "neither cbs, {cbs}, nor ebs, {ebs}, holds a packet of {packet}: every full packet would be red"
        ),
        remedy: format!("at least \"{packet}\" or \"1 packets\" for one of them"),
    })
}

/// A bucket without which no full packet has a colour.
fn wanted(field: &'static str, depth: Backlog, context: &Context, colour: &str) -> Option<Warning> {
    let packet = context.packet;
    let text = format!("{depth} is less than a packet of {packet}: no full packet can be {colour}");
    (!fits(depth, context)).then_some(Warning { field, text })
}
