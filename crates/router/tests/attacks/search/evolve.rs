//! The search: strategies are mutated, and kept where they got more than those before them.
//!
//! `MINUTES=60` searches for an hour (`make attack`); otherwise a few strategies, so that the search itself is tested.

use std::time::{Duration, Instant};

use inprofile_core::rng::Rng;

use super::strategy::*;

/// What a search is after: most beyond what was bought, of each kind, and the largest share of the contract.
const AIMS: usize = 6;
/// The strategies of an aim from which others are bred.
const POOL: usize = 32;

/// How near a strategy came.
fn merit(got: &Got, aim: usize) -> f64 {
    if aim < AIMS - 1 { got.over[aim].1 } else { got.green }
}

fn byte(rng: &mut Rng) -> u8 {
    (rng.uniform() * 256.0) as u8
}

fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.uniform() * n as f64) as usize
}

/// One that is new, or made of those of a pool.
fn breed(pool: &[(f64, Vec<u8>)], rng: &mut Rng) -> Vec<u8> {
    let bred = pool.len() >= 8;
    let mut genes: Vec<u8> = if !bred || rng.uniform() < 0.2 {
        (0..GENES).map(|_| byte(rng)).collect()
    } else {
        pool[below(rng, pool.len())].1.clone()
    };
    // A few bytes change, and now and then half of another is taken over.
    for _ in 0..=below(rng, 4) {
        let at = below(rng, GENES);
        genes[at] = byte(rng);
    }
    if bred && rng.uniform() < 0.2 {
        let from = &pool[below(rng, pool.len())].1;
        let at = below(rng, GENES);
        genes[at..].copy_from_slice(&from[at..]);
    }
    genes
}

/// Searches for as long as it is told, else so many strategies; fails where one got more beyond what was bought than `tolerance`, in bytes.
pub fn search(strategies: u64, tolerance: f64, mut play: impl FnMut(&[u8]) -> Got) {
    let minutes = std::env::var("MINUTES").ok().map(|m| m.parse::<f64>().expect("MINUTES is a number"));
    let seed = std::env::var("SEED").map_or(1, |s| s.parse().expect("SEED is a number"));
    let start = Instant::now();
    let enough = |played| match minutes {
        Some(minutes) => start.elapsed() >= Duration::from_secs_f64(60.0 * minutes),
        None => played >= strategies,
    };
    let mut rng = Rng::for_component(seed, "search");
    let mut best: Vec<Vec<(f64, Vec<u8>)>> = vec![Vec::new(); AIMS];
    let (mut played, mut frames, mut seconds) = (0u64, 0u64, 0.0);
    let (mut most, mut share) = ([f64::MIN; AIMS - 1], [0f64; CONTRACTS.len()]);
    while !enough(played) {
        let aim = (played % AIMS as u64) as usize;
        let genes = breed(&best[aim], &mut rng);
        let got = play(&genes);
        played += 1;
        frames += got.frames;
        seconds += got.seconds;
        for (most, (what, over)) in most.iter_mut().zip(got.over) {
            *most = most.max(over);
            assert!(over <= tolerance, "{what}: {over} bytes beyond what was bought, by {genes:?}: {got:?}");
        }
        let contract = usize::from(genes[1]) % CONTRACTS.len();
        share[contract] = share[contract].max(got.green);
        assert!(got.green <= 1.001, "{got:?} by {genes:?}");
        assert_eq!((got.foreign, got.bobs_loss), (0, 0), "{got:?} by {genes:?}");
        let pool = &mut best[aim];
        pool.push((merit(&got, aim), genes));
        pool.sort_by(|a, b| b.0.total_cmp(&a.0));
        pool.truncate(POOL);
    }
    assert!(frames > played * FRAMES / 4, "{frames} frames are too few to tell anything");
    println!("{played} strategies, {frames} frames, {:.1} hours of virtual time", seconds / 3600.0);
    for (what, most) in ["IN", "EF", "shaper or policer", "control frames", "link"].iter().zip(most) {
        println!("  {what:<18} the most beyond what was bought over any stretch: {most:.6} B");
    }
    for (contract, share) in CONTRACTS.iter().zip(share) {
        println!("  IN at {:>4} Mbit/s: {share:.6} of the contract at most", contract / 1_000_000);
    }
}
