//! Warnings about the ports of this machine: given by `check` if the interfaces exist, and by `run` at startup.

use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Which port.
    pub interface: String,
    /// What is unsafe, and the remedy.
    pub text: String,
}

/// Ports with addresses: the kernel answers packets sent to them, and may route others past the router.
#[must_use]
pub fn addresses(ports: &[String; 2]) -> Vec<Warning> {
    let of = |interface: &String| {
        let index = interface_index(interface).ok()?;
        let addresses = Netlink::open().and_then(|n| n.addresses(index)).ok()?;
        let list: Vec<String> = addresses.iter().map(|(a, bits)| format!("{a}/{bits}")).collect();
        let text = format!(
            "the interface {interface} has the address {}: the kernel answers there, and with ip_forward on it routes packets past the router\n  `ip addr flush dev {interface}` removes it; manage the machine through another port",
            list.join(", ")
        );
        (!list.is_empty()).then(|| Warning { interface: interface.clone(), text })
    };
    ports.iter().filter_map(of).collect()
}

/// All warnings about these ports now; none about interfaces that do not exist.
#[must_use]
pub fn warnings(ports: &[String; 2]) -> Vec<Warning> {
    let shared = |interface: &String| {
        let index = interface_index(interface).ok()?;
        let e = inprofile_live::io::afpacket::claim::shared(index).err()?;
        Some(Warning { interface: interface.clone(), text: format!("the interface {interface}: {e}") })
    };
    ports.iter().filter_map(shared).chain(addresses(ports)).collect()
}
