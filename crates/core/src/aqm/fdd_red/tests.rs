use Admission::{Admit, Drop, Mark};

use super::ledger::{Charge, Latest, Ties};
use super::*;
use crate::aqm::red::common::Common;
use crate::aqm::red::{EARLY, FORCED};
use crate::testing::*;

mod properties;

/// With w_q = 1 the average is the queue. From three waiting on, every arrival is a decision.
fn params() -> Params {
    Params {
        min_th: Backlog::Packets(1.0),
        max_th: Backlog::Packets(3.0),
        max_p: 0.01,
        latest: Latest::Oldest,
        ties: Ties::First,
        charge: Charge::Both,
        victim_flow: VictimFlow::Ledger,
        victim_packet: VictimPacket::Tail,
        no_packet: NoPacket::Arrival,
        applies_to: AppliesTo::Early,
        rtt: Rtt::Base,
        idle_penalty: IdlePenalty::Forget,
        idle_from: IdleFrom::Departure,
        rtt_source: RttSource::Oracle,
        flows: 16,
        common: Common { w_q: 1.0, gentle: false, wait: false, ecn: false, mean_packet: None },
    }
}

/// From three waiting on, every arrival is picked by chance (p = 0.999), and may be marked.
fn by_chance() -> Params {
    Params {
        min_th: Backlog::Packets(2.9),
        max_th: Backlog::Packets(3.0001),
        max_p: 1.0,
        common: Common { ecn: true, ..params().common },
        ..params()
    }
}

/// A queue under FDD-RED, fed by hand.
struct Bench {
    queue: Fifo<Stamped>,
    aqm: AnyAqm,
    rng: Rng,
    at: u64,
    ecn: Ecn,
    notes: Notes,
}

impl Bench {
    fn new(p: &Params, limit: f64) -> Bench {
        let limit = Backlog::Packets(limit);
        let aqm = AnyAqm::FddRed(Box::new(p.build(&Context { limit: Some(limit), ..CONTEXT })));
        let rng = Rng::for_component(1, "fdd_red");
        let mut queue = Fifo::new(limit);
        queue.went_busy();
        Bench { queue, aqm, rng, at: 0, ecn: Ecn::NotCapable, notes: Notes::default() }
    }

    fn aqm(&mut self) -> &mut FddRed {
        match &mut self.aqm {
            AnyAqm::FddRed(aqm) => aqm,
            other => panic!("{other:?}"),
        }
    }

    fn tell(mut self, rtts: &[(u32, f64)]) -> Bench {
        for &(flow, value) in rtts {
            self.aqm.signal(Time::ZERO, &Signal { topic: "rtt", flow: Some(FlowId(flow)), value });
        }
        self
    }

    /// A packet of this flow, a millisecond after the last.
    fn offer(&mut self, flow: u32) -> Admission {
        self.at += 1;
        let now = Time::ZERO + Duration::from_millis(self.at);
        let packet =
            Packet { flow: FlowId(flow), size: 1000, payload: 960, ecn: self.ecn, ..Packet::default() };
        self.notes.clear();
        self.queue.arrive(
            now,
            &packet,
            Stamped { packet, since: now },
            &mut self.aqm,
            &mut self.rng,
            &mut self.notes,
        )
    }

    fn fill(mut self, flows: &[u32]) -> Bench {
        for flow in flows {
            assert_eq!(self.offer(*flow), Admit);
        }
        self
    }

    fn pop(&mut self, packets: u8) {
        for _ in 0..packets {
            self.queue.pop();
        }
    }

    /// The next packet leaves, and the discipline sees it leave.
    fn depart(&mut self) {
        let now = Time::ZERO + Duration::from_millis(self.at);
        let lost = |_, _| panic!("dropped as it left");
        self.queue.depart(now, |h| h.packet, &mut self.aqm, &mut self.rng, &mut Silent, lost);
    }

    fn waiting(&self) -> Vec<u32> {
        self.queue.iter().map(|h| h.flow.0).collect()
    }

    fn evicted(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.queue.take_evicted()).map(|h| h.flow.0).collect()
    }

    fn penalty(&mut self, flow: u32) -> f64 {
        self.aqm().ledger.account_mut(FlowId(flow)).map_or(f64::NAN, |a| a.penalty)
    }

    fn stat(&self, name: &str) -> u64 {
        shown(&*self.aqm, self.queue.counts())[name]
    }
}

/// Flow 0 has the shortest way, so it pays for flow 1's arrival: (1: 1, 0: 2) by the ledger's own test.
const RTTS: [(u32, f64); 3] = [(0, 0.05), (1, 0.1), (2, 0.15)];

