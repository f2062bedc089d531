//! The counts of a marker.

/// Packets and bytes at a marker, by colour. `arrived` = `left` + `dropped`, over all colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkerCounts {
    /// Arrived, by the colour they had.
    pub arrived: [u64; 3],
    /// Wire bytes that arrived.
    pub arrived_bytes: [u64; 3],
    /// Passed on, by the colour they were given.
    pub left: [u64; 3],
    /// Wire bytes that were passed on.
    pub left_bytes: [u64; 3],
    /// Dropped, by the colour they had.
    pub dropped: [u64; 3],
}

impl MarkerCounts {
    /// The packets counted since `before`.
    #[must_use]
    pub fn since(&self, before: &MarkerCounts) -> MarkerCounts {
        let less = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| a[i] - b[i]);
        MarkerCounts {
            arrived: less(self.arrived, before.arrived),
            arrived_bytes: less(self.arrived_bytes, before.arrived_bytes),
            left: less(self.left, before.left),
            left_bytes: less(self.left_bytes, before.left_bytes),
            dropped: less(self.dropped, before.dropped),
        }
    }
}
