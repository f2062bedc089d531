use super::*;
use crate::testing::*;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1040), limit: None };
const RTT: Duration = Duration::from_millis(100);

fn params() -> Params {
    Params { shares: Sharing::Contract, alpha: 1, rtt: Some(RTT), window_source: WindowSource::Estimated }
}

fn tell(m: &mut Twam, topic: &'static str, flow: u32, value: f64) {
    m.signal(Time::ZERO, &Signal { topic, flow: Some(FlowId(flow)), value });
}

/// With these contracts in bit/s, flow by flow; at time 0 it has ticked.
fn twam(params: &Params, contracts: &[f64]) -> Twam {
    let mut m = params.build(&CONTEXT);
    for (flow, r) in (0..).zip(contracts) {
        tell(&mut m, "contract", flow, *r);
    }
    assert_eq!(m.tick(Time::ZERO, &mut Outbox::default()), Some(Time::ZERO + Duration(RTT.0 * params.alpha)));
    m
}

fn pass(m: &mut Twam, flow: u32, packets: u32) {
    for n in 0..packets {
        let p =
            Packet { flow: FlowId(flow), seq: 1 + n * 1000, payload: 1000, size: 1040, ..Packet::default() };
        m.observe(Time::ZERO, &p, Direction::Forward);
    }
}

/// Ends the n-th interval; what was sent.
fn end(m: &mut Twam, n: u64) -> Vec<f64> {
    let mut outbox = Outbox::default();
    m.tick(Time(RTT.0 * n), &mut outbox);
    assert!(outbox.signals.iter().all(|s| s.topic == "sum_window" && s.flow.is_none()));
    outbox.signals.iter().map(|s| s.value).collect()
}

fn p(m: &Twam) -> Vec<f64> {
    m.flows.values().map(|f| f.p).collect()
}

/// Contracts 1, 2, 3 Mbit/s, windows 10, 20, 10: ΣW = 40, Σr = 6, so p = 40/60, 80/120, 120/60 → 1.
#[test]
fn eq_3_by_hand() {
    let mut m = twam(&params(), &[1e6, 2e6, 3e6]);
    assert_eq!(p(&m), [1.0; 3]);
    for (flow, packets) in [(0, 10), (1, 20), (2, 10)] {
        pass(&mut m, flow, packets);
    }
    assert_eq!(end(&mut m, 1), [40.0]);
    assert_eq!(p(&m), [2.0 / 3.0, 2.0 / 3.0, 1.0]);
    // Windows in proportion to the contracts.
    for (flow, packets) in [(0, 2), (1, 4), (2, 6)] {
        pass(&mut m, flow, packets);
    }
    assert_eq!(end(&mut m, 2), [12.0]);
    assert_eq!(p(&m), [1.0; 3]);
}

/// The other reading of Eq. (3), by hand: Σ(r·W) = 10 + 40 + 30 = 80, so p = r·40/80 = ½, 1, 1 (1½).
#[test]
fn the_weighted_reading_by_hand() {
    let mut m = twam(&Params { shares: Sharing::Weighted, ..params() }, &[1e6, 2e6, 3e6]);
    for (flow, packets) in [(0, 10), (1, 20), (2, 10)] {
        pass(&mut m, flow, packets);
    }
    end(&mut m, 1);
    assert_eq!(p(&m), [0.5, 1.0, 1.0]);
}

#[test]
fn an_interval_of_several_round_trips_counts_one() {
    let mut m = twam(&Params { alpha: 4, ..params() }, &[1e6, 3e6]);
    pass(&mut m, 0, 40);
    pass(&mut m, 1, 80);
    let mut outbox = Outbox::default();
    assert_eq!(m.tick(Time(4 * RTT.0), &mut outbox), Some(Time(8 * RTT.0)));
    // 10 and 20 a round trip; ΣW = 30, Σr·W = 4·10: p of the first 30/40.
    assert_eq!(outbox.signals[0].value, 30.0);
    assert_eq!(p(&m), [0.75, 1.0]);
}

