//! RIO, RED with IN and OUT: two REDs in one queue, so that OUT packets go first.
//!
//! An IN packet is tested by the average of the IN packets waiting, an OUT packet by the average of all:
//! as the queue grows OUT packets are dropped early, then all of them, and only what IN packets
//! themselves build up costs IN packets. Each colour has its own curve and its own count.
//! Source: Clark and Fang 1998; curve, count and idle time as in [RED](super::red).
//! Link idle time ages both averages, at whichever arrival ends it. Out of profile is every colour but green.
//! Non-goal: more than two drop precedences (WRED, RIO-C with three).

mod averages;

use std::sync::Arc;

use crate::aqm::curve::{self, Curve, Law, Rule, Variant};
use crate::aqm::out_seen::OutSeen;
use crate::aqm::spacing::{Fate, Found, admission};
use crate::aqm::tally::Tally;
use crate::aqm::thresholds::{Paths, check_thresholds};
use crate::aqm::{Aqm, FlowGauge};
use crate::estimate::ewma::Weight;
use crate::marker::Gauge;
use crate::packet::{Colour, Ecn, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::{FORGET, Signal};
use crate::units::{Backlog, Bytes, Time};
use crate::verdict::{Admission, Cause, Why};

use averages::Ns2Idle;
pub use averages::Vars;

crate::choice! {
    /// At which arrivals the averages take a sample.
    pub enum AvgUpdate {
        /// The total at every arrival, IN's at IN arrivals (Clark and Fang 1998).
        ClarkFang = "clark_fang",
        /// Both at every arrival.
        EveryArrival = "every_arrival",
        /// Both at IN arrivals only: a known fault of ns-2's Queue/RED/RIO.
        Ns2 = "ns2",
    }
}

crate::params! {
    /// The curve of one colour.
    pub struct Thresholds {
        /// Average below which nothing of this colour is dropped. All thresholds have one unit, packets or bytes.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
    }
}

impl Thresholds {
    /// As a curve.
    pub(super) fn curve(&self) -> Curve {
        Curve::new(self.min_th.amount(), self.max_th.amount(), self.max_p)
    }
}

crate::params! {
    /// What an operator sets.
    pub struct Params {
        /// For IN packets, on the average of IN packets waiting.
        r#in: Thresholds;
        /// For OUT packets, on the average of all packets waiting.
        out: Thresholds;
        /// Weight of the newest sample in both averages.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = false;
        /// After a drop, at least 1/p packets of the colour are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// At which arrivals the averages take a sample.
        avg_update: AvgUpdate = AvgUpdate::ClarkFang;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Typical size on the wire: how fast an idle link ages the averages, and what byte_scaled divides
        /// by. Left out: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
        /// Floyd and Jacobson's algorithm for curve, count and idle time, their efficient one, or ns-2's.
        variant: Variant = Variant::Floyd93;
        /// Keeps, by flow, the mean of avg − avg_in over the flow's IN packets as they join.
        watch: bool = false;
    }
}

/// What no arrival changes. Copies of a queue share it, as [RED](super::red)'s do.
#[derive(Clone, Debug)]
struct Config {
    weight: Weight,
    r#in: Curve,
    out: Curve,
    rule: Rule,
    /// Weight of an OUT and of an IN packet's sample in IN's average.
    in_weight: [f64; 2],
    avg_update: AvgUpdate,
    ecn: bool,
}

/// What few queues need.
#[derive(Clone, Debug, Default)]
struct Aside {
    seen: Option<OutSeen>,
    ns2: Ns2Idle,
}

/// The discipline. An arrival that joins touches one cache line, one that is dropped two; in C's order, so that the
/// first holds all but the counts.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rio {
    vars: Vars,
    config: Arc<Config>,
    aside: Option<Box<Aside>>,
    /// OUT, IN.
    stats: [Tally; 2],
}

