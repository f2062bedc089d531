//! RIO, RED with IN and OUT: two REDs on one queue, which drop OUT packets first.
//!
//! An IN packet is tested with the average number of IN packets in the queue, an OUT packet with the average of all. So as
//! the queue grows, OUT packets are dropped early and then all of them, and IN packets are dropped only when they alone
//! congest the link. Each colour has its own curve and its own count; with `count = shared` OUT's count takes in IN packets too.
//! Source: Clark and Fang 1998; average, curve and count are the [law](super::law)'s, for two colours. Idle time of the link
//! ages both averages, whichever arrival ends it. Every colour but green is OUT.
//! Non-goal: more than two drop precedences ([WRED](super::wred), RIO-C with three).

use crate::aqm::red::common::{Common, Config, Paths, Thresholds, check_thresholds, show_in_and_out};
use crate::aqm::red::law::{Arrival, Floyd93, Law, Variant};
use crate::flow_table::FlowTable;
use crate::mechanism::FlowGauge;
use crate::prelude::*;
use crate::signal::FORGET;

/// The colour of IN packets, and the average of IN packets waiting.
pub(crate) const IN: usize = 0;
/// The colour of OUT packets, and the average of all packets waiting.
pub(crate) const OUT: usize = 1;

crate::choice! {
    /// At which arrivals the averages take a sample.
    pub enum AvgUpdate {
        /// The total at every arrival, IN's at IN arrivals (Clark and Fang 1998).
        ClarkFang = "clark_fang",
        /// Both at every arrival.
        EveryArrival = "every_arrival",
        /// Each at arrivals of its own colour only: the total at OUT, IN's at IN arrivals (the prose of Clark and Fang 1998 and
        /// of Kim 1999 §2.2, read to the letter).
        OwnColour = "own_colour",
    }
}

crate::choice! {
    /// Which packets the test of OUT packets counts as let by since the last drop. No text says; public code has both.
    pub enum Counted {
        /// OUT packets since an OUT packet was dropped: each test is a RED by itself (ns-2's `rio.cc`, Linux's GRED).
        Own = "own",
        /// All packets since any was dropped, so that an IN packet brings the next OUT drop nearer (ALTQ's `altq_rio.c`, in which
        /// a packet also counts for every higher drop precedence).
        Shared = "shared",
    }
}

impl AvgUpdate {
    /// `[colour][average]`: whether an arrival of this colour is a sample for this average.
    #[must_use]
    pub fn takes(self) -> [[bool; 2]; 2] {
        match self {
            AvgUpdate::ClarkFang => [[true, true], [false, true]],
            AvgUpdate::EveryArrival => [[true, true], [true, true]],
            AvgUpdate::OwnColour => [[true, false], [false, true]],
        }
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// For IN packets, on the average of IN packets waiting.
        r#in: Thresholds;
        /// For OUT packets, on the average of all packets waiting.
        out: Thresholds;
        /// At which arrivals the averages take a sample.
        avg_update: AvgUpdate = AvgUpdate::ClarkFang;
        /// Which packets space the drops of OUT packets: OUT packets alone, or IN packets too.
        count: Counted = Counted::Own;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Keeps, by flow, the mean of avg − avg_in over the flow's IN packets as they join.
        watch: bool = false;
        ..common: Common;
    }
}

/// The discipline, generic over the variant of the law.
#[derive(Clone, Debug)]
pub struct Rio<R = Floyd93> {
    pub(crate) law: Law<2, R>,
    seen: Option<Box<OutSeen>>,
    /// Whether IN packets count for the test of OUT packets.
    shared: bool,
}

impl Build for Params {
    type Mechanism = Rio;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let names = Names { out: ["out.min_th", "out.max_th"], all: "all four thresholds" };
        self.check_named(&names, context)
    }

    fn build(&self, context: &Context) -> Rio {
        self.discipline(context)
    }
}

/// The names of the thresholds for OUT packets, on the average of all, where a RIO is part of something.
pub(crate) struct Names {
    /// The lower and the upper.
    pub out: [&'static str; 2],
    /// All there are.
    pub all: &'static str,
}

impl Params {
    /// [`Build::check`], with these names in messages.
    pub(crate) fn check_named(&self, names: &Names, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "in.min_th", max_th: "in.max_th" };
        check_thresholds(self.r#in.min_th, self.r#in.max_th, paths, context, &mut warnings)?;
        let [min_th, max_th] = names.out;
        check_thresholds(self.out.min_th, self.out.max_th, Paths { min_th, max_th }, context, &mut warnings)?;
        if !self.r#in.min_th.same_unit(self.out.min_th) {
            return Err(Fault {
                field: min_th,
                problem: format!(
                    "in.min_th is {} and {min_th} is {}: the averages have one unit",
                    self.r#in.min_th, self.out.min_th
                ),
                remedy: format!("{} in packets, or all in bytes", names.all),
            });
        }
        if self.r#in.min_th.amount() < self.out.max_th.amount() {
            let text = format!(
                "in.min_th ({}) is below {max_th} ({}): IN packets may be dropped while OUT packets still join",
                self.r#in.min_th, self.out.max_th
            );
            warnings.push(Warning { field: "in.min_th", text });
        }
        Ok(warnings)
    }

    /// The discipline as a variant computes it.
    pub(crate) fn discipline<R: Variant>(&self, context: &Context) -> Rio<R> {
        let curves = [self.r#in.curve(), self.out.curve()];
        let rule = self.common.rule(self.out.min_th, self.byte_scaled, context);
        let config = Config::new(self.common.weight(context), curves, self.avg_update.takes(), rule);
        let shared = self.count == Counted::Shared;
        Rio { law: Law::new(config), seen: self.watch.then(Box::default), shared }
    }
}

