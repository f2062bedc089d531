//! FDD-RED's ledger: what each flow seen within the last avgRTT owes, and which one loses the next packet (paper D, Fig. 2).

use std::cmp::Reverse;

use crate::flow_table::FlowTable;
use crate::packet::FlowId;
use crate::rng::Rng;
use crate::units::{Duration, Time};

crate::choice! {
    /// The partner with which an arrival's flow is penalised: the paper's flow "that has latest time" of a drop.
    pub enum Latest {
        /// The flow whose last drop is longest ago; one that never lost a packet comes first.
        Oldest = "oldest",
        /// The flow that lost a packet last.
        Newest = "newest",
    }
}

crate::choice! {
    /// Which flows a decision charges.
    pub enum Charge {
        /// The arrival's flow and its partner, a share each: Fig. 2, lines 3 and 4. Each decision adds two shares and takes one
        /// packet, so that debts drift upwards together.
        Both = "both",
        /// The partner alone: as much is charged as is paid, where all round-trip times are equal.
        Partner = "partner",
    }
}

crate::choice! {
    /// Which flow is chosen where several are equal.
    pub enum Ties {
        /// Any of them, with equal probability.
        Random = "random",
        /// The flow with the lowest number.
        First = "first",
    }
}

/// Shorter round-trip times count as this one, so that shares stay finite.
const LEAST_RTT: Duration = Duration::from_micros(1);

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// The debt: shares added, less a packet for each drop.
    pub penalty: f64,
    /// When it last lost a packet; 0, as in the paper, if never.
    pub last_drop: Time,
    /// Packets it is to lose as soon as they come.
    pub owed: u32,
    rtt: Option<Duration>,
}

/// The accounts of the flows seen within the last avgRTT.
#[derive(Clone, Debug)]
pub struct Ledger {
    accounts: FlowTable<Account>,
    /// The sum of the round-trip times that are known.
    sum: Sum,
    latest: Latest,
    charge: Charge,
    ties: Ties,
}

