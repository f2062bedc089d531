//! A queue for tests, as long as the test says.

use std::collections::BTreeMap;

use crate::aqm::Aqm;
use crate::packet::Colour;
use crate::queue::Counts;
use crate::queue::Queue;
use crate::units::{Backlog, Time};
use crate::verdict::Admission;

/// Counts a verdict, as a queue does.
pub fn count(counts: &mut Counts, colour: Colour, verdict: Admission) {
    match verdict {
        Admission::Admit => {}
        Admission::Mark => counts.marked[colour as usize] += 1,
        Admission::Drop(cause) => counts.dropped[cause.index()][colour as usize] += 1,
    }
}

/// All that a discipline shows, given what its queue has counted.
pub fn shown(aqm: &dyn Aqm, counts: &Counts) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    aqm.show_counts(counts, &mut |name, n| assert!(all.insert(name, n).is_none(), "{name} twice"));
    all
}

/// Lengths as set; packets are of 1,000 B.
#[derive(Clone, Debug)]
pub struct Fake {
    /// By colour.
    pub packets: [u32; 3],
    /// In packets.
    pub limit: f64,
    /// Since when the link is idle, if it is.
    pub idle: Option<Time>,
}

impl Fake {
    /// So many IN and OUT packets wait, and the link is busy.
    pub fn of(ins: u32, outs: u32) -> Fake {
        Fake { packets: [ins, outs, 0], limit: 1e9, idle: None }
    }
}

impl Queue for Fake {
    fn packets(&self) -> u32 {
        self.packets.iter().sum()
    }
    fn bytes(&self) -> u64 {
        u64::from(self.packets()) * 1000
    }
    fn packets_of(&self, colour: Colour) -> u32 {
        self.packets[colour as usize]
    }
    fn bytes_of(&self, colour: Colour) -> u64 {
        u64::from(self.packets_of(colour)) * 1000
    }
    fn limit(&self) -> Backlog {
        Backlog::Packets(self.limit)
    }
    fn fits(&self, _: u32) -> bool {
        f64::from(self.packets()) < self.limit
    }
    fn idle_since(&self) -> Option<Time> {
        self.idle
    }
}
