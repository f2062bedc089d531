use super::*;
use crate::packet::{FlowId, Packet};
use crate::queue::fifo::Stamped;
use crate::units::Time;
use proptest::prelude::*;
use std::collections::VecDeque;

fn item(number: u32, size: u32) -> Stamped {
    let packet = Packet { flow: FlowId(number), size, ..Packet::default() };
    Stamped { packet, since: Time(u64::from(number)) }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u32, u32),
    Take(u32, End),
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![Just(End::Head), Just(End::Tail), (0u32..4).prop_map(End::Nth)];
    prop_oneof![
        (0u32..5, 40u32..1500).prop_map(|(queue, size)| Step::Push(queue, size)),
        (0u32..6, end).prop_map(|(queue, end)| Step::Take(queue, end)),
    ]
}

proptest! {
    /// As if each queue were a ring of its own; no more places than packets have waited at once.
    #[test]
    fn each_is_a_queue_of_its_own(steps in prop::collection::vec(step(), 1..300)) {
        let mut queues: FlowQueues<Stamped> = FlowQueues::new(5);
        let mut rings = vec![VecDeque::new(); 6];
        let (mut number, mut most) = (0, 0);
        for step in steps {
            match step {
                Step::Push(queue, size) => {
                    queues.join(queue);
                    queues.push(item(number, size));
                    rings[queue as usize].push_back((number, size));
                    number += 1;
                }
                Step::Take(queue, end) => {
                    let ring = &mut rings[queue as usize];
                    let at = match end {
                        End::Head => 0,
                        End::Tail => ring.len().saturating_sub(1),
                        End::Nth(n) => n as usize,
                    };
                    let shown = queues.get(queue, end).map(|p| p.flow.0);
                    prop_assert_eq!(shown, ring.get(at).map(|p| p.0));
                    let taken = queues.take(queue, end).map(|p| (p.flow.0, p.size));
                    prop_assert_eq!(taken, ring.remove(at));
                }
            }
            for (queue, ring) in (0..).zip(&rings) {
                prop_assert_eq!(queues.packets(queue) as usize, ring.len());
                prop_assert_eq!(queues.bytes(queue), ring.iter().map(|p| u64::from(p.1)).sum::<u64>());
            }
            let waiting: Vec<u32> = rings.iter().flatten().map(|p| p.0).collect();
            prop_assert_eq!(queues.iter().map(|p| p.flow.0).collect::<Vec<_>>(), &waiting[..]);
            most = most.max(waiting.len());
            prop_assert_eq!(queues.slots.len(), most);
            prop_assert_eq!(queues.is_empty(), waiting.is_empty());
        }
        let mut left: Vec<u32> = rings.iter().flatten().map(|p| p.0).collect();
        left.sort_unstable();
        prop_assert_eq!(queues.drain().iter().map(|p| p.flow.0).collect::<Vec<_>>(), left);
        prop_assert!(queues.is_empty());
    }
}

/// The expected packet is the head of the first of the two queues, once; none where that is empty.
#[test]
fn the_head_of_the_queue_whose_turn_is_next_is_expected() {
    let mut queues: FlowQueues<Stamped> = FlowQueues::new(3);
    for (number, queue) in (0..).zip([1, 1, 2]) {
        queues.join(queue);
        queues.push(item(number, 100));
    }
    let mut expected = |turns| {
        queues.expect(turns);
        [queues.take_expected().map(|p| p.flow.0), queues.take_expected().map(|p| p.flow.0)]
    };
    assert_eq!(expected([1, 2]), [Some(0), None]);
    assert_eq!(expected([2, 0]), [Some(2), None]);
    assert_eq!(expected([0, 1]), [None, None]);
    assert_eq!(expected([9, 9]), [None, None], "no such queues");
}
