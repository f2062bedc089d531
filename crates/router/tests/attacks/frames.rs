//! Frames of every encapsulation, right or with something wrong about them, and where their IP packets begin; and frames by chance.

use inprofile_core::rng::Rng;
use inprofile_live::packet::checksum;

/// The headers between the Ethernet addresses and the IP header, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// A VLAN tag: its protocol identifier and its control information.
    Tag(u16, u16),
    /// A PPPoE session.
    Pppoe(u16),
    /// This many MPLS labels, each with this traffic class.
    Mpls(u8, u8),
    /// A length, and the SNAP header of RFC 1042.
    Snap,
}

/// An IP packet in a frame.
#[derive(Clone, Debug)]
pub struct Ip {
    pub v6: bool,
    /// Last byte of the source address: 1 is the customer, others are strangers.
    pub from: u8,
    pub port: u16,
    /// DSCP and ECN.
    pub octet: u8,
    pub protocol: u8,
    /// Bytes of the packet that are there.
    pub bytes: usize,
    /// The value of the length field, if not that.
    pub says: Option<u16>,
    /// IPv4's flags and offset.
    pub fragment: u16,
    /// IPv4's options, in words.
    pub options: u8,
    pub wraps: Vec<Wrap>,
}

impl Default for Ip {
    /// 1500 bytes of UDP over IPv4 from the customer.
    fn default() -> Ip {
        Ip {
            v6: false,
            from: 1,
            port: 4000,
            octet: 0,
            protocol: 17,
            bytes: 1500,
            says: None,
            fragment: 0,
            options: 0,
            wraps: Vec::new(),
        }
    }
}

/// A frame, whose source address says where its payload begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Frame {
    /// Bytes behind link headers and tags, whatever any length field says, without padding.
    pub fn bytes(&self) -> u64 {
        (self.0.len() - self.at() - usize::from(self.0[8])) as u64
    }

    /// Made as long as a frame must be.
    pub fn padded(self) -> Frame {
        self.padded_to(60)
    }

    pub fn padded_to(mut self, length: usize) -> Frame {
        let padding = length.saturating_sub(self.0.len());
        self.0[8] += padding as u8;
        self.0.resize(self.0.len() + padding, 0);
        self
    }

    /// Bytes that Ethernet carries of it: preamble, gap and check sequence too, of 64 bytes at least.
    pub fn on_ethernet(&self) -> u64 {
        self.0.len().max(60) as u64 + 24
    }

    /// Bytes behind the Ethernet header, tags and labels too, without padding.
    pub fn behind_ethernet(&self) -> u64 {
        (self.0.len() - 14 - usize::from(self.0[8])) as u64
    }

    /// Of the bytes behind the link headers, those that cannot be told from an interface's padding: in a frame of the shortest length, what
    /// lies behind the length that its IP header gives (decision 0037). `mpu` charges what the wire carries.
    fn like_padding(&self) -> u64 {
        let tags = (self.at() - 14) / 4 * 4;
        let Some(ip) = self.0.get(self.at()..self.at() + 6).filter(|_| self.0.len() <= 60 + tags) else {
            return 0;
        };
        let number = |i: usize| u64::from(u16::from_be_bytes([ip[i], ip[i + 1]]));
        match ip[0] >> 4 {
            4 => self.bytes().saturating_sub(number(2)),
            6 => self.bytes().saturating_sub(number(4) + 40),
            _ => 0,
        }
    }

    /// [`bytes`](Frame::bytes), without what cannot be told from padding.
    pub fn bytes_unpadded(&self) -> u64 {
        self.bytes() - self.like_padding()
    }

    /// [`behind_ethernet`](Frame::behind_ethernet), without what cannot be told from padding.
    pub fn behind_ethernet_unpadded(&self) -> u64 {
        self.behind_ethernet() - self.like_padding()
    }

    /// Where its IP header, if it has one, begins.
    pub fn at(&self) -> usize {
        usize::from(self.0[7])
    }

    /// Whether a tag's priority or a label's traffic class is anything but 0.
    pub fn has_link_class(&self) -> bool {
        match self.0[12..14] {
            [0x81, 0x00] | [0x88, 0xa8] => self.0[14] >> 5 != 0,
            [0x88, 0x47] => (14..self.at()).step_by(4).any(|at| self.0[at + 2] & 0x0e != 0),
            _ => false,
        }
    }

    /// Whether it is IPv4 with a checksum that is wrong.
    pub fn has_wrong_checksum(&self) -> bool {
        let ip = &self.0[self.at()..];
        ip.first().is_some_and(|first| first >> 4 == 4)
            && ip.get(..4 * usize::from(ip[0] & 15)).is_none_or(|header| checksum::check(header) != 0)
    }

    /// Its DSCP, if it has an IP header.
    pub fn dscp(&self) -> Option<u8> {
        let ip = &self.0[self.at()..];
        match ip.first()? >> 4 {
            4 => Some(ip.get(1)? >> 2),
            6 => Some((ip[0] << 4 | ip.get(1)? >> 4) >> 2),
            _ => None,
        }
    }
}

