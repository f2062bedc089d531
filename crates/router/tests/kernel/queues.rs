//! Virtual queues against the core's law in whole numbers: the same arrivals and random numbers, the same verdicts, marks and state, to the
//! bit. How far that law may be from the one in floating point, the core's own tests say.

use inprofile_core::aqm::virtual_queue::whole::{self, Arrival, State};
use inprofile_core::rng::Rng;
use inprofile_core::units::Time;
use inprofile_core::verdict::Admission;
use inprofile_router::config::datapath;

use crate::frames::Ip;
use crate::generate::below;
use crate::tried::{Tried, config, permitted};

const ARRIVALS: u64 = 4_000;
/// At 8 Mbit/s.
const LAWS: [(&str, &str); 6] = [
    ("limit", "law = \"drop_tail\""),
    (
        "red",
        "law = \"red\", red = { w_q = 0.02, min_th = \"5000 B\", max_th = \"15000 B\", max_p = 0.1, ecn = true, gentle = true }",
    ),
    (
        "red, waiting",
        "law = \"red\", red = { w_q = 0.25, min_th = \"3000 B\", max_th = \"20000 B\", max_p = 0.5, wait = true }",
    ),
    (
        "rio",
        "law = \"rio\", rio = { w_q = 0.02, in = { min_th = \"10000 B\", max_th = \"25000 B\", max_p = 0.02 }, out = { min_th = \"3000 B\", max_th = \"12000 B\", max_p = 0.2 } }",
    ),
    (
        "wred",
        "law = \"wred\", wred = { w_q = 0.05, averages = \"decoupled\", green = { min_th = \"10000 B\", max_th = \"25000 B\", max_p = 0.02 }, yellow = { min_th = \"3000 B\", max_th = \"12000 B\", max_p = 0.2 }, red = { min_th = \"1000 B\", max_th = \"5000 B\", max_p = 0.9 } }",
    ),
    (
        "wred, one average",
        "law = \"wred\", wred = { w_q = 0.05, ecn = true, averages = \"shared\", green = { min_th = \"10000 B\", max_th = \"25000 B\", max_p = 0.02 }, yellow = { min_th = \"3000 B\", max_th = \"12000 B\", max_p = 0.2 } }",
    ),
];

fn file(law: &str) -> String {
    format!(
        "[upstream]\nrole = \"core\"\nqueue = {{ aqm = \"virtual_queue\", virtual_rate = \"8 Mbit/s\", virtual_limit = \"30000 B\", {law} }}\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.9.0.0/16\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"9000 B\" }}\n"
    )
}

/// One after the other, by reloads: what the queue holds stays.
#[test]
fn virtual_queues_decide_as_the_core_does() {
    if !permitted() {
        return;
    }
    let mut kernel = Tried::new(&config(&file(LAWS[0].1)));
    let (mut state, mut now) = (State::default(), 1_000u64);
    let (mut dropped, mut marked, mut lost) = (0u64, 0u64, 0u64);
    for (of, (name, law)) in (1..).zip(LAWS) {
        let config = config(&file(law));
        kernel.maps.apply(&config, now).unwrap();
        let direction = config.directions[0].as_ref().unwrap();
        let class = direction.assured;
        let settings = datapath::virtual_queue(&direction.classes[class], config.full_packet()).unwrap();
        let (mut rng, before) = (Rng::for_component(7, name), (dropped, marked));
        for n in 0..ARRIVALS {
            let bytes = [40, 576, 1_000][below(&mut rng, 3)];
            now += match n % 400 {
                0 => 40_000_000,
                1 => 2_000_000_000,
                // About 1.5 times the rate.
                _ => (rng.uniform() * 2.0 * 360_000.0) as u64,
            };
            let (colour, ecn) = (below(&mut rng, 3), below(&mut rng, 2) == 1);
            let octet = [10, 12, 14][colour] << 2 | if ecn { 1 + below(&mut rng, 3) as u8 } else { 0 };
            let random = (rng.uniform() * 4_294_967_296.0) as u32;
            let frame = Ip { bytes, octet, ..Ip::default() }.frame().0;
            kernel.random = random;
            let out = kernel.arrive(Time(now * 1_000), 0, &frame);
            let arrival = Arrival { now, size: bytes as u32, colour, ecn, random };
            let expected = whole::arrive(&settings, &mut state, &arrival);
            let octet = match expected {
                Admission::Drop(_) => None,
                Admission::Mark => Some(octet | 3),
                Admission::Admit => Some(octet),
            };
            assert_eq!(out.as_ref().map(|f| f[15]), octet, "{name}, arrival {n}: {expected:?}");
            dropped += u64::from(out.is_none());
            lost += if out.is_none() { bytes as u64 } else { 0 };
            marked += u64::from(expected == Admission::Mark);
            assert_eq!(kernel.maps.backlog(0, class).unwrap().state(), state, "{name}, arrival {n}");
        }
        let (totals, backlog) = (kernel.maps.totals(0).unwrap(), kernel.maps.backlog(0, class).unwrap());
        assert_eq!((totals.dropped, totals.sent), (dropped, of * ARRIVALS - dropped));
        assert_eq!(backlog.dropped.iter().flatten().sum::<u64>(), dropped);
        assert_eq!(backlog.marked.iter().sum::<u64>(), marked);
        assert_eq!(backlog.lost.iter().sum::<u64>(), lost);
        let (drops, marks) = (dropped - before.0, marked - before.1);
        assert!(
            drops > ARRIVALS / 20 && (marks > 0) == settings.ecn,
            "{name}: {drops} dropped, {marks} marked"
        );
        println!("{name:<16} {ARRIVALS} verdicts and states as the core's: {drops} dropped, {marks} marked");
    }
}

/// Who is dropped behind his meter is counted with him, by cause.
#[test]
fn drops_are_counted_with_their_customer() {
    if !permitted() {
        return;
    }
    let text = file(LAWS[0].1).replace("10.9.0.0/16", "10.0.0.1").replace("role = \"core\"\n", "");
    let mut kernel = Tried::new(&config(&text));
    let frame = Ip { bytes: 1_000, octet: 0, ..Ip::default() }.frame().0;
    let left: Vec<_> = (0..50).filter_map(|_| kernel.arrive(Time(1_000_000), 0, &frame)).collect();
    // Nine have tokens, and the limit is of both colours.
    assert_eq!((left.len(), left.iter().filter(|f| f[15] >> 2 == 10).count()), (30, 9));
    let place = kernel.maps.places(0).get("customer alice").unwrap();
    let account = kernel.maps.account(0, place).unwrap();
    assert_eq!((account.came.packets, account.policed, account.early), (50, 20, 0));
    assert_eq!(account.sent.map(|c| c.packets), [9, 21, 0]);
    assert_eq!(account.left.map(|c| c.packets), [9, 41, 0]);
}