#[test]
fn no_traffic_changes_nothing_and_tells_nothing() {
    let mut m = twam(&params(), &[1e6, 2e6]);
    pass(&mut m, 0, 6);
    pass(&mut m, 1, 6);
    assert_eq!(end(&mut m, 1), [12.0]);
    let before = p(&m);
    assert_eq!(before, [2.0 / 3.0, 1.0]);
    assert_eq!(end(&mut m, 2), [] as [f64; 0]);
    assert_eq!(p(&m), before);
    let mut alone = params().build(&CONTEXT);
    alone.tick(Time::ZERO, &mut Outbox::default());
    assert_eq!(end(&mut alone, 1), [] as [f64; 0]);
}

#[test]
fn one_flow_is_in() {
    let mut m = twam(&params(), &[123_457.0]);
    pass(&mut m, 0, 17);
    assert_eq!((end(&mut m, 1), p(&m)), (vec![17.0], vec![1.0]));
}

#[test]
fn flows_without_a_contract_are_out_where_somebody_has_one() {
    let mut rng = Rng::for_component(1, "twam");
    let mut mark = |m: &mut Twam, flow| {
        m.mark(Time::ZERO, &Packet { flow: FlowId(flow), ..Packet::default() }, &mut rng, &mut Silent)
    };
    let mut nobody = twam(&params(), &[]);
    pass(&mut nobody, 5, 8);
    // Nobody's contract says anything; the queue is told all the same.
    assert_eq!(end(&mut nobody, 1), [8.0]);
    assert_eq!(mark(&mut nobody, 5), Mark::Pass(Colour::IN));
    let mut m = twam(&params(), &[1e6, 1e6]);
    for flow in [0, 1, 7] {
        pass(&mut m, flow, 10);
    }
    assert_eq!(end(&mut m, 1), [30.0]);
    assert_eq!([mark(&mut m, 0), mark(&mut m, 7)], [Mark::Pass(Colour::IN), Mark::Pass(Colour::OUT)]);
    // Eq. (3)'s sums leave it out: of the two with a contract, 10 and 30, the second is above its half of 40.
    for (flow, packets) in [(0, 10), (1, 30), (7, 1000)] {
        pass(&mut m, flow, packets);
    }
    assert_eq!((end(&mut m, 2), p(&m)), (vec![1040.0], vec![1.0, 2.0 / 3.0]));
    // A contract that is taken away.
    tell(&mut m, "contract", 1, 0.0);
    assert_eq!((m.flows.len(), mark(&mut m, 1)), (1, Mark::Pass(Colour::OUT)));
}

#[test]
fn what_comes_as_out_stays_so() {
    let mut m = twam(&params(), &[1e6]);
    let mut rng = Rng::for_component(1, "twam");
    let out = Packet { colour: Colour::OUT, ..Packet::default() };
    assert_eq!(m.mark(Time::ZERO, &out, &mut rng, &mut Silent), Mark::Pass(Colour::OUT));
    assert_eq!(m.stats, Stats { passed_out: 1, ..Stats::default() });
}

/// p = ⅔ by the oracle's word: 10,000 packets, five standard deviations are 236.
#[test]
fn the_oracle_is_believed_and_packets_are_drawn() {
    let source = WindowSource::Oracle;
    let mut m = twam(&Params { window_source: source, ..params() }, &[1e6, 2e6, 3e6]);
    assert_eq!((m.oracle(), params().build(&CONTEXT).oracle()), (Some(Oracle::Window), None));
    // What passes is nothing to it.
    pass(&mut m, 2, 1000);
    for (flow, packets) in [(0, 10.0), (1, 20.0), (2, 10.0), (9, 0.0)] {
        tell(&mut m, "window", flow, packets * 1040.0);
    }
    assert_eq!(end(&mut m, 1), [40.0]);
    assert_eq!(p(&m), [2.0 / 3.0, 2.0 / 3.0, 1.0]);
    let mut rng = Rng::for_component(1, "twam");
    let first = Packet::default();
    for _ in 0..10_000 {
        m.mark(Time::ZERO, &first, &mut rng, &mut Silent);
    }
    assert!(m.stats.marked_in.abs_diff(6667) < 236, "{:?}", m.stats);
    // Those without a contract count in the sum, once each time.
    for n in 2..4 {
        for flow in [0, 7, 8] {
            tell(&mut m, "window", flow, 10_400.0);
        }
        for flow in [1, 2] {
            tell(&mut m, "window", flow, 0.0);
        }
        assert_eq!(end(&mut m, n), [30.0]);
        // Its share of the contracts is a sixth, of the windows all.
        assert_eq!(p(&m), [1.0 / 6.0, 1.0, 1.0]);
    }
}

