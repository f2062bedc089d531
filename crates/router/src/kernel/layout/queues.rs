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

pub(super) mod counts {
    //! What lasts as long as the customer, and what a direction counts.

    use super::super::{CENSUS, CLASSES, KINDS, REFUSALS, Terms};

    /// Packets and their bytes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Colours {
        /// Packets.
        pub packets: u64,
        /// Bytes as they are charged.
        pub bytes: u64,
    }

    /// `struct account`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Account {
        pub(in crate::kernel) lock: u32,
        pub(in crate::kernel) pad: u32,
        /// In grains; or the [estimated](super::super::ESTIMATE) rate in bit/s with 16 binary digits after the point.
        pub tokens: [u64; 2],
        /// When they were counted last.
        pub at: u64,
        /// The rates by which they have come since; or [`ESTIMATE`](super::super::ESTIMATE).
        pub rate: [u64; 2],
        /// Of the meter, by the colour packets had.
        pub arrived: [Colours; 3],
        /// By the colour they were given.
        pub left: [Colours; 3],
        /// By the colour they had.
        pub dropped: [u64; 3],
        /// Of the customer, whatever the class.
        pub came: Colours,
        /// By the colour they left with.
        pub sent: [Colours; 3],
        /// Dropped by his policers, or by a virtual queue's limit.
        pub policed: u64,
        /// By a virtual queue's law.
        pub early: u64,
        /// See [`early`](Account::early).
        pub forced: u64,
    }

    impl Account {
        /// A new one that is metered by these terms, with full buckets or empty ones.
        #[must_use]
        pub fn opened(terms: &Terms, full: bool, at: u64) -> Account {
            let tokens = if full { terms.bucket.map(|b| b.depth) } else { [0; 2] };
            Account { tokens, at, rate: terms.bucket.map(|b| b.rate), ..Account::default() }
        }
    }

    /// `struct name`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Name(pub [u8; 136]);

    impl Name {
        /// As much of it as there is room for.
        #[must_use]
        pub fn of(name: &str) -> Name {
            let mut text = [0; 136];
            text.iter_mut().zip(name.bytes()).for_each(|(to, b)| *to = b);
            Name(text)
        }
    }

    /// `struct totals`.
    #[derive(Clone, Copy, Debug)]
    #[repr(C)]
    pub struct Totals {
        /// Packets that came in.
        pub came: u64,
        /// Went on as they were.
        pub passed: u64,
        /// Of these: while the bypass was on.
        pub bypassed: u64,
        /// Out of profile.
        pub policed: u64,
        /// Sent on.
        pub sent: u64,
        /// By virtual queues.
        pub dropped: u64,
        /// With a wrong length field.
        pub length_disagrees: u64,
        /// See [`DirectionState`](crate::snapshot::DirectionState).
        pub without_first: u64,
        /// Of those sent or passed: lost, as the other port is away.
        pub no_port: u64,
        /// By the reason.
        pub refused: [u64; REFUSALS],
        /// By what they are.
        pub census: [u64; CENSUS],
        /// By the kind.
        pub excess: [u64; KINDS],
        /// Sent, by class and colour.
        pub class: [[Colours; 3]; CLASSES],
    }

    impl Default for Totals {
        fn default() -> Totals {
            Totals {
                came: 0,
                passed: 0,
                bypassed: 0,
                policed: 0,
                sent: 0,
                dropped: 0,
                length_disagrees: 0,
                without_first: 0,
                no_port: 0,
                refused: [0; REFUSALS],
                census: [0; CENSUS],
                excess: [0; KINDS],
                class: [[Colours::default(); 3]; CLASSES],
            }
        }
    }

    impl Totals {
        /// Both together.
        #[must_use]
        pub fn and(mut self, other: &Totals) -> Totals {
            self.came += other.came;
            self.passed += other.passed;
            self.bypassed += other.bypassed;
            self.policed += other.policed;
            self.sent += other.sent;
            self.dropped += other.dropped;
            self.length_disagrees += other.length_disagrees;
            self.without_first += other.without_first;
            self.no_port += other.no_port;
            let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
            add(&mut self.refused, &other.refused);
            add(&mut self.census, &other.census);
            add(&mut self.excess, &other.excess);
            for (to, from) in self.class.as_flattened_mut().iter_mut().zip(other.class.as_flattened()) {
                to.packets += from.packets;
                to.bytes += from.bytes;
            }
            self
        }
    }
}
