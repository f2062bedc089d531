//! One customer's packets in one direction: counts by outcome and colour, and how long they waited.
//!
//! Counts only grow, from the customer's first packet on; rates are differences of two readings over the time between them, as
//! in `top`. `arrived` = `sent` + `dropped` + `no_buffer` + `too_late` + waiting, in packets. A customer who stays in the file
//! keeps its counts over a reload.

use inprofile_core::packet::Colour;
use inprofile_core::units::Duration;
use inprofile_core::verdict::Cause;

use crate::prefetch::prefetch;

/// Counts of one customer's packets, in one direction. Sizes are as they count on the link: IP packet and overhead.
///
/// The fields that a packet changes which leaves at once come first and is one cache line: with ten thousand customers each more is a miss.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct CustomerCounts {
    /// Packets that came and were his, whatever their class.
    pub arrived: u64,
    /// Bytes of them.
    pub arrived_bytes: u64,
    /// Packets that left, by the colour they left with; of classes without colours as OUT.
    pub sent: [u64; 3],
    /// Bytes of them.
    pub sent_bytes: [u64; 3],
    /// Of those that left and had to wait.
    waited: Delay,
    /// Packets dropped, by [`Cause`]: `policed` and `edge` by his marker or policers, the others by a queue.
    pub dropped: [u64; Cause::COUNT],
    /// Packets dropped because every buffer was taken.
    pub no_buffer: u64,
    /// Packets thrown away because their turn had come too long ago.
    pub too_late: u64,
}

impl CustomerCounts {
    /// Prefetches what a packet changes that leaves at once.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.arrived);
    }

    pub(super) fn arrive(&mut self, size: u32) {
        self.arrived += 1;
        self.arrived_bytes += u64::from(size);
    }

    pub(super) fn drop(&mut self, cause: Cause) {
        self.dropped[cause.index()] += 1;
    }

    pub(super) fn send(&mut self, colour: Colour, size: u32, waited: Duration) {
        self.sent[colour as usize] += 1;
        self.sent_bytes[colour as usize] += u64::from(size);
        if waited.0 >= NANOSECOND {
            self.waited.record(waited);
        }
    }

    /// From a packet's arrival to its turn on the link, of those that left.
    #[must_use]
    pub fn delay(&self) -> Delay {
        let mut delay = self.waited.clone();
        delay.record_none(self.sent.iter().sum::<u64>() - delay.count);
        delay
    }

    /// Adds another's counts to these.
    pub fn add(&mut self, other: &CustomerCounts) {
        self.arrived += other.arrived;
        self.arrived_bytes += other.arrived_bytes;
        for colour in 0..3 {
            self.sent[colour] += other.sent[colour];
            self.sent_bytes[colour] += other.sent_bytes[colour];
        }
        self.dropped.iter_mut().zip(other.dropped).for_each(|(mine, n)| *mine += n);
        self.no_buffer += other.no_buffer;
        self.too_late += other.too_late;
        self.waited.add(&other.waited);
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let gone: u64 = self.sent.iter().chain(&self.dropped).sum();
        self.arrived.saturating_sub(gone + self.no_buffer + self.too_late)
    }
}

/// Less than this counts as none.
const NANOSECOND: u64 = 1_000;

/// Cells for each power of two.
const FINE: u64 = 4;
/// Powers of two above a microsecond: to 8.4 s.
const OCTAVES: u64 = 23;
const CELLS: usize = (OCTAVES * FINE + 2) as usize;

/// How long packets waited: a histogram of fixed size, whose cells are a quarter of a power of two wide, from 1 µs to 8 s.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Delay {
    sum_ns: u64,
    count: u64,
    cells: [u32; CELLS],
}

impl Default for Delay {
    fn default() -> Delay {
        Delay { sum_ns: 0, count: 0, cells: [0; CELLS] }
    }
}

/// The cell of a delay: 0 below a microsecond, the last from 8.4 s on.
fn cell(us: u64) -> usize {
    if us == 0 {
        return 0;
    }
    let octave = u64::from(us.ilog2());
    // The two bits behind the first; of less than 4 µs there are fewer.
    let fine = if octave >= 2 { us >> (octave - 2) & 3 } else { us << (2 - octave) & 3 };
    ((octave * FINE + fine + 1) as usize).min(CELLS - 1)
}

