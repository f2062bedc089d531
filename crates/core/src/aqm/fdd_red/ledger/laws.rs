//! Properties of the ledger in every reading: derived from Fig. 2 in docs/readings/fdd-red.md, not from the code.

use super::*;
use crate::rng::Rng;

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

/// Decisions whose arrivals are of each flow with chances `hits`, nobody forgotten.
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
            let run = run(rtts, [0.4, 0.25, 0.2, 0.1, 0.05], (Latest::Oldest, charge, Ties::Random), 5000);
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
    let run = run(EQUAL, [0.4, 0.25, 0.2, 0.1, 0.05], (Latest::Newest, Charge::Both, Ties::Random), 20_000);
    assert!(run.shares()[0] > 0.99, "{:?}", run.shares());
}
