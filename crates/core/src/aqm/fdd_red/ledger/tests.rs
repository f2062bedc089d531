use std::collections::BTreeMap;

use super::*;
use crate::testing::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(t: u64) -> Time {
    Time::ZERO + ms(t)
}

fn rng() -> Rng {
    Rng::for_component(1, "ledger")
}

/// Flows 0, 1, 2 with round-trip times of 50, 100, 150 ms: shares of 2, 1 and 2/3.
fn three(latest: Latest) -> Ledger {
    let mut l = Ledger::new(8, latest, Charge::Both, Ties::First);
    for flow in 0..3 {
        l.came(at(0), FlowId(flow), Some(ms(50 * u64::from(flow + 1))), Account::default);
    }
    l
}

/// Drop decisions at arrivals of these flows, one a millisecond: the victims, and what everybody owes in the end.
fn decide(l: &mut Ledger, arrivals: &[u32]) -> (Vec<u32>, [f64; 3]) {
    let victims = (1..).zip(arrivals).map(|(t, &flow)| {
        let victim = l.penalise(FlowId(flow), Duration::ZERO, &mut rng());
        l.pay(at(t), victim);
        victim.0
    });
    let victims = victims.collect();
    (victims, [0, 1, 2].map(|f| l.accounts.get(FlowId(f)).unwrap().penalty))
}

/// By hand from Fig. 2. oldest: (1, with 0) → 0; (1, with 1) → 1; (2, with 2) → 1; (0, with 2) → 0.
/// newest: flow 0 lost last each time, so it is charged each time, and pays each time.
#[test]
fn four_decisions_by_hand() {
    let near = |(victims, owed): (Vec<u32>, [f64; 3]), expect: ([u32; 4], [f64; 3])| {
        assert_eq!(victims, expect.0);
        assert!(owed.iter().zip(expect.1).all(|(a, b)| (a - b).abs() < 1e-12), "{owed:?}");
    };
    near(decide(&mut three(Latest::Oldest), &[1, 1, 2, 0]), ([0, 1, 1, 0], [2.0, 1.0, 2.0]));
    near(decide(&mut three(Latest::Newest), &[1, 1, 2, 0]), ([0, 0, 0, 0], [6.0, 2.0, 2.0 / 3.0]));
}

/// Equal round-trip times, and every decision at an arrival of flow 0. Debts are kept equal, N/5 each of the N that are
/// added; the partners charged are the four others in turn, N/4 each: they lose N/4 − N/5, and flow 0 N − N/5.
#[test]
fn it_evens_out_debts_rather_than_drops() {
    let mut l = Ledger::new(8, Latest::Oldest, Charge::Both, Ties::First);
    (0..5).for_each(|f| l.came(at(0), FlowId(f), Some(ms(100)), Account::default));
    let mut drops = [0; 5];
    for t in 1..=1000 {
        let victim = l.penalise(FlowId(0), Duration::ZERO, &mut rng());
        l.pay(at(t), victim);
        drops[victim.0 as usize] += 1;
    }
    let debts: Vec<f64> = l.iter().map(|(_, a)| a.penalty).collect();
    assert!(debts.iter().all(|d| (d - 200.0).abs() <= 2.0), "{debts:?}");
    assert!((795..=805).contains(&drops[0]) && drops[1..].iter().all(|d| (45..=55).contains(d)), "{drops:?}");
}

#[test]
fn a_flow_without_an_estimate_counts_as_average() {
    let mut l = Ledger::new(8, Latest::Oldest, Charge::Both, Ties::First);
    l.came(at(0), FlowId(4), None, Account::default);
    assert_eq!(l.avg_rtt(), None);
    l.penalise(FlowId(4), Duration::ZERO, &mut rng());
    assert_eq!(l.accounts.get(FlowId(4)).unwrap().penalty, 2.0);
    // Nobody's estimate, nobody's account is ever closed.
    l.close_idle(at(1_000_000), Duration::ZERO, |_| false, |flow, _| panic!("{flow:?} closed"));
    l.came(at(0), FlowId(4), Some(ms(80)), Account::default);
    assert_eq!(l.avg_rtt(), Some(ms(80)));
}

/// With a queue of 100 ms on top, 50 and 150 ms become 150 and 250 around 200.
#[test]
fn shares() {
    let of = |rtt, extra| share(ms(100), ms(rtt), ms(extra));
    assert_eq!([of(50, 0), of(100, 0), of(200, 0)], [2.0, 1.0, 0.5]);
    assert!((of(50, 100) - 4.0 / 3.0).abs() < 1e-12 && (of(150, 100) - 0.8).abs() < 1e-12);
    // No round-trip time at all is a short one, not an endless share; all of them none, and everybody is average.
    assert!((of(0, 0) - 1e5).abs() < 1e-6);
    assert_eq!(share(Duration::ZERO, Duration::ZERO, Duration::ZERO), 1.0);
}

#[test]
fn accounts_are_closed_after_avg_rtt() {
    let mut l = three(Latest::Oldest);
    l.came(at(90), FlowId(1), Some(ms(100)), Account::default);
    let mut closed = Vec::new();
    l.close_idle(at(100), Duration::ZERO, |_| false, |flow, _| closed.push(flow.0));
    assert!(closed.is_empty(), "100 ms is within an average of 100 ms");
    // Without flow 0 the average is 125 ms: flow 2 may stay.
    l.close_idle(at(101), Duration::ZERO, |_| false, |flow, _| closed.push(flow.0));
    assert_eq!((closed.as_slice(), l.avg_rtt(), l.flows()), ([0].as_slice(), Some(ms(125)), 2));
    // Where the queue counts, its time is added.
    l.close_idle(at(150), ms(50), |_| false, |flow, _| closed.push(flow.0));
    assert_eq!(closed, [0]);
    l.close_idle(at(1000), Duration::ZERO, |_| false, |flow, _| closed.push(flow.0));
    assert_eq!((closed.as_slice(), l.avg_rtt(), l.flows()), ([0, 2, 1].as_slice(), None, 0));
}

