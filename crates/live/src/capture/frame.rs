//! A simulated packet as it would be on an Ethernet: IPv4 with TCP or UDP, from the first byte, its payload zeros.
//!
//! Lengths are those of the headers written here and of the payload. An experiment's `header` may be longer: then TCP's options
//! are padded to it, as far as they go. Shorter it can't be: then the frame is longer than the experiment counts.

use std::net::Ipv4Addr;

use inprofile_sim::tcp::{ByteOption, Sack, sequence_number};

use crate::addresses::PORT;
use crate::packet::checksum;

/// Ethernet's header.
pub const ETHERNET: usize = 14;
/// IPv4's, without options.
const IPV4: usize = 20;
/// UDP's.
const UDP: usize = 8;
/// TCP's, without options, and the most that its options take.
const TCP: usize = 20;
const MOST_OPTIONS: usize = 40;
/// A sender's own port; a receiver's is [`PORT`].
const EPHEMERAL: u16 = 49_152;

/// TCP's flags (RFC 9293 §3.1; AE: RFC 9768 §3).
pub mod flags {
    use inprofile_sim::tcp::Flags;

    /// Synchronise sequence numbers.
    pub const SYN: u16 = 0x002;
    /// The acknowledgement number counts.
    pub const ACK: u16 = 0x010;
    /// ECN-Echo.
    pub const ECE: u16 = 0x040;
    /// Congestion window reduced.
    pub const CWR: u16 = 0x080;
    /// Accurate ECN.
    pub const AE: u16 = 0x100;

    /// ECN's three, of a simulated packet.
    #[must_use]
    pub fn of_ecn(flags: Flags) -> u16 {
        u16::from(flags.ace()) << 6
    }
}

/// The two ends of a frame on a link, and what IP says of it.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// The nodes at the link's ends, from and to.
    pub nodes: (u32, u32),
    /// From and to.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// Whether it goes to a flow's receiver.
    pub forward: bool,
    /// DSCP and ECN bits.
    pub octet: u8,
    /// IPv4's identification.
    pub identification: u16,
    /// How long it is in the experiment, headers included.
    pub size: u32,
    /// Bytes of payload.
    pub payload: u32,
}

/// TCP's header.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// The number of the first byte.
    pub seq: u32,
    /// The next byte that is expected.
    pub ack: u32,
    /// See [`flags`].
    pub flags: u16,
    /// The receiver's window in bytes, and by how many bits it is shifted.
    pub window: (u32, u8),
}

/// TCP's options.
#[derive(Clone, Debug, Default)]
pub struct Options(Vec<u8>);

impl Options {
    /// Of a SYN: the segment size (RFC 9293 §3.7.1), SACK permitted (RFC 2018 §2), the shift of the window (RFC 7323 §2.2).
    #[must_use]
    pub fn of_syn(segment: u32, sack: bool, shift: u8) -> Options {
        let [high, low] = (segment.min(65_535) as u16).to_be_bytes();
        let mut o = vec![2, 4, high, low];
        o.extend(if sack { &[1, 1, 4, 2][..] } else { &[] });
        o.extend([1, 3, 3, shift]);
        Options(o)
    }

    /// SACK blocks (RFC 2018 §3) of segments of this many bytes.
    #[must_use]
    pub fn of_sack(sack: &Sack, segment: u32) -> Options {
        let blocks = sack.blocks();
        if blocks.is_empty() {
            return Options::default();
        }
        let mut o = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for &(from, to) in blocks {
            o.extend(sequence_number(from, segment).to_be_bytes());
            o.extend(sequence_number(to, segment).to_be_bytes());
        }
        Options(o)
    }

    /// With the AccECN Option before them, if there is one (RFC 9768 §3.2.3, Figure 4): in words of four, by no-operations that come first, in the
    /// place of those by which SACK was.
    #[must_use]
    pub fn with_bytes(self, option: Option<ByteOption>) -> Options {
        let Some(option) = option else { return self };
        let others = self.0.strip_prefix(&[1, 1, 5]).map_or(self.0.clone(), |rest| [&[5], rest].concat());
        let mut bytes = vec![[172, 174][usize::from(option.order())], option.bytes() as u8];
        for field in option.fields() {
            bytes.extend(&field.to_be_bytes()[1..]);
        }
        bytes.extend(others);
        let mut padded = vec![1; bytes.len().next_multiple_of(4) - bytes.len()];
        padded.extend(bytes);
        Options(padded)
    }

    /// Padded by the end of the list, a byte of zeros (RFC 9293 §3.1), up to this many bytes in words of four.
    fn padded(mut self, bytes: usize) -> Vec<u8> {
        let bytes = (bytes.min(MOST_OPTIONS) / 4 * 4).max(self.0.len());
        self.0.resize(bytes, 0);
        self.0
    }
}

