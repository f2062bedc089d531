//! Fragments of packets whose ports say whose they are. Only the first fragment has the ports; those that follow are known by the
//! identification that they share with it (RFC 791 §3.2, RFC 8200 §4.5).
//!
//! A bounded number of packets is remembered, each for as long as its receiver may wait. A fragment that overtook its first one, or
//! whose packet was forgotten, has no ports: it is counted. Non-goal: putting packets together; holding fragments back.

use inprofile_core::units::{Duration, Time};
use inprofile_live::flow::{FiveTuple, Flows};

/// The most packets that are remembered at a time.
const PACKETS: u32 = 4096;
/// RFC 791 §3.2: "the current recommendation for the initial timer setting is 15 seconds".
const REASSEMBLY_TIMEOUT: Duration = Duration::from_millis(15_000);

/// Source and destination port.
pub type Ports = (u16, u16);

/// The ports of packets whose fragments are under way.
#[derive(Debug)]
pub struct Fragments {
    /// Numbers packets as a table of flows numbers flows.
    packets: Flows,
    ports: Vec<(Ports, Time)>,
}

impl Fragments {
    /// None is under way. `secret` keeps packets from being chosen that collide.
    #[must_use]
    pub fn new(secret: u64) -> Fragments {
        let packets = Flows::new(PACKETS, secret);
        let ports = vec![((0, 0), Time::ZERO); packets.capacity() as usize];
        Fragments { packets, ports }
    }

    /// The ports of the packet that a fragment belongs to: `first`, if the fragment shows them itself, or those that its first
    /// one showed.
    pub fn ports(&mut self, now: Time, packet: &FiveTuple, first: Option<Ports>) -> Option<Ports> {
        if let Some(ports) = first {
            let number = self.packets.number(packet).flow.0;
            self.ports[number as usize] = (ports, now);
            return first;
        }
        let number = self.packets.find(packet)?.0;
        let (ports, since) = self.ports[number as usize];
        (now.since(since) <= REASSEMBLY_TIMEOUT).then_some(ports)
    }
}
