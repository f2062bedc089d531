//! Virtual queues as the maps hold them: the core's law in whole numbers, and what it keeps.

use inprofile_core::aqm::virtual_queue::whole;

/// `struct factor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Factor {
    s: u32,
    k: u32,
}

impl From<whole::Factor> for Factor {
    fn from(f: whole::Factor) -> Factor {
        Factor { s: f.s, k: f.k }
    }
}

/// `struct curve`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Curve {
    min_th: u64,
    max_th: u64,
    end: u64,
    max_p: u64,
    slope: Factor,
    gentle: Factor,
}

impl From<whole::Curve> for Curve {
    fn from(c: whole::Curve) -> Curve {
        let whole::Curve { min_th, max_th, end, max_p, slope, gentle } = c;
        Curve { min_th, max_th, end, max_p, slope: slope.into(), gentle: gentle.into() }
    }
}

/// `struct queue`: [`whole::Settings`] without padding that nothing is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Queue {
    rate: u64,
    most: u64,
    drains_in: u64,
    w: u64,
    fade: u64,
    forgets_in: u64,
    curve: [Curve; 3],
    curves: u32,
    shift: u32,
    row: [u8; 3],
    takes: [u8; 3],
    of: [u8; 3],
    wait: u8,
    ecn: u8,
    pad: [u8; 5],
}

impl From<whole::Settings> for Queue {
    fn from(s: whole::Settings) -> Queue {
        Queue {
            rate: s.rate,
            most: s.most,
            drains_in: s.drains_in,
            w: s.w,
            fade: s.fade,
            forgets_in: s.forgets_in,
            curve: s.curve.map(Curve::from),
            curves: s.curves,
            shift: s.shift,
            row: s.row,
            takes: s.takes,
            of: s.of,
            wait: s.wait.into(),
            ecn: s.ecn.into(),
            pad: [0; 5],
        }
    }
}

/// `struct backlog`: a [`whole::State`], and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct VirtualBacklog {
    lock: u32,
    pad: u32,
    /// Bits times nanoseconds a second.
    pub level: u64,
    last: u64,
    empty_since: u64,
    aged: u64,
    parts: [u64; 3],
    /// In bytes, with 16 binary digits after the point.
    pub avg: [u64; 3],
    count: [i32; 3],
    pad_count: u32,
    /// Bytes that were dropped, by colour.
    pub lost: [u64; 3],
    /// By colour.
    pub marked: [u64; 3],
    /// By cause (early, forced, policed) and colour.
    pub dropped: [[u64; 3]; 3],
}

/// Nothing has arrived yet.
impl Default for VirtualBacklog {
    fn default() -> VirtualBacklog {
        let whole::State { level, last, empty_since, aged, parts, avg, count } = whole::State::default();
        VirtualBacklog {
            lock: 0,
            pad: 0,
            level,
            last,
            empty_since,
            aged,
            parts,
            avg,
            count,
            pad_count: 0,
            lost: [0; 3],
            marked: [0; 3],
            dropped: [[0; 3]; 3],
        }
    }
}

impl VirtualBacklog {
    /// The law's own state.
    #[must_use]
    pub fn state(&self) -> whole::State {
        let VirtualBacklog { level, last, empty_since, aged, parts, avg, count, .. } = *self;
        whole::State { level, last, empty_since, aged, parts, avg, count }
    }
}

/// `struct powers`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Powers {
    of: [[u64; 256]; 2],
    ln2: u64,
}

impl Default for Powers {
    fn default() -> Powers {
        Powers { of: *whole::POWERS, ln2: whole::LN2 }
    }
}
