//! How many OUT packets each flow sees in the queue: the mean of avg_total − avg_in over the flow's IN packets as they join.
//!
//! For Fig. 2 and 6 of paper B: while a flow sends IN packets, the OUT packets in the queue are mostly those of others. Kept
//! for a bounded number of flows, those seen most recently. Non-goal: any decision.

use crate::flow_table::FlowTable;
use crate::mechanism::FlowGauge;
use crate::packet::FlowId;
use crate::signal::{FORGET, Signal};
use crate::units::Time;

/// Flows it keeps apart.
const FLOWS: usize = 1024;

/// Sum of the samples, and how many there were.
type Samples = (f64, u64);

/// The means, by flow.
#[derive(Clone, Debug)]
pub struct OutSeen(FlowTable<Samples>);

impl Default for OutSeen {
    fn default() -> OutSeen {
        OutSeen(FlowTable::new(FLOWS))
    }
}

impl OutSeen {
    /// An IN packet of this flow joins and sees this average of OUT packets.
    pub fn note(&mut self, flow: FlowId, avg_out: f64) {
        let samples = self.0.touch(Time::ZERO, flow).state;
        samples.0 += avg_out;
        samples.1 += 1;
    }

    /// Its number is another flow's from now on.
    pub fn forget(&mut self, flow: FlowId) {
        self.0.remove(flow);
    }

    /// A signal to the discipline that keeps it, if it does: a number may be another flow's from now on.
    pub fn signal(seen: Option<&mut OutSeen>, signal: &Signal) {
        if signal.topic == FORGET
            && let (Some(flow), Some(seen)) = (signal.flow, seen)
        {
            seen.forget(flow);
        }
    }

    /// Shows `avg_out_seen` of every flow.
    pub fn show(&self, show: FlowGauge<'_>) {
        for (flow, &(sum, n)) in self.0.iter() {
            show(flow, "avg_out_seen", sum / n as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_has_its_own_mean() {
        let mut seen = OutSeen::default();
        seen.note(FlowId(1), 100.0);
        seen.forget(FlowId(1));
        for (flow, avg_out) in [(1, 4.0), (2, 10.0), (1, 8.0)] {
            seen.note(FlowId(flow), avg_out);
        }
        let mut rows = Vec::new();
        seen.show(&mut |flow, what, value| rows.push((flow.0, what, value)));
        assert_eq!(rows, [(1, "avg_out_seen", 6.0), (2, "avg_out_seen", 10.0)]);
    }
}
