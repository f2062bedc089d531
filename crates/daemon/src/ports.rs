//! What is unsafe about the ports on this machine: reported by `check` where the interfaces exist, and by `run` at the start.

use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

/// Something to warn of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub interface: String,
    /// What, and what to do.
    pub text: String,
}

/// The kernel takes what is sent to an address of its own, answers it, and may route it: beside us.
#[must_use]
pub fn addresses(ports: &[String; 2]) -> Vec<Warning> {
    let of = |interface: &String| {
        let index = interface_index(interface).ok()?;
        let addresses = Netlink::open().and_then(|n| n.addresses(index)).ok()?;
        let list: Vec<String> = addresses.iter().map(|(a, bits)| format!("{a}/{bits}")).collect();
        let text = format!(
            "the interface {interface} has the address {}: the kernel answers there, and routes if ip_forward is on, beside the router\n  `ip addr flush dev {interface}` takes it away; manage the machine by another port",
            list.join(", ")
        );
        (!list.is_empty()).then(|| Warning { interface: interface.clone(), text })
    };
    ports.iter().filter_map(of).collect()
}

/// All that is unsafe about them now; nothing of ports that aren't here.
#[must_use]
pub fn warnings(ports: &[String; 2]) -> Vec<Warning> {
    let shared = |interface: &String| {
        let index = interface_index(interface).ok()?;
        let e = inprofile_live::io::afpacket::claim::shared(index).err()?;
        Some(Warning { interface: interface.clone(), text: format!("the interface {interface}: {e}") })
    };
    ports.iter().filter_map(shared).chain(addresses(ports)).collect()
}