/// An arrival at a queue of two colours: what waits of IN, and of all.
#[inline(always)]
pub(crate) fn arrival<Q: Queue + ?Sized>(
    now: Time,
    packet: &Packet,
    queue: &Q,
    in_bytes: bool,
) -> Arrival<2> {
    let lengths = [queue.length_of(Colour::IN, in_bytes), queue.length(in_bytes)];
    let colour = if packet.colour.is_in() { IN } else { OUT };
    Arrival { now, colour, size: packet.size, lengths, idle: queue.idle_since() }
}

impl<R: Variant> Rio<R> {
    /// Brings the averages up to date with an arrival.
    #[inline(always)]
    pub(crate) fn sample<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &Q,
        why: &mut W,
    ) -> Arrival<2> {
        let arrival = arrival(now, packet, queue, self.law.config.rule.in_bytes);
        self.law.sample(&arrival);
        why.note("queued", arrival.lengths[OUT]);
        why.note("queued_in", arrival.lengths[IN]);
        why.note("avg", self.law.vars.avg[OUT]);
        why.note("avg_in", self.law.vars.avg[IN]);
        arrival
    }

    /// Counts an IN packet for the test of OUT packets, where they share the count: it is let by, or restarts it.
    #[inline(always)]
    pub(crate) fn share(&mut self, colour: usize, verdict: Admission) {
        if self.shared && colour == IN {
            self.law.vars.count[OUT].let_by(self.law.vars.avg[OUT], &self.law.config.curves[OUT]);
            if verdict != Admission::Admit {
                self.law.vars.count[OUT].restart();
            }
        }
    }

    /// Notes what an IN packet that joins sees of OUT packets, if that is watched.
    #[inline(always)]
    pub(crate) fn watch(&mut self, packet: &Packet, verdict: Admission) {
        if let Some(seen) = &mut self.seen
            && packet.colour.is_in()
            && !matches!(verdict, Admission::Drop(_))
        {
            seen.note(packet.flow, self.law.vars.avg[OUT] - self.law.vars.avg[IN]);
        }
    }
}

impl<R: Variant> Mechanism for Rio<R> {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("avg", self.law.vars.avg[OUT]);
        show("avg_in", self.law.vars.avg[IN]);
        show("p_b_in", self.law.p_b(IN));
        show("p_b_out", self.law.p_b(OUT));
    }

    fn signal(&mut self, _: Time, signal: &Signal) {
        OutSeen::signal(self.seen.as_deref_mut(), signal);
    }

    fn flow_gauges(&self, _: Time, show: FlowGauge<'_>) {
        if let Some(seen) = &self.seen {
            seen.show(show);
        }
    }
}

impl<R: Variant> Aqm for Rio<R> {
    fn marks(&self) -> bool {
        self.law.config.rule.ecn
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let arrival = self.sample(at.now, packet, at.queue, at.why);
        let test = self.law.test(&arrival, at.rng, at.why);
        let verdict = self.law.conclude(packet, arrival.colour, test, at.queue.fits(packet.size));
        self.share(arrival.colour, verdict);
        self.watch(packet, verdict);
        verdict
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show_in_and_out(queue, show);
    }
}

/// Flows it keeps apart.
const FLOWS: usize = 1024;

/// Sum of the samples, and how many there were.
type Samples = (f64, u64);

/// The means, by flow.
#[derive(Clone, Debug)]
pub struct OutSeen(FlowTable<Samples>);

impl Default for OutSeen {
    fn default() -> OutSeen {
        OutSeen(FlowTable::new(FLOWS))
    }
}

impl OutSeen {
    /// An IN packet of this flow joins and sees this average of OUT packets.
    pub fn note(&mut self, flow: FlowId, avg_out: f64) {
        let samples = self.0.touch(Time::ZERO, flow).state;
        samples.0 += avg_out;
        samples.1 += 1;
    }

    /// Its number is another flow's from now on.
    pub fn forget(&mut self, flow: FlowId) {
        self.0.remove(flow);
    }

    /// A signal to the discipline that keeps it, if it does: a number may be another flow's from now on.
    pub fn signal(seen: Option<&mut OutSeen>, signal: &Signal) {
        if signal.topic == FORGET
            && let (Some(flow), Some(seen)) = (signal.flow, seen)
        {
            seen.forget(flow);
        }
    }

    /// Shows `avg_out_seen` of every flow.
    pub fn show(&self, show: FlowGauge<'_>) {
        for (flow, &(sum, n)) in self.0.iter() {
            show(flow, "avg_out_seen", sum / n as f64);
        }
    }
}

#[cfg(test)]
mod tests;
