//! Against segmentation written out by what Linux's does, in plain arithmetic.

use super::*;
use proptest::prelude::*;

/// Room for IPv6 and TCP's options around the payload.
const MTU: usize = 1_560;

/// A segment or a datagram, before its checksums.
#[derive(Clone, Debug)]
struct Made {
    v6: bool,
    udp: bool,
    port: u16,
    id: u16,
    seq: u32,
    flags: u8,
    tos: u8,
    options: usize,
    payload: usize,
}

const PLAIN: Made = Made {
    v6: false,
    udp: false,
    port: 80,
    id: 65_530,
    seq: u32::MAX - 3_000,
    flags: flag::ACK,
    tos: 0x28,
    options: 12,
    payload: 1_448,
};

impl Made {
    /// The frames that the sender's stack sends behind it.
    fn next(&self) -> Made {
        Made { id: self.id.wrapping_add(1), seq: self.seq.wrapping_add(self.payload as u32), ..self.clone() }
    }

    fn frame(&self) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        let (protocol, header) = if self.udp { (UDP, 8) } else { (TCP, 20 + self.options) };
        let segment = header + self.payload;
        if self.v6 {
            f.extend([0x86, 0xdd, 0x60 | self.tos >> 4, self.tos << 4, 1, 2]);
            f.extend((segment as u16).to_be_bytes());
            f.extend([protocol, 64]);
            f.extend((0..32).map(|i| 0x20 + i));
        } else {
            f.extend([8, 0, 0x45, self.tos]);
            f.extend((20 + segment as u16).to_be_bytes());
            f.extend(self.id.to_be_bytes());
            f.extend([0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 11, 10, 2, 0, 12]);
        }
        f.extend(5000u16.to_be_bytes());
        f.extend(self.port.to_be_bytes());
        if self.udp {
            f.extend((segment as u16).to_be_bytes());
            f.extend([0, 0]);
        } else {
            f.extend(self.seq.to_be_bytes());
            f.extend(77u32.to_be_bytes());
            f.extend([((5 + self.options / 4) << 4) as u8, self.flags, 1, 2, 0, 0, 0, 0]);
            f.extend((0..self.options).map(|i| i as u8));
        }
        f.extend((0..self.payload).map(|i| (self.seq as usize + i * 7) as u8));
        seal(&mut f);
        f
    }
}

/// So many full segments of a connection, or small datagrams of a flow, in succession.
pub(in crate::io::afpacket) fn stream(udp: bool, count: usize) -> Vec<Vec<u8>> {
    let first = Made { udp, options: 0, payload: if udp { 22 } else { 1_448 }, ..PLAIN };
    let each = std::iter::successors(Some(first), |made| Some(made.next()));
    each.take(count).map(|made| made.frame()).collect()
}

/// The one's complement sum of words in network order.
fn slow_sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)));
    words.fold(0, |s, w| (s + w) % 0x1_0000 + (s + w) / 0x1_0000)
}

