//! Two-rate three-colour marker: a peak rate that may not be exceeded, and a committed rate within it.
//!
//! The peak bucket is checked first: a packet for which it has too few tokens is red, whatever the committed bucket holds, and
//! takes none. Otherwise it is green if the committed bucket has enough tokens too, and takes from both; else it is yellow and
//! takes from the peak bucket only. Source: RFC 2698. Non-goal: green packets that take no excess tokens
//! (see [`rfc4115`](super::rfc4115)).

use super::{Bucket, Mode, Stats, Tokens, committed, inflow, needed, show_buckets, wanted};
use crate::marker::Action;
use crate::prelude::*;
use crate::signal::{EXCESS_TOKENS, TOKENS};

crate::params! {
    /// The operator's settings (RFC 2698 §2).
    pub struct Params {
        /// Committed information rate, counted on the wire. Default: the flow's contract.
        cir: Option<Rate> [POSITIVE];
        /// Peak information rate: at least `cir`.
        pir: Rate [POSITIVE];
        /// Committed burst size: the depth of the bucket that makes packets green. Packets are full packets.
        cbs: Backlog [NON_NEGATIVE];
        /// Peak burst size: the depth of the bucket without whose tokens packets are red.
        pbs: Backlog [POSITIVE];
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
    /// Tp.
    p: Bucket,
    at: Time,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct TrTcm {
    cir: Rate,
    pir: Rate,
    mode: Mode,
    vars: Vars,
    action: Action,
    stats: Stats,
}

impl Vars {
    /// RFC 2698 §3: each bucket at its own rate.
    #[inline]
    fn fill(&mut self, cir: Rate, pir: Rate, now: Time) {
        self.c.pour(inflow(cir, self.at, now));
        self.p.pour(inflow(pir, self.at, now));
        self.at = now;
    }

    /// RFC 2698 §3, the two lists: the colour, for a packet that came as `came`; tokens are taken.
    #[inline]
    fn meter(&mut self, came: Colour, size: u32) -> Colour {
        if came == Colour::Red || !self.p.holds(size) {
            return Colour::Red;
        }
        self.p.take(size);
        if came == Colour::Yellow || !self.c.holds(size) {
            return Colour::Yellow;
        }
        self.c.take(size);
        Colour::Green
    }
}

impl Build for Params {
    type Mechanism = TrTcm;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let cir = committed(self.cir, context)?;
        if self.pir < cir {
            return Err(Fault {
                field: "pir",
                problem: format!("a peak rate of {} is below the committed rate of {cir}", self.pir),
                remedy: format!("at least \"{cir}\" (RFC 2698 §2)"),
            });
        }
        needed("pbs", self.pbs, context)?;
        let mut warnings: Vec<Warning> =
            wanted("cbs", self.cbs, Tokens::Enough, context, "green").into_iter().collect();
        if self.cbs.bytes(context.packet) > self.pbs.bytes(context.packet) {
            let text = format!(
                "{} is above pbs, {}: a burst is red before the committed tokens are spent",
                self.cbs, self.pbs
            );
            warnings.push(Warning { field: "cbs", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> TrTcm {
        let vars =
            Vars { c: Bucket::new(self.cbs, context), p: Bucket::new(self.pbs, context), at: Time::ZERO };
        // `check` has passed: there is a rate.
        let cir = committed(self.cir, context).unwrap_or_default();
        TrTcm { cir, pir: self.pir, mode: self.mode, vars, action: self.action, stats: Stats::default() }
    }
}

impl Mechanism for TrTcm {
    fn signal(&mut self, now: Time, signal: &Signal) {
        self.vars.fill(self.cir, self.pir, now);
        match signal.topic {
            TOKENS => self.vars.c.keep_at_most(signal.value),
            EXCESS_TOKENS => self.vars.p.keep_at_most(signal.value),
            _ => {}
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let mut vars = self.vars.clone();
        vars.fill(self.cir, self.pir, now);
        show_buckets(show, [("tc", &vars.c), ("tp", &vars.p)]);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.stats.show(show);
    }
}

impl Marker for TrTcm {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        self.vars.fill(self.cir, self.pir, now);
        why.note("tc", self.vars.c.bytes());
        why.note("tp", self.vars.p.bytes());
        let colour = self.vars.meter(self.mode.sees(packet), packet.size);
        self.action.on(self.stats.count(colour), Colour::Red)
    }
}
