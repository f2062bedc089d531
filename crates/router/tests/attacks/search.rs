//! A search for a way to cheat: strategies that are mutated, and kept where they got more than those before them.
//!
//! A strategy is a string of bytes that says who the customers are, what the attacker sends (lengths, encapsulations, fragments, lies,
//! code points, flows, control frames, circuits), when (in step with the bucket to the picosecond, bursts, silence), how often
//! the router is reconfigured and how late it wakes. What leaves is held against what was bought by oracles in whole numbers: as IN, as
//! EF, of the attacker's shaper or policer, of control frames, of the link; and an honest neighbour may lose nothing.
//!
//! `MINUTES=60` searches for an hour (`make attack`); otherwise a few strategies, so that the search itself is tested.

mod strategy;

use std::time::{Duration as Wall, Instant};

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, PS_PER_S, Time};
use inprofile_live::packet::Layer;
use inprofile_router::router::Router;

use crate::bench;
use crate::frames::{Frame, Ip, Wrap};
use crate::oracle::Oracle;
use strategy::*;

/// Plays a strategy.
pub fn play(bytes: &[u8]) -> Got {
    let mut genes = Genes(bytes, 0);
    let who = [Who::Prefix, Who::Shaped, Who::Policed, Who::Port][genes.next(4) as usize];
    let contract = CONTRACTS[genes.next(4) as usize];
    let meter = genes.next(4) as usize;
    let (reload, every, late) = (genes.next(8), 10 + genes.next(100), genes.next(6) == 0);
    let how = How { ethernet: genes.next(2) == 1, drops_unread: genes.next(2) == 1, kernel: false };
    let head = genes.1;
    let mut rng = Rng::for_component(
        bytes.iter().fold(7u64, |all, byte| all.wrapping_mul(31).wrapping_add(u64::from(*byte))),
        "attacker",
    );
    let text = |n: u64| match reload {
        0 => Some(file(who, contract, meter, how, DEPTH, "alice")),
        1 => Some(file(who, contract, meter, how, DEPTH + DEEPER * (n % 2), "alice")),
        // What waits of who is renamed drains beside the new name's shaper, as for anybody who goes.
        2 if who != Who::Shaped => {
            Some(file(who, contract, meter, how, DEPTH, ["alice", "eve"][(n % 2) as usize]))
        }
        _ => None,
    };
    let first = file(who, contract, meter, how, DEPTH, "alice");
    let mut router = Some(Router::new(bench::config(&first), Layer::Ethernet, 1));
    let (mut now, mut sent) = (Time::ZERO, Vec::<Sent>::new());
    let (mut bucket, mut bobs_next, mut links) =
        (Oracle::new(contract), Time::ZERO, Oracle::new(3 * contract));
    let mut stalled = Time::ZERO;
    let bob_is_there = people_have_circuits(who);
    let mut collect = |router: &mut Router, sent: &mut Vec<Sent>| {
        let leaving = &mut router.lanes[0].leaving;
        for (frame, at) in leaving.iter().zip(leaving.times()) {
            let n = u32::from_be_bytes([0, frame[9], frame[10], frame[11]]) as usize;
            let frame = Frame(frame.to_vec());
            links.see(*at, if how.ethernet { frame.on_ethernet() } else { frame.behind_ethernet_unpadded() });
            assert!(sent[n].left.is_none(), "no frame leaves twice");
            sent[n].left = Some((
                *at,
                if sent[n].plain || how.drops_unread && !sent[n].control { frame.dscp() } else { None },
            ));
        }
        leaving.clear();
    };
    for n in 0..FRAMES {
        // Each frame may be of another kind: three in turn.
        let mut his = Genes(bytes, head + 14 * (n % 3) as usize);
        let (mut frame, mut is) = make(&mut his, who, n, &mut rng);
        let full = is.bytes * 8 * PS_PER_S / contract;
        let short = bucket.until(is.bytes, DEPTH).since(now).0;
        now += Duration(gap(&mut his, n, full, short, &mut rng));
        while bob_is_there && bobs_next < now && sent.len() < 4 * FRAMES as usize {
            let wraps = vec![Wrap::Tag(0x8100, 200)];
            let mut frame = Ip { from: 2, bytes: 1000, wraps, ..Ip::default() }.frame();
            stamp(&mut frame, sent.len() as u64);
            sent.push(Sent {
                at: bobs_next,
                bytes: 1000,
                bobs: true,
                control: false,
                his: false,
                plain: true,
                left: None,
            });
            let router = router.as_mut().expect("a reload is over at once");
            router.set_present(stalled.max(bobs_next));
            router.arrive(bobs_next, 0, Layer::Ethernet, &mut frame.0);
            collect(router, &mut sent);
            bobs_next += Duration(1000 * 8 * PS_PER_S / (contract / 2));
        }
        bobs_next = bobs_next.max(now);
        if n % every == every - 1
            && let Some(text) = text(n / every)
        {
            let old = router.take().expect("a reload is over at once");
            router = Some(old.reconfigure(bench::config(&text), Layer::Ethernet, 1, now));
        }
        if late && rng.uniform() < 0.01 {
            stalled = now + Duration((rng.uniform() * 2e12) as u64);
        }
        stamp(&mut frame, sent.len() as u64);
        is.at = now;
        sent.push(is);
        if !is.control && bucket.fits(now, is.bytes, DEPTH) {
            bucket.see(now, is.bytes);
        }
        let router = router.as_mut().expect("a reload is over at once");
        router.set_present(stalled.max(now));
        router.arrive(now, 0, Layer::Ethernet, &mut frame.0);
        collect(router, &mut sent);
    }
    let mut router = router.expect("a reload is over at once");
    while router.waiting() > 0 {
        let Some(due) = router.due() else { break };
        router.set_present(stalled.max(due));
        router.advance(due);
        collect(&mut router, &mut sent);
    }
    router.check().unwrap();
    let too_late = router.lanes[0].path.totals().too_late;
    judge(who, how, (contract, meter), &sent, now, links.most(), too_late)
}

