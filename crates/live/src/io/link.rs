//! An interface as the kernel reports it: its link state, its master, its addresses; and switching it on or off.

use std::io;
use std::net::IpAddr;

use super::netlink::{HEADER, Message, Netlink, attribute, number};

/// The present state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Switched on by somebody (IFF_UP).
    pub up: bool,
    /// Whether there is a carrier: a cable is plugged in and the neighbour is on.
    pub carrier: bool,
    /// RFC 2863's ifOperStatus.
    pub operstate: Operstate,
    /// How often the carrier came or went.
    pub carrier_changes: u32,
    /// The bridge, bond or other interface that it is a port of, by its number.
    pub master: Option<u32>,
    /// The longest packet it sends (IFLA_MTU).
    pub mtu: Option<u32>,
    /// Its name.
    pub name: String,
    /// The kind of device, such as `bridge` or `veth`; `None`: a driver.
    pub kind: Option<String>,
}

/// RFC 2863 §3.1.12: what the link is good for at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operstate(u8);

impl Operstate {
    /// As `ip link` and /sys write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let names = ["unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"];
        names.get(usize::from(self.0)).copied().unwrap_or("unknown")
    }

    /// Drivers that don't say are `unknown`, and then the carrier counts.
    fn passes(self) -> bool {
        matches!(self.name(), "up" | "unknown")
    }
}

impl Link {
    /// Whether packets can pass.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.up && self.carrier && self.operstate.passes()
    }

    fn read(message: &[u8]) -> Option<Link> {
        // struct ifinfomsg: family, pad, type, index, flags, which flags.
        let (flags, about) =
            (message.get(HEADER + 8..HEADER + 12).and_then(word)?, message.get(HEADER + 16..)?);
        let text = |value: &[u8]| Some(String::from_utf8_lossy(value.strip_suffix(b"\0")?).into_owned());
        Some(Link {
            up: flags & libc::IFF_UP as u32 != 0,
            carrier: attribute(about, number::IFLA_CARRIER)? == [1],
            operstate: Operstate(*attribute(about, number::IFLA_OPERSTATE)?.first()?),
            carrier_changes: attribute(about, number::IFLA_CARRIER_CHANGES).and_then(word).unwrap_or(0),
            master: attribute(about, number::IFLA_MASTER).and_then(word),
            mtu: attribute(about, number::IFLA_MTU).and_then(word),
            name: attribute(about, number::IFLA_IFNAME).and_then(text)?,
            kind: attribute(about, number::IFLA_LINKINFO)
                .and_then(|info| attribute(info, number::IFLA_INFO_KIND))
                .and_then(text),
        })
    }
}

