//! What the packets of each flow counted within the measured window.
//!
//! Where nobody marks, all packets have the first colour, and counts of the others are not kept: a flow then takes 48 bytes, not 112.

use crate::outcome::FlowCounts;

/// The counts of all flows.
#[derive(Debug, Default)]
pub(crate) struct WindowCounts {
    plain: Vec<Plain>,
    /// By flow; none where no flow has any of them.
    coloured: Vec<[OfColour; 2]>,
}

/// Counts of the first colour, and those that do not go by colour.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    first: OfColour,
    in_order_wire_bytes: u64,
    in_order_payload_bytes: u64,
}

/// Counts of one colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfColour {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    received_bytes: u64,
}

impl OfColour {
    fn of(c: &FlowCounts, colour: usize) -> OfColour {
        OfColour {
            sent: c.sent[colour],
            sent_bytes: c.sent_bytes[colour],
            received: c.received[colour],
            received_bytes: c.received_bytes[colour],
        }
    }
}

impl WindowCounts {
    /// There are so many flows, of which those that are new have counted nothing.
    pub fn expect(&mut self, flows: usize) {
        self.plain.resize(flows, Plain::default());
    }

    /// A flow's.
    pub fn of(&self, flow: usize) -> FlowCounts {
        let Plain { first, in_order_wire_bytes, in_order_payload_bytes } = self.plain[flow];
        let [second, third] = self.coloured.get(flow).copied().unwrap_or_default();
        let by_colour = |count: fn(&OfColour) -> u64| [&first, &second, &third].map(count);
        FlowCounts {
            sent: by_colour(|c| c.sent),
            sent_bytes: by_colour(|c| c.sent_bytes),
            received: by_colour(|c| c.received),
            received_bytes: by_colour(|c| c.received_bytes),
            in_order_wire_bytes,
            in_order_payload_bytes,
        }
    }

    /// Changes a flow's.
    pub fn change(&mut self, flow: usize, how: impl FnOnce(&mut FlowCounts)) {
        let mut counts = self.of(flow);
        how(&mut counts);
        let [first, others @ ..] = [0, 1, 2].map(|colour| OfColour::of(&counts, colour));
        let FlowCounts { in_order_wire_bytes, in_order_payload_bytes, .. } = counts;
        self.plain[flow] = Plain { first, in_order_wire_bytes, in_order_payload_bytes };
        if self.coloured.is_empty() && others != <[OfColour; 2]>::default() {
            self.coloured.resize(self.plain.len(), Default::default());
        }
        if let Some(own) = self.coloured.get_mut(flow) {
            *own = others;
        }
    }

    /// Adds what another part of the run has counted.
    pub fn add(&mut self, other: &WindowCounts) {
        for flow in 0..self.plain.len() {
            self.change(flow, |counts| counts.add(&other.of(flow)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: [u64; 14]) -> FlowCounts {
        let three = |at: usize| [of[at], of[at + 1], of[at + 2]];
        FlowCounts {
            sent: three(0),
            sent_bytes: three(3),
            received: three(6),
            received_bytes: three(9),
            in_order_wire_bytes: of[12],
            in_order_payload_bytes: of[13],
        }
    }

    /// Each count comes back as it was, those of a flow before the first of another colour, too.
    #[test]
    fn counts_are_kept_whatever_their_colour() {
        let plain = counts([1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 6]);
        for other in 0..14 {
            let mut of = [0; 14];
            of[other] = 7;
            let mut kept = WindowCounts::default();
            kept.expect(3);
            kept.change(0, |c| *c = plain);
            kept.change(2, |c| *c = counts(of));
            assert_eq!([kept.of(0), kept.of(1), kept.of(2)], [plain, FlowCounts::default(), counts(of)]);
        }
    }

    #[test]
    fn without_colours_a_flow_takes_48_bytes() {
        let mut kept = WindowCounts::default();
        kept.expect(2);
        kept.change(1, |c| *c = counts([1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 6]));
        assert!(size_of::<Plain>() == 48 && kept.coloured.is_empty());
    }
}
