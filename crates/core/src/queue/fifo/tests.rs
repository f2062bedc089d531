use super::*;
use crate::aqm::drop_tail::DropTail;
use crate::aqm::red::{EARLY, FORCED};
use crate::testing::*;

/// Does as it is told, each order for one call.
#[derive(Default)]
struct Told {
    admit: VecDeque<Admission>,
    send: VecDeque<Departure>,
}
impl Mechanism for Told {}

impl Aqm for Told {
    fn serves(&self) -> bool {
        true
    }

    fn arrive(&mut self, _: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        self.admit.pop_front().unwrap_or(Admission::Admit)
    }

    fn depart(&mut self, _: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.send.pop_front().unwrap_or(Departure::Send)
    }
}

fn packet(flow: u32, colour: Colour) -> Packet {
    Packet { flow: FlowId(flow), size: 1000, colour, ..Packet::default() }
}

fn join(q: &mut Fifo<Stamped>, packet: Packet, aqm: &mut AnyAqm) -> Admission {
    let mut rng = Rng::for_component(1, "unused");
    q.arrive(Time::ZERO, &packet, Stamped { packet, since: Time::ZERO }, aqm, &mut rng, &mut Silent)
}

fn offer(q: &mut Fifo<Stamped>, flow: u32, colour: Colour) -> Admission {
    join(q, packet(flow, colour), &mut AnyAqm::DropTail(DropTail::default()))
}

fn evict(q: &mut Fifo<Stamped>, flow: u32, end: End) -> bool {
    q.position(FlowId(flow), end).is_some_and(|position| q.evict(position))
}

fn balances(q: &Fifo<Stamped>) {
    let c = q.counts();
    for colour in Colour::ALL {
        let i = colour as usize;
        assert_eq!(c.arrived[i], c.sent[i] + c.dropped_of(colour) + u64::from(q.packets_of(colour)));
    }
    assert_eq!(q.packets() as usize, q.iter().count());
    assert_eq!(q.bytes(), q.iter().map(|h| u64::from(h.size)).sum::<u64>());
}

#[test]
fn what_arrives_is_sent_dropped_or_waits() {
    let mut q = Fifo::new(Backlog::Packets(3.0));
    for flow in 0..5 {
        offer(&mut q, flow, if flow % 2 == 0 { Colour::IN } else { Colour::OUT });
    }
    assert_eq!((q.packets(), q.bytes()), (3, 3000));
    assert_eq!(q.counts().dropped[Cause::OVERFLOW.index()], [1, 1, 0]);
    assert!(evict(&mut q, 1, End::Tail) && !q.has(FlowId(1)));
    assert_eq!(q.take_evicted().map(|h| h.flow), Some(FlowId(1)));
    assert_eq!(q.pop().map(|h| h.flow), Some(FlowId(0)));
    balances(&q);
    assert!(!evict(&mut q, 9, End::Head));
}

#[test]
fn a_byte_limit_counts_bytes() {
    let mut q = Fifo::new(Backlog::Bytes(2500.0));
    assert_eq!(offer(&mut q, 0, Colour::IN), Admission::Admit);
    assert_eq!(offer(&mut q, 0, Colour::IN), Admission::Admit);
    assert_eq!(offer(&mut q, 0, Colour::IN), Admission::Drop(Cause::OVERFLOW));
}

#[test]
fn what_cant_be_marked_is_dropped() {
    let told = Told { admit: [Admission::Mark; 2].into(), send: [Departure::Mark; 2].into() };
    let mut aqm = AnyAqm::Custom(Box::new(told));
    let mut q = Fifo::new(Backlog::Packets(9.0));
    let capable = Packet { ecn: Ecn::Ect0, ..packet(1, Colour::OUT) };
    assert_eq!(join(&mut q, packet(0, Colour::OUT), &mut aqm), Admission::Drop(Cause::UNMARKABLE));
    assert_eq!(join(&mut q, capable, &mut aqm), Admission::Mark);
    assert_eq!(q.head().map(|h| h.ecn), Some(Ecn::Experienced));
    assert_eq!(q.counts().marked, [0, 1, 0]);
    // At departure: the one that can't be marked goes, and the next is asked.
    let mut q = Fifo::new(Backlog::Packets(9.0));
    join(&mut q, packet(0, Colour::IN), &mut aqm);
    join(&mut q, capable, &mut aqm);
    let mut lost = Vec::new();
    let mut rng = Rng::for_component(1, "unused");
    let sent =
        q.depart(Time::ZERO, |h| h.packet, &mut aqm, &mut rng, &mut Silent, |h, c| lost.push((h.flow, c)));
    assert_eq!(sent.map(|h| (h.flow, h.ecn)), Some((FlowId(1), Ecn::Experienced)));
    assert_eq!(lost, [(FlowId(0), Cause::UNMARKABLE)]);
    balances(&q);
}

#[test]
fn the_hard_limit_overrules_the_discipline() {
    let mut aqm = AnyAqm::Custom(Box::new(Told::default()));
    let mut q = Fifo::new(Backlog::Packets(1.0));
    assert_eq!(join(&mut q, packet(0, Colour::IN), &mut aqm), Admission::Admit);
    assert_eq!(join(&mut q, packet(0, Colour::IN), &mut aqm), Admission::Drop(Cause::OVERFLOW));
}

