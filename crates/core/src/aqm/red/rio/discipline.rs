//! RIO in doubles: Floyd and Jacobson's Fig. 2 for each colour, or ns-2's reading of it.

use crate::aqm::spacing::FORCED;
use std::sync::Arc;

use super::averages::{Ns2Idle, Vars};
use super::{AvgUpdate, Params, Thresholds};
use crate::aqm::Aqm;
use crate::aqm::curve::{Curve, Law, Rule, Variant};
use crate::aqm::out_seen::OutSeen;
use crate::aqm::spacing::{Fate, Found, admission};
use crate::aqm::tally::Tally;
use crate::estimate::ewma::Weight;
use crate::mechanism::{FlowGauge, Gauge, Mechanism};
use crate::packet::{Colour, Ecn, Packet};
use crate::params::Context;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Signal;
use crate::units::Time;
use crate::verdict::{Admission, Cause, Why};

/// What no arrival changes. Copies of a queue share it, as [RED](super::red)'s do.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) weight: Weight,
    pub(super) r#in: Curve,
    pub(super) out: Curve,
    pub(super) rule: Rule,
    /// Weight of an OUT and of an IN packet's sample in the average of all packets and in that of IN.
    pub(super) weights: [[f64; 2]; 2],
    pub(super) avg_update: AvgUpdate,
    pub(super) ecn: bool,
}

/// What few queues need.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    pub(super) seen: Option<OutSeen>,
    pub(super) ns2: Ns2Idle,
}

/// The discipline. An arrival that joins touches one cache line, one that is dropped two; in C's order, so that the
/// first holds all but the counts.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rio {
    pub(super) vars: Vars,
    pub(super) config: Arc<Config>,
    pub(super) aside: Option<Box<Aside>>,
    /// OUT, IN.
    pub(super) stats: [Tally; 2],
}

impl Params {
    pub(in crate::aqm) fn discipline(&self, context: &Context) -> Rio {
        let law = if self.variant == Variant::Ns2 { Law::Ns2Rio } else { Law::Floyd93 };
        // ns-2 is told 1 / max_p (`linterm_`).
        let told = |t: &Thresholds| match law {
            Law::Ns2Rio => Curve::new(t.min_th.amount(), t.max_th.amount(), 1.0 / (1.0 / t.max_p)),
            _ => t.curve(),
        };
        let config = Config {
            weight: self.weight(context),
            r#in: told(&self.r#in),
            out: told(&self.out),
            rule: self.rule(law, context),
            weights: self.avg_update.takes().map(|of| of.map(|takes| if takes { self.w_q } else { 0.0 })),
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
    pub(in crate::aqm) fn test<Q: Queue + ?Sized, W: Why + ?Sized>(
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
            Law::Floyd93 => v.update(c, now, is_in, (all, ins), queue.idle_since(), &mut self.aside),
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
    pub(in crate::aqm) fn conclude<Q: Queue + ?Sized>(
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
                Admission::Drop(Cause::OVERFLOW) if is_in || !c.rule.law.is_ns2() => {
                    v.of(is_in).count.restart()
                }
                Admission::Drop(FORCED) if c.rule.law.is_ns2() => v.restart_ns2(is_in),
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

    /// An OUT packet was dropped by a test that shares RIO's count of OUT packets.
    #[inline]
    pub(in crate::aqm) fn restart_out(&mut self) {
        self.vars.out.count.restart();
    }

    /// The average of all packets, and that of IN packets.
    #[inline]
    pub(in crate::aqm) fn averages(&self) -> (f64, f64) {
        (self.vars.out.average.get(), self.vars.r#in.average.get())
    }

    /// How the curves are read.
    #[inline]
    pub(in crate::aqm) fn rule(&self) -> &Rule {
        &self.config.rule
    }
}

impl Rio {
    pub(crate) fn tell_secs(&mut self, secs: f64) {
        if self.config.rule.law.is_ns2() {
            self.aside.get_or_insert_default().ns2.told = Some(secs);
        }
    }
}

impl Mechanism for Rio {
    fn keeps_time(&self) -> bool {
        false
    }

    fn sees_reverse(&self) -> bool {
        false
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let ((avg, avg_in), c) = (self.averages(), &self.config);
        show("avg", avg);
        show("avg_in", avg_in);
        show("p_b_in", c.r#in.p_b(avg_in, c.rule.gentle));
        show("p_b_out", c.out.p_b(avg, c.rule.gentle));
    }

    fn signal(&mut self, _: Time, signal: &Signal) {
        OutSeen::signal(self.aside.as_mut().and_then(|aside| aside.seen.as_mut()), signal);
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

impl Aqm for Rio {
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
}
