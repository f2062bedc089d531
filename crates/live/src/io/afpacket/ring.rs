//! The ring of received frames shared with the kernel (TPACKET_V2).
//!
//! Each slot belongs to the kernel until its status says otherwise, and then to us until we write it back.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::io::sys;

/// Kept free before each frame, for a VLAN tag that is put back.
const HEADROOM: usize = 4;
/// Memory is asked for in blocks of at least this size; a place lies within one.
const BLOCK: usize = 1 << 16;
/// The bytes of a cache line.
const LINE: usize = 64;
/// IEEE 802.1Q, where the kernel doesn't say which tag it was.
const TAG: u16 = 0x8100;

/// Received frames.
#[derive(Debug)]
pub struct Ring {
    memory: Mapping,
    layout: Layout,
    next: usize,
    losing: bool,
}

/// Where the places are: blocks, in each as many places as fit in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    place: usize,
    block: usize,
    blocks: usize,
}

impl Layout {
    /// At least so many places of so many bytes. A place is an odd number of cache lines long: with a power of two the
    /// headers of all places, which are looked at before anything else, would share a few sets of the cache.
    fn of(bytes: usize, places: usize) -> Layout {
        let place = (bytes.div_ceil(LINE) | 1) * LINE;
        let block = BLOCK.max(place.next_power_of_two());
        Layout { place, block, blocks: places.div_ceil(block / place) }
    }

    fn in_block(&self) -> usize {
        self.block / self.place
    }

    fn places(&self) -> usize {
        self.blocks * self.in_block()
    }

    /// Where a place begins.
    fn start(&self, place: usize) -> usize {
        place / self.in_block() * self.block + place % self.in_block() * self.place
    }
}

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
        let layout =
            Layout::of(libc::TPACKET2_HDRLEN + 16 + HEADROOM + longest as usize, places.max(1) as usize);
        let length = layout.block * layout.blocks;
        let too_much = || io::Error::new(io::ErrorKind::InvalidInput, "a ring of 4 GiB or more");
        let number = |n: usize| libc::c_uint::try_from(n).map_err(|_| too_much());
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let reserve = HEADROOM as libc::c_int;
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RESERVE, &reserve)?;
        let request = libc::tpacket_req {
            tp_block_size: number(layout.block)?,
            tp_block_nr: number(layout.blocks)?,
            tp_frame_size: number(layout.place)?,
            tp_frame_nr: number(layout.places())?,
        };
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::new(socket, length)?;
        Ok(Ring { memory, layout, next: 0, losing: false })
    }

    /// Whether a frame is there.
    pub fn ready(&self) -> bool {
        self.is_ours(self.next)
    }

    /// The whole frames that are there, as the kernel wrote them.
    pub fn waiting(&self) -> impl Iterator<Item = &[u8]> {
        let places = self.layout.places();
        let each = (self.next..places).chain(0..self.next).take_while(|place| self.is_ours(*place));
        each.filter_map(|place| {
            let whole = whole(&self.header(place))?;
            // SAFETY: the place lies within the mapping and its status says it is ours, until `take`, which needs `&mut self`,
            // gives it back.
            let all = unsafe { std::slice::from_raw_parts(self.at(place), self.layout.place) };
            all.get(whole)
        })
    }

    /// When the next frame came, by the system's clock, in nanoseconds; `None` if none is there.
    pub fn next_came(&self) -> Option<u64> {
        self.ready().then(|| {
            let header = self.header(self.next);
            u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec)
        })
    }

    /// The header that the kernel wrote at the head of a place. Only where its [status](Ring::is_ours) said that it is ours.
    fn header(&self, place: usize) -> libc::tpacket2_hdr {
        // SAFETY: the place lies within the mapping and begins with the header, aligned as the ring is; whatever is
        // there is numbers only, and the kernel writes nothing while the place is ours.
        unsafe { self.at(place).cast::<libc::tpacket2_hdr>().read() }
    }

    /// Where a place begins.
    fn at(&self, place: usize) -> *mut u8 {
        self.memory.at(self.layout.start(place), self.layout.place)
    }

    /// Shows the next frame to `see` and gives its place back to the kernel; whether there was a whole one.
    pub fn take(&mut self, see: impl FnOnce(Frame<'_>)) -> bool {
        let status = self.status(self.next).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        self.losing |= status & libc::TP_STATUS_LOSING != 0;
        let header = self.header(self.next);
        // SAFETY: the place lies within the mapping; the status says it is ours, and nothing else refers to it while `self` is
        // borrowed.
        let place = unsafe { std::slice::from_raw_parts_mut(self.at(self.next), self.layout.place) };
        let whole = frame(place, &header, status).map(see).is_some();
        self.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.layout.places();
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

    /// Whether a place holds a frame for us.
    fn is_ours(&self, place: usize) -> bool {
        self.status(place).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whose a place is: the header's first field.
    fn status(&self, place: usize) -> &AtomicU32 {
        // SAFETY: within the mapping and aligned to 16 bytes; kernel and process only ever touch it atomically.
        unsafe { AtomicU32::from_ptr(self.at(place).cast()) }
    }
}

/// Where in its place a frame lies; `None` if the kernel had no room for all of it, or wrote nonsense.
fn whole(header: &libc::tpacket2_hdr) -> Option<Range<usize>> {
    let (start, length) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
    (header.tp_snaplen >= header.tp_len).then_some(start..start.checked_add(length)?)
}

/// The frame in a place, with its tag put back; `None` if it is not there as a [`whole`].
fn frame<'a>(place: &'a mut [u8], header: &libc::tpacket2_hdr, status: u32) -> Option<Frame<'a>> {
    let whole = whole(header)?;
    let unfinished_checksum = status & libc::TP_STATUS_CSUMNOTREADY != 0;
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        let bytes = place.get_mut(whole)?;
        return Some(Frame { bytes, unfinished_checksum, tagged: false });
    }
    let bytes = place.get_mut(whole.start.checked_sub(HEADROOM)?..whole.end)?;
    if bytes.len() < HEADROOM + 12 {
        return None;
    }
    let tag = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { header.tp_vlan_tpid } else { TAG };
    bytes.copy_within(HEADROOM..HEADROOM + 12, 0);
    bytes[12..14].copy_from_slice(&tag.to_be_bytes());
    bytes[14..16].copy_from_slice(&header.tp_vlan_tci.to_be_bytes());
    Some(Frame { bytes, unfinished_checksum, tagged: true })
}

