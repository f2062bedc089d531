//! Properties of Eq. (3) in either reading of its sum (Bouras and Sevasti 2004, §3), and a slow oracle written from the text.

use super::*;
use crate::params::{Default, Params as _, Value};
use proptest::prelude::*;

/// The law of a marker whose file says nothing about it; see [`the_default_is_the_share_of_contracts`].
const DEFAULT: Sharing = Sharing::Contract;

/// Flow by flow, Eq. (3) in fractions of whole numbers, as §3 puts it: of ΣW packets the flow is due the part that its contract
/// is of all; as many of its own as that are IN. Contracts and windows are whole, so the fractions are exact.
fn oracle(flows: &[(u32, u32)]) -> Vec<(u128, u128)> {
    let all_windows: u128 = flows.iter().map(|f| u128::from(f.1)).sum();
    let all_contracts: u128 = flows.iter().map(|f| u128::from(f.0)).sum();
    let one = |&(r, w): &(u32, u32)| match (r, w) {
        (0, _) => (0, 1),
        (_, 0) => (1, 1),
        // r/Σr of ΣW, over W.
        _ => {
            let (due, has) = (u128::from(r) * all_windows, u128::from(w) * all_contracts);
            if due >= has { (1, 1) } else { (due, has) }
        }
    };
    flows.iter().map(one).collect()
}

/// p of each by the code; all 1 where nobody with a contract has a window, as at the start.
fn found(sharing: Sharing, flows: &[(f64, f64)]) -> Vec<f64> {
    let shares = Shares::of(sharing, flows.iter().copied());
    flows.iter().map(|(r, w)| shares.map_or(1.0, |s| s.p(*r, *w))).collect()
}

fn p(flows: &[(u32, u32)]) -> Vec<f64> {
    let floats: Vec<_> = flows.iter().map(|(r, w)| (f64::from(*r), f64::from(*w))).collect();
    found(DEFAULT, &floats)
}

/// OUT packets over all, in an interval.
fn share_of_out(flows: &[(u32, u32)]) -> f64 {
    let all: f64 = flows.iter().map(|f| f64::from(f.1)).sum();
    p(flows).iter().zip(flows).map(|(p, (_, w))| (1.0 - p) * f64::from(*w)).sum::<f64>() / all
}

#[test]
fn the_default_is_the_share_of_contracts() {
    let field = Params::FIELDS.iter().find(|f| f.name == "shares").expect("a parameter");
    let Default::Value(value) = field.default else { panic!("it has a default") };
    assert!(matches!(value(), Value::Choice(word) if word == DEFAULT.word()), "{:?}", value());
}

#[test]
fn values_by_hand() {
    assert_eq!(p(&[(1, 10), (2, 20), (3, 10)]), [2.0 / 3.0, 2.0 / 3.0, 1.0]);
    assert_eq!(p(&[(7, 10), (7, 20), (7, 30)]), [1.0, 1.0, 2.0 / 3.0]);
    assert_eq!(p(&[(1, 3), (2, 6), (5, 15)]), [1.0; 3]);
    // "Otherwise" where nothing has come of a flow; nothing for a flow without a contract, even then.
    assert_eq!(p(&[(1, 0), (1, 20), (0, 0)]), [1.0, 0.5, 0.0]);
}

/// Two flows at their shares; one's window doubles, and it alone is marked: 20 of 30 packets, 15 due.
#[test]
fn a_window_that_grows_alone_is_marked() {
    assert_eq!(p(&[(1, 10), (1, 10)]), [1.0, 1.0]);
    assert_eq!(p(&[(1, 10), (1, 20)]), [1.0, 0.75]);
    assert_eq!(p(&[(1, 10), (1, 40)]), [1.0, 0.625]);
}

/// Pairs of 1 to 5 Mbit/s with equal windows: each is due r/30 of them and has a tenth.
#[test]
fn contracts_of_paper_e_with_equal_windows() {
    let flows: Vec<(u32, u32)> = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5].map(|r| (r, 12)).to_vec();
    let third = 1.0 / 3.0;
    assert_eq!(p(&flows), [third, third, 2.0 * third, 2.0 * third, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert!((share_of_out(&flows) - 0.2).abs() < 1e-15);
}

fn some_flows() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop::collection::vec((1u32..1_000_000, 0u32..500), 1..20)
}