/// (flow that arrives) → (verdict, who was evicted, who waits then), as the ledger's four decisions by hand.
#[test]
fn golden_sequence() {
    let mut b = Bench::new(&params(), 10.0).tell(&RTTS).fill(&[0, 1, 2]);
    let forced = Drop(FORCED);
    let script: [(u32, Admission, &[u32], &[u32]); 4] = [
        (1, Admit, &[0], &[1, 2, 1]), // 0 owes 2: its only packet goes, and 1 joins
        (1, forced, &[], &[1, 2, 1]), // 1 owes most, and the arrival is its last packet
        (2, Admit, &[1], &[1, 2, 2]), // 1 again: its last packet in the queue
        (0, forced, &[], &[1, 2, 2]), // 0 owes 3
    ];
    for (flow, verdict, evicted, waiting) in script {
        assert_eq!(b.offer(flow), verdict);
        assert_eq!(b.evicted(), evicted);
        assert_eq!(b.waiting(), waiting);
    }
    assert_eq!([b.stat("evicted"), b.stat("forced"), b.stat("early"), b.stat("overflow")], [2, 2, 0, 0]);
    assert!((b.penalty(0) - 2.0).abs() < 1e-12 && (b.penalty(1) - 1.0).abs() < 1e-12);
}

#[test]
fn which_packet_of_the_victim_goes() {
    // Flow 0 pays for the arrival of flow 1; it has the first and the last place.
    let after = |victim_packet| {
        let mut b = Bench::new(&Params { victim_packet, ..params() }, 10.0).tell(&RTTS).fill(&[0, 1, 0]);
        assert_eq!(b.offer(1), Admit);
        b.waiting()
    };
    assert_eq!(after(VictimPacket::Tail), [0, 1, 1]);
    assert_eq!(after(VictimPacket::Head), [1, 0, 1]);
    // The arrival is the victim's: it counts as the last, and is one of three for chance.
    let own = |victim_packet, seed| {
        let mut b = Bench::new(&Params { victim_packet, ..params() }, 10.0).tell(&RTTS).fill(&[0, 1, 0]);
        b.rng = Rng::for_component(seed, "own");
        (b.offer(0), b.waiting())
    };
    assert_eq!(own(VictimPacket::Tail, 1), (Drop(FORCED), vec![0, 1, 0]));
    assert_eq!(own(VictimPacket::Head, 1), (Admit, vec![1, 0, 0]));
    let random: Vec<_> = (0..3000).map(|seed| own(VictimPacket::Random, seed)).collect();
    let share = |what: (Admission, &[u32])| random.iter().filter(|r| (r.0, &r.1[..]) == what).count();
    let thirds = [share((Drop(FORCED), &[0, 1, 0])), share((Admit, &[1, 0, 0])), share((Admit, &[0, 1, 0]))];
    assert_eq!(thirds.iter().sum::<usize>(), 3000);
    assert!(thirds.iter().all(|n| (900..1100).contains(n)), "{thirds:?}");
}

/// Flow 0 owes most and waits nowhere.
fn absent(no_packet: NoPacket) -> Bench {
    let mut b = Bench::new(&Params { no_packet, ..params() }, 10.0).tell(&RTTS).fill(&[0, 1, 2]);
    b.queue.pop();
    b.fill(&[2])
}

