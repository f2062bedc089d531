//! The ring of received frames that the kernel and this process share (TPACKET_V2).
//!
//! Each place is the kernel's until its status says otherwise, then ours until we write it back.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::io::sys;

/// Kept free before each frame, for a VLAN tag that is put back.
const HEADROOM: usize = 4;
/// Memory is asked for in blocks of at least this size.
const BLOCK: usize = 1 << 16;
/// IEEE 802.1Q, where the kernel doesn't say which tag it was.
const TAG: u16 = 0x8100;

/// Received frames.
#[derive(Debug)]
pub struct Ring {
    memory: *mut u8,
    length: usize,
    place: usize,
    places: usize,
    next: usize,
    losing: bool,
}

// SAFETY: the mapping belongs to this ring alone, and every access to it needs `&mut self` or is atomic.
unsafe impl Send for Ring {}

/// A frame in its place.
pub struct Frame<'a> {
    /// The whole frame.
    pub bytes: &'a mut [u8],
    /// See [`Oddities`](super::Oddities).
    pub unfinished_checksum: bool,
    /// A VLAN tag was put back.
    pub tagged: bool,
}

impl Ring {
    /// A ring of at least `places` frames of up to `longest` bytes on this socket.
    pub fn new(socket: BorrowedFd<'_>, longest: u32, places: u32) -> io::Result<Ring> {
        let place = (libc::TPACKET2_HDRLEN + 16 + HEADROOM + longest as usize).next_power_of_two();
        let block = BLOCK.max(place);
        let length = (place * places.max(1) as usize).next_multiple_of(block);
        let too_much = || io::Error::new(io::ErrorKind::InvalidInput, "a ring of 4 GiB or more");
        let number = |n: usize| libc::c_uint::try_from(n).map_err(|_| too_much());
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let reserve = HEADROOM as libc::c_int;
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RESERVE, &reserve)?;
        let request = libc::tpacket_req {
            tp_block_size: number(block)?,
            tp_block_nr: number(length / block)?,
            tp_frame_size: number(place)?,
            tp_frame_nr: number(length / place)?,
        };
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address; nothing else is mapped there.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { memory: memory.cast(), length, place, places: length / place, next: 0, losing: false })
    }

    /// Whether a frame is there.
    pub fn ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// When the next frame came, by the system's clock, in nanoseconds; `None` if none is there.
    pub fn next_came(&self) -> Option<u64> {
        self.ready().then(|| {
            let header = self.header();
            u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec)
        })
    }

    /// What the kernel wrote at the head of the next place. Only where [`ready`](Ring::ready) said that it is ours.
    fn header(&self) -> libc::tpacket2_hdr {
        // SAFETY: the place lies within the mapping and begins with the header, aligned as the ring is; whatever is
        // there is numbers only, and the kernel writes nothing while the place is ours.
        unsafe { self.memory.add(self.next * self.place).cast::<libc::tpacket2_hdr>().read() }
    }

    /// Shows the next frame to `see` and gives its place back to the kernel; whether there was a whole one.
    pub fn take(&mut self, see: impl FnOnce(Frame<'_>)) -> bool {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        self.losing |= status & libc::TP_STATUS_LOSING != 0;
        let header = self.header();
        // SAFETY: `next` is below `places`, so the place lies within the mapping; the status says it is ours, and
        // nothing else refers to it while `self` is borrowed.
        let place =
            unsafe { std::slice::from_raw_parts_mut(self.memory.add(self.next * self.place), self.place) };
        let whole = frame(place, &header, status).map(see).is_some();
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.places;
        whole
    }

    /// Frames that found the ring full since the last call: the kernel is asked if a frame has said so.
    pub fn missed(&mut self, socket: BorrowedFd<'_>) -> io::Result<u64> {
        if !std::mem::take(&mut self.losing) {
            return Ok(0);
        }
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        sys::get_option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
        Ok(u64::from(stats.tp_drops))
    }

    /// Whose the next place is: the header's first field.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned to 16 bytes; kernel and process only ever touch it atomically.
        unsafe { AtomicU32::from_ptr(self.memory.add(self.next * self.place).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: what was mapped in `new`, unmapped once.
        unsafe { libc::munmap(self.memory.cast(), self.length) };
    }
}

/// The frame in a place; `None` if the kernel had no room for all of it, or wrote nonsense.
fn frame<'a>(place: &'a mut [u8], header: &libc::tpacket2_hdr, status: u32) -> Option<Frame<'a>> {
    let (start, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
    if header.tp_snaplen < header.tp_len {
        return None;
    }
    let unfinished_checksum = status & libc::TP_STATUS_CSUMNOTREADY != 0;
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        let bytes = place.get_mut(start..start.checked_add(length)?)?;
        return Some(Frame { bytes, unfinished_checksum, tagged: false });
    }
    let bytes = place.get_mut(start.checked_sub(HEADROOM)?..start.checked_add(length)?)?;
    if bytes.len() < HEADROOM + 12 {
        return None;
    }
    let tag = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { header.tp_vlan_tpid } else { TAG };
    bytes.copy_within(HEADROOM..HEADROOM + 12, 0);
    bytes[12..14].copy_from_slice(&tag.to_be_bytes());
    bytes[14..16].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
    Some(Frame { bytes, unfinished_checksum, tagged: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: u32, tci: u16, tpid: u16) -> libc::tpacket2_hdr {
        libc::tpacket2_hdr {
            tp_status: 0,
            tp_len: length,
            tp_snaplen: length,
            tp_mac: 8,
            tp_net: 22,
            tp_sec: 0,
            tp_nsec: 0,
            tp_vlan_tci: tci,
            tp_vlan_tpid: tpid,
            tp_padding: [0; 4],
        }
    }

    #[test]
    fn a_tag_is_put_back_where_it_was() {
        let mut place: Vec<u8> = (0..40).collect();
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let f = frame(&mut place, &header(20, 0xe064, 0x88a8), status).unwrap();
        assert!(f.tagged);
        let expected: Vec<u8> = (8..20).chain([0x88, 0xa8, 0xe0, 0x64]).chain(20..28).collect();
        assert_eq!(f.bytes, expected);
        let mut place: Vec<u8> = (0..40).collect();
        let f = frame(&mut place, &header(20, 7, 0), libc::TP_STATUS_VLAN_VALID).unwrap();
        assert_eq!(f.bytes[12..16], [0x81, 0, 0, 7]);
    }

    #[test]
    fn what_is_not_whole_is_not_handed_over() {
        let mut place: Vec<u8> = (0..40).collect();
        assert_eq!(frame(&mut place, &header(20, 0, 0), 0).unwrap().bytes, (8..28).collect::<Vec<u8>>());
        assert!(frame(&mut place, &libc::tpacket2_hdr { tp_len: 9000, ..header(20, 0, 0) }, 0).is_none());
        assert!(frame(&mut place, &header(33, 0, 0), 0).is_none());
        assert!(frame(&mut place, &header(u32::MAX, 0, 0), libc::TP_STATUS_VLAN_VALID).is_none());
        assert!(frame(&mut place, &header(3, 0, 0), libc::TP_STATUS_VLAN_VALID).is_none());
    }
}