proptest! {
    /// Bouras and Sevasti 2004 §3, Eq. (1)–(3), against exact fractions.
    #[test]
    fn agrees_with_the_text(flows in prop::collection::vec((0u32..1_000_000, 0u32..500), 1..20)) {
        prop_assume!(flows.iter().any(|(r, w)| *r > 0 && *w > 0));
        // The marker keeps no record of flows without a contract: the sums go over the others.
        let known: Vec<_> = flows.iter().copied().filter(|f| f.0 > 0).collect();
        for (p, (part, of)) in p(&known).iter().zip(oracle(&known)) {
            prop_assert!((p - part as f64 / of as f64).abs() < 1e-12, "{p} {part}/{of}");
        }
    }

    /// IN packets p·W are in proportion to the contracts where p < 1, and never more than that: what a flow is due.
    #[test]
    fn in_packets_are_in_proportion_to_contracts(flows in some_flows()) {
        let windows: f64 = flows.iter().map(|f| f64::from(f.1)).sum();
        let contracts: f64 = flows.iter().map(|f| f64::from(f.0)).sum();
        for (p, (r, w)) in p(&flows).iter().zip(&flows) {
            let (r#in, due) = (p * f64::from(*w), f64::from(*r) / contracts * windows);
            prop_assert!((0.0..=1.0).contains(p));
            prop_assert!(r#in <= due * (1.0 + 1e-12));
            if *p < 1.0 { prop_assert!((r#in / due - 1.0).abs() < 1e-12, "{in} of {due}", in = r#in); }
        }
    }

    /// The share of OUT is how far the shares of the windows are from those of the contracts.
    #[test]
    fn out_is_the_distance_from_the_contracts(flows in some_flows()) {
        let windows: f64 = flows.iter().map(|f| f64::from(f.1)).sum();
        prop_assume!(windows > 0.0);
        let contracts: f64 = flows.iter().map(|f| f64::from(f.0)).sum();
        let distance: f64 =
            flows.iter().map(|(r, w)| (f64::from(*w) / windows - f64::from(*r) / contracts).max(0.0)).sum();
        prop_assert!((share_of_out(&flows) - distance).abs() < 1e-12);
    }

    /// Windows in proportion to the contracts are the fixed point: nothing is OUT. Anything else has OUT packets.
    #[test]
    fn the_fixed_point_is_the_contracts(contracts in prop::collection::vec(1u32..1000, 2..20), k in 1u32..50) {
        let mut flows: Vec<_> = contracts.iter().map(|r| (*r, r * k)).collect();
        prop_assert!(p(&flows).iter().all(|p| *p == 1.0));
        flows[0].1 += 1;
        let marked = p(&flows);
        prop_assert!(marked[0] < 1.0 && marked[1..].iter().all(|p| *p == 1.0), "{marked:?}");
    }

    /// Contracts in other units, windows in other units: the same to the last bit.
    #[test]
    fn units_do_not_matter(flows in some_flows(), factor in 1u32..1000) {
        let k = f64::from(factor);
        for sharing in [Sharing::Contract, Sharing::Weighted] {
            let with = |a: f64, b: f64| {
                let scaled: Vec<_> = flows.iter().map(|(r, w)| (a * f64::from(*r), b * f64::from(*w))).collect();
                found(sharing, &scaled)
            };
            prop_assert_eq!(with(1.0, 1.0), with(k, 1.0));
            prop_assert_eq!(with(1.0, 1.0), with(1.0, k));
        }
    }

    /// Equal contracts: p is the mean window over the flow's own.
    #[test]
    fn equal_contracts_even_out_windows(r in 1u32..1_000_000, windows in prop::collection::vec(1u32..300, 1..20)) {
        let flows: Vec<_> = windows.iter().map(|w| (r, *w)).collect();
        let mean = windows.iter().map(|w| f64::from(*w)).sum::<f64>() / windows.len() as f64;
        for (p, w) in p(&flows).iter().zip(&windows) {
            prop_assert!((p - (mean / f64::from(*w)).min(1.0)).abs() < 1e-12);
        }
    }

    /// The other reading, literally: the largest contract is never OUT, whatever its window, and equal ones never are.
    #[test]
    fn weighted_never_marks_the_largest_contract(flows in some_flows()) {
        let floats: Vec<_> = flows.iter().map(|(r, w)| (f64::from(*r), f64::from(*w))).collect();
        let windows: f64 = floats.iter().map(|f| f.1).sum();
        let products: f64 = floats.iter().map(|(r, w)| r * w).sum();
        let largest = flows.iter().map(|f| f.0).max();
        for (p, (r, _)) in found(Sharing::Weighted, &floats).iter().zip(&flows) {
            let slow = if products > 0.0 { (f64::from(*r) * windows / products).min(1.0) } else { 1.0 };
            prop_assert!((p - slow).abs() < 1e-9, "{p} {slow}");
            if largest == Some(*r) { prop_assert!(*p > 1.0 - 1e-12); }
        }
        let equal: Vec<_> = floats.iter().map(|f| (7.0, f.1)).collect();
        prop_assert!(found(Sharing::Weighted, &equal).iter().all(|p| *p == 1.0));
    }
}
