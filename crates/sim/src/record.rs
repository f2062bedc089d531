//! A monitor's series as it is recorded, sample by sample: of a queue, and of a receiver that may run ahead of the present.

use std::collections::VecDeque;

use inprofile_core::queue::Counts;
use inprofile_core::registry::AnyAqm;
use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;
use crate::network::Monitor;
use crate::outcome::Series;

/// A monitor's series, and when its next sample is due.
#[derive(Debug)]
pub struct Record {
    every: Duration,
    taken: u64,
    series: Series,
}

/// One sample's figures, which go straight into the columns.
pub(crate) struct Row<'a> {
    columns: &'a mut Vec<(&'static str, Vec<f64>)>,
    /// How many it has.
    len: usize,
}

impl Row<'_> {
    /// Every sample has the same figures in the same order.
    #[inline(always)]
    pub fn push(&mut self, name: &'static str, value: f64) {
        if self.len == self.columns.len() {
            self.columns.push((name, Vec::new()));
        }
        let column = &mut self.columns[self.len];
        debug_assert_eq!(column.0, name);
        column.1.push(value);
        self.len += 1;
    }
}

impl Record {
    /// Before its first sample, at the start of the run.
    #[must_use]
    pub fn new(index: u32, monitor: &Monitor) -> Record {
        let series = Series { monitor: index, ..Series::default() };
        Record { every: monitor.every, taken: 0, series }
    }

    /// Which monitor's it is.
    #[must_use]
    pub fn monitor(&self) -> u32 {
        self.series.monitor
    }

    /// When the next sample is due.
    #[must_use]
    pub fn next(&self) -> Time {
        Time(self.every.0 * self.taken)
    }

    /// Begins the next sample: its time, what a byte in the interval before it is in bit/s, and its figures.
    pub(crate) fn begin(&mut self) -> (Time, f64, Row<'_>) {
        let now = self.next();
        self.taken += 1;
        self.series.times.push(now);
        // The first sample is at the start of the run: no interval yet.
        let per_byte = if self.taken == 1 { 0.0 } else { 8.0 / self.every.secs() };
        (now, per_byte, Row { columns: &mut self.series.columns, len: 0 })
    }

    /// The samples.
    #[must_use]
    pub fn into_series(self) -> Series {
        self.series
    }
}

/// Bits per second between two counts of bytes: IN, and the rest.
pub(crate) fn rates(after: [u64; 3], before: [u64; 3], per_byte: f64) -> (f64, f64) {
    let rate = |bytes: u64| bytes as f64 * per_byte;
    (rate(after[0] - before[0]), rate(after[1] + after[2] - before[1] - before[2]))
}

/// A queue as a monitor's sample sees it.
#[derive(Debug)]
pub struct QueueSample<'a> {
    /// Its discipline; none for all classes together, or where no packet has waited yet.
    pub aqm: Option<&'a AnyAqm>,
    /// Packets waiting by colour.
    pub waiting: [u32; 3],
    /// The traffic that has passed it.
    pub passed: Passed,
}

/// The traffic of a queue since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Bytes offered, by colour.
    pub arrived_bytes: [u64; 3],
    /// Bytes that left for the link, by colour.
    pub sent_bytes: [u64; 3],
    /// Packets dropped.
    pub dropped: u64,
}

impl Passed {
    /// As these counts have it.
    #[must_use]
    pub fn of(counts: &Counts) -> Passed {
        let &Counts { arrived_bytes, sent_bytes, .. } = counts;
        Passed { arrived_bytes, sent_bytes, dropped: counts.dropped.iter().flatten().sum() }
    }
}

/// The series of a queue.
#[derive(Debug)]
pub struct QueueRecord {
    record: Record,
    /// The traffic up to the last sample.
    before: Passed,
}

impl QueueRecord {
    /// Before its first sample.
    #[must_use]
    pub fn new(index: u32, monitor: &Monitor) -> QueueRecord {
        QueueRecord { record: Record::new(index, monitor), before: Passed::default() }
    }

    /// When the next sample is due.
    #[must_use]
    pub fn next(&self) -> Time {
        self.record.next()
    }

    /// The first moment that the next sample does not see: it is taken after all that happens at its time.
    pub(crate) fn boundary<C: Clock>(&self) -> C {
        C::at(self.next() + Duration(1))
    }

    /// Takes the next sample of a queue.
    pub fn sample(&mut self, queue: &QueueSample<'_>) {
        let (now, per_byte, mut row) = self.record.begin();
        let &QueueSample { aqm, waiting, passed } = queue;
        row.push("packets", f64::from(waiting.iter().sum::<u32>()));
        row.push("packets_in", f64::from(waiting[0]));
        row.push("packets_out", f64::from(waiting[1] + waiting[2]));
        if let Some(aqm) = aqm {
            aqm.gauges(now, &mut |name, value| row.push(name, value));
        }
        let arrived = rates(passed.arrived_bytes, self.before.arrived_bytes, per_byte);
        let sent = rates(passed.sent_bytes, self.before.sent_bytes, per_byte);
        row.push("arrived_in", arrived.0);
        row.push("arrived_out", arrived.1);
        row.push("sent_in", sent.0);
        row.push("sent_out", sent.1);
        row.push("dropped", (passed.dropped - self.before.dropped) as f64);
        self.before = passed;
    }

    /// The samples.
    #[must_use]
    pub fn into_series(self) -> Series {
        self.record.into_series()
    }
}

/// One monitor's samples.
#[derive(Debug)]
pub struct Samples {
    /// The monitor's number.
    monitor: u32,
    every: Duration,
    /// The next one that is neither passed nor taken.
    next: Time,
    /// By colour: those that have been passed and that the monitor has not taken yet.
    passed: VecDeque<[u64; 3]>,
}

impl Samples {
    /// Before the first, at the start of the run.
    #[must_use]
    pub fn new(monitor: u32, every: Duration) -> Samples {
        Samples { monitor, every, next: Time::ZERO, passed: VecDeque::new() }
    }

    /// Whether they are this monitor's.
    pub(crate) fn are_of(&self, monitor: u32) -> bool {
        self.monitor == monitor
    }

    /// The first moment that the next sample does not see: it is taken after all that happens at its time.
    pub(crate) fn boundary<C: Clock>(&self) -> C {
        C::at(self.next + Duration(1))
    }

    /// The first of a boundary and of those of these samples.
    pub(crate) fn first_boundary<C: Clock>(of: &[Samples], or: C) -> C {
        of.iter().map(Samples::boundary).fold(or, |first, here| if here < first { here } else { first })
    }

    /// The receiver passes the next sample.
    pub(crate) fn pass(&mut self, received: [u64; 3]) {
        self.passed.push_back(received);
        self.next += self.every;
    }

    /// Takes the next sample; `None`: it has not been passed, and sees the present.
    pub(crate) fn take(&mut self) -> Option<[u64; 3]> {
        let then = self.passed.pop_front();
        if then.is_none() {
            self.next += self.every;
        }
        then
    }
}
