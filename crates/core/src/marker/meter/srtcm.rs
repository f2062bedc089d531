//! Single-rate three-colour marker: one rate, two burst sizes.
//!
//! Tokens arrive at `cir` and fill the committed bucket; when it is full they go to the excess bucket. A packet for which the
//! committed bucket has enough tokens is green, one for which the excess bucket has enough is yellow, any other is red and
//! takes none. Only the length of a burst decides, not its peak rate. Source: RFC 2697.
//! Non-goal: a peak rate (see [`trtcm`](super::trtcm)).

use super::{Bucket, Mode, Stats, Tokens, committed, inflow, one_needed, show_buckets, wanted};
use crate::marker::Action;
use crate::prelude::*;
use crate::signal::{EXCESS_TOKENS, TOKENS};

crate::params! {
    /// The operator's settings (RFC 2697 §2).
    pub struct Params {
        /// Committed information rate, counted on the wire. Default: the flow's contract.
        cir: Option<Rate> [POSITIVE];
        /// Committed burst size: the depth of the bucket that makes packets green. Packets are full packets.
        cbs: Backlog [NON_NEGATIVE];
        /// Excess burst size: the depth of the bucket that makes packets yellow.
        ebs: Backlog [NON_NEGATIVE];
        /// Whether the colour a packet comes with counts.
        mode: Mode = Mode::ColourBlind;
        /// What becomes of red packets: they go on as red, or a policer drops them.
        action: Action = Action::Mark;
    }
}

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars {
    /// Tc.
    c: Bucket,
    /// Te.
    e: Bucket,
    at: Time,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct SrTcm {
    cir: Rate,
    mode: Mode,
    vars: Vars,
    action: Action,
    stats: Stats,
}

impl Vars {
    /// RFC 2697 §3: Tc is filled first, then Te, at `cir` both.
    #[inline]
    fn fill(&mut self, cir: Rate, now: Time) {
        let over = self.c.pour(inflow(cir, self.at, now));
        self.e.pour(over);
        self.at = now;
    }

    /// RFC 2697 §3, the two lists: the colour, for a packet that came as `came`; tokens are taken.
    #[inline]
    fn meter(&mut self, came: Colour, size: u32) -> Colour {
        if came == Colour::Green && self.c.holds(size) {
            self.c.take(size);
            Colour::Green
        } else if came != Colour::Red && self.e.holds(size) {
            self.e.take(size);
            Colour::Yellow
        } else {
            Colour::Red
        }
    }
}

impl Build for Params {
    type Mechanism = SrTcm;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        committed(self.cir, context)?;
        one_needed(self.cbs, self.ebs, Tokens::Enough, context)?;
        // RFC 2697 §2: an excess burst of nothing makes it a two-colour meter, which is meant.
        Ok(wanted("cbs", self.cbs, Tokens::Enough, context, "green").into_iter().collect())
    }

    fn build(&self, context: &Context) -> SrTcm {
        let vars =
            Vars { c: Bucket::new(self.cbs, context), e: Bucket::new(self.ebs, context), at: Time::ZERO };
        // `check` has passed: there is a rate.
        let cir = committed(self.cir, context).unwrap_or_default();
        SrTcm { cir, mode: self.mode, vars, action: self.action, stats: Stats::default() }
    }
}

impl Mechanism for SrTcm {
    fn signal(&mut self, now: Time, signal: &Signal) {
        self.vars.fill(self.cir, now);
        match signal.topic {
            TOKENS => self.vars.c.keep_at_most(signal.value),
            EXCESS_TOKENS => self.vars.e.keep_at_most(signal.value),
            _ => {}
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let mut vars = self.vars.clone();
        vars.fill(self.cir, now);
        show_buckets(show, [("tc", &vars.c), ("te", &vars.e)]);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.stats.show(show);
    }
}

impl Marker for SrTcm {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        self.vars.fill(self.cir, now);
        why.note("tc", self.vars.c.bytes());
        why.note("te", self.vars.e.bytes());
        let colour = self.vars.meter(self.mode.sees(packet), packet.size);
        self.action.on(self.stats.count(colour), Colour::Red)
    }
}