#[test]
fn a_victim_without_a_packet() {
    let mut b = absent(NoPacket::Arrival);
    assert_eq!((b.offer(1), b.waiting()), (Drop(FORCED), vec![1, 2, 2]));
    // Who lost the packet is credited; flow 0 goes on owing.
    assert_eq!((b.penalty(0), b.penalty(1), b.stat("no_packet")), (2.0, 0.0, 1));

    // Flow 1 owes 1, flow 2 nothing: the arrival is flow 1's last packet.
    let mut b = absent(NoPacket::NextVictim);
    assert_eq!((b.offer(1), b.penalty(0), b.penalty(1)), (Drop(FORCED), 2.0, 0.0));
    // Now flow 2 arrives, is charged 2/3 with flow 0, which never lost, and owes most of those here.
    assert_eq!((b.offer(2), b.waiting()), (Drop(FORCED), vec![1, 2, 2]));
    assert!((b.penalty(2) + 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(b.stat("no_packet"), 2);

    let mut b = absent(NoPacket::Defer);
    assert_eq!((b.offer(1), b.waiting()), (Admit, vec![1, 2, 2, 1]));
    assert_eq!((b.penalty(0), b.stat("no_packet")), (1.0, 1));
    // Later, with no decision due, flow 0's next packet goes, and only that.
    b.pop(3);
    assert_eq!([b.offer(0), b.offer(0)], [Drop(EARLY), Admit]);
    assert_eq!((b.stat("deferred"), b.stat("early")), (1, 1));
}

#[test]
fn a_full_queue_is_the_ledgers_business_only_if_it_says_so() {
    // Nothing is dropped early here: two places, thresholds beyond.
    let run = |applies_to| {
        let mut b = Bench::new(&Params { applies_to, ..params() }, 2.0).tell(&RTTS).fill(&[0, 2]);
        (b.offer(1), b.waiting(), b.evicted(), b.stat("overflow"), b.penalty(0))
    };
    assert_eq!(run(AppliesTo::Early), (Drop(Cause::OVERFLOW), vec![0, 2], vec![], 1, 0.0));
    assert_eq!(run(AppliesTo::EarlyAndOverflow), (Admit, vec![2, 1], vec![0], 0, 1.0));
}

#[test]
fn a_mark_stands_in_for_what_chance_drops() {
    let run = |p: &Params, ecn| {
        let mut b = Bench::new(p, 10.0).tell(&RTTS);
        b.ecn = ecn;
        let mut b = b.fill(&[0, 1, 2]);
        let is_marked = |h: &Stamped| h.ecn == Ecn::Experienced;
        let verdict = b.offer(1);
        let marked = b.queue.iter().any(is_marked);
        let first = (verdict, marked, b.evicted());
        while b.queue.packets() > 3 {
            b.queue.pop();
        }
        (first, b.offer(1), b.stat("marked"))
    };
    // Flow 0's waiting packet is marked, then flow 1's arrival.
    assert_eq!(run(&by_chance(), Ecn::Ect0), ((Admit, true, vec![]), Mark, 2));
    let dropped = ((Admit, false, vec![0]), Drop(EARLY), 0);
    assert_eq!(run(&by_chance(), Ecn::NotCapable), dropped);
    assert_eq!(
        run(&Params { common: Common { ecn: false, ..by_chance().common }, ..by_chance() }, Ecn::Ect0),
        dropped
    );
    // Above the curve's end nothing is marked.
    let forced = ((Admit, false, vec![0]), Drop(FORCED), 0);
    assert_eq!(
        run(&Params { common: Common { ecn: true, ..params().common }, ..params() }, Ecn::Ect0),
        forced
    );
}

/// A flow that stays away for longer than avgRTT comes back with a new account, or with the old one.
#[test]
fn what_becomes_of_a_flow_that_was_away() {
    let after = |idle_penalty, away| {
        let mut b = Bench::new(&Params { idle_penalty, ..params() }, 10.0).tell(&RTTS).fill(&[0, 1, 2]);
        b.offer(1);
        assert_eq!(b.penalty(0), 1.0);
        // Flow 1 (100 ms) keeps the average at 100 ms or above.
        for _ in 0..away {
            b.at += 49;
            b.queue.pop();
            b.offer(1);
        }
        b.pop(3);
        b.offer(0);
        b.penalty(0)
    };
    assert_eq!([after(IdlePenalty::Forget, 1), after(IdlePenalty::Forget, 5)], [1.0, 0.0]);
    assert_eq!([after(IdlePenalty::Keep, 1), after(IdlePenalty::Keep, 5)], [1.0, 1.0]);
}

/// A waiting packet has not passed yet: its flow's account stays open, however long that takes, and avgRTT beyond its departure.
#[test]
fn no_account_is_closed_while_packets_wait() {
    let mut b = Bench::new(&params(), 100.0).tell(&RTTS).fill(&[0, 1, 2]);
    b.offer(1);
    assert_eq!((b.penalty(0), b.waiting()), (1.0, vec![1, 2, 1]));
    // Half a second, five times avgRTT, in which only flow 2's packets come; those of flow 1 wait.
    let came_again = |b: &mut Bench, ms| {
        b.at += ms;
        b.offer(2);
        [b.penalty(0), b.penalty(1)].map(f64::is_finite)
    };
    assert_eq!(came_again(&mut b, 500), [false, true], "flow 0 has no packet here, flow 1 has");
    while b.waiting().contains(&1) {
        b.depart();
    }
    assert!(came_again(&mut b, 50)[1], "within avgRTT of its departure");
    assert!(!came_again(&mut b, 500)[1]);
    // By arrivals alone it is closed though its packet waits.
    let p = Params { idle_from: IdleFrom::Arrival, ..params() };
    let mut b = Bench::new(&p, 100.0).tell(&RTTS).fill(&[0, 1, 2]);
    assert_eq!(came_again(&mut b, 500), [false, false]);
}

/// A placebo takes the arrival's own flow, or any that has a packet here, and charges nobody.
#[test]
fn placebos_ask_no_ledger() {
    let victim = |victim_flow, seed| {
        let p = Params { victim_flow, victim_packet: VictimPacket::Head, ..params() };
        let mut b = Bench::new(&p, 10.0).tell(&RTTS).fill(&[0, 0, 1]);
        b.rng = Rng::for_component(seed, "placebo");
        b.offer(1);
        assert_eq!([b.penalty(0), b.penalty(1)], [0.0, 0.0]);
        b.evicted()
    };
    let count = |victim_flow, flow| (0..2000).filter(|seed| victim(victim_flow, *seed) == [flow]).count();
    assert_eq!(count(VictimFlow::Own, 1), 2000);
    // Flow 0 has twice as many packets here, and no more chances.
    let zero = count(VictimFlow::Random, 0);
    assert!((900..1100).contains(&zero) && count(VictimFlow::Random, 1) == 2000 - zero, "{zero}");
}

/// 50 and 150 ms around 100: shares of 2 and 2/3; with 3 ms waiting, 103/53 and 103/153.
#[test]
fn the_queues_own_time_counts_if_it_says_so() {
    let owed = |rtt| {
        let mut b = Bench::new(&Params { rtt, no_packet: NoPacket::Defer, ..params() }, 10.0).tell(&RTTS);
        b = b.fill(&[0, 1, 2]);
        b.offer(2);
        b.penalty(2)
    };
    assert!((owed(Rtt::Base) - 2.0 / 3.0).abs() < 1e-12);
    assert!((owed(Rtt::WithQueue) - 103.0 / 153.0).abs() < 1e-12);
    let nowhere = Params { rtt: Rtt::WithQueue, ..params() }.check(&Context { link_rate: None, ..CONTEXT });
    assert_eq!(nowhere.map_err(|f| f.field), Err("rtt"));
}

/// A handshake through the queue, 70 ms beyond it and 30 before.
#[test]
fn it_estimates_from_what_passes() {
    let p = Params { rtt_source: RttSource::Estimated, ..params() };
    assert_eq!(p.build(&CONTEXT).oracle(), None);
    assert_eq!(params().build(&CONTEXT).oracle(), Some(Oracle::Rtt));
    let mut b = Bench::new(&p, 10.0);
    let at = |ms| Time::ZERO + Duration::from_millis(ms);
    let syn = Packet { flow: FlowId(3), size: 40, kind: crate::packet::Kind::Syn, ..Packet::default() };
    let data = Packet { seq: 1, payload: 500, size: 540, kind: crate::packet::Kind::Data, ..syn };
    let ack = Packet { kind: crate::packet::Kind::Ack, ack: 1, ..syn };
    let told = |b: &Bench| {
        let mut told = None;
        b.aqm.flow_gauges(Time::ZERO, &mut |flow, what, v| {
            if (flow, what) == (FlowId(3), "rtt") {
                told = Some(v)
            }
        });
        told
    };
    b.queue.arrive(at(0), &syn, Stamped { packet: syn, since: at(0) }, &mut b.aqm, &mut b.rng, &mut Silent);
    let sent = b.queue.depart(at(5), |h| h.packet, &mut b.aqm, &mut b.rng, &mut Silent, |_, _| {});
    assert!(sent.is_some());
    b.aqm.observe(at(75), &ack, Direction::Reverse);
    assert_eq!(told(&b), None);
    b.queue.arrive(
        at(105),
        &data,
        Stamped { packet: data, since: at(105) },
        &mut b.aqm,
        &mut b.rng,
        &mut Silent,
    );
    assert_eq!(told(&b), Some(0.1));
}

#[test]
fn an_oracle_that_says_nonsense_is_not_listened_to() {
    let b = Bench::new(&params(), 10.0).tell(&[(0, f64::NAN), (1, -1.0), (2, f64::INFINITY)]);
    let mut b = b.fill(&[0, 1, 2]);
    b.offer(1);
    assert!(b.aqm().told.is_empty());
    let mut gauges = Vec::new();
    b.aqm.gauges(Time::ZERO, &mut |name, value| gauges.push((name, value)));
    assert!(gauges.iter().all(|g| g.1.is_finite()), "{gauges:?}");
    assert!(gauges.contains(&("avg_rtt", 0.0)));
}

/// A flow's number is another's: nothing is left of what the old one owed, nor of what was known of it.
#[test]
fn a_flow_whose_number_is_given_away_is_forgotten() {
    let mut b = Bench::new(&params(), 10.0).tell(&[(0, 0.1), (1, 0.3)]).fill(&[0, 1]);
    let rtt = |b: &mut Bench| b.aqm().ledger.avg_rtt().map(Duration::secs);
    b.aqm().ledger.account_mut(FlowId(1)).expect("it has one").penalty = 5.0;
    assert_eq!(rtt(&mut b), Some(0.2));
    b.aqm.signal(Time::ZERO, &Signal { topic: FORGET, flow: Some(FlowId(1)), value: 0.0 });
    assert_eq!((rtt(&mut b), b.aqm().ledger.flows()), (Some(0.1), 1));
    // The new one under the old number owes nothing, and is as average as any whose round-trip time is not known.
    b.pop(2);
    b.offer(1);
    assert_eq!((b.penalty(1), rtt(&mut b), b.aqm().ledger.flows()), (0.0, Some(0.1), 2));
}
