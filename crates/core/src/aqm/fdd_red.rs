//! FDD-RED, a fair dropping discipline: RED decides when a packet is dropped, a ledger decides whose.
//!
//! Each drop decision charges avgRTT/RTT to the arriving flow and to its partner ([`Latest`](ledger::Latest)); then the flow
//! with the largest debt loses a packet and is credited with one. So drops are spread evenly over the flows, and a flow with
//! a short round-trip time, which would otherwise take more than its share, bears more of them.
//! Source: Hashemi, Jamali and Motarez 2014 (paper D), §II and Fig. 2; RED is [RED](super::red). Round-trip times are
//! estimated from the traffic ([`RttEstimate`]) or told by an oracle (topic `"rtt"`, seconds, per flow). A flow has an account
//! while one of its packets waits or has passed within the last avgRTT; its estimate is kept longer. There are at most `flows`
//! of each.
//! An overflow is a drop decision too: Fig. 10 shows fewer drops already with a buffer of 10 packets, where the average never
//! reaches min_th = 25; and in the simulator's RED, which the authors extended, a victim is picked for overflows as well.
//! Where the paper is silent: a flow without an estimate counts as average; the flow that loses the packet is credited; a drop
//! that the ledger does not decide (`applies_to`) is not entered. With `ecn`, early drops become marks if the transport
//! supports it; overflows never do. Non-goal: telling apart flows that share a number.

pub mod ledger;
mod params;

pub use params::{
    AppliesTo, IdleFrom, IdlePenalty, NoPacket, Params, Rtt, RttSource, VictimFlow, VictimPacket,
};

use std::collections::BTreeMap;

use ledger::{Account, Ledger};

use crate::aqm::red::Red;
use crate::aqm::red::common::{causes, show_causes};
use crate::aqm::red::law::{EARLY, EarlyTest, Floyd93, Variant};
use crate::estimate::rtt::RttEstimate;
use crate::flow_table::FlowTable;
use crate::mechanism::FlowGauge;
use crate::packet::Direction;
use crate::prelude::*;
use crate::queue::End;
use crate::signal::{FORGET, Oracle};

/// The state that outlasts a flow's account.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    rtt: RttEstimate,
    /// `idle_penalty = keep`: the account as it was closed.
    account: Account,
}

/// Counts of decisions whose victim had no packet, and of the drops they deferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Decisions whose victim had no packet here.
    pub no_packet: u64,
    /// Arrivals dropped because their flow owed it.
    pub deferred: u64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct FddRed<R = Floyd93> {
    pub(crate) red: Red<R>,
    ledger: Ledger,
    known: FlowTable<Known>,
    /// The oracle's values.
    told: BTreeMap<FlowId, Duration>,
    link: Option<Rate>,
    options: Options,
    stats: Stats,
}

/// The part of the parameters that decides at each packet.
#[derive(Clone, Copy, Debug)]
struct Options {
    ecn: bool,
    victim_flow: VictimFlow,
    victim_packet: VictimPacket,
    no_packet: NoPacket,
    applies_to: AppliesTo,
    idle_penalty: IdlePenalty,
    idle_from: IdleFrom,
    rtt_source: RttSource,
}

/// Which packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The arrival is to be dropped or marked.
    Arrival,
    /// A waiting packet has been dropped or marked.
    Waiting,
}

impl Build for Params {
    type Mechanism = FddRed;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.rtt == Rtt::WithQueue && context.link_rate.is_none() {
            return Err(Fault {
                field: "rtt",
                problem:
                    "with_queue turns what waits into time, and this queue is before no link of a known rate"
                        .into(),
                remedy: "\"base\", or a queue before a link".into(),
            });
        }
        self.as_red().check(context)
    }

    fn build(&self, context: &Context) -> FddRed {
        self.discipline(context)
    }
}

impl Params {
    /// The discipline over a variant of RED.
    pub(crate) fn discipline<R: Variant>(&self, context: &Context) -> FddRed<R> {
        let flows = usize::try_from(self.flows).unwrap_or(usize::MAX);
        FddRed {
            red: self.as_red().discipline(context),
            ledger: Ledger::new(flows, self.latest, self.charge, self.ties),
            known: FlowTable::new(flows),
            told: BTreeMap::new(),
            link: context.link_rate.filter(|_| self.rtt == Rtt::WithQueue),
            options: Options {
                ecn: self.common.ecn,
                victim_flow: self.victim_flow,
                victim_packet: self.victim_packet,
                no_packet: self.no_packet,
                applies_to: self.applies_to,
                idle_penalty: self.idle_penalty,
                idle_from: self.idle_from,
                rtt_source: self.rtt_source,
            },
            stats: Stats::default(),
        }
    }
}

