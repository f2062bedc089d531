//! TWAM, the TCP-window aware marker: IN packets are divided by contract, whatever windows the flows have.
//!
//! Every α round-trip times, p_i = min(1, r_i·ΣW / (Σr·W_i)): flow i's share of the contracts over its share of the windows.
//! Until the next time each packet of flow i is IN with probability p_i. So the sum of the windows, which is what the path
//! holds, is coloured in proportion to the contracts (p_i·W_i = min(W_i, r_i·ΣW/Σr)), and no rate has to be measured. Windows
//! in proportion to the contracts are the fixed point: every packet is IN.
//! Source: Bouras and Sevasti 2004 (paper E), §3, Eq. (1)–(3). Each time it also sends ΣW to its queue (§4): signal
//! `sum_window`, in packets.
//! Eq. (3) can also be read with Σ(r·W) for Σr·W_i (`shares = "weighted"`), against the words of §3; see
//! docs/readings/twam.md. Contracts are set by the signal `contract` for each flow, in bits per second; there is one record
//! for each of them.
//!
//! Cases that Eq. (3) leaves undefined: a flow without a contract is OUT if any flow has one, also with W_i = 0, and IN if
//! none has; otherwise W_i = 0 falls under "otherwise" in Eq. (3): p = 1. Sums are over flows with a contract; the sum sent to
//! the queue is over all flows, as all wait there. Without traffic p does not change (it starts at 1) and no sum is sent. A
//! packet that arrives as OUT stays OUT.
//! Non-goal: flows of different round-trip times behind one marker; in the paper each such class has a marker of its own.

use std::collections::BTreeMap;

use crate::estimate::rtt::RttEstimate;
use crate::estimate::window::WindowEstimate;
use crate::packet::Direction;
use crate::prelude::*;
use crate::signal::{FORGET, Oracle};

/// How long to wait for a round-trip time where none is known yet.
const UNKNOWN: Duration = Duration::from_millis(100);
/// No round-trip time counts as shorter: an estimate of nothing must not stop the clock.
const SHORTEST: Duration = Duration::from_millis(1);

crate::choice! {
    /// Where the windows come from.
    pub enum WindowSource {
        /// The packets that pass in a round-trip time.
        Estimated = "estimated",
        /// The bytes between the last that passed and the last that was acknowledged.
        Outstanding = "outstanding",
        /// The senders themselves: only in a simulation, to see what the estimate costs.
        Oracle = "oracle",
    }
}

crate::choice! {
    /// The range of the sum in Eq. (3)'s denominator; or no Eq. (3).
    pub enum Sharing {
        /// The contracts: p_i = r_i·ΣW / (Σr·W_i).
        Contract = "contract",
        /// The products of contract and window: p_i = r_i·ΣW / Σ(r·W). A flow's own window then does not count.
        Weighted = "weighted",
        /// Nothing is shared out: packets keep their colours, and only the sum of the windows is told, for a DWRED behind other
        /// markers.
        None = "none",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// How Eq. (3) is read: contract, the share of the contracts over the share of the windows, or weighted; none: colours
        /// stay, only the windows' sum is told.
        shares: Sharing = Sharing::Contract;
        /// How many round-trip times an interval has (α).
        alpha: u64 [POSITIVE] = 1;
        /// The round-trip time of the path. Default: the mean of each flow's latest, queues included, as data and
        /// acknowledgements show it. (A set one that leaves out the queues makes windows look that much smaller.)
        rtt: Option<Duration> [POSITIVE];
        /// Where the windows come from.
        window_source: WindowSource = WindowSource::Estimated;
    }
}

/// The state of a flow with a contract.
#[derive(Clone, Copy, Debug)]
pub struct Vars {
    /// r, in bits per second.
    contract: f64,
    /// W, in packets, as of the last interval.
    window: f64,
    /// p.
    p: f64,
    seen: WindowEstimate,
    rtt: RttEstimate,
}

