//! The common part of the three-colour meters of RFC 2697, 2698 and 4115: exact token buckets, modes, counts.
//!
//! A token is a byte, and tokens are counted in grains of 1/8,000,000,000,000 of one, so that a rate in bits per second times a
//! time in picoseconds is a whole number of grains: nothing is rounded, however long the run and whatever the rate. The RFCs add
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

    /// The colour that the meter takes the packet to have come with.
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

    /// Adds grains; returns those that do not fit.
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

    /// Whether there are more tokens than bytes.
    #[inline]
    fn exceeds(&self, size: u32) -> bool {
        self.tokens > u128::from(size) * BYTE
    }

    /// Takes a token for each byte; the bucket must hold that many.
    #[inline]
    fn take(&mut self, size: u32) {
        self.tokens -= u128::from(size) * BYTE;
    }

    /// Discards tokens beyond so many bytes.
    fn keep_at_most(&mut self, bytes: f64) {
        self.tokens = self.tokens.min(u128::from(bytes.max(0.0) as u64) * BYTE);
    }

    /// Its tokens in bytes, for monitors.
    fn bytes(&self) -> f64 {
        self.tokens as f64 / BYTE as f64
    }
}

/// The grains that arrive at `rate` from `at` to `now`.
#[inline]
fn inflow(rate: Rate, at: Time, now: Time) -> u128 {
    u128::from(rate.0) * u128::from(now.since(at).0)
}

/// Packets by the colour that the meter gave them; of a policer, red ones are dropped.
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

/// The committed rate: the one that was set, or the flow's contract.
fn committed(cir: Option<Rate>, context: &Context) -> Result<Rate, Fault> {
    cir.or(context.contract).ok_or_else(|| Fault {
        field: "cir",
        problem: "the meter has no committed rate, and its flow has no contract to take it from".into(),
        remedy: "contract = \"250 kbit/s\" in the flow, or cir = \"250 kbit/s\" here".into(),
    })
}

/// The tokens that let a packet by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tokens {
    /// As many as it has bytes.
    Enough,
    /// More than that.
    More,
}

impl Tokens {
    /// Whether a bucket of this depth ever lets a full packet by.
    fn fit(self, depth: Backlog, context: &Context) -> bool {
        let (depth, packet) = (depth.bytes(context.packet), context.packet.0 as f64);
        depth > packet || (depth >= packet && self == Tokens::Enough)
    }

    /// The remedy for one that never does.
    fn remedy(self, context: &Context) -> String {
        let least = if self == Tokens::Enough { "at least" } else { "more than" };
        format!("{least} \"{}\" or \"1 packets\"", context.packet)
    }
}

/// Refuses a bucket too shallow for a full packet, where every packet needs its tokens.
fn needed(field: &'static str, depth: Backlog, context: &Context) -> Result<(), Fault> {
    if Tokens::Enough.fit(depth, context) {
        return Ok(());
    }
    let packet = context.packet;
    Err(Fault {
        field,
        problem: format!(
            "a depth of {depth} is less than a packet of {packet}: every full packet would be red"
        ),
        remedy: Tokens::Enough.remedy(context),
    })
}

/// Refuses two buckets if neither ever lets a full packet by.
fn one_needed(cbs: Backlog, ebs: Backlog, tokens: Tokens, context: &Context) -> Result<(), Fault> {
    if tokens.fit(cbs, context) || tokens.fit(ebs, context) {
        return Ok(());
    }
    let (packet, more) = (context.packet, if tokens == Tokens::More { "more than " } else { "" });
    Err(Fault {
        field: "cbs",
        problem: format!(
            "neither cbs, {cbs}, nor ebs, {ebs}, holds {more}a packet of {packet}: every full packet would be red"
        ),
        remedy: format!("{} for one of them", tokens.remedy(context)),
    })
}

/// Warns of a bucket that never lets a full packet by, so that none gets this colour.
fn wanted(
    field: &'static str,
    depth: Backlog,
    tokens: Tokens,
    context: &Context,
    colour: &str,
) -> Option<Warning> {
    let less = if tokens == Tokens::More { "not more" } else { "less" };
    let text =
        format!("{depth} is {less} than a packet of {}: no full packet can be {colour}", context.packet);
    (!tokens.fit(depth, context)).then_some(Warning { field, text })
}
