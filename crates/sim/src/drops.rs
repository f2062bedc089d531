//! Lost packets by flow, place and cause.
//!
//! Most flows have one such row or none. So a flow's rows are a list of its own, found by its number: a loss costs the same with a
//! hundred thousand flows as with ten.

use std::iter::successors;

use inprofile_core::packet::Colour;
use inprofile_core::verdict::Cause;

use crate::outcome::{DropRow, VerdictPoint};

/// The end of a list.
const NONE: u32 = u32::MAX;

/// The rows of all flows.
#[derive(Debug, Default)]
pub struct Drops {
    /// The first row of each flow, up to the last that has lost a packet.
    first: Vec<u32>,
    rows: Vec<Row>,
}

/// Packets of one flow and colour, lost at one place for one cause: of a million flows each may have such a row, and rarely one more.
#[derive(Clone, Copy, Debug)]
struct Row {
    place: VerdictPoint,
    cause: Cause,
    colour: Colour,
    /// The next row of the flow.
    next: u32,
    packets: u64,
}

/// How many rows there is room for at first.
const LEAST_ROOM: usize = 64;

impl Drops {
    /// One packet more is lost.
    #[inline]
    pub fn count(&mut self, flow: u32, place: VerdictPoint, cause: Cause, colour: Colour) {
        let mut at = self.first.get(flow as usize).copied().unwrap_or(NONE);
        while let Some(row) = self.rows.get_mut(at as usize) {
            if row.place == place && row.cause == cause && row.colour == colour {
                row.packets += 1;
                return;
            }
            at = row.next;
        }
        self.begin(flow, Row { place, cause, colour, next: NONE, packets: 1 });
    }

    /// Adds what another part of the run has lost: of other places, as each place is in one part.
    pub(crate) fn absorb(&mut self, other: &Drops) {
        for (flow, &first) in (0..).zip(&other.first) {
            other.list(first).for_each(|row| self.begin(flow, row));
        }
    }

    /// The first packets of a row.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, flow: u32, row: Row) {
        if self.first.len() <= flow as usize {
            self.first.resize(flow as usize + 1, NONE);
        }
        if self.rows.len() == self.rows.capacity() {
            // A quarter more, not twice as much: a hundred thousand flows may have as many rows.
            self.rows.reserve_exact(self.rows.len() / 4 + LEAST_ROOM);
        }
        let next = std::mem::replace(&mut self.first[flow as usize], self.rows.len() as u32);
        self.rows.push(Row { next, ..row });
    }

    /// The rows of a flow from this one on.
    fn list(&self, first: u32) -> impl Iterator<Item = Row> {
        let row = |at: u32| self.rows.get(at as usize).copied();
        successors(row(first), move |r| row(r.next))
    }

    /// Losses of all flows, in the order of flows, of a flow's in the order of places and causes.
    pub fn sorted(&self) -> impl Iterator<Item = DropRow> {
        (0..).zip(&self.first).flat_map(move |(flow, &first)| {
            let mut of_flow: Vec<DropRow> = self.list(first).map(|row| alone(flow, &row)).collect();
            of_flow.sort_by_key(|row| (row.place, row.cause));
            of_flow.dedup_by(|more, row| {
                let same = (more.place, more.cause) == (row.place, row.cause);
                if same {
                    row.packets.iter_mut().zip(more.packets).for_each(|(n, m)| *n += m);
                }
                same
            });
            of_flow
        })
    }
}

/// A row without those of its flow's other colours.
fn alone(flow: u32, row: &Row) -> DropRow {
    let mut packets = [0; 3];
    packets[row.colour as usize] = row.packets;
    DropRow { flow, place: row.place, cause: row.cause, packets }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// As in a sorted table.
        #[test]
        fn counts_are_those_of_a_table(losses in prop::collection::vec((0u32..20, 0u32..3, 0usize..3, 0usize..3), 0..200)) {
            let causes = [Cause::OVERFLOW, Cause::EVICTED, Cause::UNMARKABLE];
            let (mut drops, mut table) = (Drops::default(), BTreeMap::<_, [u64; 3]>::new());
            for (flow, link, cause, colour) in losses {
                let (place, cause) = (if link == 2 { VerdictPoint::Host } else { VerdictPoint::Queue(link) }, causes[cause]);
                drops.count(flow, place, cause, Colour::ALL[colour]);
                table.entry((flow, place, cause)).or_default()[colour] += 1;
            }
            let seen: Vec<_> = drops.sorted().map(|r| ((r.flow, r.place, r.cause), r.packets)).collect();
            prop_assert_eq!(seen, table.into_iter().collect::<Vec<_>>());
        }
    }
}
