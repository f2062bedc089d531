//! The part of rtnetlink that is needed: a host's device up with an MTU, its addresses, its routes with their metrics; and which
//! queue a port has.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::io::sys;

/// The kernel's numbers that the `libc` crate doesn't have (linux/if_link.h, linux/rtnetlink.h).
pub(super) mod number {
    pub const IFLA_IFNAME: u16 = 3;
    pub const IFLA_MTU: u16 = 4;
    pub const IFLA_LINK: u16 = 5;
    pub const IFLA_QDISC: u16 = 6;
    pub const IFLA_MASTER: u16 = 10;
    pub const IFLA_OPERSTATE: u16 = 16;
    pub const IFLA_LINKINFO: u16 = 18;
    pub const IFLA_INFO_KIND: u16 = 1;
    pub const IFLA_CARRIER: u16 = 33;
    pub const IFLA_CARRIER_CHANGES: u16 = 35;
    pub const IFLA_LINK_NETNSID: u16 = 37;
    pub const RTAX_LOCK: u16 = 1;
    pub const RTAX_RTO_MIN: u16 = 13;
    pub const RTAX_INITCWND: u16 = 11;
    pub const RTAX_INITRWND: u16 = 14;
    pub const RTAX_QUICKACK: u16 = 15;
}

/// struct nlmsghdr.
pub(super) const HEADER: usize = 16;

/// The settings of TCP on a route. `None`: as the kernel will.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Initial congestion window in segments.
    pub initial_window: Option<u32>,
    /// The receiver's first window in segments.
    pub receive_window: Option<u32>,
    /// The least that a retransmission timeout adds to the round-trip time, in milliseconds.
    pub min_rto_ms: Option<u32>,
    /// Every packet is acknowledged at once.
    pub quick_ack: bool,
}

/// A conversation with the kernel about the calling thread's network namespace.
#[derive(Debug)]
pub struct Netlink(OwnedFd);

/// A request under construction.
pub(super) struct Message(Vec<u8>);

impl Message {
    /// That something be done; it is acknowledged.
    pub(super) fn new(kind: u16, flags: libc::c_int, body: &[u8]) -> Message {
        Message::with(kind, libc::NLM_F_ACK | flags, body)
    }

    /// That something be told: the answer is all there is.
    pub(super) fn question(kind: u16, flags: libc::c_int, body: &[u8]) -> Message {
        Message::with(kind, flags, body)
    }

    fn with(kind: u16, flags: libc::c_int, body: &[u8]) -> Message {
        let flags = (libc::NLM_F_REQUEST | flags) as u16;
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        Message(bytes)
    }

    /// The value of an attribute of several.
    pub(super) fn attributes() -> Message {
        Message(Vec::new())
    }

    pub(super) fn finish_attributes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        self.0.extend((4 + value.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn number(self, kind: u16, value: u32) -> Message {
        self.attribute(kind, &value.to_ne_bytes())
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

impl Netlink {
    /// Opens one.
    ///
    /// # Errors
    /// The system's error.
    pub fn open() -> io::Result<Netlink> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the descriptor that comes back is nobody else's.
        let socket = unsafe {
            OwnedFd::from_raw_fd(sys::check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?)
        };
        Ok(Netlink(socket))
    }

    /// Sets a device's MTU and switches it on.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn up(&self, device: u32, mtu: u32) -> io::Result<()> {
        // struct ifinfomsg: family, pad, type, index, flags, which flags.
        let up = libc::IFF_UP as u32;
        let mut body = vec![0; 4];
        body.extend([device, up, up].iter().flat_map(|w| w.to_ne_bytes()));
        self.ask(Message::new(libc::RTM_NEWLINK, 0, &body).number(number::IFLA_MTU, mtu))
    }

    /// Gives a device an address of its own.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn address(&self, device: u32, address: Ipv4Addr) -> io::Result<()> {
        // struct ifaddrmsg: family, prefix length, flags, scope, index.
        let mut body = vec![libc::AF_INET as u8, 32, 0, 0];
        body.extend(device.to_ne_bytes());
        let octets = address.octets();
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(libc::RTM_NEWADDR, flags, &body)
            .attribute(libc::IFA_LOCAL, &octets)
            .attribute(libc::IFA_ADDRESS, &octets);
        self.ask(message)
    }

    /// Leads packets for `to` to the device, from `source`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn route(&self, device: u32, to: Ipv4Addr, source: Ipv4Addr, metrics: &Metrics) -> io::Result<()> {
        // struct rtmsg: family, prefix lengths, tos, table, protocol, scope, type, flags.
        let body = [
            libc::AF_INET as u8,
            32,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            libc::RT_SCOPE_LINK,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(libc::RTM_NEWROUTE, flags, &body)
            .attribute(libc::RTA_DST, &to.octets())
            .number(libc::RTA_OIF, device)
            .attribute(libc::RTA_PREFSRC, &source.octets())
            .attribute(libc::RTA_METRICS, &metrics.attributes());
        self.ask(message)
    }

    /// The queueing discipline at a device's root, as `tc` names it: `noqueue` where packets are never kept.
    ///
    /// # Errors
    /// The kernel's error; `InvalidData` if it doesn't say.
    pub fn queue(&self, device: u32) -> io::Result<String> {
        // struct ifinfomsg: family, pad, type, index, flags, which flags.
        let mut body = vec![0; 4];
        body.extend([device, 0, 0].iter().flat_map(|w| w.to_ne_bytes()));
        let answer = self.converse(Message::question(libc::RTM_GETLINK, 0, &body))?;
        let about = answer.get(HEADER + body.len()..).unwrap_or_default();
        let name = attribute(about, number::IFLA_QDISC).and_then(|value| value.strip_suffix(b"\0"));
        name.map(|n| String::from_utf8_lossy(n).into_owned()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the kernel doesn't say which queue it has")
        })
    }