// Memory that a socket shares with the kernel.

/// A mapping, unmapped with its only owner. It hands out raw pointers and nothing else: the code that follows one answers for what the
/// kernel and others do there meanwhile.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process and to no thread, and this is the only owner: nobody unmaps it while it is on its way. No
// reference into it is kept here.
unsafe impl Send for Mapping {}

impl Mapping {
    /// So many bytes of a socket's memory, to be read and written.
    pub(super) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address; nothing else is mapped there.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Mapping { start, length })
    }

    /// Where `length` bytes begin that lie `from` the start.
    ///
    /// # Panics
    /// If they lie outside.
    pub(super) fn at(&self, from: usize, length: usize) -> *mut u8 {
        assert!(from.checked_add(length).is_some_and(|end| end <= self.length), "within the mapping");
        // SAFETY: it lies within the mapping.
        unsafe { self.start.as_ptr().add(from) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what was mapped in `new`, unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
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
    fn places_lie_within_blocks_one_behind_the_other() {
        for (bytes, places) in [(1_606, 4_096), (100, 1), (1_600, 3), (9_100, 64), (65_000, 7), (65_600, 2)] {
            let layout = Layout::of(bytes, places);
            assert!(layout.place >= bytes && layout.place % (2 * LINE) == LINE);
            assert!(layout.places() >= places && layout.block.is_power_of_two());
            let mut end = 0;
            for place in 0..layout.places() {
                let start = layout.start(place);
                assert!(start >= end && start / layout.block == (start + layout.place - 1) / layout.block);
                end = start + layout.place;
            }
            assert!(end <= layout.block * layout.blocks);
        }
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