/// The handshake and the first segment show 100 ms; until then it looks every 100 ms and knows nothing.
#[test]
fn the_round_trip_time_is_estimated() {
    let estimated = Params { rtt: None, ..params() };
    let mut m = twam(&Params { rtt: Some(RTT), ..params() }, &[1e6, 2e6]);
    m.params = estimated;
    let ms = |ms: u64| Time(ms * 1_000_000_000);
    let mut sent = Outbox::default();
    assert_eq!((m.tick(ms(0), &mut sent), m.tick(ms(100), &mut sent)), (Some(ms(100)), Some(ms(200))));
    let syn = Packet { kind: crate::packet::Kind::Syn, size: 40, ..Packet::default() };
    let ack = Packet { kind: crate::packet::Kind::Ack, ack: 1, size: 40, ..Packet::default() };
    let data = |seq| Packet { seq, payload: 1000, size: 1040, ..Packet::default() };
    m.observe(ms(110), &syn, Direction::Forward);
    m.observe(ms(180), &ack, Direction::Reverse);
    // Only half of the way is known.
    assert_eq!((m.tick(ms(200), &mut sent), m.rtt()), (Some(ms(300)), None));
    for (at, seq) in [(210, 1), (211, 1001), (290, 2001)] {
        m.observe(ms(at), &data(seq), Direction::Forward);
    }
    assert_eq!(m.rtt(), Some(RTT));
    assert_eq!(m.tick(ms(300), &mut sent), Some(ms(400)));
    assert_eq!(sent.signals.iter().map(|s| s.value).collect::<Vec<_>>(), [3.0]);
}

/// A value of the oracle from before the round-trip time is known belongs to no interval, however often it says it.
#[test]
fn what_is_told_before_the_round_trip_time_is_known_does_not_add_up() {
    let mut m = twam(&Params { window_source: WindowSource::Oracle, ..params() }, &[1e6]);
    m.params.rtt = None;
    let mut sent = Outbox::default();
    for n in 1..4 {
        tell(&mut m, "window", 7, 10_400.0);
        m.tick(Time(RTT.0 * n), &mut sent);
    }
    m.params.rtt = Some(RTT);
    tell(&mut m, "window", 7, 10_400.0);
    assert_eq!((end(&mut m, 4), sent.signals.len()), (vec![10.0], 0));
}

#[test]
fn outstanding_windows_need_no_count() {
    let source = WindowSource::Outstanding;
    let mut m = twam(&Params { window_source: source, ..params() }, &[1e6, 2e6]);
    pass(&mut m, 0, 10);
    pass(&mut m, 1, 10);
    // The first flow's first six are acknowledged, and three more come: at most 10 were on their way.
    let ack = Packet { kind: crate::packet::Kind::Ack, ack: 6001, ..Packet::default() };
    m.observe(Time::ZERO, &ack, Direction::Reverse);
    pass(&mut m, 9, 5);
    // What has no contract is counted.
    assert_eq!(end(&mut m, 1), [25.0]);
    // Nothing more comes: 4 and 10 are still on their way, then none.
    assert_eq!((end(&mut m, 2), end(&mut m, 3)), (vec![14.0], vec![]));
}

/// For DWRED behind another marker: colours stay as they come, and the sum is told.
#[test]
fn with_no_shares_only_the_sum_is_told() {
    let mut m = twam(&Params { shares: Sharing::None, ..params() }, &[1e6, 2e6, 0.0]);
    for (flow, packets) in [(0, 40), (1, 5), (7, 5)] {
        pass(&mut m, flow, packets);
    }
    assert_eq!(end(&mut m, 1), [50.0]);
    let mut rng = Rng::for_component(1, "twam");
    for flow in [0, 1, 7] {
        for colour in [Colour::IN, Colour::OUT] {
            let packet = Packet { flow: FlowId(flow), colour, ..Packet::default() };
            assert_eq!(m.mark(Time::ZERO, &packet, &mut rng, &mut Silent), Mark::Pass(colour));
        }
    }
}