/// Packets by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Left as IN.
    pub marked_in: u64,
    /// Left as OUT.
    pub marked_out: u64,
    /// Came as OUT and left so.
    pub passed_out: u64,
    /// Intervals with traffic.
    pub intervals: u64,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct Twam {
    params: Params,
    /// A full packet on the wire, in bytes.
    packet: f64,
    flows: BTreeMap<FlowId, Vars>,
    /// All flows without a contract.
    others: Vars,
    /// The flow with a contract that came last, and its p: a packet is observed, then marked.
    latest: Option<(FlowId, f64)>,
    /// When the present interval began; `None` before the run.
    since: Option<Time>,
    /// ΣW of the last interval with traffic.
    sum_window: f64,
    stats: Stats,
}

impl Vars {
    fn new(contract: f64) -> Vars {
        Vars { contract, window: 0.0, p: 1.0, seen: WindowEstimate::default(), rtt: RttEstimate::default() }
    }
}

/// Eq. (3), ready to be asked for any flow with a contract.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    sharing: Sharing,
    /// ΣW.
    windows: f64,
    /// Σr.
    contracts: f64,
    /// Σ(r·W).
    products: f64,
}

impl Shares {
    /// From contract and window of every flow with a contract; `None` where none of them has a window.
    pub fn of(sharing: Sharing, flows: impl Iterator<Item = (f64, f64)>) -> Option<Shares> {
        let mut sums = Shares { sharing, windows: 0.0, contracts: 0.0, products: 0.0 };
        for (contract, window) in flows {
            sums.windows += window;
            sums.contracts += contract;
            sums.products += contract * window;
        }
        (sums.products > 0.0).then_some(sums)
    }

    /// p of a flow with this contract and window.
    ///
    /// Compared before divided, as the paper writes it: windows in proportion to the contracts give exactly 1.
    #[must_use]
    pub fn p(&self, contract: f64, window: f64) -> f64 {
        if contract <= 0.0 && self.sharing != Sharing::None {
            return 0.0;
        }
        // §3, Eq. (3)
        let entitled = contract * self.windows;
        let has = match self.sharing {
            Sharing::Contract => self.contracts * window,
            Sharing::Weighted => self.products,
            Sharing::None => return 1.0,
        };
        if entitled < has { entitled / has } else { 1.0 }
    }
}

impl Build for Params {
    type Mechanism = Twam;

    fn build(&self, context: &Context) -> Twam {
        Twam {
            params: self.clone(),
            packet: context.packet.0 as f64,
            flows: BTreeMap::new(),
            others: Vars::new(0.0),
            latest: None,
            since: None,
            sum_window: 0.0,
            stats: Stats::default(),
        }
    }
}

impl Twam {
    /// The value set, or the mean of the estimates there are.
    fn rtt(&self) -> Option<Duration> {
        let set = self.params.rtt.or_else(|| {
            let known = || self.flows.values().filter_map(|f| f.rtt.recent());
            let sum: u128 = known().map(|d| u128::from(d.0)).sum();
            let mean = sum.checked_div(known().count() as u128)?;
            Some(Duration(mean as u64))
        });
        set.map(|rtt| rtt.max(SHORTEST))
    }

    /// p of a flow, known or not.
    fn p(&self, flow: FlowId) -> f64 {
        match self.flows.get(&flow) {
            Some(flow) => flow.p,
            None if self.flows.is_empty() || self.params.shares == Sharing::None => 1.0,
            None => 0.0,
        }
    }

    /// The windows of the interval that ends now, `rtts` round-trip times long.
    fn look(&mut self, rtts: f64) {
        // Several flows' numbers make no sense together: those without a contract are counted.
        let others = self.others.seen.take(rtts).counted;
        if self.params.window_source != WindowSource::Oracle {
            self.others.window = others;
        }
        for flow in self.flows.values_mut() {
            let windows = flow.seen.take(rtts);
            match self.params.window_source {
                WindowSource::Estimated => flow.window = windows.counted,
                WindowSource::Outstanding => flow.window = windows.outstanding,
                WindowSource::Oracle => {}
            }
        }
    }

    /// Eq. (3), and ΣW for the queue.
    fn share_out(&mut self, outbox: &mut Outbox) {
        let sum: f64 = self.flows.values().chain([&self.others]).map(|f| f.window).sum();
        if sum <= 0.0 {
            return;
        }
        self.sum_window = sum;
        self.stats.intervals += 1;
        outbox.signals.push(Signal { topic: "sum_window", flow: None, value: sum });
        let flows = self.flows.values().map(|f| (f.contract, f.window));
        let Some(shares) = Shares::of(self.params.shares, flows) else { return };
        for flow in self.flows.values_mut() {
            flow.p = shares.p(flow.contract, flow.window);
        }
    }
}