/// Ethernet and IPv4, up to where the transport begins.
fn begin(out: &mut Vec<u8>, o: &Outside, protocol: u8, length: usize) {
    out.clear();
    // Locally administered addresses: the node's number.
    for node in [o.nodes.1, o.nodes.0] {
        out.extend([2, 0]);
        out.extend(node.to_be_bytes());
    }
    out.extend([8, 0]);
    let total = (IPV4 + length) as u16;
    out.extend([0x45, o.octet]);
    out.extend(total.to_be_bytes());
    out.extend(o.identification.to_be_bytes());
    // Don't fragment; 64 hops; the checksum follows.
    out.extend([0x40, 0, 64, protocol, 0, 0]);
    out.extend(o.addresses.0.octets());
    out.extend(o.addresses.1.octets());
    let sum = checksum::check(&out[ETHERNET..]);
    out[ETHERNET + 10..][..2].copy_from_slice(&sum.to_be_bytes());
}

/// The transport's checksum: over its header and a pseudo header (RFC 9293 §3.1, RFC 768). A payload of zeros adds nothing.
fn transport_sum(out: &[u8], protocol: u8, length: usize) -> u16 {
    let ip = &out[ETHERNET..];
    let ends = checksum::sum(&ip[12..20]);
    let pseudo = checksum::add(ends, checksum::add(u16::from(protocol), length as u16));
    !checksum::add(pseudo, checksum::sum(&ip[IPV4..]))
}

fn ports(out: &mut Vec<u8>, (sender, receiver): (u16, u16), forward: bool) {
    let (from, to) = if forward { (sender, receiver) } else { (receiver, sender) };
    out.extend(from.to_be_bytes());
    out.extend(to.to_be_bytes());
}

/// The headers of a segment into `out`; returns the length of the whole frame.
pub fn tcp(out: &mut Vec<u8>, o: &Outside, t: &Tcp, options: Options) -> u32 {
    let spare = (o.size as usize).saturating_sub(IPV4 + TCP + o.payload as usize);
    let options = options.padded(spare);
    let length = TCP + options.len() + o.payload as usize;
    begin(out, o, 6, length);
    ports(out, (EPHEMERAL, PORT), o.forward);
    out.extend(t.seq.to_be_bytes());
    out.extend(t.ack.to_be_bytes());
    let offset = ((TCP + options.len()) / 4) as u16;
    out.extend((offset << 12 | t.flags).to_be_bytes());
    // RFC 7323 §2.2: the window of a SYN is not shifted.
    let shift = if t.flags & flags::SYN == 0 { t.window.1 } else { 0 };
    let window = (t.window.0 >> shift).min(65_535) as u16;
    out.extend(window.to_be_bytes());
    out.extend([0; 4]);
    out.extend(options);
    let sum = transport_sum(out, 6, length);
    out[ETHERNET + IPV4 + 16..][..2].copy_from_slice(&sum.to_be_bytes());
    (ETHERNET + IPV4 + length) as u32
}

/// The headers of a datagram into `out`; returns the length of the whole frame.
pub fn udp(out: &mut Vec<u8>, o: &Outside) -> u32 {
    let length = UDP + o.payload as usize;
    begin(out, o, 17, length);
    ports(out, (PORT, PORT), o.forward);
    out.extend((length as u16).to_be_bytes());
    out.extend([0; 2]);
    // RFC 768: a checksum of zero would say that there is none.
    let sum = match transport_sum(out, 17, length) {
        0 => u16::MAX,
        sum => sum,
    };
    out[ETHERNET + IPV4 + 6..][..2].copy_from_slice(&sum.to_be_bytes());
    (ETHERNET + IPV4 + length) as u32
}

