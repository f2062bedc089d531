//! A search for a way to cheat the router in user space; that for the kernel's datapath is in `tests/kernel/hostile.rs`.
//!
//! A strategy is a string of bytes that says who the customers are, what the attacker sends (lengths, encapsulations, fragments, lies,
//! code points, flows, control frames, circuits), when (in step with the bucket to the picosecond, bursts, silence), how often
//! the router is reconfigured and how late it wakes. What leaves is held against what was bought by oracles in whole numbers: as IN, as
//! EF, of the attacker's shaper or policer, of control frames, of the link; and an honest neighbour may lose nothing.

mod evolve;
mod strategy;

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, PS_PER_S, Time};
use inprofile_live::packet::Layer;
use inprofile_router::router::Router;

use crate::bench;
use crate::frames::{Frame, Ip, Wrap};
use crate::leaky_bucket::LeakyBucket;
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
        (LeakyBucket::new(contract), Time::ZERO, LeakyBucket::new(3 * contract));
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
    judge(
        who,
        how,
        (contract, meter, if reload == 1 { DEEPER } else { 0 }),
        &sent,
        now.secs(),
        links.most(),
        too_late,
    )
}

#[test]
fn a_search_finds_no_way_to_cheat() {
    evolve::search(20, 1.0, play);
}
