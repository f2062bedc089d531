//! A run with external hosts: links, queues, markers and monitors are simulated, while the caller puts in and takes out
//! the packets of the hosts as time passes.
//!
//! Time is still an argument. A caller that is late gets packets late, each with its own time of arrival. That changes
//! no verdict, only what the hosts do next.

use std::sync::atomic::{AtomicBool, Ordering};

use inprofile_core::packet::{Colour, FlowId, Packet};
use inprofile_core::units::Time;

use crate::clock::Exact;
use crate::engine::{Failure, Hosts, Run};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::senders::Sender;
use crate::tcp::Flags;
use crate::traffic::{ExternalSender, Source};
pub use crate::world::Egress;

/// The caller's report on a flow's hosts.
#[derive(Clone, Copy, Debug)]
pub struct HostReport {
    /// The state of its sender, if that is TCP.
    pub sender: Option<ExternalSender>,
    /// Payload bytes its receiver has received: with TCP, in order.
    pub in_order_bytes: u64,
}

enum Either {
    Plain(Run<Exact, false>),
    Traced(Run<Exact, true>),
}

/// A run in steps.
pub struct Stage(Either);

macro_rules! either {
    ($self:ident, $run:ident => $body:expr) => {
        match &mut $self.0 {
            Either::Plain($run) => $body,
            Either::Traced($run) => $body,
        }
    };
}

impl Stage {
    /// At time 0. It always keeps the exact clock, whatever the network's profile.
    #[must_use]
    pub fn new(network: Network) -> Stage {
        Stage(if network.trace {
            Either::Traced(Run::new(network, None, Hosts::Outside))
        } else {
            Either::Plain(Run::new(network, None, Hosts::Outside))
        })
    }

    /// When something is next due.
    pub fn due(&mut self) -> Option<Time> {
        either!(self, run => run.world.calendar.peek().map(|e| Time(e.at)))
    }

    /// Handles everything due up to `now`, and passes packets for external hosts to `out`. False: the run is over.
    pub fn advance(&mut self, now: Time, stop: &AtomicBool, mut out: impl FnMut(Egress)) -> bool {
        either!(self, run => {
            while let Some(event) = run.world.calendar.peek().filter(|e| e.at <= now.0) {
                run.world.calendar.pop();
                run.events += 1;
                if !run.handle(event) || stop.load(Ordering::Relaxed) {
                    return false;
                }
                run.world.egress.drain(..).for_each(&mut out);
            }
            run.world.now = run.world.now.max(Exact(now.0));
            // What the hosts do comes after every event of this time.
            run.world.order = u32::MAX;
            true
        })
    }

    /// Puts in a packet of a flow's sender (`forward`) or receiver, at the time to which the run has advanced. Class
    /// and colour are the flow's; `flags` are told to the links on the way back. Returns its slot, which no other packet has until it has left the network or was
    /// dropped.
    pub fn put(&mut self, flow: u32, packet: &Packet, forward: bool, flags: Flags) -> u32 {
        either!(self, run => {
            let class = run.world.flows[flow as usize].class;
            let packet = Packet { flow: FlowId(flow), class, colour: Colour::IN, ..*packet };
            if forward {
                run.world.launch_data(packet)
            } else {
                run.world.launch_back(flow, packet, flags)
            }
        })
    }

    /// Reports the state of a flow's hosts.
    pub fn report_hosts(&mut self, flow: u32, report: &HostReport) {
        either!(self, run => {
            if let (Sender::Other(Source::Outside(sender)), _) = run.senders.of(flow) {
                *sender = report.sender;
            }
            let f = &mut run.world.flows[flow as usize];
            let segments = report.in_order_bytes.div_ceil(u64::from(f.segment.max(1)));
            f.counts.in_order_payload_bytes = report.in_order_bytes;
            f.counts.in_order_wire_bytes = report.in_order_bytes + segments * u64::from(f.header);
        });
    }

    /// The outcome, once it is over.
    ///
    /// # Errors
    /// [`Failure::NotConserved`] if the engine miscounted.
    pub fn finish(self) -> Result<Outcome, Failure> {
        match self.0 {
            Either::Plain(run) => run.close(),
            Either::Traced(run) => run.close(),
        }
    }
}