/// avgRTT/RTT: the share of a drop that a flow is charged. `extra`, the delay of the queue that
/// all flows share, is added to both.
#[must_use]
#[inline]
pub fn share(avg: Duration, rtt: Duration, extra: Duration) -> f64 {
    (avg + extra).max(LEAST_RTT).secs() / (rtt + extra).max(LEAST_RTT).secs()
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new(flows: usize, latest: Latest, charge: Charge, ties: Ties) -> Ledger {
        Ledger { accounts: FlowTable::new(flows), sum: Sum::default(), latest, charge, ties }
    }

    /// The number of flows that have an account.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.accounts.len()
    }

    /// Mean of the known round-trip times; `None` while none is known.
    #[must_use]
    pub fn avg_rtt(&self) -> Option<Duration> {
        let Sum { ps, flows } = self.sum;
        (flows > 0).then(|| Duration((ps / u128::from(flows)) as u64))
    }

    /// Closes the accounts of flows not seen for avgRTT + `extra`; closes none while no round-trip time is known. A flow with a
    /// packet that still `waits` has not passed yet (§II: "have passed through the queue during the last RTTavg"): it counts as seen now.
    pub fn close_idle(
        &mut self,
        now: Time,
        extra: Duration,
        waits: impl Fn(FlowId) -> bool,
        mut closed: impl FnMut(FlowId, Account),
    ) {
        while let Some((flow, seen)) = self.accounts.oldest() {
            let Some(avg) = self.avg_rtt() else { return };
            if now.since(seen) <= avg + extra {
                return;
            }
            if waits(flow) {
                self.accounts.touch(now, flow);
                continue;
            }
            if let Some((flow, account)) = self.accounts.remove_oldest() {
                self.sum.take(account.rtt);
                closed(flow, account);
            }
        }
    }

    /// Closes a flow's account, if it has one.
    pub fn close(&mut self, flow: FlowId) {
        if let Some(account) = self.accounts.remove(flow) {
            self.sum.take(account.rtt);
        }
    }

    /// A packet of `flow` arrived. A flow without an account gets one, with the state that `before` returns.
    #[inline]
    pub fn came(&mut self, now: Time, flow: FlowId, rtt: Option<Duration>, before: impl FnOnce() -> Account) {
        let touched = self.accounts.touch(now, flow);
        if touched.new {
            *touched.state = Account { rtt: None, ..before() };
        }
        let was = std::mem::replace(&mut touched.state.rtt, rtt);
        let evicted = touched.evicted.and_then(|(_, gone)| gone.rtt);
        if was != rtt {
            self.sum.add(rtt);
            self.sum.take(was);
        }
        self.sum.take(evicted);
    }

    /// A packet of `flow` left the queue: the flow counts as seen now.
    #[inline]
    pub fn left(&mut self, now: Time, flow: FlowId) {
        if self.accounts.get(flow).is_some() {
            self.accounts.touch(now, flow);
        }
    }

    /// Fig. 2, lines 1 to 5 of PenalizeFlow: a packet is to be dropped as one of `flow` arrives, which has an account. Charges the
    /// flow and its partner ([`Latest`]), or the partner alone ([`Charge`]); returns the flow that owes most. A flow whose round-trip
    /// time is not known counts as average.
    pub fn penalise(&mut self, flow: FlowId, extra: Duration, rng: &mut Rng) -> FlowId {
        let anyone = |_| true;
        let partner = match self.latest {
            Latest::Oldest => self.first_by(rng, |a| Reverse(a.last_drop), anyone),
            Latest::Newest => self.first_by(rng, |a| a.last_drop, anyone),
        };
        let avg = self.avg_rtt();
        let own = (self.charge == Charge::Both).then_some(flow);
        for charged in [own, partner].into_iter().flatten() {
            if let Some(a) = self.accounts.get_mut(charged) {
                a.penalty += match (avg, a.rtt) {
                    (Some(avg), Some(rtt)) => share(avg, rtt, extra),
                    _ => 1.0,
                };
            }
        }
        self.next_victim(rng, anyone).unwrap_or(flow)
    }

    /// A random one of the flows that `can` lose a packet, whatever they owe.
    #[must_use]
    pub fn anyone(&self, rng: &mut Rng, can: impl Fn(FlowId) -> bool) -> Option<FlowId> {
        let mut found = None;
        let mut of = 0;
        for (flow, _) in self.accounts.iter().filter(|(flow, _)| can(*flow)) {
            of += 1;
            if rng.below(of) == 0 {
                found = Some(flow);
            }
        }
        found
    }

    /// The flow that owes most, of those that `can` lose a packet.
    #[must_use]
    pub fn next_victim(&self, rng: &mut Rng, can: impl Fn(FlowId) -> bool) -> Option<FlowId> {
        self.first_by(rng, |a| a.penalty, can)
    }

    /// Lines 8 and 10: `flow` has lost a packet.
    pub fn pay(&mut self, now: Time, flow: FlowId) {
        if let Some(a) = self.accounts.get_mut(flow) {
            a.penalty -= 1.0;
            a.last_drop = now;
        }
    }

    /// The flow's account, if it has one.
    pub fn account_mut(&mut self, flow: FlowId) -> Option<&mut Account> {
        self.accounts.get_mut(flow)
    }

    /// All accounts, the most recently seen first.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &Account)> {
        self.accounts.iter()
    }

    /// The flow with the greatest `key` among those that `can`; `ties` decides among equals.
    fn first_by<K: PartialOrd>(
        &self,
        rng: &mut Rng,
        key: impl Fn(&Account) -> K,
        can: impl Fn(FlowId) -> bool,
    ) -> Option<FlowId> {
        let mut best: Option<(FlowId, K)> = None;
        let mut equals = 0;
        for (flow, account) in self.accounts.iter() {
            let key = key(account);
            if best.as_ref().is_some_and(|(_, b)| *b > key) || !can(flow) {
                continue;
            }
            let takes = match &best {
                Some((holder, b)) if *b == key => {
                    equals += 1;
                    match self.ties {
                        Ties::First => flow < *holder,
                        // The n-th of n equals takes over with probability 1/n: all are equally likely in the end.
                        Ties::Random => rng.below(equals) == 0,
                    }
                }
                _ => {
                    equals = 1;
                    true
                }
            };
            if takes {
                best = Some((flow, key));
            }
        }
        best.map(|(flow, _)| flow)
    }
}