#[test]
fn a_full_queue_does_not_hide_the_disciplines_cause() {
    let told = Told { admit: [Admission::Admit, Admission::Drop(FORCED)].into(), ..Told::default() };
    let mut aqm = AnyAqm::Custom(Box::new(told));
    let mut q = Fifo::new(Backlog::Packets(1.0));
    join(&mut q, packet(0, Colour::IN), &mut aqm);
    assert_eq!(join(&mut q, packet(0, Colour::IN), &mut aqm), Admission::Drop(FORCED));
    assert_eq!(q.counts().dropped[FORCED.index()], [1, 0, 0]);
}

#[test]
fn an_eviction_takes_the_end_it_is_told() {
    let by_end =
        [(End::Head, [1, 7, 2]), (End::Tail, [7, 1, 2]), (End::Nth(0), [1, 7, 2]), (End::Nth(1), [7, 1, 2])];
    for (end, left) in by_end {
        let mut q = Fifo::new(Backlog::Packets(9.0));
        for (n, flow) in [7, 1, 7, 2].into_iter().enumerate() {
            let p = Packet { seq: n as u32, ..packet(flow, Colour::IN) };
            join(&mut q, p, &mut AnyAqm::DropTail(DropTail::default()));
        }
        assert_eq!([1, 2, 7, 9].map(|f| q.packets_of_flow(FlowId(f))), [1, 1, 2, 0]);
        assert!(!evict(&mut q, 7, End::Nth(2)));
        assert!(evict(&mut q, 7, end));
        assert_eq!(q.iter().map(|h| h.flow.0).collect::<Vec<_>>(), left);
        assert_eq!(q.counts().dropped[Cause::EVICTED.index()], [1, 0, 0]);
        assert!(!q.mark(0) && !q.mark(1), "not capable");
        assert!(!q.mark(3) && !q.evict(3), "nothing there");
        balances(&q);
    }
}

#[test]
fn a_link_is_idle_from_when_it_finds_nothing_until_it_sends() {
    let mut q = Fifo::new(Backlog::Packets(9.0));
    assert_eq!(q.idle_since(), Some(Time::ZERO));
    offer(&mut q, 0, Colour::IN);
    assert_eq!(q.idle_since(), Some(Time::ZERO));
    q.pop();
    assert_eq!(q.idle_since(), None);
    q.went_idle(Time(5));
    assert_eq!(q.idle_since(), Some(Time(5)));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(u32, usize, bool, Admission),
    Pop,
    Depart(Departure),
    EvictOrMark(u32, bool, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop::sample::select(vec![
        Admission::Admit,
        Admission::Admit,
        Admission::Mark,
        Admission::Drop(EARLY),
        Admission::Drop(FORCED),
    ]);
    let departure = prop::sample::select(vec![Departure::Send, Departure::Mark, Departure::Drop(EARLY)]);
    prop_oneof![
        4 => (0u32..4, 0usize..3, any::<bool>(), verdict).prop_map(|(f, c, e, v)| Step::Arrive(f, c, e, v)),
        1 => Just(Step::Pop),
        1 => departure.prop_map(Step::Depart),
        1 => (0u32..4, any::<bool>(), any::<bool>()).prop_map(|(f, h, m)| Step::EvictOrMark(f, h, m)),
    ]
}

proptest! {
    /// Whatever a discipline does, every packet is accounted for, and none overtakes another.
    #[test]
    fn conserves(steps in prop::collection::vec(step(), 1..200), limit in 1u32..20) {
        let mut q = Fifo::new(Backlog::Packets(f64::from(limit)));
        let mut rng = Rng::for_component(1, "unused");
        let (mut seq, mut last, mut evicted) = (0, 0, 0);
        for step in steps {
            let told = |admit, send| AnyAqm::Custom(Box::new(Told { admit, send }));
            let sent = match step {
                Step::Arrive(flow, colour, able, verdict) => {
                    seq += 1;
                    let ecn = if able { Ecn::Ect0 } else { Ecn::NotCapable };
                    let p = Packet { seq, ecn, ..packet(flow, Colour::ALL[colour]) };
                    join(&mut q, p, &mut told([verdict].into(), VecDeque::new()));
                    None
                }
                Step::Pop => q.pop(),
                Step::Depart(d) => {
                    let mut aqm = told(VecDeque::new(), [d].into());
                    q.depart(Time::ZERO, |h| h.packet, &mut aqm, &mut rng, &mut Silent, |_, _| {})
                }
                Step::EvictOrMark(flow, head, mark) => {
                    let end = if head { End::Head } else { End::Tail };
                    let had = q.has(FlowId(flow));
                    let position = q.position(FlowId(flow), end);
                    prop_assert_eq!(position.is_some(), had);
                    let hit = position.is_some_and(|at| if mark { q.mark(at) } else { q.evict(at) });
                    prop_assert!(had || !hit);
                    prop_assert!(mark || hit == had);
                    evicted += u64::from(hit && !mark);
                    None
                }
            };
            if let Some(sent) = sent {
                prop_assert!(sent.seq > last);
                last = sent.seq;
            }
            prop_assert!(q.packets() <= limit);
            balances(&q);
        }
        let mut taken = 0;
        while q.take_evicted().is_some() { taken += 1; }
        prop_assert_eq!(taken, evicted);
        prop_assert_eq!(q.counts().dropped[Cause::EVICTED.index()].iter().sum::<u64>(), evicted);
    }
}
