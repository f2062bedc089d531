use super::*;
use crate::clock::Exact;

const MS: u64 = 1_000_000_000;
const DELAY: u64 = 20 * MS;

fn jitter(law: Law) -> Jitter {
    Jitter { law, most: None, hold: Duration::ZERO, reorder: true }
}

/// When packets arrive that are sent every `gap` picoseconds, one picosecond after they begin.
fn arrivals(wire: Wire, n: u64, gap: u64) -> Vec<Option<u64>> {
    let mut state = WireState::<Exact>::new(wire, Rng::for_component(7, "wire"));
    (0..n).map(|i| state.arrival(Exact(i * gap), Exact(i * gap + DELAY)).map(|at| at.0)).collect()
}

/// The delays beyond the propagation delay, in ms, where nothing is lost.
fn extras(jitter: Jitter, n: u64, gap: u64) -> Vec<f64> {
    let all = arrivals(Wire { jitter: Some(jitter), loss: None }, n, gap);
    (0..).zip(all).map(|(i, at)| (at.expect("no loss") - DELAY - i * gap) as f64 / MS as f64).collect()
}

fn moments(all: &[f64]) -> (f64, f64) {
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    (mean, all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

/// Means and variances from the laws' own formulas; Pareto's of shape 5: σ² = μ²/15.
#[test]
fn delays_have_the_moments_of_their_law() {
    let ms = Duration::from_millis;
    let n = 200_000;
    for (law, mean, variance) in [
        (Law::Uniform(ms(2), ms(8)), 5.0, 3.0),
        (Law::Mean(ms(4), Distribution::Exponential), 4.0, 16.0),
        (Law::Mean(ms(6), Distribution::Pareto(5.0)), 6.0, 36.0 / 15.0),
        (Law::Normal(ms(10), ms(2)), 10.0, 4.0),
        (Law::Share(0.1, ms(10)), 1.0, 9.0),
    ] {
        let (m, v) = moments(&extras(jitter(law.clone()), n, 100 * MS));
        // Five standard errors of the mean; of the variance a few percent.
        assert!((m - mean).abs() < 5.0 * (variance / n as f64).sqrt(), "{law:?}: mean {m}");
        assert!((v / variance - 1.0).abs() < 0.05, "{law:?}: variance {v}");
    }
    // A normal law near zero is one cut off there: mean μ + σ φ(μ/σ)/Φ(μ/σ), for μ = σ 1.2876 σ.
    let cut = extras(jitter(Law::Normal(ms(1), ms(1))), n, 100 * MS);
    assert!(cut.iter().all(|x| *x >= 0.0));
    assert!((moments(&cut).0 - 1.2876).abs() < 0.01, "{}", moments(&cut).0);
    let most = Jitter { most: Some(ms(3)), ..jitter(Law::Mean(ms(4), Distribution::Exponential)) };
    let capped = extras(most, n, 100 * MS);
    assert!(capped.iter().all(|x| *x <= 3.0));
    // The mean of min(X, c) is μ (1 − e^(−c/μ)).
    assert!((moments(&capped).0 - 4.0 * (1.0 - libm::exp(-0.75))).abs() < 0.01);
}

#[test]
fn order_is_kept_unless_packets_may_pass() {
    let law = Law::Uniform(Duration::ZERO, Duration::from_millis(10));
    let run = |reorder| {
        let jitter = Jitter { reorder, ..jitter(law.clone()) };
        arrivals(Wire { jitter: Some(jitter), loss: None }, 10_000, MS)
    };
    let (kept, passed) = (run(false), run(true));
    assert!(kept.is_sorted_by(|a, b| a < b));
    // The same draws: a packet in order arrives when it would, or just after the one before.
    let mut last = 0;
    for (own, at) in passed.iter().flatten().zip(kept.iter().flatten()) {
        last = (*own).max(last + 1);
        assert_eq!(last, *at);
    }
    // RFC 4737 §4.1.1: a packet is late when a later one was there before. Of neighbours 1 ms apart with uniform delays over
    // 10 ms the second overtakes with 0.9²/2.
    let overtaken = passed.windows(2).filter(|w| w[0] > w[1]).count() as f64 / 9_999.0;
    assert!((overtaken - 0.405).abs() < 0.02, "{overtaken}");
}

/// Delays of two values only, at spacings that divide their difference: without care two packets would arrive at the same time.
#[test]
fn no_two_packets_arrive_at_the_same_time() {
    let law = Law::Share(0.5, Duration::from_millis(10));
    let mut all: Vec<u64> =
        arrivals(Wire { jitter: Some(jitter(law)), loss: None }, 10_000, MS).into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_delay_holds_and_steps_repeat() {
    let ms = Duration::from_millis;
    let hold = Jitter { hold: ms(10), ..jitter(Law::Uniform(ms(0), ms(100))) };
    let held = extras(hold, 1000, MS);
    assert!(held.chunks(10).all(|ten| ten.iter().all(|x| (x - ten[0]).abs() < 1e-6)));
    assert_ne!(held[0], held[10]);
    let steps = vec![(Time(0), ms(0)), (Time(3 * MS), ms(5)), (Time(4 * MS), ms(1))];
    let seen = extras(jitter(Law::Steps(steps, Some(ms(5)))), 10, MS);
    let whole: Vec<f64> = seen.iter().map(|x| x.round()).collect();
    assert_eq!(whole, [0.0, 0.0, 0.0, 5.0, 1.0, 0.0, 0.0, 0.0, 5.0, 1.0]);
}

/// Gilbert 1960: the share of the bad state is p/(p + r); a stay in it lasts 1/r packets on average, and its length is geometric.
#[test]
fn losses_come_in_bursts() {
    let n = 400_000;
    let loss = Loss { to_bad: 0.01, to_good: 0.25, in_good: 0.0, in_bad: 1.0 };
    let lost: Vec<bool> =
        arrivals(Wire { jitter: None, loss: Some(loss) }, n, MS).iter().map(Option::is_none).collect();
    let share = lost.iter().filter(|l| **l).count() as f64 / n as f64;
    assert!((share / (0.01 / 0.26) - 1.0).abs() < 0.05, "{share}");
    assert!((share / loss.mean() - 1.0).abs() < 0.05);
    let bursts: Vec<usize> = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
    let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
    assert!((mean - 4.0).abs() < 0.2, "{mean}");
    let single = bursts.iter().filter(|b| **b == 1).count() as f64 / bursts.len() as f64;
    assert!((single - 0.25).abs() < 0.02, "{single}");
    // Independent: after a loss as often as otherwise.
    let one = Wire { jitter: None, loss: Some(Loss::independent(0.1)) };
    let lost: Vec<bool> = arrivals(one, n, MS).iter().map(Option::is_none).collect();
    let after = lost.windows(2).filter(|w| w[0]).map(|w| f64::from(u8::from(w[1])));
    let (k, both) = after.fold((0.0, 0.0), |(k, s), x| (k + 1.0, s + x));
    assert!((k / n as f64 - 0.1f64).abs() < 0.003 && (both / k - 0.1f64).abs() < 0.01);
    // Nothing is lost where nothing can be.
    let never = Wire { jitter: None, loss: Some(Loss { in_bad: 0.0, ..loss }) };
    assert!(arrivals(never, 1000, MS).iter().all(Option::is_some));
}
