//! Warnings about the ports of this machine: given by `check` if the interfaces exist, and by `run` at startup.

use std::fmt;

use inprofile_live::io::link::is_link_local;
use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The port.
    pub interface: String,
    /// The risk, and the remedy.
    pub text: String,
}

/// The host's configuration of an interface, which is cut off while the router runs: the port is [closed](crate::isolation) to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The port.
    pub interface: String,
    /// Addresses that every interface gets automatically.
    pub link_local: Vec<String>,
    /// The host's addresses, the interfaces stacked above with theirs, and default routes.
    pub rest: Vec<String>,
}

impl Closing {
    /// The configuration of an interface; `None` if there is no such interface or the system doesn't report it.
    #[must_use]
    pub fn of(interface: &str) -> Option<Closing> {
        let (netlink, index) = (Netlink::open().ok()?, interface_index(interface).ok()?);
        let (mut link_local, mut rest) = (Vec::new(), Vec::new());
        let mut interfaces = vec![(index, interface.to_owned())];
        interfaces.extend(netlink.above(index).ok()?);
        for (at, name) in interfaces {
            let addresses = netlink.addresses(at).ok()?;
            let (own, put): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|(a, _)| is_link_local(*a));
            let text = |list: Vec<(_, u8)>| -> Vec<String> {
                list.into_iter().map(|(a, bits): (std::net::IpAddr, u8)| format!("{a}/{bits}")).collect()
            };
            match (at == index, text(put)) {
                (true, put) => {
                    link_local = text(own);
                    rest.extend(put);
                }
                (false, put) if put.is_empty() => rest.push(format!("the interface {name}")),
                (false, put) => rest.push(format!("the interface {name} ({})", put.join(", "))),
            }
            for gateway in netlink.default_routes(at).ok()? {
                rest.push(
                    gateway.map_or("the default route".into(), |g| format!("the default route by {g}")),
                );
            }
        }
        Some(Closing { interface: interface.to_owned(), link_local, rest })
    }
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<&str> = self.rest.iter().chain(&self.link_local).map(String::as_str).collect();
        let all = if all.is_empty() { "nothing it has there" } else { &all.join(", ") };
        write!(
            f,
            "{}: closed to this machine's own IP stack while the router runs, with {all}",
            self.interface
        )
    }
}

/// Warnings about ports through which the machine may be managed or reach others, which it can't while the router runs.
#[must_use]
pub fn cut_off(ports: &[String; 2]) -> Vec<Warning> {
    let of = |interface: &String| {
        let Closing { rest, .. } = Closing::of(interface)?;
        let text = format!(
            "the machine can't be reached or managed through {interface} while the router runs: it closes the port to the machine's own IP stack, and with it {}\n  manage the machine through another interface first; `ip addr flush dev {interface}` removes the port's addresses",
            rest.join(", ")
        );
        (!rest.is_empty()).then(|| Warning { interface: interface.clone(), text })
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
    ports.iter().filter_map(shared).chain(cut_off(ports)).collect()
}