/// Where a cell ends, in microseconds.
fn end(cell: usize) -> f64 {
    let (octave, fine) = (cell as u64 / FINE, cell as u64 % FINE);
    (1u64 << octave) as f64 * (1.0 + fine as f64 / FINE as f64)
}

impl Delay {
    /// A packet waited so long.
    pub fn record(&mut self, waited: Duration) {
        let ns = waited.0 / NANOSECOND;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.count += 1;
        let cell = &mut self.cells[cell(ns / 1_000)];
        // A cell that is full stays so: quantiles are then those of the first four thousand million.
        *cell = cell.saturating_add(1);
    }

    /// So many packets didn't wait.
    fn record_none(&mut self, packets: u64) {
        self.count += packets;
        self.cells[0] = self.cells[0].saturating_add(packets.try_into().unwrap_or(u32::MAX));
    }

    /// Those of another together with these.
    pub fn add(&mut self, other: &Delay) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.count += other.count;
        self.cells.iter_mut().zip(other.cells).for_each(|(mine, n)| *mine = mine.saturating_add(n));
    }

    /// Packets recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean in seconds, exact to the nanosecond; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 * 1e-9 / self.count as f64 }
    }

    /// The sum in seconds.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum_ns as f64 * 1e-9
    }

    /// The delay in seconds that at least this share (0 to 1) of the packets did not exceed: the end of the cell it falls into, at
    /// most a quarter more than it was. 0 of none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        let all: u64 = self.cells.iter().map(|n| u64::from(*n)).sum();
        let rank = (share * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (i, n) in self.cells.iter().enumerate() {
            seen += u64::from(*n);
            if seen >= rank {
                return end(i) * 1e-6;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    #[test]
    fn what_a_packet_changes_that_leaves_at_once_is_one_cache_line() {
        assert_eq!(std::mem::offset_of!(CustomerCounts, waited), 64);
    }

    /// Who didn't wait is not recorded, and counted all the same.
    #[test]
    fn packets_that_did_not_wait_count_too() {
        let (mut both, mut all) = (CustomerCounts::default(), Delay::default());
        for (i, ps) in [0, 1, 999, 1_000, 1_001, 999_999, 1_000_000, 70_000_000, 0, 0].into_iter().enumerate()
        {
            let (mut counts, waited) = (CustomerCounts::default(), Duration(ps));
            counts.send(Colour::ALL[i % 3], 100, waited);
            all.record(waited);
            both.add(&counts);
            let delay = both.delay();
            assert_eq!((delay.sum_ns, delay.count, delay.cells), (all.sum_ns, all.count, all.cells));
        }
        assert_eq!((both.waited.count, all.count), (5, 10));
    }

    #[test]
    fn cells_are_by_hand() {
        let in_cell = |ns: u64| cell(ns / 1_000);
        assert_eq!((in_cell(999), end(0)), (0, 1.0));
        assert_eq!((in_cell(1_000), end(1)), (1, 1.25));
        assert_eq!((in_cell(100_000), end(in_cell(100_000))), (27, 112.0));
        assert_eq!(in_cell(u64::MAX), CELLS - 1);
        assert_eq!(Delay::default().quantile(0.99), 0.0);
    }

    proptest! {
        /// A quantile is no less than the true one, and at most a quarter and a microsecond more; the mean is exact.
        #[test]
        fn quantiles_are_near(us in prop::collection::vec(0u64..8_000_000, 1..200), share in 0.01f64..1.0) {
            let mut delay = Delay::default();
            us.iter().for_each(|us| delay.record(Duration::from_micros(*us)));
            let mut sorted = us.clone();
            sorted.sort_unstable();
            let rank = (share * us.len() as f64).ceil().max(1.0) as usize;
            let (is, told) = (sorted[rank - 1] as f64, delay.quantile(share) * 1e6);
            prop_assert!(told >= is && told <= is * 1.25 + 1.001, "{} told as {}", is, told);
            let mean = us.iter().sum::<u64>() as f64 / us.len() as f64 * 1e-6;
            prop_assert!((delay.mean() - mean).abs() < 1e-9);
        }
    }
}