/// A sum of round-trip times and their number: exact, so that it stays right however many flows come and go.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ps: u128,
    flows: u32,
}

impl Sum {
    fn add(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.ps += u128::from(rtt.0);
            self.flows += 1;
        }
    }

    fn take(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.ps -= u128::from(rtt.0);
            self.flows -= 1;
        }
    }
}

#[cfg(test)]
mod laws {
    //! Properties of the ledger in every reading: derived from Fig. 2 in docs/readings/fdd-red.md, not from the code.

    use super::*;

    /// Round-trip times of scenario 3, in milliseconds: their mean is 60.
    const UNEQUAL: [u64; 5] = [20, 40, 60, 80, 100];
    const EQUAL: [u64; 5] = [100; 5];

    type Options = (Latest, Charge, Ties);

    struct Run {
        hits: [u32; 5],
        drops: [u32; 5],
        penalty: [f64; 5],
        decisions: u32,
    }

    impl Run {
        fn shares(&self) -> [f64; 5] {
            self.drops.map(|n| f64::from(n) / f64::from(self.decisions))
        }

        /// How often each flow was charged, from what it owes and lost: charges − drops = penalty.
        fn charges(&self, rtts: [u64; 5]) -> [f64; 5] {
            let mean = rtts.iter().sum::<u64>() as f64 / 5.0;
            std::array::from_fn(|i| (self.penalty[i] + f64::from(self.drops[i])) * rtts[i] as f64 / mean)
        }
    }

    /// Decisions on arrivals that are each flow's in proportion to `hits`; no account closes.
    fn run(rtts: [u64; 5], hits: [f64; 5], (latest, charge, ties): Options, decisions: u32) -> Run {
        let mut l = Ledger::new(8, latest, charge, ties);
        for (flow, rtt) in (0..).zip(rtts) {
            l.came(Time::ZERO, FlowId(flow), Some(Duration::from_millis(rtt)), Account::default);
        }
        let mut rng = Rng::for_component(7, "laws");
        let mut run = Run { hits: [0; 5], drops: [0; 5], penalty: [0.0; 5], decisions };
        for t in 1..=u64::from(decisions) {
            let mut u = rng.uniform() * hits.iter().sum::<f64>();
            let flow = hits
                .iter()
                .position(|h| {
                    u -= h;
                    u < 0.0
                })
                .unwrap_or(4);
            run.hits[flow] += 1;
            let victim = l.penalise(FlowId(flow as u32), Duration::ZERO, &mut rng);
            l.pay(Time::ZERO + Duration::from_millis(t), victim);
            run.drops[victim.0 as usize] += 1;
        }
        for (flow, account) in l.iter() {
            run.penalty[flow.0 as usize] = account.penalty;
        }
        run
    }

    fn near(got: [f64; 5], expect: [f64; 5], within: f64) {
        assert!(got.iter().zip(expect).all(|(a, b)| (a - b).abs() <= within), "{got:?}, not {expect:?}");
    }

    /// Fig. 2, lines 3 and 4: avgRTT/RTT. The first decision charges the arrival's flow and, of those that never lost, the first.
    #[test]
    fn a_flow_is_charged_its_share() {
        for (flow, share) in (0..5).zip([3.0, 1.5, 1.0, 0.75, 0.6]) {
            let mut l = Ledger::new(8, Latest::Oldest, Charge::Both, Ties::First);
            for (flow, rtt) in (0..).zip(UNEQUAL) {
                l.came(Time::ZERO, FlowId(flow), Some(Duration::from_millis(rtt)), Account::default);
            }
            l.penalise(FlowId(flow), Duration::ZERO, &mut Rng::for_component(1, "laws"));
            let owed = |f| l.accounts.get(FlowId(f)).map(|a| a.penalty);
            let partner = if flow == 0 { 0.0 } else { 3.0 };
            assert!((owed(flow).unwrap() - share - (3.0 - partner)).abs() < 1e-12);
            assert!((owed(0).unwrap() - 3.0).abs() < 1e-12 || flow == 0);
        }
    }

