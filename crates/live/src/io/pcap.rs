//! Captures in the classic pcap format: read for [`replay`](super::replay), written for inspection.
//!
//! Both byte orders, micro- and nanoseconds, Ethernet and raw IP. Non-goal: pcapng.

use std::io::{self, Write};

use inprofile_core::units::{Duration, Time};

use super::replay::Frame;
use crate::packet::Layer;

/// The meaning of the first four bytes: the others' order is seen from theirs.
const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
/// LINKTYPE_ETHERNET and LINKTYPE_RAW of tcpdump.org's registry; 12 and 14 are raw IP on some systems.
const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const RAW_ELSEWHERE: [u32; 2] = [12, 14];
/// A record longer than this is taken for damage.
const LONGEST: u32 = 1 << 18;

fn damaged(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads a capture: what its frames begin with, and the frames, all at port 0, timed from the first of them.
///
/// # Errors
/// `InvalidData`, with the place, for what is no pcap file, another link layer, a cut-off record, or a frame
/// whose time is before the first one's.
pub fn read(bytes: &[u8]) -> io::Result<(Layer, Vec<Frame>)> {
    let header: &[u8; 24] =
        bytes.first_chunk().ok_or_else(|| damaged("shorter than a pcap header".into()))?;
    let magic: [u8; 4] = [header[0], header[1], header[2], header[3]];
    let (big, tick) = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MICRO, _) => (false, 1_000_000),
        (NANO, _) => (false, 1_000),
        (_, MICRO) => (true, 1_000_000),
        (_, NANO) => (true, 1_000),
        _ => {
            return Err(damaged(
                "not a pcap file; write pcapng with `tcpdump -w` or `editcap -F pcap`".into(),
            ));
        }
    };
    let word = |at: usize| -> Option<u32> {
        let b: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
    };
    let layer = match word(20).unwrap_or(0) & 0xffff {
        ETHERNET => Layer::Ethernet,
        kind if kind == RAW || RAW_ELSEWHERE.contains(&kind) => Layer::Ip,
        kind => {
            return Err(damaged(format!("link type {kind}: only Ethernet (1) and raw IP (101) are read")));
        }
    };
    let mut frames = Vec::new();
    let mut at = 24;
    let mut first = None;
    while at < bytes.len() {
        let cut = || damaged(format!("record {} is cut off at byte {at}", frames.len() + 1));
        let (s, fraction, length) =
            (word(at).ok_or_else(cut)?, word(at + 4).ok_or_else(cut)?, word(at + 8).ok_or_else(cut)?);
        if length > LONGEST {
            return Err(damaged(format!("record {} claims {length} bytes", frames.len() + 1)));
        }
        let data = bytes.get(at + 16..at + 16 + length as usize).ok_or_else(cut)?;
        let stamp = u128::from(s) * 1_000_000_000_000 + u128::from(fraction) * tick;
        let since = stamp.checked_sub(*first.get_or_insert(stamp));
        let since = since.and_then(|ps| u64::try_from(ps).ok()).ok_or_else(|| {
            damaged(format!("record {} is earlier than the first, or half a year later", frames.len() + 1))
        })?;
        frames.push(Frame { at: Time::ZERO + Duration(since), port: 0, bytes: data.to_vec() });
        at += 16 + length as usize;
    }
    Ok((layer, frames))
}

/// Writes a capture in nanoseconds.
///
/// # Errors
/// The error of `out`.
pub fn write<'a>(
    out: &mut impl Write,
    layer: Layer,
    frames: impl IntoIterator<Item = (Time, &'a [u8])>,
) -> io::Result<()> {
    let kind = if layer == Layer::Ethernet { ETHERNET } else { RAW };
    for word in [NANO, 2 | 4 << 16, 0, 0, LONGEST, kind] {
        out.write_all(&word.to_le_bytes())?;
    }
    for (at, frame) in frames {
        let (s, ns) = (at.0 / 1_000_000_000_000, at.0 / 1_000 % 1_000_000_000);
        for word in [s as u32, ns as u32, frame.len() as u32, frame.len() as u32] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(frame)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(e: io::Error) -> String {
        e.to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let frames = [(Time(5_000), &b"one"[..]), (Time(1_500_000_007_000), &b"two"[..])];
        let mut file = Vec::new();
        write(&mut file, Layer::Ip, frames).unwrap();
        let (layer, read) = read(&file).unwrap();
        let expected = [(0, b"one"), (1_500_000_002_000, b"two")];
        let expected = expected.map(|(at, b)| Frame { at: Time(at), port: 0, bytes: b.to_vec() });
        assert_eq!((layer, read), (Layer::Ip, expected.to_vec()));
    }

    #[test]
    fn microseconds_the_other_way_round() {
        let mut file: Vec<u8> =
            [MICRO, 2 << 16 | 4, 0, 0, 65535, 1].iter().flat_map(|w| w.to_be_bytes()).collect();
        for (s, us) in [(9u32, 999_999u32), (10, 1)] {
            file.extend([s, us, 1, 60].iter().flat_map(|w| w.to_be_bytes()));
            file.push(7);
        }
        let (layer, frames) = read(&file).unwrap();
        assert_eq!((layer, frames[1].at, &frames[1].bytes[..]), (Layer::Ethernet, Time(2_000_000), &[7][..]));
    }

    #[test]
    fn damage_is_named_with_its_place() {
        assert!(text(read(b"abc").unwrap_err()).contains("shorter"));
        assert!(text(read(&[0x0a; 24]).unwrap_err()).contains("not a pcap"));
        let mut file = Vec::new();
        write(&mut file, Layer::Ip, [(Time(0), &b"abcdef"[..])]).unwrap();
        let end = file.len();
        assert!(text(read(&file[..end - 1]).unwrap_err()).contains("record 1 is cut off at byte 24"));
        file[20] = 113;
        assert!(text(read(&file).unwrap_err()).contains("link type 113"));
        file[20] = 1;
        file[34] = 0xff;
        assert!(text(read(&file).unwrap_err()).contains("claims"));
    }

    proptest! {
        #[test]
        fn nothing_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200), magic in any::<bool>()) {
            if magic && bytes.len() >= 24 {
                bytes[..4].copy_from_slice(&NANO.to_le_bytes());
                bytes[20..24].copy_from_slice(&ETHERNET.to_le_bytes());
            }
            let _ = read(&bytes);
        }
    }
}
