//! Captures in the pcapng format (draft-ietf-opsawg-pcapng), written: several interfaces, times in nanoseconds, comments.
//!
//! Non-goal: reading it.

use std::io::{self, Write};

use inprofile_core::units::{Rate, Time};

/// Types of blocks (§4.1 to §4.3).
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// §4.1: by this the reader sees the order of bytes, which is little-endian here.
const MAGIC: u32 = 0x1a2b_3c4d;
/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;

/// Whether a packet came to the interface or left by it (§4.3.1, epb_flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    Inbound = 1,
    /// It was sent.
    Outbound = 2,
}

/// One packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The interface, by its number in the order in which interfaces were written.
    pub interface: u32,
    /// When, from the start of the run.
    pub at: Time,
    /// Which way it went, where it went anywhere.
    pub direction: Option<Direction>,
    /// Its identity at every interface.
    pub number: u64,
    /// A remark for the reader of the capture.
    pub comment: Option<&'a str>,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// How long it was.
    pub length: u32,
}

/// A block being built.
struct Block(Vec<u8>);

impl Block {
    fn new() -> Block {
        Block(Vec::with_capacity(256))
    }

    fn u16(mut self, value: u16) -> Block {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Block {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Bytes, padded to a multiple of four.
    fn bytes(mut self, bytes: &[u8]) -> Block {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// An option (§3.5); longer than its length can say, it is cut.
    fn option(self, code: u16, value: &[u8]) -> Block {
        let length = value.len().min(usize::from(u16::MAX));
        self.u16(code).u16(length as u16).bytes(&value[..length])
    }

    /// Ends the options and writes the block: its type, and its length before and after it (§3.1).
    fn write(self, kind: u32, out: &mut impl Write) -> io::Result<()> {
        let body = self.u32(0).0;
        let length = (body.len() as u32 + 12).to_le_bytes();
        out.write_all(&kind.to_le_bytes())?;
        out.write_all(&length)?;
        out.write_all(&body)?;
        out.write_all(&length)
    }
}

/// Begins a capture (§4.1): which program wrote it, and a comment on the whole.
///
/// # Errors
/// The error of `out`.
pub fn section(out: &mut impl Write, program: &str, comment: &str) -> io::Result<()> {
    // Version 1.0, of unknown length.
    let block = Block::new().u32(MAGIC).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
    block.option(1, comment.as_bytes()).option(4, program.as_bytes()).write(SECTION, out)
}

/// Adds an interface (§4.2), an Ethernet that is read in nanoseconds. `snaplen` 0: packets are whole.
///
/// # Errors
/// The error of `out`.
pub fn interface(
    out: &mut impl Write,
    name: &str,
    description: &str,
    rate: Rate,
    snaplen: u32,
) -> io::Result<()> {
    let block = Block::new().u16(ETHERNET).u16(0).u32(snaplen);
    let block = block.option(2, name.as_bytes()).option(3, description.as_bytes());
    block.option(8, &rate.0.to_le_bytes()).option(9, &[9]).write(INTERFACE, out)
}

/// Adds a packet (§4.3).
///
/// # Errors
/// The error of `out`.
pub fn packet(out: &mut impl Write, packet: &Packet<'_>) -> io::Result<()> {
    let ns = packet.at.0 / 1_000;
    let block = Block::new().u32(packet.interface).u32((ns >> 32) as u32).u32(ns as u32);
    let mut block = block.u32(packet.bytes.len() as u32).u32(packet.length).bytes(packet.bytes);
    if let Some(comment) = packet.comment {
        block = block.option(1, comment.as_bytes());
    }
    if let Some(direction) = packet.direction {
        block = block.option(2, &(direction as u32).to_le_bytes());
    }
    block.option(5, &packet.number.to_le_bytes()).write(PACKET, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from a text of hexadecimal words, as the specification's pictures have them.
    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    /// §3.1, §3.5, §4.1, §4.2, §4.3, §4.3.1 of draft-ietf-opsawg-pcapng, written out by hand.
    #[test]
    fn blocks_byte_for_byte() {
        let mut out = Vec::new();
        section(&mut out, "prog", "hello").unwrap();
        let expected = hex("0a0d0d0a 34000000 4d3c2b1a 0100 0000 ffffffff ffffffff
             0100 0500 68656c6c 6f000000  0400 0400 70726f67  0000 0000 34000000");
        assert_eq!(out, expected);
        out.clear();
        interface(&mut out, "eth", "d", Rate(1_000_000), 96).unwrap();
        let expected = hex("01000000 3c000000 0100 0000 60000000  0200 0300 65746800  0300 0100 64000000
             0800 0800 40420f00 00000000  0900 0100 09000000  0000 0000 3c000000");
        assert_eq!(out, expected);
        out.clear();
        let at = Time(5_000_000_000_123_456);
        let direction = Some(Direction::Outbound);
        let p = Packet {
            interface: 1,
            at,
            direction,
            number: 7,
            comment: Some("x"),
            bytes: b"abcde",
            length: 60,
        };
        packet(&mut out, &p).unwrap();
        // 5,000.000,000,123 s are 0x48c,2739_507b nanoseconds.
        let expected = hex("06000000 48000000 01000000 8c040000 7b503927 05000000 3c000000 61626364 65000000
             0100 0100 78000000  0200 0400 02000000  0500 0800 07000000 00000000  0000 0000 48000000");
        assert_eq!(out, expected);
    }
}
