//! The strategies of the attacks' search against the kernel's datapath: what leaves is held against what was bought by the same oracles.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, PS_PER_S, Time};
use inprofile_router::config::{self, Config};
use inprofile_router::router;

use crate::evolve;
use crate::frames::{Frame, Ip, Wrap};
use crate::oracle::Oracle;
use crate::strategy::*;
use crate::tried::{Tried, can_be_tried, permitted};

/// Strategies, in one load of the programs: each but the first takes over by a reload, after a minute of silence.
const STRATEGIES: u64 = 60;
const MINUTE: Duration = Duration(60 * PS_PER_S);
const DAY: Duration = Duration(86_400 * PS_PER_S);
const START: Time = Time(1_000_000);

fn parsed(text: &str) -> Config {
    config::parse(text.as_bytes(), "enemy.toml", &router::registry())
        .unwrap_or_else(|p| panic!("{p:#?}\n{text}"))
        .0
}

/// A strategy from this moment on; until when, what it got, and frames that are too long to be tried.
fn play(kernel: &mut Tried, bytes: &[u8], start: Time) -> (Time, Got, u64) {
    let mut genes = Genes(bytes, 0);
    // Nothing is shaped here.
    let who = [Who::Prefix, Who::Policed, Who::Port][genes.next(3) as usize];
    let contract = CONTRACTS[genes.next(4) as usize];
    let meter = genes.next(4) as usize;
    let (reload, every) = (genes.next(8), 10 + genes.next(100));
    let how = How { ethernet: genes.next(2) == 1, drops_unread: genes.next(2) == 1, kernel: true };
    let head = genes.1;
    let mut rng =
        Rng::for_component(bytes.iter().fold(7, |all, b| all * 31 % 1_000_003 + u64::from(*b)), "attacker");
    let text = |n: u64| match reload {
        0 => Some(file(who, contract, meter, how, DEPTH, "alice")),
        1 => Some(file(who, contract, meter, how, DEPTH + DEEPER * (n % 2), "alice")),
        2 => Some(file(who, contract, meter, how, DEPTH, ["alice", "eve"][(n % 2) as usize])),
        _ => None,
    };
    kernel.maps.apply(&parsed(&file(who, contract, meter, how, DEPTH, "alice")), start.0 / 1_000).unwrap();
    // Who is new begins with empty buckets, and has them full by then.
    let (mut now, mut sent, mut untried) = (start + MINUTE, Vec::<Sent>::new(), 0);
    let began = now;
    let (mut bucket, mut bobs_next) = (Oracle::new(contract), now);
    let mut arrive = |kernel: &mut Tried, is: Sent, frame: &mut Frame| {
        stamp(frame, sent.len() as u64);
        if !can_be_tried(&frame.0) {
            untried += 1;
            return false;
        }
        let left = kernel.arrive(is.at, 0, &frame.0).map(Frame);
        let shows = is.plain || how.drops_unread && !is.control;
        let left = left.map(|f| (is.at, if shows { f.dscp() } else { None }));
        sent.push(Sent { left, ..is });
        true
    };
    for n in 0..FRAMES / 2 {
        let mut his = Genes(bytes, head + 14 * (n % 3) as usize);
        let (mut frame, is) = make(&mut his, who, n, &mut rng);
        let full = is.bytes * 8 * PS_PER_S / contract;
        let short = bucket.until(is.bytes, DEPTH).since(now).0;
        // The kernel's clock counts nanoseconds.
        now = Time((now.0 + gap(&mut his, n, full, short, &mut rng)).div_ceil(1_000) * 1_000);
        let bob =
            Sent { at: now, bytes: 1_000, bobs: true, control: false, his: false, plain: true, left: None };
        for _ in 0..4 {
            if !people_have_circuits(who) || bobs_next >= now {
                break;
            }
            let mut frame =
                Ip { from: 2, bytes: 1_000, wraps: vec![Wrap::Tag(0x8100, 200)], ..Ip::default() }.frame();
            arrive(kernel, Sent { at: bobs_next, ..bob }, &mut frame);
            bobs_next += Duration((1_000 * 8 * PS_PER_S / (contract / 2)).div_ceil(1_000) * 1_000);
        }
        bobs_next = bobs_next.max(now);
        if n % every == every - 1
            && let Some(text) = text(n / every)
        {
            kernel.maps.apply(&parsed(&text), now.0 / 1_000).unwrap();
        }
        let fits = !is.control && bucket.fits(now, is.bytes, DEPTH);
        if arrive(kernel, Sent { at: now, ..is }, &mut frame) && fits {
            bucket.see(now, is.bytes);
        }
    }
    (
        now,
        judge(
            who,
            how,
            (contract, meter, if reload == 1 { DEEPER } else { 0 }),
            &sent,
            now.since(began).secs(),
            0.0,
            0,
        ),
        untried,
    )
}

/// No strategy gets anything that was not bought, and none costs an honest neighbour a packet or its colour.
#[test]
fn no_strategy_cheats_the_kernel() {
    if !permitted() {
        return;
    }
    let how = How { ethernet: false, drops_unread: false, kernel: true };
    let fresh = || Tried::new(&parsed(&file(Who::Prefix, CONTRACTS[0], 0, how, DEPTH, "alice")));
    let (mut kernel, mut now, mut untried) = (fresh(), START, 0);
    evolve::search(STRATEGIES, 1e-6, |genes| {
        // Time is counted in picoseconds, of which 64 bits hold 213 days.
        if now > Time(100 * DAY.0) {
            (kernel, now) = (fresh(), START);
        }
        let (until, got, long) = play(&mut kernel, genes, now);
        (now, untried) = (until, untried + long);
        got
    });
    println!("  {untried} frames were too long to be tried");
}