impl<R: Variant> FddRed<R> {
    /// Records an arrival: its flow's estimate and account; closes the accounts of idle flows.
    fn record_arrival<Q: Queue + ?Sized>(&mut self, now: Time, packet: &Packet, queue: &Q, extra: Duration) {
        let known = self.known.touch(now, packet.flow).state;
        let rtt = match self.options.rtt_source {
            RttSource::Estimated => {
                known.rtt.came(now, packet);
                known.rtt.get()
            }
            RttSource::Oracle => self.told.get(&packet.flow).copied(),
        };
        let aside = std::mem::take(&mut known.account);
        // Before this arrival counts, so that its own flow's account closes too if it was idle.
        let mut returning = aside;
        let from_departure = self.options.idle_from == IdleFrom::Departure;
        let waits = |flow| from_departure && queue.has(flow);
        match self.options.idle_penalty {
            IdlePenalty::Forget => self.ledger.close_idle(now, extra, waits, |_, _| {}),
            IdlePenalty::Keep => self.ledger.close_idle(now, extra, waits, |flow, account| {
                if flow == packet.flow {
                    returning = account;
                } else if let Some(known) = self.known.get_mut(flow) {
                    known.account = account;
                }
            }),
            IdlePenalty::Never => {}
        }
        self.ledger.came(now, packet.flow, rtt, || returning);
    }

    /// Time that what waits takes to send, where it counts as round-trip time.
    fn extra<Q: Queue + ?Sized>(&self, queue: &Q) -> Duration {
        self.link.map_or(Duration::ZERO, |rate| rate.serialise(Bytes(queue.bytes())))
    }

    /// Picks the victim and takes its packet, to be dropped or marked. `None`: the victim has none here and owes one.
    fn decide_victim<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        can_mark: bool,
        rng: &mut Rng,
        why: &mut W,
    ) -> Option<Victim> {
        let has = |flow| flow == packet.flow || queue.has(flow);
        let mut victim = match self.options.victim_flow {
            VictimFlow::Ledger => self.ledger.penalise(packet.flow, self.extra(queue), rng),
            VictimFlow::Own => packet.flow,
            VictimFlow::Random => self.ledger.anyone(rng, has).unwrap_or(packet.flow),
        };
        let mut lost = self.take(victim, packet, queue, can_mark, rng);
        if lost.is_none() {
            self.stats.no_packet += 1;
            match self.options.no_packet {
                NoPacket::Arrival => {
                    victim = packet.flow;
                    lost = Some(Victim::Arrival);
                }
                NoPacket::NextVictim => {
                    let has = |flow| flow == packet.flow || queue.has(flow);
                    victim = self.ledger.next_victim(rng, has).unwrap_or(packet.flow);
                    lost = self.take(victim, packet, queue, can_mark, rng);
                }
                NoPacket::Defer => {
                    if let Some(account) = self.ledger.account_mut(victim) {
                        account.owed += 1;
                    }
                }
            }
        }
        if self.options.victim_flow == VictimFlow::Ledger {
            self.ledger.pay(now, victim);
        }
        why.note("victim", f64::from(victim.0));
        lost
    }

    /// Takes a packet of the victim. `None`: it has none here.
    fn take<Q: Queue + ?Sized>(
        &self,
        victim: FlowId,
        arrival: &Packet,
        queue: &mut Q,
        can_mark: bool,
        rng: &mut Rng,
    ) -> Option<Victim> {
        let own = victim == arrival.flow;
        let end = match self.options.victim_packet {
            VictimPacket::Tail if own => return Some(Victim::Arrival),
            VictimPacket::Tail => End::Tail,
            VictimPacket::Head => End::Head,
            VictimPacket::Random => {
                let waiting = queue.packets_of_flow(victim);
                let n = rng.below((waiting + u32::from(own)).max(1));
                if n == waiting && own {
                    return Some(Victim::Arrival);
                }
                End::Nth(n)
            }
        };
        match queue.position(victim, end) {
            Some(position) if can_mark && queue.mark(position) || queue.evict(position) => {
                Some(Victim::Waiting)
            }
            _ => own.then_some(Victim::Arrival),
        }
    }
}

