//! Frames as a host would send them, each with a number in its payload.

use inprofile_live::packet::checksum;

/// A packet as a test describes it.
#[derive(Clone, Copy, Debug)]
pub struct Udp {
    /// Last byte of the source address.
    pub from: u8,
    /// Source port.
    pub port: u16,
    /// DSCP and ECN.
    pub octet: u8,
    /// IP packet's size.
    pub size: usize,
    /// In the payload: tells it from all others.
    pub number: u64,
}

impl Udp {
    /// 1000 bytes of best effort from 10.0.0.1.
    pub fn numbered(number: u64) -> Udp {
        Udp { from: 1, port: 4000, octet: 0, size: 1000, number }
    }

    /// Over IPv4.
    pub fn v4(&self) -> Vec<u8> {
        let mut f = ethernet(0x0800);
        let mut h = vec![0x45, self.octet, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, self.from, 10, 0, 1, 1];
        h[2..4].copy_from_slice(&(self.size as u16).to_be_bytes());
        let sum = checksum::check(&h).to_be_bytes();
        h[10..12].copy_from_slice(&sum);
        f.extend(h);
        self.udp(&mut f, self.size - 20);
        f
    }

    /// Over IPv6, from 2001:db8::`from`.
    pub fn v6(&self) -> Vec<u8> {
        let mut f = ethernet(0x86dd);
        f.extend([0x60 | self.octet >> 4, self.octet << 4, 0, 0]);
        f.extend(((self.size - 40) as u16).to_be_bytes());
        f.extend([17, 64]);
        for last in [self.from, 99] {
            f.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        self.udp(&mut f, self.size - 40);
        f
    }

    /// A later fragment over IPv4: the number is where its payload begins.
    pub fn fragment(&self) -> Vec<u8> {
        let mut f = self.v4();
        f[14 + 6..14 + 8].copy_from_slice(&[0x00, 0x40]);
        f[14 + 10..14 + 12].fill(0);
        let sum = checksum::check(&f[14..34]).to_be_bytes();
        f[14 + 10..14 + 12].copy_from_slice(&sum);
        f
    }

    fn udp(&self, f: &mut Vec<u8>, length: usize) {
        f.extend(self.port.to_be_bytes());
        f.extend(9u16.to_be_bytes());
        f.extend((length as u16).to_be_bytes());
        f.extend([0, 0]);
        f.extend(self.number.to_be_bytes());
        let end = f.len() + length - 16;
        f.resize(end, 0x5a);
    }
}

/// RFC 9542's experimental EtherType.
pub fn not_ip(number: u64) -> Vec<u8> {
    let mut f = ethernet(0x88b5);
    f.extend(number.to_be_bytes());
    f.resize(60, 0);
    f
}

fn ethernet(kind: u16) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
    f.extend(kind.to_be_bytes());
    f
}

/// A frame that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    /// DSCP and ECN; `None`: not IP.
    pub octet: Option<u8>,
    /// The number in its payload.
    pub number: u64,
    /// The whole frame.
    pub frame: Vec<u8>,
}

/// Reads what a test sent; `None` for what it didn't.
pub fn read(frame: &[u8]) -> Option<Got> {
    if frame.len() < 42 || frame[..6] != [2, 0, 0, 0, 0, 9] {
        return None;
    }
    let (octet, at) = match u16::from_be_bytes([frame[12], frame[13]]) {
        0x0800 => {
            assert_eq!(checksum::check(&frame[14..34]), 0, "the header's checksum is right");
            (Some(frame[15]), 14 + 28)
        }
        0x86dd => (Some(frame[14] << 4 | frame[15] >> 4), 14 + 48),
        _ => (None, 14),
    };
    let number = u64::from_be_bytes(frame.get(at..at + 8)?.try_into().ok()?);
    Some(Got { octet, number, frame: frame.to_vec() })
}