impl Build for Params {
    type Mechanism = Rio;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "in.min_th", max_th: "in.max_th" };
        check_thresholds(self.r#in.min_th, self.r#in.max_th, paths, context, &mut warnings)?;
        let paths = Paths { min_th: "out.min_th", max_th: "out.max_th" };
        check_thresholds(self.out.min_th, self.out.max_th, paths, context, &mut warnings)?;
        if !self.r#in.min_th.same_unit(self.out.min_th) {
            return Err(Fault {
                field: "out.min_th",
                problem: format!(
                    "in.min_th is {} and out.min_th is {}: the averages have one unit",
                    self.r#in.min_th, self.out.min_th
                ),
                remedy: "all four thresholds in packets, or all in bytes".into(),
            });
        }
        if self.r#in.min_th.amount() < self.out.max_th.amount() {
            let text = format!(
                "in.min_th ({}) is below out.max_th ({}): IN packets may be dropped while OUT packets still join",
                self.r#in.min_th, self.out.max_th
            );
            warnings.push(Warning { field: "in.min_th", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Rio {
        let mean = self.mean_packet.unwrap_or(context.packet);
        let law = match self.variant {
            Variant::Floyd93 => Law::Floyd93,
            Variant::Efficient => Law::Efficient,
            Variant::Ns2 => Law::Ns2Rio,
        };
        // ns-2 is told 1 / max_p (`linterm_`).
        let told = |t: &Thresholds| match law {
            Law::Ns2Rio => Curve::new(t.min_th.amount(), t.max_th.amount(), 1.0 / (1.0 / t.max_p)),
            _ => t.curve(),
        };
        let in_bytes = matches!(self.out.min_th, Backlog::Bytes(_));
        let config = Config {
            weight: Weight::new(self.w_q, context.link_rate, mean),
            r#in: told(&self.r#in),
            out: told(&self.out),
            rule: Rule {
                law,
                gentle: self.gentle,
                wait: self.wait,
                in_bytes,
                mean: self.byte_scaled.then(|| curve::size_of(mean)),
            },
            in_weight: [if self.avg_update == AvgUpdate::EveryArrival { self.w_q } else { 0.0 }, self.w_q],
            avg_update: self.avg_update,
            ecn: self.ecn,
        };
        let watch = || Box::new(Aside { seen: Some(OutSeen::default()), ..Aside::default() });
        Rio {
            vars: Vars::default(),
            config: Arc::new(config),
            aside: self.watch.then(watch),
            stats: [Tally::default(); 2],
        }
    }
}

impl Rio {
    /// Brings the averages up to date with an arrival and tests it against its colour's curve.
    #[inline]
    pub(super) fn test<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        let (v, c) = (&mut self.vars, &*self.config);
        let is_in = packet.colour.is_in();
        let (all, ins) = if c.rule.in_bytes {
            (queue.bytes() as f64, queue.bytes_of(Colour::IN) as f64)
        } else {
            (f64::from(queue.packets()), f64::from(queue.packets_of(Colour::IN)))
        };
        match c.rule.law {
            Law::Floyd93 | Law::Efficient => {
                v.update(c, now, is_in, (all, ins), queue.idle_since(), &mut self.aside)
            }
            _ => {
                let ns2 = &mut self.aside.get_or_insert_default().ns2;
                v.update_ns2(c, now, is_in, (all, ins), queue.idle_secs(now), ns2);
            }
        }
        why.note("queued", all);
        why.note("queued_in", ins);
        why.note("avg", v.out.average.get());
        why.note("avg_in", v.r#in.average.get());
        let (group, curve) = if is_in { (&mut v.r#in, &c.r#in) } else { (&mut v.out, &c.out) };
        let found = Found { avg: group.average.get(), size: packet.size };
        group.count.test(curve, &c.rule, found, || if is_in { ins } else { all }, rng, why)
    }

    /// Turns what the tests said into a verdict, and counts it.
    #[inline]
    pub(super) fn conclude<Q: Queue + ?Sized>(
        &mut self,
        packet: &Packet,
        queue: &Q,
        fate: Fate,
    ) -> Admission {
        let (v, c) = (&mut self.vars, &*self.config);
        let is_in = packet.colour.is_in();
        let can_mark = c.ecn && packet.ecn != Ecn::NotCapable;
        let verdict = admission(fate, c.rule.law, can_mark, queue.fits(packet.size));
        if verdict != Admission::Admit {
            self.stats[usize::from(is_in)].count(verdict);
            // An overflow restarts the count; ns-2: so does a forced drop, and neither does OUT's.
            match verdict {
                Admission::Drop(Cause::Overflow) if is_in || !c.rule.law.is_ns2() => {
                    v.of(is_in).count.restart()
                }
                Admission::Drop(Cause::Forced) if c.rule.law.is_ns2() => v.restart_ns2(is_in),
                _ => {}
            }
        }
        if let Some(aside) = &mut self.aside
            && let Some(seen) = &mut aside.seen
            && is_in
            && !matches!(verdict, Admission::Drop(_))
        {
            seen.note(packet.flow, v.out.average.get() - v.r#in.average.get());
        }
        verdict
    }

    /// The average of all packets, and that of IN packets.
    #[inline]
    pub(super) fn averages(&self) -> (f64, f64) {
        (self.vars.out.average.get(), self.vars.r#in.average.get())
    }

    /// How the curves are read.
    #[inline]
    pub(super) fn rule(&self) -> &Rule {
        &self.config.rule
    }
}

impl Aqm for Rio {
    const KEEPS_TIME: bool = false;

    fn tell_secs(&mut self, secs: f64) {
        if self.config.rule.law.is_ns2() {
            self.aside.get_or_insert_default().ns2.told = Some(secs);
        }
    }

    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let fate = self.test(now, packet, queue, rng, why);
        self.conclude(packet, queue, fate)
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let ((avg, avg_in), c) = (self.averages(), &self.config);
        show("avg", avg);
        show("avg_in", avg_in);
        show("p_b_in", c.r#in.p_b(avg_in, c.rule.gentle));
        show("p_b_out", c.out.p_b(avg, c.rule.gentle));
    }

    fn signal(&mut self, _: Time, signal: &Signal) {
        if signal.topic == FORGET
            && let Some(flow) = signal.flow
            && let Some(seen) = self.aside.as_mut().and_then(|aside| aside.seen.as_mut())
        {
            seen.forget(flow);
        }
    }

    fn flow_gauges(&self, _: Time, show: FlowGauge<'_>) {
        if let Some(seen) = self.aside.as_ref().and_then(|aside| aside.seen.as_ref()) {
            seen.show(show);
        }
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let [out, r#in] = &self.stats;
        Tally::show_both(r#in, out, show);
    }
}

#[cfg(test)]
mod tests;