fn ethernet(at: usize) -> Vec<u8> {
    vec![2, 0, 0, 0, 0, 9, 2, at as u8, 0, 0, 0, 8]
}

/// Any payload under an EtherType.
pub fn other(kind: u16, payload: &[u8]) -> Frame {
    let mut f = ethernet(14);
    f.extend(kind.to_be_bytes());
    f.extend(payload);
    Frame(f)
}

/// A control frame of each kind, with so many bytes more of data.
pub fn control_frames(data: usize) -> [Frame; 8] {
    let mut nd = Ip { v6: true, bytes: 72 + data, protocol: 58, ..Ip::default() }.frame();
    let at = nd.at();
    (nd.0[at + 7], nd.0[at + 40], nd.0[at + 41]) = (255, 135, 0);
    let filled = |head: &[u8], length: usize| [head, &vec![1; length - head.len() + data]].concat();
    [
        other(0x0806, &filled(&[], 46)),
        nd,
        other(0x88cc, &filled(&[], 200)),
        other(0x0026, &filled(&[0x42, 0x42, 3], 46)),
        other(0x8809, &filled(&[], 110)),
        other(0x888e, &filled(&[], 46)),
        other(0x8863, &filled(&[0x11], 46)),
        other(0x8864, &filled(&[0x11, 0, 0, 1, 0, 40, 0xc0, 0x21], 46)),
    ]
}

impl Ip {
    /// The frame.
    pub fn frame(&self) -> Frame {
        let ip = self.packet();
        let kind: u16 = if self.v6 { 0x86dd } else { 0x0800 };
        let mut link = Vec::new();
        // Whether the number of what follows has been written by the header before it.
        let mut told = false;
        for (i, wrap) in self.wraps.iter().enumerate() {
            let rest: usize = self.wraps[i + 1..].iter().map(size).sum::<usize>() + ip.len();
            match *wrap {
                Wrap::Tag(tpid, tci) => {
                    link.extend(tpid.to_be_bytes());
                    link.extend(tci.to_be_bytes());
                }
                Wrap::Pppoe(session) => {
                    link.extend(0x8864u16.to_be_bytes());
                    link.extend([0x11, 0]);
                    link.extend(session.to_be_bytes());
                    link.extend(((rest + 2) as u16).to_be_bytes());
                    link.extend(if self.v6 { [0, 0x57] } else { [0, 0x21] });
                    told = true;
                }
                Wrap::Snap => {
                    // Above 1,535 it would be an EtherType.
                    link.extend(((rest + 8).min(1500) as u16).to_be_bytes());
                    link.extend([0xaa, 0xaa, 3, 0, 0, 0]);
                }
                Wrap::Mpls(labels, class) => {
                    link.extend(0x8847u16.to_be_bytes());
                    for label in 1..=labels {
                        link.extend([0, label, class << 1 | u8::from(label == labels), 64]);
                    }
                    told = true;
                }
            }
        }
        if !told {
            link.extend(kind.to_be_bytes());
        }
        let mut f = ethernet(12 + link.len());
        f.extend(link);
        f.extend(ip);
        Frame(f)
    }