/// The verdict on an arrival that is to be dropped, or marked if it `can` be.
fn lose_arrival(packet: &Packet, can_mark: bool, fits: bool, cause: Cause) -> Admission {
    if can_mark && fits && packet.ecn.can_mark() { Admission::Mark } else { Admission::Drop(cause) }
}

/// The verdict on an arrival that may join, if there is room.
fn admit_if_fits<Q: Queue + ?Sized>(packet: &Packet, queue: &Q) -> Admission {
    if queue.fits(packet.size) { Admission::Admit } else { Admission::Drop(Cause::OVERFLOW) }
}

impl<R: Variant> Mechanism for FddRed<R> {
    fn keeps_time(&self) -> bool {
        true
    }

    fn sees_reverse(&self) -> bool {
        true
    }

    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        if direction == Direction::Reverse
            && let Some(known) = self.known.get_mut(packet.flow)
        {
            known.rtt.acknowledged(now, packet);
        }
    }

    fn signal(&mut self, _: Time, signal: &Signal) {
        let Some(flow) = signal.flow else { return };
        match signal.topic {
            "rtt" if signal.value.is_finite() && signal.value >= 0.0 => {
                self.told.insert(flow, Duration::from_secs(signal.value));
            }
            FORGET => {
                self.ledger.close(flow);
                self.known.remove(flow);
                self.told.remove(&flow);
            }
            _ => {}
        }
    }

    fn oracle(&self) -> Option<Oracle> {
        (self.options.rtt_source == RttSource::Oracle).then_some(Oracle::Rtt)
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        self.red.gauges(now, show);
        show("avg_rtt", self.ledger.avg_rtt().map_or(0.0, Duration::secs));
        show("flows", self.ledger.flows() as f64);
    }

    fn flow_gauges(&self, _: Time, show: FlowGauge<'_>) {
        for (flow, known) in self.known.iter() {
            let rtt = match self.options.rtt_source {
                RttSource::Estimated => known.rtt.get(),
                RttSource::Oracle => self.told.get(&flow).copied(),
            };
            if let Some(rtt) = rtt {
                show(flow, "rtt", rtt.secs());
            }
        }
        for (flow, account) in self.ledger.iter() {
            show(flow, "penalty", account.penalty);
        }
    }
}

impl<R: Variant> Aqm for FddRed<R> {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.options.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let extra = self.extra(at.queue);
        self.record_arrival(at.now, packet, at.queue, extra);
        let test = self.red.test(at.now, packet, at.queue, at.rng, at.why);
        let fits = at.queue.fits(packet.size);
        let Admission::Drop(cause) = R::admission(test, false, fits) else {
            let owes = self.ledger.account_mut(packet.flow).filter(|a| a.owed > 0);
            return match owes {
                Some(account) => {
                    account.owed -= 1;
                    self.stats.deferred += 1;
                    lose_arrival(packet, self.options.ecn, fits, EARLY)
                }
                None => Admission::Admit,
            };
        };
        if cause == Cause::OVERFLOW {
            self.red.restart();
            if self.options.applies_to == AppliesTo::Early {
                return lose_arrival(packet, false, fits, cause);
            }
        }
        let markable = cause == EARLY && test == EarlyTest::Early { markable: true };
        let can_mark = self.options.ecn && markable;
        match self.decide_victim(at.now, packet, at.queue, can_mark, at.rng, at.why) {
            Some(Victim::Arrival) => lose_arrival(packet, can_mark, fits, cause),
            Some(Victim::Waiting) | None => admit_if_fits(packet, at.queue),
        }
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        if let Some(known) = self.known.get_mut(packet.flow) {
            known.rtt.left(at.now, packet);
        }
        if self.options.idle_from == IdleFrom::Departure {
            self.ledger.left(at.now, packet.flow);
        }
        Departure::Send
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        let [early, forced, overflow, marked] = causes(queue, &Colour::ALL);
        show_causes(
            [early, forced, overflow, queue.dropped_by(Cause::EVICTED)],
            ["early", "forced", "overflow", "evicted"],
            show,
        );
        show("marked", marked);
        show("no_packet", self.stats.no_packet);
        show("deferred", self.stats.deferred);
    }
}

#[cfg(test)]
mod tests;
