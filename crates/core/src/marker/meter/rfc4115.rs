//! Two-rate three-colour marker with efficient handling of in-profile traffic: a committed and an excess rate, independent of
//! each other.
//!
//! A green packet takes committed tokens only, a yellow one excess tokens only. So yellow traffic never costs a green packet
//! its colour, and no peak bucket is shared, as it is in [RFC 2698](super::trtcm). Source: RFC 4115.
//! At equality the RFC's prose and its flow chart differ: a packet conforms if it leaves tokens (prose, T − B > 0), or if there
//! are enough tokens (chart, T ≥ B). We follow the chart unless `boundary` says otherwise: it agrees with RFC 2697 and 2698,
//! and a bucket's depth is then the longest burst that passes. Non-goal: counting packets instead of bytes.

use super::{Bucket, Mode, Stats, Tokens, committed, inflow, one_needed, show_buckets, wanted};
use crate::marker::Action;
use crate::prelude::*;
use crate::signal::{EXCESS_TOKENS, TOKENS};

crate::choice! {
    /// How many tokens let a packet of B bytes by.
    pub enum Boundary {
        /// At least B: the flow chart.
        AtLeast = "T>=B",
        /// More than B: the prose.
        MoreThan = "T>B",
    }
}

crate::params! {
    /// The operator's settings (RFC 4115 §1).
    pub struct Params {
        /// Committed information rate, counted on the wire. Default: the flow's contract.
        cir: Option<Rate> [POSITIVE];
        /// Excess information rate: comes on top of `cir`.
        eir: Rate [POSITIVE];
        /// Committed burst size: the depth of the bucket that makes packets green. Packets are full packets.
        cbs: Backlog [NON_NEGATIVE];
        /// Excess burst size: the depth of the bucket that makes packets yellow.
        ebs: Backlog [NON_NEGATIVE];
        /// Whether the colour a packet comes with counts.
        mode: Mode = Mode::ColourBlind;
        /// Whether the last token may be spent.
        boundary: Boundary = Boundary::AtLeast;
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
pub struct Rfc4115 {
    cir: Rate,
    eir: Rate,
    mode: Mode,
    boundary: Boundary,
    vars: Vars,
    action: Action,
    stats: Stats,
}

impl Vars {
    /// RFC 4115 §3: each bucket at its own rate.
    #[inline]
    fn fill(&mut self, cir: Rate, eir: Rate, now: Time) {
        self.c.pour(inflow(cir, self.at, now));
        self.e.pour(inflow(eir, self.at, now));
        self.at = now;
    }

    /// RFC 4115 §3: the colour, for a packet that came as `came`; tokens are taken.
    #[inline]
    fn meter(&mut self, came: Colour, size: u32, boundary: Boundary) -> Colour {
        let passes = |bucket: &Bucket| match boundary {
            Boundary::AtLeast => bucket.holds(size),
            Boundary::MoreThan => bucket.exceeds(size),
        };
        if came == Colour::Green && passes(&self.c) {
            self.c.take(size);
            Colour::Green
        } else if came != Colour::Red && passes(&self.e) {
            self.e.take(size);
            Colour::Yellow
        } else {
            Colour::Red
        }
    }
}

impl Build for Params {
    type Mechanism = Rfc4115;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        committed(self.cir, context)?;
        let tokens = match self.boundary {
            Boundary::AtLeast => Tokens::Enough,
            Boundary::MoreThan => Tokens::More,
        };
        one_needed(self.cbs, self.ebs, tokens, context)?;
        let green = wanted("cbs", self.cbs, tokens, context, "green");
        Ok(green.into_iter().chain(wanted("ebs", self.ebs, tokens, context, "yellow")).collect())
    }

    fn build(&self, context: &Context) -> Rfc4115 {
        let vars =
            Vars { c: Bucket::new(self.cbs, context), e: Bucket::new(self.ebs, context), at: Time::ZERO };
        // `check` has passed: there is a rate.
        let cir = committed(self.cir, context).unwrap_or_default();
        let Params { eir, mode, boundary, action, .. } = *self;
        Rfc4115 { cir, eir, mode, boundary, vars, action, stats: Stats::default() }
    }
}

impl Mechanism for Rfc4115 {
    fn signal(&mut self, now: Time, signal: &Signal) {
        self.vars.fill(self.cir, self.eir, now);
        match signal.topic {
            TOKENS => self.vars.c.keep_at_most(signal.value),
            EXCESS_TOKENS => self.vars.e.keep_at_most(signal.value),
            _ => {}
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let mut vars = self.vars.clone();
        vars.fill(self.cir, self.eir, now);
        show_buckets(show, [("tc", &vars.c), ("te", &vars.e)]);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.stats.show(show);
    }
}

impl Marker for Rfc4115 {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        self.vars.fill(self.cir, self.eir, now);
        why.note("tc", self.vars.c.bytes());
        why.note("te", self.vars.e.bytes());
        let colour = self.vars.meter(self.mode.sees(packet), packet.size, self.boundary);
        self.action.on(self.stats.count(colour), Colour::Red)
    }
}