    /// Sends a request that is acknowledged.
    pub(super) fn ask(&self, message: Message) -> io::Result<()> {
        self.converse(message).map(|_| ())
    }

    /// Sends a request and reads the first message of the answer.
    pub(super) fn converse(&self, message: Message) -> io::Result<Vec<u8>> {
        self.send(message)?;
        let answer = self.receive()?;
        // An error follows as struct nlmsgerr, which begins with its number: 0 for an acknowledgement.
        match (kind(&answer), word(&answer, HEADER)) {
            (Some(libc::NLMSG_ERROR), Some(error)) if error != 0 => Err(io::Error::from_raw_os_error(-error)),
            (Some(_), Some(_)) => Ok(answer),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends a request whose answer is a list, and shows each message of it.
    pub(super) fn dump(&self, message: Message, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.send(message)?;
        loop {
            let answer = self.receive()?;
            let mut rest = answer.as_slice();
            while let Some(length) = word(rest, 0).and_then(|n| usize::try_from(n).ok()) {
                let (Some(message), true) = (rest.get(..length), length >= HEADER) else { break };
                match (kind(message), word(message, HEADER)) {
                    (Some(libc::NLMSG_DONE), _) => return Ok(()),
                    (Some(libc::NLMSG_ERROR), Some(error)) if error != 0 => {
                        return Err(io::Error::from_raw_os_error(-error));
                    }
                    _ => each(message),
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }

    fn send(&self, message: Message) -> io::Result<()> {
        let bytes = message.finish();
        // SAFETY: pointer and length describe `bytes`, which the kernel only reads.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn receive(&self) -> io::Result<Vec<u8>> {
        let mut answer = vec![0u8; 1 << 15];
        // SAFETY: pointer and length describe `answer`, in which any bytes are valid.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        answer.truncate(got as usize);
        Ok(answer)
    }
}

fn word(message: &[u8], at: usize) -> Option<i32> {
    message.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes)
}

/// The type of a message: struct nlmsghdr is length, type, flags, number, port.
fn kind(message: &[u8]) -> Option<libc::c_int> {
    word(message, 4).map(|w| libc::c_int::from(w as u16))
}

/// The value of an attribute among these, each a length, a kind, and a value filled up to four bytes.
pub(super) fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (&[a, b, c, d], _) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(4..length)?;
        if u16::from_ne_bytes([c, d]) == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

impl Metrics {
    /// As attributes within the route's own.
    fn attributes(&self) -> Vec<u8> {
        let quick = self.quick_ack.then_some(1);
        // A least timeout only counts if it is locked.
        let lock = self.min_rto_ms.map(|_| 1 << number::RTAX_RTO_MIN);
        let all = [
            (number::RTAX_LOCK, lock),
            (number::RTAX_INITCWND, self.initial_window),
            (number::RTAX_RTO_MIN, self.min_rto_ms),
            (number::RTAX_INITRWND, self.receive_window),
            (number::RTAX_QUICKACK, quick),
        ];
        let set = all.into_iter().filter_map(|(kind, value)| Some((kind, value?)));
        set.fold(Message::attributes(), |m, (kind, value)| m.number(kind, value)).finish_attributes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_behind_others_and_never_beyond_the_end() {
        let m = Message(Vec::new()).attribute(3, b"lan0\0").number(4, 1500).attribute(6, b"noqueue\0").0;
        assert_eq!(attribute(&m, 6), Some(&b"noqueue\0"[..]));
        assert_eq!(attribute(&m, 4), Some(&1500u32.to_ne_bytes()[..]));
        assert_eq!(attribute(&m, 7), None);
        for length in 0..m.len() {
            assert_eq!(attribute(&m[..length], 6), None, "{length}");
        }
        // A length shorter than the attribute's own head.
        assert_eq!(attribute(&[0, 0, 6, 0], 6), None);
    }

    #[test]
    fn the_loopback_device_has_no_queue() {
        let index = sys::interface_index("lo").unwrap();
        assert_eq!(Netlink::open().unwrap().queue(index).unwrap(), "noqueue");
    }
}