/// By how many bits a window of so many bytes is shifted (RFC 7323 §2.2: at most 14).
#[must_use]
pub fn window_shift(bytes: u32) -> u8 {
    (0..14).find(|shift| bytes >> shift <= 65_535).unwrap_or(14)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{self, Layer};

    fn outside(size: u32, payload: u32) -> Outside {
        let addresses = crate::addresses::of(0);
        Outside { nodes: (1, 2), addresses, forward: true, octet: 0x28 | 2, identification: 7, size, payload }
    }

    /// The frame whole, and its checksums as a receiver computes them (RFC 9293 §3.1).
    fn check(frame: &[u8], protocol: u8) {
        let ip = &frame[ETHERNET..];
        assert_eq!(checksum::check(&ip[..20]), 0);
        assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
        let mut pseudo = ip[12..20].to_vec();
        pseudo.extend([0, protocol]);
        pseudo.extend(((ip.len() - 20) as u16).to_be_bytes());
        pseudo.extend(&ip[20..]);
        assert_eq!(checksum::check(&pseudo), 0);
    }

    #[test]
    fn a_segment_byte_for_byte() {
        let mut out = Vec::new();
        let t = Tcp { seq: 1, ack: 1, flags: flags::ACK | flags::CWR, window: (65_535, 0) };
        let length = tcp(&mut out, &outside(42, 2), &t, Options::default());
        let expected = [
            0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 8, 0, // Ethernet
            0x45, 0x2a, 0, 42, 0, 7, 0x40, 0, 64, 6, 0x26, 0x0c, 10, 64, 0, 1, 10, 80, 0, 1, // IPv4
            0xc0, 0, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x90, 0xff, 0xff, 0xc7, 0x35, 0,
            0, // TCP
        ];
        assert_eq!(out, expected);
        assert_eq!(length as usize, out.len() + 2);
    }

    #[test]
    fn every_frame_has_valid_checksums_and_is_read_back() {
        let mut sack = Sack::NONE;
        [(9, 12), (5, 6), (3, 4), (1 << 30, 1 << 31)].into_iter().for_each(|b| sack.push(b));
        let t = Tcp { seq: u32::MAX, ack: 3_000_000_000, flags: flags::ACK, window: (1 << 20, 5) };
        for (size, payload) in
            [(40, 0), (52, 0), (84, 0), (1500, 1460), (1501, 1461), (65_535, 65_400), (20, 0)]
        {
            for options in [Options::default(), Options::of_sack(&sack, 1460), Options::of_syn(1460, true, 5)]
            {
                let mut out = Vec::new();
                let length = tcp(&mut out, &outside(size, payload), &t, options);
                out.resize(length as usize, 0);
                check(&out, 6);
                let headers = packet::parse(Layer::Ethernet, &out).unwrap();
                assert_eq!(headers.payload, payload, "{size}");
            }
            let mut out = Vec::new();
            let length = udp(&mut out, &outside(size, payload));
            out.resize(length as usize, 0);
            check(&out, 17);
        }
    }

    #[test]
    fn options_as_their_rfcs_have_them() {
        // RFC 2018 §3: kind 5, and the edges of blocks as sequence numbers.
        let mut sack = Sack::NONE;
        sack.push((3, 5));
        let expected = [1, 1, 5, 10, 0, 0, 0x0b, 0x69, 0, 0, 0x16, 0xd1];
        assert_eq!(Options::of_sack(&sack, 1460).0, expected);
        // RFC 9293 §3.7.1: kind 2, 1460; RFC 2018 §2: kind 4; RFC 7323 §2.2: kind 3, a shift of 7.
        assert_eq!(Options::of_syn(1460, true, 7).0, [2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]);
        assert_eq!(Options::of_syn(1460, false, 7).0, [2, 4, 5, 0xb4, 1, 3, 3, 7]);
    }

    /// RFC 9768 §3.2.3, Figure 4 and Table 5: kinds 172 and 174, three bytes a field; beside SACK blocks as long as the simulator counts.
    #[test]
    fn the_accecn_option() {
        let none = Options::default();
        let alone = |order, fields: &[u32]| none.clone().with_bytes(Some(ByteOption::new(order, fields))).0;
        assert_eq!(alone(0, &[0x0102_0304]), [1, 1, 1, 172, 5, 2, 3, 4]);
        assert_eq!(alone(1, &[1, 2]), [174, 8, 0, 0, 1, 0, 0, 2]);
        assert_eq!(alone(0, &[1, 0, 1]), [1, 172, 11, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(alone(1, &[]), [1, 1, 174, 2]);
        let mut sack = Sack::NONE;
        sack.push((3, 5));
        let both = Options::of_sack(&sack, 1460).with_bytes(Some(ByteOption::new(1, &[1, 2])));
        assert_eq!(both.0, [1, 1, 174, 8, 0, 0, 1, 0, 0, 2, 5, 10, 0, 0, 0x0b, 0x69, 0, 0, 0x16, 0xd1]);
        for option in [&[1][..], &[1, 2], &[1, 2, 3]].map(|fields| ByteOption::new(0, fields)) {
            let mut sack = Sack::NONE;
            for n in 0..=option.blocks_beside() {
                let options = Options::of_sack(&sack, 1460).with_bytes(Some(option));
                assert_eq!(options.0.len() as u32, option.bytes_beside(n));
                sack.push((9 * n as u32, 9 * n as u32 + 1));
            }
        }
    }

    #[test]
    fn windows_are_shifted_as_little_as_possible() {
        assert_eq!([65_535, 65_536, 1 << 20, u32::MAX].map(window_shift), [0, 1, 5, 14]);
    }
}