/// Writes right checksums.
fn seal(f: &mut [u8]) {
    let (header, addresses) = if f[12] == 8 { (34, 26..34) } else { (54, 22..54) };
    let protocol = if f[12] == 8 { f[23] } else { f[20] };
    let check = header + if protocol == UDP { 6 } else { 16 };
    if f[12] == 8 {
        f[24..26].fill(0);
        let sum = !slow_sum(&f[14..34]) as u16;
        f[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    f[check..check + 2].fill(0);
    let mut all = f[addresses].to_vec();
    all.extend([0, protocol]);
    all.extend(((f.len() - header) as u16).to_be_bytes());
    all.extend(&f[header..]);
    let sum = match !slow_sum(&all) as u16 {
        // RFC 768: what would be zero is sent as all ones.
        0 if protocol == UDP => 0xffff,
        sum => sum,
    };
    f[check..check + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The pieces into which the kernel cuts a long packet: pieces of `gso_size` bytes behind a copy of the headers each; PSH on the last
/// only, numbers counted on, lengths and checksums anew.
pub(in crate::io::afpacket) fn segmented(head: &[u8], payload: &[u8]) -> Vec<Vec<u8>> {
    let field = |at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
    let (length, size, header, check) = (field(2), field(4), field(6), field(8));
    let headers = &head[PREFIX..];
    let v4 = headers[12] == 8;
    let (protocol, addresses) = if v4 { (headers[23], 26..34) } else { (headers[20], 22..54) };
    let (kind, at) = match (protocol, v4) {
        (UDP, _) => (5, 6),
        (_, true) => (1, 16),
        (_, false) => (4, 16),
    };
    assert_eq!((head[0], head[1], check, headers.len()), (1, kind, at, length));
    // The long packet is a good one itself, but for the checksum, which has only the pseudo-header in it.
    let long = [headers, payload].concat();
    assert!(packet::parse(Layer::Ethernet, &long).is_ok_and(|h| h.payload as usize == payload.len()));
    let mut sealed = long.clone();
    seal(&mut sealed);
    let whole = ((sealed.len() - header) as u16).to_be_bytes();
    let sum = slow_sum(&[&sealed[addresses], &[0, protocol], &whole].concat());
    let check = header + check;
    assert_eq!(u32::from(u16::from_be_bytes([headers[check], headers[check + 1]])), sum);
    assert_eq!(sealed[..header], long[..header], "IPv4's checksum");
    if protocol == UDP {
        assert_eq!(headers[header + 4..header + 6], whole);
    }
    let pieces = payload.chunks(size).count();
    let piece = |(i, bytes): (usize, &[u8])| {
        let mut f = [headers, bytes].concat();
        let ip = f.len() - 14;
        if v4 {
            f[16..18].copy_from_slice(&(ip as u16).to_be_bytes());
            let id = u16::from_be_bytes([f[18], f[19]]).wrapping_add(i as u16);
            f[18..20].copy_from_slice(&id.to_be_bytes());
        } else {
            f[18..20].copy_from_slice(&((ip - 40) as u16).to_be_bytes());
        }
        if protocol == UDP {
            let datagram = ((f.len() - header) as u16).to_be_bytes();
            f[header + 4..header + 6].copy_from_slice(&datagram);
        } else {
            let seq = u32::from_be_bytes([f[header + 4], f[header + 5], f[header + 6], f[header + 7]]);
            f[header + 4..header + 8].copy_from_slice(&seq.wrapping_add((i * size) as u32).to_be_bytes());
            if i + 1 < pieces {
                f[header + 13] &= !flag::PSH;
            }
        }
        seal(&mut f);
        f
    };
    payload.chunks(size).enumerate().map(piece).collect()
}

/// The longest train at the head of these.
fn train_of(frames: &[&[u8]]) -> Option<Train> {
    Train::at_the_head_of(frames, MTU, Kinds::TcpAndUdp)
}

/// Frames as they come out on the wire, and in how many trains they went.
fn sent(frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let (mut out, mut at, mut trains) = (Vec::new(), 0, 0);
    while at < frames.len() {
        match train_of(&frames[at..]) {
            Some(train) => {
                let these = &frames[at..at + train.frames];
                let payload: Vec<u8> = these.iter().flat_map(|f| f[train.body..].iter().copied()).collect();
                out.extend(segmented(train.head(), &payload));
                (at, trains) = (at + train.frames, trains + 1);
            }
            None => {
                out.push(frames[at].to_vec());
                at += 1;
            }
        }
    }
    (out, trains)
}

#[test]
fn a_stream_goes_in_trains_as_long_as_a_packet_may_be() {
    for v6 in [false, true] {
        let stream = std::iter::successors(Some(Made { v6, ..PLAIN }), |m| Some(m.next()));
        let frames: Vec<_> = stream.take(64).map(|m| m.frame()).collect();
        let all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        // 45 · 1448 + 32 = 65,192, with IPv4's header 65,212 and with IPv6's 65,232: one more would be too many.
        assert_eq!(train_of(&all).map(|t| t.frames), Some(45));
        assert_eq!(sent(&frames), (frames.clone(), 2));
        // Not where the port would not let frames of this length out.
        let longest = frames[0].len() - IP;
        assert!(
            Train::at_the_head_of(&all, longest, Kinds::Tcp).is_some()
                && Train::at_the_head_of(&all, longest - 1, Kinds::Tcp).is_none()
        );
    }
}

#[test]
fn a_train_ends_with_psh_or_a_short_segment() {
    let one = PLAIN.clone();
    let two = Made { flags: flag::ACK | flag::PSH, ..one.next() };
    let short = Made { payload: 5, flags: flag::ACK, ..two.next() };
    let more = short.next();
    let frames = [&one, &two, &short, &more, &more.next()].map(Made::frame);
    // One and two; the short one with nothing behind it, as what follows is as short; …
    assert_eq!(sent(&frames), (frames.to_vec(), 2));
    let all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    assert_eq!(train_of(&all).map(|t| t.frames), Some(2));
    assert_eq!(train_of(&all[2..]).map(|t| t.frames), Some(3));
}

/// Each thing by which the second of two segments may differ so that it goes by itself.
#[test]
fn what_segmentation_would_not_give_goes_by_itself() {
    let one = PLAIN.clone();
    let fine = one.next();
    let pair = |second: Vec<u8>| train_of(&[&one.frame(), &second]).is_some();
    assert!(pair(fine.frame()));
    for (why, made) in [
        ("another connection", Made { port: 81, ..fine.clone() }),
        ("a gap", Made { seq: fine.seq + 1, ..fine.clone() }),
        ("the same identification", Made { id: one.id, ..fine.clone() }),
        ("another DSCP", Made { tos: 0x30, ..fine.clone() }),
        ("CE", Made { tos: 0x2b, ..fine.clone() }),
        ("other options", Made { options: 16, ..fine.clone() }),
        ("longer than the first", Made { payload: 1_449, ..fine.clone() }),
        ("nothing in it", Made { payload: 0, ..fine.clone() }),
        ("FIN", Made { flags: flag::ACK | 1, ..fine.clone() }),
        ("URG", Made { flags: flag::ACK | 0x20, ..fine.clone() }),
        ("CWR", Made { flags: flag::ACK | 0x80, ..fine.clone() }),
        ("ECE", Made { flags: flag::ACK | flag::ECE, ..fine.clone() }),
        ("IPv6", Made { v6: true, ..fine.clone() }),
    ] {
        assert!(!pair(made.frame()), "{why}");
    }
    let padded = [fine.frame(), vec![0]].concat();
    assert!(!pair(padded));
    // The first has PSH.
    let pushed = Made { flags: flag::ACK | flag::PSH, ..one.clone() }.frame();
    assert!(train_of(&[&pushed, &fine.frame()]).is_none());
    for first in [&[][..], &[0; 13], &[0; 60]] {
        assert!(train_of(&[first, &fine.frame()]).is_none());
    }
}

#[test]
fn datagrams_of_one_flow_go_in_trains_where_the_kernel_cuts_them() {
    for v6 in [false, true] {
        let small = Made { v6, udp: true, payload: 22, ..PLAIN };
        let stream = std::iter::successors(Some(small.clone()), |m| Some(m.next()));
        let mut made: Vec<_> = stream.take(64).collect();
        // A shorter one ends a train.
        made[20].payload = 3;
        let frames: Vec<_> = made.iter().map(Made::frame).collect();
        let all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let first = train_of(&all).expect("a train");
        assert_eq!((first.frames, first.datagrams), (21, true));
        assert_eq!(sent(&frames), (frames.clone(), 2));
        assert_eq!(Train::at_the_head_of(&all, MTU, Kinds::Tcp), None);
        let pair = |second: &[u8]| train_of(&[all[0], second]).is_some();
        for (why, other) in [
            ("another flow", Made { port: 81, ..made[1].clone() }),
            ("CE", Made { tos: 0x2b, ..made[1].clone() }),
            ("longer than the first", Made { payload: 23, ..made[1].clone() }),
            ("nothing in it", Made { payload: 0, ..made[1].clone() }),
            ("TCP", Made { udp: false, ..made[1].clone() }),
        ] {
            assert!(!pair(&other.frame()), "{why}");
        }
        let (header, whole) = (if v6 { 54 } else { 34 }, frames[1].clone());
        // Without a checksum; with a wrong one; with a length of its own that says less.
        for (at, bytes) in [(header + 6, [0, 0]), (header + 6, [1, 2]), (header + 4, [0, 20])] {
            let mut other = whole.clone();
            other[at..at + 2].copy_from_slice(&bytes);
            if at == header + 4 {
                seal(&mut other);
            }
            assert!(!pair(&other), "{at}: {bytes:?}");
        }
        assert!(pair(&whole));
    }
    // Every second one's identification: v4 only.
    let one = Made { udp: true, ..PLAIN };
    let skipped = Made { id: one.id.wrapping_add(2), ..one.next() };
    assert!(train_of(&[&one.frame(), &skipped.frame()]).is_none());
}

#[test]
fn a_zero_written_as_ffff_is_not_rewritten() {
    let one = PLAIN.clone();
    let mut second = one.next().frame();
    // The sum of everything else becomes 0xffff, so that the checksum is 0, in either way of writing it.
    let (check, last) = (50, second.len() - 2);
    let sum = u16::from_be_bytes([second[check], second[check + 1]]);
    let word = u16::from_be_bytes([second[last], second[last + 1]]);
    second[last..].copy_from_slice(&checksum::add(word, sum).to_be_bytes());
    seal(&mut second);
    assert_eq!(second[check..check + 2], [0, 0]);
    let pair = |second: &[u8]| train_of(&[&one.frame(), second]).is_some();
    assert!(pair(&second));
    second[check..check + 2].fill(0xff);
    assert!(!pair(&second));
}

proptest! {
    /// The bytes that come out are those that went in, whatever they are: segments of several connections that follow each
    /// other or don't, with bits turned over on the way.
    #[test]
    fn what_leaves_is_what_came(
        v6 in any::<bool>(),
        udp in any::<bool>(),
        options in (0usize..=10).prop_map(|n| 4 * n),
        steps in prop::collection::vec((0u8..12, 1usize..1_448, any::<u16>(), any::<prop::sample::Index>(), 0u8..8), 2..40),
    ) {
        let mut made = Made { v6, udp, options, payload: 1_400, ..PLAIN };
        let mut frames = Vec::new();
        for (what, payload, number, at, bit) in steps {
            let size = made.payload;
            match what {
                0 => made.payload = payload,
                1 => made.flags ^= flag::PSH,
                2 => made.seq = made.seq.wrapping_add(u32::from(number)),
                3 => made.id = number,
                4 => made.tos ^= 1 << bit,
                5 => made.port ^= 1,
                _ => {}
            }
            let mut frame = made.frame();
            if what == 6 {
                let at = at.index(frame.len());
                frame[at] ^= 1 << bit;
            } else if what == 7 {
                // Turned over, and the checksums say so.
                let at = at.index(frame.len());
                frame[at] ^= 1 << bit;
                if packet::parse(Layer::Ethernet, &frame).is_ok() && frame[12..14] == made.frame()[12..14] {
                    seal(&mut frame);
                }
            }
            frames.push(frame);
            let flags = made.flags & !flag::PSH;
            made = Made { flags, ..made.next() };
            if what == 0 {
                made.payload = size;
            }
        }
        prop_assert_eq!(&sent(&frames).0, &frames);
    }
}
