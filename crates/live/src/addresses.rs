//! The addresses of a flow's two hosts and the code point of its class, between namespaces as in captures.

use std::net::Ipv4Addr;

use inprofile_sim::network::{Flow, Network};

use crate::code_points::Dscp;

/// Where receivers listen, and datagrams come from.
pub const PORT: u16 = 5001;

/// So many flows have addresses.
pub const MOST: u32 = (1 << 20) - 1;

/// A sender's address and its receiver's: the flow's number in 10.64.0.0/12 and in 10.80.0.0/12.
#[must_use]
pub fn of(flow: u32) -> (Ipv4Addr, Ipv4Addr) {
    let within = |base: [u8; 4]| Ipv4Addr::from(u32::from_be_bytes(base) + flow + 1);
    (within([10, 64, 0, 0]), within([10, 80, 0, 0]))
}

/// The flow that an address belongs to, and whether it is the sender's.
#[must_use]
pub fn flow_of(address: Ipv4Addr) -> Option<(u32, bool)> {
    let n = u32::from(address);
    let within = |base: [u8; 4]| n.checked_sub(u32::from_be_bytes(base) + 1).filter(|i| *i < MOST);
    within([10, 80, 0, 0]).map(|f| (f, false)).or_else(|| within([10, 64, 0, 0]).map(|f| (f, true)))
}

/// The code point that a flow's class is named after, at the first link of its way that has classes: `ef`, `cs1`, `be`.
#[must_use]
pub fn of_class(network: &Network, flow: &Flow) -> Option<Dscp> {
    let mut queues = flow.path.iter().map(|l| network.links[*l as usize].queue.classes());
    let own = queues.find(|c| !c.is_empty())?.iter().find(|c| c.setup.number == flow.class)?;
    Dscp::parse(&own.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_flow() {
        for flow in [0, 1, 255, 256, 70_000, MOST - 1] {
            let (sender, receiver) = of(flow);
            assert_eq!((flow_of(sender), flow_of(receiver)), (Some((flow, true)), Some((flow, false))));
        }
        assert_eq!(of(0).0, Ipv4Addr::new(10, 64, 0, 1));
        let others = [[10, 64, 0, 0], [10, 63, 255, 255], [10, 96, 0, 1], [192, 168, 0, 1]];
        assert!(others.iter().all(|a| flow_of(Ipv4Addr::from(*a)).is_none()));
    }
}