impl Netlink {
    /// An interface, by its number.
    ///
    /// # Errors
    /// The kernel's error: `ENODEV` if there is none; `InvalidData` if something is missing.
    pub fn link(&self, device: u32) -> io::Result<Link> {
        let mut body = vec![0; 4];
        body.extend([device, 0, 0].iter().flat_map(|w| w.to_ne_bytes()));
        let answer = self.converse(Message::question(libc::RTM_GETLINK, 0, &body))?;
        Link::read(&answer).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the kernel doesn't say how the link is")
        })
    }

    /// Switches an interface on or off. Takes CAP_NET_ADMIN.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn switch(&self, device: u32, on: bool) -> io::Result<()> {
        let up = libc::IFF_UP as u32;
        let mut body = vec![0; 4];
        body.extend([device, if on { up } else { 0 }, up].iter().flat_map(|w| w.to_ne_bytes()));
        self.ask(Message::new(libc::RTM_NEWLINK, 0, &body))
    }

    /// The addresses of an interface, each with its prefix length; IPv6's link-local ones, which every interface has, come last.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn addresses(&self, device: u32) -> io::Result<Vec<(IpAddr, u8)>> {
        // struct ifaddrmsg: family, prefix length, flags, scope, index.
        let mut found = Vec::new();
        self.dump(Message::question(libc::RTM_GETADDR, libc::NLM_F_DUMP, &[0; 8]), &mut |message| {
            let about = message.get(HEADER..).unwrap_or_default();
            if about.get(4..8) != Some(&device.to_ne_bytes()) {
                return;
            }
            let rest = &about[8..];
            // Of a point-to-point interface IFA_ADDRESS is the other end's.
            let value = attribute(rest, libc::IFA_LOCAL).or_else(|| attribute(rest, libc::IFA_ADDRESS));
            found.extend(value.and_then(address).map(|a| (a, about[1])));
        })?;
        found.sort_by_key(|(a, _)| is_link_local(*a));
        Ok(found)
    }

    /// The interfaces whose packets go through this one: VLANs, macvlans, tunnels bound to it, and what is above them; each by its
    /// number and name. The other end of a veth pair is not one of them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn above(&self, device: u32) -> io::Result<Vec<(u32, String)>> {
        let mut links = Vec::new();
        self.dump(Message::question(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; 16]), &mut |message| {
            let rest = message.get(HEADER + 16..).unwrap_or_default();
            let elsewhere = attribute(rest, number::IFLA_LINK_NETNSID).is_some();
            let below = attribute(rest, number::IFLA_LINK).and_then(word);
            let index = message.get(HEADER + 4..HEADER + 8).and_then(word);
            if let (Some(link), Some(below), Some(index), false) =
                (Link::read(message), below, index, elsewhere)
                && link.kind.as_deref() != Some("veth")
            {
                links.push((below, index, link.name));
            }
        })?;
        let (mut found, mut from) = (Vec::<(u32, String)>::new(), vec![device]);
        while let Some(at) = from.pop() {
            for (_, index, name) in links.iter().filter(|(below, index, _)| *below == at && *index != at) {
                if found.iter().all(|(known, _)| known != index) {
                    found.push((*index, name.clone()));
                    from.push(*index);
                }
            }
        }
        Ok(found)
    }

    /// The gateways of the default routes that lead through an interface; `None` where the route names none.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn default_routes(&self, device: u32) -> io::Result<Vec<Option<IpAddr>>> {
        // struct rtmsg: family, prefix lengths, tos, table, protocol, scope, type, flags.
        let mut found = Vec::new();
        self.dump(Message::question(libc::RTM_GETROUTE, libc::NLM_F_DUMP, &[0; 12]), &mut |message| {
            let Some((head, rest)) = message.get(HEADER..).and_then(|about| about.split_at_checked(12))
            else {
                return;
            };
            let default = head[1] == 0 && head[7] == libc::RTN_UNICAST;
            if default && attribute(rest, libc::RTA_OIF).and_then(word) == Some(device) {
                found.push(attribute(rest, libc::RTA_GATEWAY).and_then(address));
            }
        })?;
        Ok(found)
    }
}

/// Whether it is an address that every interface gives itself (RFC 4291 §2.5.6).
#[must_use]
pub fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.is_unicast_link_local())
}

fn word(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(value).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sys;

    #[test]
    fn the_loopback_as_it_is() {
        let index = sys::interface_index("lo").unwrap();
        let netlink = Netlink::open().unwrap();
        let link = netlink.link(index).unwrap();
        assert_eq!((link.name.as_str(), link.master, link.kind), ("lo", None, None));
        let addresses = netlink.addresses(index).unwrap();
        assert!(!link.up || addresses.contains(&(IpAddr::from([127, 0, 0, 1]), 8)), "{addresses:?}");
        assert_eq!(netlink.link(u32::MAX >> 1).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn what_is_cut_short_is_no_link() {
        let body = [0u8; 16];
        let message = Message::new(libc::RTM_NEWLINK, 0, &body)
            .attribute(number::IFLA_CARRIER, &[1])
            .attribute(number::IFLA_IFNAME, b"lan0\0")
            .attribute(number::IFLA_OPERSTATE, &[6])
            .finish();
        assert_eq!(Link::read(&message).map(|l| (l.carrier, l.passes())), Some((true, false)));
        for length in 0..message.len() {
            let _ = Link::read(&message[..length]);
        }
        assert_eq!(Operstate(9).name(), "unknown");
    }
}
