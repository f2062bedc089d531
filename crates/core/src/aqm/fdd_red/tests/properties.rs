//! Properties of FDD-RED with any parameters and any arrivals.

use super::*;

fn any_params() -> impl Strategy<Value = Params> {
    let some = (0usize..3, 0usize..3, 0usize..3, 0usize..3, any::<[bool; 8]>(), 1u64..6);
    some.prop_map(|(victim, missing, idle, whose, [a, b, c, d, e, f, g, h], flows)| Params {
        latest: if c { Latest::Oldest } else { Latest::Newest },
        ties: if d { Ties::First } else { Ties::Random },
        victim_packet: [VictimPacket::Tail, VictimPacket::Head, VictimPacket::Random][victim],
        no_packet: [NoPacket::Arrival, NoPacket::NextVictim, NoPacket::Defer][missing],
        applies_to: if e { AppliesTo::Early } else { AppliesTo::EarlyAndOverflow },
        idle_penalty: [IdlePenalty::Forget, IdlePenalty::Keep, IdlePenalty::Never][idle],
        charge: if f { Charge::Both } else { Charge::Partner },
        victim_flow: [VictimFlow::Ledger, VictimFlow::Own, VictimFlow::Random][whose],
        rtt: if h { Rtt::Base } else { Rtt::WithQueue },
        max_p: 0.5,
        flows,
        common: Common { gentle: a, ecn: b, wait: g, ..params().common },
        ..params()
    })
}

proptest! {
    /// Under every option: the queue stays within its limit, no packet is lost without a count, a decision costs one
    /// packet at most, equal seeds decide alike, and no figure is anything but a number.
    #[test]
    fn every_option_keeps_the_books(p in any_params(), limit in 1u32..8, seed: u64,
                                    steps in prop::collection::vec((0u32..5, 0u8..4, any::<bool>()), 1..200)) {
        let run = || {
            let mut b = Bench::new(&p, f64::from(limit)).tell(&RTTS);
            b.rng = Rng::for_component(seed, "fdd_red");
            let (mut dropped, mut evicted, mut marked, mut log) = (0, 0, 0, Vec::new());
            for &(flow, pops, capable) in &steps {
                b.ecn = if capable { Ecn::Ect0 } else { Ecn::NotCapable };
                let verdict = b.offer(flow);
                dropped += u64::from(matches!(verdict, Drop(_)));
                marked += u64::from(verdict == Mark);
                let gone = b.evicted().len() as u64;
                assert!(gone + u64::from(matches!(verdict, Drop(c) if c != Cause::OVERFLOW)) <= 1);
                evicted += gone;
                assert!(b.queue.iter().count() <= limit as usize);
                log.push((verdict, b.waiting()));
                b.pop(pops / 2);
                assert!(b.aqm().ledger.flows() <= p.flows as usize);
            }
            let by_arrival = b.stat("early") + b.stat("forced") + b.stat("overflow");
            assert_eq!((by_arrival, b.stat("evicted")), (dropped, evicted));
            assert!(b.stat("marked") >= marked);
            let mut bad = 0;
            b.aqm.gauges(Time::ZERO, &mut |_, v| bad += u32::from(!v.is_finite()));
            b.aqm.flow_gauges(Time::ZERO, &mut |_, _, v| bad += u32::from(!v.is_finite()));
            assert_eq!(bad, 0);
            log
        };
        prop_assert_eq!(run(), run());
    }

    /// One flow alone: whatever the ledger says, it is RED.
    #[test]
    fn one_flow_alone_is_red(seed: u64, pops in prop::collection::vec(0u8..3, 1..200), overflow: bool) {
        let applies_to = if overflow { AppliesTo::EarlyAndOverflow } else { AppliesTo::Early };
        let p = Params { applies_to, max_p: 0.5, max_th: Backlog::Packets(6.0), ..params() };
        let mut ours = Bench::new(&p, 8.0);
        let mut red = Bench::new(&p, 8.0);
        red.aqm = AnyAqm::Red(Box::new(p.as_red().build(&CONTEXT)));
        for b in [&mut ours, &mut red] {
            b.rng = Rng::for_component(seed, "red");
        }
        for n in pops {
            prop_assert_eq!(ours.offer(0), red.offer(0));
            for _ in 0..n { prop_assert_eq!(ours.queue.pop().is_some(), red.queue.pop().is_some()); }
        }
    }
}