#[test]
fn a_flood_of_flows_leaves_the_sum_exact() {
    let mut l = Ledger::new(10, Latest::Oldest, Charge::Both, Ties::Random);
    for flow in 0..10_000 {
        l.came(at(u64::from(flow)), FlowId(flow), Some(ms(100 + u64::from(flow % 7))), Account::default);
    }
    let last: u64 = (9990..10_000u64).map(|f| 100 + f % 7).sum();
    assert_eq!((l.flows(), l.avg_rtt()), (10, Some(Duration(ms(last).0 / 10))));
}

#[test]
fn ties_are_broken_by_chance_or_by_number() {
    let chosen = |ties, seed| {
        let mut l = Ledger::new(8, Latest::Oldest, Charge::Both, ties);
        (0..4).for_each(|f| l.came(at(0), FlowId(f), None, Account::default));
        l.next_victim(&mut Rng::for_component(seed, "ties"), |_| true).unwrap().0 as usize
    };
    let mut counts = [0; 4];
    (0..4000).for_each(|seed| counts[chosen(Ties::Random, seed)] += 1);
    assert!(counts.iter().all(|n| (900..1100).contains(n)), "{counts:?}");
    assert!((0..20).all(|seed| chosen(Ties::First, seed) == 0));
}

/// Fig. 2 in plain maps, everything found by looking at everything.
#[derive(Default)]
struct Slow {
    seen: BTreeMap<u32, u64>,
    penalty: BTreeMap<u32, f64>,
    last_drop: BTreeMap<u32, u64>,
}

impl Slow {
    fn avg(&self, rtts: &[Option<u64>]) -> Option<f64> {
        let known: Vec<f64> = self.seen.keys().filter_map(|f| rtts[*f as usize]).map(|r| r as f64).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    fn decide(&mut self, now: u64, flow: u32, oldest: bool, rtts: &[Option<u64>]) -> u32 {
        let when = |f: &u32| self.last_drop.get(f).copied().unwrap_or(0);
        let partner = *if oldest {
            self.seen.keys().min_by_key(|f| (when(f), **f)).unwrap()
        } else {
            self.seen.keys().min_by_key(|f| (u64::MAX - when(f), **f)).unwrap()
        };
        for f in [flow, partner] {
            let share = match (self.avg(rtts), rtts[f as usize]) {
                (Some(avg), Some(rtt)) => avg / rtt as f64,
                _ => 1.0,
            };
            *self.penalty.entry(f).or_default() += share;
        }
        let owes = |f: &u32| self.penalty.get(f).copied().unwrap_or(0.0);
        let most = self.seen.keys().map(owes).fold(f64::NEG_INFINITY, f64::max);
        let victim = *self.seen.keys().find(|f| owes(f) >= most - 1e-9).unwrap();
        *self.penalty.entry(victim).or_default() -= 1.0;
        self.last_drop.insert(victim, now);
        victim
    }
}

proptest! {
    /// At every arrival the same accounts, and at every decision the same victim.
    #[test]
    fn agrees_with_fig_2_in_plain_maps(
        steps in prop::collection::vec((1u64..120, 0u32..6, any::<bool>()), 1..200),
        oldest: bool, forget: bool,
    ) {
        let rtts = [Some(50), Some(100), None, Some(200), Some(50), Some(100)];
        let latest = if oldest { Latest::Oldest } else { Latest::Newest };
        let mut fast = Ledger::new(8, latest, Charge::Both, Ties::First);
        let mut slow = Slow::default();
        let mut now = 0;
        for (gap, flow, decides) in steps {
            now += gap;
            if forget {
                fast.close_idle(at(now), Duration::ZERO, |_| false, |_, _| {});
                // Who was seen longest ago goes first, and the average follows.
                while let Some((&f, &seen)) = slow.seen.iter().min_by_key(|(_, seen)| **seen) {
                    let Some(avg) = slow.avg(&rtts) else { break };
                    if ((now - seen) as f64) <= avg + 1e-9 { break; }
                    slow.seen.remove(&f);
                    slow.penalty.remove(&f);
                    slow.last_drop.remove(&f);
                }
            }
            fast.came(at(now), FlowId(flow), rtts[flow as usize].map(ms), Account::default);
            slow.seen.insert(flow, now);
            let (fast_avg, slow_avg) = (fast.avg_rtt(), slow.avg(&rtts));
            prop_assert!(fast_avg.is_some() == slow_avg.is_some());
            if let (Some(a), Some(b)) = (fast_avg, slow_avg) {
                prop_assert!((a.secs() * 1e3 - b).abs() < 1e-6);
            }
            if decides {
                let victim = fast.penalise(FlowId(flow), Duration::ZERO, &mut rng());
                let expect = slow.decide(now, flow, oldest, &rtts);
                // Debts that differ by rounding alone may be taken in another order.
                let owes = |f: u32| fast.accounts.get(FlowId(f)).unwrap().penalty;
                prop_assert!(victim.0 == expect || (owes(victim.0) - owes(expect)).abs() < 1e-9);
                if victim.0 != expect { return Ok(()); }
                fast.pay(at(now), victim);
            }
            for (f, a) in fast.iter() {
                let owed = slow.penalty.get(&f.0).copied().unwrap_or(0.0);
                prop_assert!((a.penalty - owed).abs() < 1e-6);
            }
        }
    }
}
