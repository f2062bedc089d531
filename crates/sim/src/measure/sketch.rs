//! The distribution of lengths of time, in memory that does not grow with their number: a histogram whose buckets are a
//! thousandth of their value wide (HdrHistogram), and the exact mean, least and greatest.

use hdrhistogram::Histogram;
use inprofile_core::units::Duration;

/// Decimal digits that a value keeps.
const DIGITS: u8 = 3;
/// Picoseconds in a histogram's unit, a nanosecond.
const UNIT: u64 = 1000;

/// A distribution of lengths of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    /// In nanoseconds.
    histogram: Histogram<u32>,
    /// In picoseconds.
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Sketch {
    #[expect(clippy::expect_used, reason = "three digits are what the crate's own example has")]
    fn default() -> Sketch {
        let mut histogram = Histogram::new(DIGITS).expect("0 to 5 digits are allowed");
        histogram.auto(true);
        Sketch { histogram, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Sketch {
    /// One more.
    pub fn record(&mut self, length: Duration) {
        self.put(length.0 / UNIT, 1);
        self.sum += u128::from(length.0);
        self.min = self.min.min(length.0);
        self.max = self.max.max(length.0);
    }

    /// So many of a value, in nanoseconds. The histogram grows to what is recorded; what memory could not hold would count
    /// in its last bucket.
    fn put(&mut self, value: u64, count: u32) {
        if self.histogram.record_n(value, count).is_err() {
            self.histogram.saturating_record_n(value, count);
        }
    }

    /// All of another's, each shorter by `less`.
    pub fn add_less(&mut self, other: &Sketch, less: Duration) {
        if other.is_empty() {
            return;
        }
        for bucket in other.histogram.iter_recorded() {
            let value = bucket.value_iterated_to().saturating_sub(less.0 / UNIT);
            self.put(value, bucket.count_at_value());
        }
        self.sum += other.sum.saturating_sub(u128::from(less.0) * u128::from(other.len()));
        self.min = self.min.min(other.min.saturating_sub(less.0));
        self.max = self.max.max(other.max.saturating_sub(less.0));
    }

    /// All of another's.
    pub fn add(&mut self, other: &Sketch) {
        if self.histogram.add(&other.histogram).is_ok() && !other.is_empty() {
            self.sum += other.sum;
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Their mean in seconds, exactly; `None` of none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.len() as f64 * 1e-12)
    }

    /// The least, exactly; zero of none.
    pub(crate) fn least(&self) -> Duration {
        if self.is_empty() { Duration::ZERO } else { Duration(self.min) }
    }

    /// The least in seconds, exactly.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        (!self.is_empty()).then(|| Duration(self.min).secs())
    }

    /// The greatest in seconds, exactly.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        (!self.is_empty()).then(|| Duration(self.max).secs())
    }

    /// The least length in seconds that at least this share of them, 0 to 1, do not exceed; within a thousandth of its
    /// value, and a nanosecond.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let found = Duration(self.histogram.value_at_quantile(share).saturating_mul(UNIT));
        // A bucket's value is its highest.
        (!self.is_empty()).then(|| Duration(found.0.clamp(self.min, self.max)).secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(lengths: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        lengths.iter().for_each(|&l| sketch.record(Duration(l)));
        sketch
    }

    /// The smallest of the sorted lengths with at least this share of them up to it.
    fn by_sorting(lengths: &[u64], share: f64) -> f64 {
        let mut all = lengths.to_vec();
        all.sort_unstable();
        let place = (share * all.len() as f64).ceil().max(1.0) as usize;
        Duration(all[place - 1]).secs()
    }

    #[test]
    fn nothing_has_no_figures() {
        let none = Sketch::default();
        assert_eq!((none.len(), none.mean(), none.min(), none.max()), (0, None, None, None));
        assert_eq!(none.quantile(0.5), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// From nanoseconds to a hundred seconds.
        #[test]
        fn quantiles_are_those_of_sorting(lengths in prop::collection::vec(0..100_000_000_000_000u64, 1..400)) {
            let sketch = of(&lengths);
            for share in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let (got, exact) = (sketch.quantile(share).unwrap(), by_sorting(&lengths, share));
                prop_assert!((got - exact).abs() <= exact * 1e-3 + 1e-9, "{share}: {got}, sorted {exact}");
            }
            let sum: u128 = lengths.iter().map(|&l| u128::from(l)).sum();
            prop_assert!((sketch.mean().unwrap() / (sum as f64 / lengths.len() as f64 * 1e-12) - 1.0).abs() < 1e-12 || sum == 0);
            prop_assert_eq!(sketch.max().unwrap(), Duration(*lengths.iter().max().unwrap()).secs());
            prop_assert_eq!(sketch.min().unwrap(), Duration(*lengths.iter().min().unwrap()).secs());
        }

        /// Whatever is merged with whatever: as if all had been recorded in one.
        #[test]
        fn merging_is_recording_all(
            a in prop::collection::vec(0..1_000_000_000_000u64, 0..50),
            b in prop::collection::vec(0..1_000_000_000u64, 0..50),
        ) {
            let mut merged = of(&a);
            merged.add(&of(&b));
            prop_assert_eq!(&merged, &of(&[a.clone(), b.clone()].concat()));
            let mut shifted = Sketch::default();
            let least = a.iter().min().copied().unwrap_or(0);
            shifted.add_less(&of(&a), Duration(least));
            let less = of(&a.iter().map(|x| x - least).collect::<Vec<_>>());
            prop_assert_eq!(shifted.len(), less.len());
            prop_assert_eq!(shifted.mean(), less.mean());
            prop_assert_eq!((shifted.min(), shifted.max()), (less.min(), less.max()));
        }
    }
}
