//! A queue for tests, as long as the test says.

use std::collections::BTreeMap;

use crate::aqm::Aqm;
use crate::packet::{Colour, FlowId};
use crate::queue::Counts;
use crate::queue::{End, Queue};
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
    fn head_since(&self, _: u32) -> Option<Time> {
        None
    }
    fn has(&self, _: FlowId) -> bool {
        false
    }
    fn packets_of_flow(&self, _: FlowId) -> u32 {
        0
    }
    fn position(&self, _: FlowId, _: End) -> Option<u32> {
        None
    }
    fn flow_at(&self, _: u32) -> Option<FlowId> {
        None
    }
    fn evict(&mut self, _: u32) -> bool {
        false
    }
    fn mark(&mut self, _: u32) -> bool {
        false
    }
    fn join(&mut self, _: u32) {}
    fn packets_in(&self, _: u32) -> u32 {
        0
    }
    fn bytes_in(&self, _: u32) -> u64 {
        0
    }
    fn head_size(&self, _: u32) -> Option<u32> {
        None
    }
    fn head_flow(&self, _: u32) -> Option<FlowId> {
        None
    }
    fn move_head(&mut self, _: u32, _: u32) -> bool {
        false
    }
    fn evict_from(&mut self, _: u32, _: End) -> Option<u32> {
        None
    }
}