    /// Without forgetting, each flow's charges less its drops are its penalty: so charges come out as whole numbers, at least one
    /// for each hit, and two for each decision in all (one, where the partner alone is charged).
    #[test]
    fn nothing_is_lost_between_charges_and_drops() {
        for (charge, each) in [(Charge::Both, 2.0), (Charge::Partner, 1.0)] {
            for rtts in [EQUAL, UNEQUAL] {
                let run =
                    run(rtts, [0.4, 0.25, 0.2, 0.1, 0.05], (Latest::Oldest, charge, Ties::Random), 5000);
                let charges = run.charges(rtts);
                assert!(charges.iter().all(|n| (n - n.round()).abs() < 1e-6), "{charges:?}");
                assert!((charges.iter().sum::<f64>() - each * 5000.0).abs() < 1e-6);
                let of_hits = |(n, hits): (&f64, &u32)| *n >= f64::from(*hits) - 1e-6;
                assert!(charge == Charge::Partner || charges.iter().zip(&run.hits).all(of_hits));
            }
        }
    }

    /// Fig. 2 drifts: at equal round-trip times a decision puts in two shares of 1 and takes out one packet, so that what all
    /// owe together is the number of decisions. It does not where the partner alone is charged.
    #[test]
    fn debts_drift_by_one_a_decision() {
        for (charge, drift) in [(Charge::Both, 1.0), (Charge::Partner, 0.0)] {
            let run = run(EQUAL, [0.4, 0.25, 0.2, 0.1, 0.05], (Latest::Oldest, charge, Ties::Random), 1000);
            assert!((run.penalty.iter().sum::<f64>() - drift * 1000.0).abs() < 1e-9);
            // Together: no debt is further from the mean than a decision moves it.
            assert!(run.penalty.iter().all(|p| (p - drift * 200.0).abs() <= 2.0), "{:?}", run.penalty);
        }
    }

    /// Shares of the drops where the partner is the flow whose last drop is longest ago. Where debts are often equal, who is chosen
    /// among equals moves them by up to 0.007.
    #[test]
    fn shares_of_the_drops() {
        for (ties, within) in [(Ties::First, 0.004), (Ties::Random, 0.009)] {
            let of = |rtts, hits| run(rtts, hits, (Latest::Oldest, Charge::Both, ties), 200_000).shares();
            near(of(EQUAL, [0.2; 5]), [0.2; 5], 0.004);
            near(of(UNEQUAL, [0.2; 5]), [0.448, 0.202, 0.145, 0.111, 0.094], within);
            near(of(EQUAL, [0.4, 0.25, 0.2, 0.1, 0.05]), [0.288, 0.220, 0.198, 0.158, 0.135], within);
        }
    }

    /// Charged alone, partners take turns, no matter whose arrivals cause the decisions.
    #[test]
    fn partners_alone_share_drops_evenly() {
        let options = (Latest::Oldest, Charge::Partner, Ties::Random);
        near(run(EQUAL, [0.4, 0.25, 0.2, 0.1, 0.05], options, 20_000).shares(), [0.2; 5], 1e-3);
    }

    /// The other reading of "latest time" is degenerate: the last victim's charge cancels its drop, so debts grow by hits alone,
    /// and the flow that is hit most loses all.
    #[test]
    fn charged_with_the_last_victim_one_flow_loses_all() {
        let run =
            run(EQUAL, [0.4, 0.25, 0.2, 0.1, 0.05], (Latest::Newest, Charge::Both, Ties::Random), 20_000);
        assert!(run.shares()[0] > 0.99, "{:?}", run.shares());
    }
}

#[cfg(test)]
mod tests;