    fn packet(&self) -> Vec<u8> {
        let mut p = if self.v6 {
            let length = self.says.unwrap_or((self.bytes - 40) as u16).to_be_bytes();
            let mut h = vec![0x60 | self.octet >> 4, self.octet << 4, 0, 0];
            h.extend(length);
            h.extend([self.protocol, 64]);
            for last in [self.from, 99] {
                h.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
            h
        } else {
            let words = 5 + self.options;
            let length = self.says.unwrap_or(self.bytes as u16).to_be_bytes();
            let fragment = self.fragment.to_be_bytes();
            let mut h = vec![0x40 | words, self.octet, length[0], length[1], 0, 7, fragment[0], fragment[1]];
            h.extend([64, self.protocol, 0, 0, 10, 0, 0, self.from, 10, 0, 1, 1]);
            h.resize(4 * usize::from(words), 1);
            let sum = checksum::check(&h).to_be_bytes();
            h[10..12].copy_from_slice(&sum);
            h
        };
        let header = p.len();
        p.extend(self.port.to_be_bytes());
        p.extend([0, 9]);
        p.extend(((self.bytes.saturating_sub(header)) as u16).to_be_bytes());
        p.extend([0, 0]);
        p.resize(self.bytes, 0x5a);
        p
    }
}

fn size(wrap: &Wrap) -> usize {
    match wrap {
        Wrap::Tag(..) => 4,
        // Behind a PPPoE header the protocol's number takes the place of the EtherType.
        Wrap::Pppoe(_) | Wrap::Snap => 8,
        Wrap::Mpls(labels, _) => 4 * usize::from(*labels),
    }
}

/// A number below `n`.
pub fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.uniform() * n as f64) as usize
}

/// A frame of some encapsulation, with nothing wrong about it.
pub fn good(rng: &mut Rng) -> Vec<u8> {
    let mut wraps: Vec<Wrap> = (0..below(rng, 6))
        .map(|_| Wrap::Tag([0x8100, 0x88a8, 0x9100][below(rng, 3)], below(rng, 65_536) as u16))
        .collect();
    match below(rng, 4) {
        0 => wraps.push(Wrap::Pppoe(below(rng, 65_536) as u16)),
        1 => wraps.push(Wrap::Mpls(1 + below(rng, 9) as u8, below(rng, 8) as u8)),
        _ => {}
    }
    let v6 = below(rng, 2) == 0;
    let payload: Vec<u8> = (0..below(rng, 60)).map(|_| below(rng, 256) as u8).collect();
    match below(rng, 14) {
        // Neighbour discovery, and spanning trees by LLC and behind SNAP.
        12 => {
            let mut frame = Ip { v6: true, bytes: 72, protocol: 58, wraps, ..Ip::default() }.frame();
            let at = frame.at();
            (frame.0[at + 7], frame.0[at + 40], frame.0[at + 41]) = (255, 133 + below(rng, 5) as u8, 0);
            frame.0
        }
        13 => {
            let llc: [&[u8]; 2] = [&[0x42, 0x42, 3], &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x01, 0x0b]];
            other(0x0026 + below(rng, 90) as u16, &[llc[below(rng, 2)], &payload].concat()).0
        }
        0 => {
            other([0x0806, 0x88cc, 0x8809, 0x888e, 0x8863, 0x8864, 0x8847, 0x0026][below(rng, 8)], &payload).0
        }
        _ => {
            let most = [80, 1_440][below(rng, 2)];
            let ip = Ip {
                v6,
                from: [1, 2, 77][below(rng, 3)],
                port: below(rng, 65_536) as u16,
                octet: below(rng, 256) as u8,
                protocol: [6, 17, 58, 44, 0, 60, 51][below(rng, 7)],
                bytes: 60 + below(rng, most),
                says: None,
                fragment: [0, 0x2000, 0x4000, 0x0007][below(rng, 4)],
                options: below(rng, 11) as u8,
                wraps,
            };
            if below(rng, 4) == 0 { ip.frame().padded().0 } else { ip.frame().0 }
        }
    }
}

/// Bytes changed, added or cut off.
pub fn mutate(frame: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..below(rng, 6) {
        let at = 12 + below(rng, frame.len() - 12).min(70);
        if let Some(byte) = frame.get_mut(at) {
            *byte = if below(rng, 2) == 0 { below(rng, 256) as u8 } else { *byte ^ (1 << below(rng, 8)) };
        }
    }
    match below(rng, 8) {
        0 => frame.truncate(below(rng, frame.len() + 1)),
        1 => frame.resize(frame.len() + below(rng, 40), 0xa5),
        _ => {}
    }
}

/// Bytes, most of which look like some protocol at first.
pub fn random(rng: &mut Rng) -> Vec<u8> {
    let length = below(rng, 200);
    let mut frame: Vec<u8> = (0..length).map(|_| below(rng, 256) as u8).collect();
    // Most get further than their EtherType.
    if length > 15 && below(rng, 4) > 0 {
        let kinds = [0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8864, 0x0026];
        frame[12..14].copy_from_slice(&kinds[below(rng, kinds.len())].to_be_bytes());
        frame[14] = [frame[14], 0x45, 0x60, 0x11][below(rng, 4)];
    }
    frame
}
