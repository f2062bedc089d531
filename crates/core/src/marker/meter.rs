//! The common part of the three-colour meters of RFC 2697, 2698 and 4115: exact token buckets, modes, counts.
//!
//! A token is a byte, and tokens are counted in grains of 1/8,000,000,000,000 of one, so that a rate in bits per second times a
//! time in picoseconds is a whole number of grains: nothing is rounded, however long the run and whatever the rate. The RFCs add
//! tokens one by one, "CIR times per second"; here they arrive continuously, which is the same at the times of those additions
//! and never more than a byte ahead in between.
//! Buckets start full, and their depths are whole bytes. Non-goal: marking by anything but size and time.

mod laws;
#[cfg(test)]
mod tests;

pub use laws::{rfc4115, srtcm, trtcm};

use crate::marker::Action;
use crate::prelude::*;
use crate::signal::{EXCESS_TOKENS, TOKENS};
use crate::units::PS_PER_S;

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
pub struct Bucket {
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

/// The tokens of a meter.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// Tc: without them no packet is green.
    committed: Bucket,
    /// Te or Tp: without them packets are red.
    second: Bucket,
    /// They were filled until then.
    at: Time,
}

impl Buckets {
    /// The grains that have arrived at `rate` until `now`.
    #[inline]
    fn inflow(&self, rate: Rate, now: Time) -> u128 {
        u128::from(rate.0) * u128::from(now.since(self.at).0)
    }
}

/// What the RFCs differ in.
pub trait Metering: Send {
    /// The name of the second bucket's tokens.
    const SECOND: &'static str;

    /// Fills the buckets until now.
    fn fill(&self, buckets: &mut Buckets, now: Time);

    /// The colour, for a packet that came as `came`; tokens are taken.
    fn meter(&self, buckets: &mut Buckets, came: Colour, size: u32) -> Colour;
}

/// The marker.
#[derive(Clone, Debug)]
pub struct Meter<L> {
    law: L,
    mode: Mode,
    action: Action,
    buckets: Buckets,
    stats: Stats,
}

impl<L: Metering> Meter<L> {
    /// With full buckets of these depths.
    fn new(law: L, depths: [Backlog; 2], context: &Context, mode: Mode, action: Action) -> Meter<L> {
        let [committed, second] = depths.map(|depth| Bucket::new(depth, context));
        Meter {
            law,
            mode,
            action,
            buckets: Buckets { committed, second, at: Time::ZERO },
            stats: Stats::default(),
        }
    }

    /// Tokens as of now.
    #[inline]
    fn filled(&self, now: Time) -> Buckets {
        let mut buckets = self.buckets;
        self.law.fill(&mut buckets, now);
        Buckets { at: now, ..buckets }
    }
}

impl<L: Metering> Mechanism for Meter<L> {
    fn signal(&mut self, now: Time, signal: &Signal) {
        self.buckets = self.filled(now);
        match signal.topic {
            TOKENS => self.buckets.committed.keep_at_most(signal.value),
            EXCESS_TOKENS => self.buckets.second.keep_at_most(signal.value),
            _ => {}
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let buckets = self.filled(now);
        show("tc", buckets.committed.bytes());
        show(L::SECOND, buckets.second.bytes());
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.stats.show(show);
    }
}

impl<L: Metering> Marker for Meter<L> {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        self.law.fill(&mut self.buckets, now);
        self.buckets.at = now;
        why.note("tc", self.buckets.committed.bytes());
        why.note(L::SECOND, self.buckets.second.bytes());
        let colour = self.law.meter(&mut self.buckets, self.mode.sees(packet), packet.size);
        self.action.on(self.stats.count(colour), Colour::Red)
    }
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