/// How near a strategy came.
fn merit(got: &Got, aim: usize) -> f64 {
    if aim < 5 { got.over[aim].1 } else { got.green }
}

/// Searches for so long; the best of each aim.
fn search(seed: u64, enough: impl Fn(u64) -> bool) {
    let mut rng = Rng::for_component(seed, "search");
    let byte = |rng: &mut Rng| (rng.uniform() * 256.0) as u8;
    let mut best: Vec<Vec<(f64, Vec<u8>)>> = vec![Vec::new(); 6];
    let (mut played, mut frames, mut seconds) = (0u64, 0u64, 0.0);
    let (mut most, mut share) = ([f64::MIN; 5], [0f64; 4]);
    while !enough(played) {
        let aim = (played % 6) as usize;
        let pool = &best[aim];
        let mut genes: Vec<u8> = if pool.len() < 8 || rng.uniform() < 0.2 {
            (0..GENES).map(|_| byte(&mut rng)).collect()
        } else {
            pool[(rng.uniform() * pool.len() as f64) as usize].1.clone()
        };
        // A few bytes change, and now and then half of another is taken over.
        for _ in 0..=(rng.uniform() * 4.0) as usize {
            let at = (rng.uniform() * GENES as f64) as usize;
            genes[at] = byte(&mut rng);
        }
        if pool.len() >= 8 && rng.uniform() < 0.2 {
            let from = &pool[(rng.uniform() * pool.len() as f64) as usize].1;
            let at = (rng.uniform() * GENES as f64) as usize;
            genes[at..].copy_from_slice(&from[at..]);
        }
        let got = play(&genes);
        played += 1;
        frames += got.frames;
        seconds += got.seconds;
        for (most, (what, over)) in most.iter_mut().zip(got.over) {
            *most = most.max(over);
            assert!(over <= 1.0, "{what}: {over} bytes beyond what was bought, by {genes:?}: {got:?}");
        }
        let contract = usize::from(genes[1] % 4);
        share[contract] = share[contract].max(got.green);
        assert!(got.green <= 1.001, "{got:?} by {genes:?}");
        assert_eq!((got.foreign, got.bobs_loss), (0, 0), "{got:?} by {genes:?}");
        let pool = &mut best[aim];
        pool.push((merit(&got, aim), genes));
        pool.sort_by(|a, b| b.0.total_cmp(&a.0));
        pool.truncate(32);
    }
    println!("{played} strategies, {frames} frames, {:.1} hours of virtual time", seconds / 3600.0);
    for (what, most) in ["IN", "EF", "shaper or policer", "control frames", "link"].iter().zip(most) {
        println!("  {what:<18} the most beyond what was bought over any stretch: {most:.6} B");
    }
    for (contract, share) in CONTRACTS.iter().zip(share) {
        println!("  IN at {:>4} Mbit/s: {share:.6} of the contract at most", contract / 1_000_000);
    }
}

#[test]
fn a_search_finds_no_way_to_cheat() {
    let minutes = std::env::var("MINUTES").ok().map(|m| m.parse::<f64>().expect("MINUTES is a number"));
    let start = Instant::now();
    match minutes {
        Some(minutes) => {
            let seed = std::env::var("SEED").map_or(1, |s| s.parse().expect("SEED is a number"));
            search(seed, |_| start.elapsed() >= Wall::from_secs_f64(60.0 * minutes));
        }
        None => search(1, |played| played >= 20),
    }
}
