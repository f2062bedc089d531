//! The counts of a queue.

use crate::packet::Colour;
use crate::verdict::Cause;

/// Packets counted by colour and by what became of them. `arrived` = `sent` + `dropped` + waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets offered, by colour.
    pub arrived: [u64; 3],
    /// Bytes offered, by colour.
    pub arrived_bytes: [u64; 3],
    /// Packets that left for the link, by colour.
    pub sent: [u64; 3],
    /// Bytes that left for the link, by colour.
    pub sent_bytes: [u64; 3],
    /// Packets dropped, by cause and colour.
    pub dropped: [[u64; 3]; Cause::COUNT],
    /// Packets marked congestion experienced, by colour.
    pub marked: [u64; 3],
}

impl Counts {
    /// Packets of this colour dropped for whatever cause.
    #[must_use]
    pub fn dropped_of(&self, colour: Colour) -> u64 {
        self.dropped.iter().map(|by_colour| by_colour[colour as usize]).sum()
    }

    /// Packets dropped for this cause, of whatever colour.
    #[must_use]
    pub fn dropped_by(&self, cause: Cause) -> u64 {
        self.dropped[cause.index()].iter().sum()
    }

    /// Packets marked, of whatever colour.
    #[must_use]
    pub fn marked(&self) -> u64 {
        self.marked.iter().sum()
    }

    /// These and those of another queue together.
    #[must_use]
    pub fn and(&self, other: &Counts) -> Counts {
        let add = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| a[i] + b[i]);
        Counts {
            arrived: add(self.arrived, other.arrived),
            arrived_bytes: add(self.arrived_bytes, other.arrived_bytes),
            sent: add(self.sent, other.sent),
            sent_bytes: add(self.sent_bytes, other.sent_bytes),
            dropped: std::array::from_fn(|i| add(self.dropped[i], other.dropped[i])),
            marked: add(self.marked, other.marked),
        }
    }
}