impl Mechanism for Twam {
    fn sees_reverse(&self) -> bool {
        true
    }

    fn sends(&self) -> bool {
        true
    }

    #[inline]
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        let timed = self.params.rtt.is_none();
        let counted = self.params.window_source == WindowSource::Estimated;
        // With a known round-trip time, windows that are counted or told need no acknowledgements.
        if !timed
            && (direction == Direction::Reverse && counted
                || self.params.window_source == WindowSource::Oracle)
        {
            return;
        }
        let Some(flow) = self.flows.get_mut(&packet.flow) else {
            // Several flows' numbers make no sense together.
            if direction == Direction::Forward {
                self.others.seen.count(packet);
            }
            return;
        };
        match direction {
            Direction::Forward => {
                if counted {
                    flow.seen.count(packet);
                } else {
                    flow.seen.came(packet);
                }
                if timed {
                    flow.rtt.came(now, packet);
                    flow.rtt.left(now, packet);
                }
                self.latest = Some((packet.flow, flow.p));
            }
            Direction::Reverse => {
                if !counted {
                    flow.seen.acknowledged(packet);
                }
                if timed {
                    flow.rtt.acknowledged(now, packet);
                }
            }
        }
    }

    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        self.latest = None;
        let Some(rtt) = self.rtt() else {
            // What has passed so far belongs to no interval.
            self.look(1.0);
            self.since = Some(now);
            self.others.window = 0.0;
            return Some(now + UNKNOWN);
        };
        let elapsed = self.since.map_or(Duration::ZERO, |since| now.since(since));
        if elapsed > Duration::ZERO {
            self.look(elapsed.secs() / rtt.secs());
            self.share_out(outbox);
        }
        self.since = Some(now);
        self.others.window = 0.0;
        Some(now + Duration(rtt.0.saturating_mul(self.params.alpha)))
    }

    /// `contract`: a flow's, in bits per second; 0 or less takes it away. `window`: a flow's, in bytes on the wire.
    fn signal(&mut self, _: Time, signal: &Signal) {
        let Some(id) = signal.flow else { return };
        self.latest = None;
        match signal.topic {
            "contract" if signal.value > 0.0 => {
                self.flows.entry(id).or_insert(Vars::new(0.0)).contract = signal.value;
            }
            "contract" | FORGET => {
                self.flows.remove(&id);
            }
            "window" if self.params.window_source == WindowSource::Oracle => {
                let window = (signal.value / self.packet).max(0.0);
                match self.flows.get_mut(&id) {
                    Some(flow) => flow.window = window,
                    None => self.others.window += window,
                }
            }
            _ => {}
        }
    }

    fn oracle(&self) -> Option<Oracle> {
        (self.params.window_source == WindowSource::Oracle).then_some(Oracle::Window)
    }

    /// `sum_window` in packets, `p_least` and `p_mean` over the flows with a contract, `rtt` in seconds once known.
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("sum_window", self.sum_window);
        let (mut least, mut sum) = (1.0, 0.0);
        for flow in self.flows.values() {
            least = flow.p.min(least);
            sum += flow.p;
        }
        show("p_least", least);
        show("p_mean", if self.flows.is_empty() { 1.0 } else { sum / self.flows.len() as f64 });
        show("rtt", self.rtt().map_or(0.0, Duration::secs));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("marked_in", self.stats.marked_in);
        show("marked_out", self.stats.marked_out);
        show("passed_out", self.stats.passed_out);
        show("intervals", self.stats.intervals);
    }
}

impl Marker for Twam {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, _: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        if !packet.colour.is_in() {
            self.stats.passed_out += 1;
            return Mark::Pass(packet.colour);
        }
        let p = match self.latest {
            Some((flow, p)) if flow == packet.flow => p,
            _ => self.p(packet.flow),
        };
        why.note("p", p);
        if rng.chance("u", p, why) {
            self.stats.marked_in += 1;
            Mark::Pass(Colour::IN)
        } else {
            self.stats.marked_out += 1;
            Mark::Pass(Colour::OUT)
        }
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
