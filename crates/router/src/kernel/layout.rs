//! What the maps hold: `bpf/layout.h` in Rust, field by field.

use aya::Pod;
use inprofile_core::units::Rate;

use crate::config::frames::Policing;

mod queues;

use queues::counts;

pub use counts::{Account, Colours, Name, Totals};
pub use owners::{AllKinds, Bucket, Circuit, CircuitKey, PortKey, PrefixKey, PrefixOwner, Sender, SenderKey};
pub use queues::{Curve, Factor, Powers, Queue, VirtualBacklog};
pub use rules::{Law, Rules, Terms};

/// A token is a byte, counted in grains: bits per second times nanoseconds is a whole number of them.
pub const GRAINS: u64 = 8_000_000_000;
/// The most that both buckets of a meter may hold, so that grains fit in 64 bits.
pub const MOST_DEPTH: u64 = 1 << 30;
/// No VLAN, no session, and a code point that stays.
pub const NO_VLAN: u16 = 0xffff;
/// See [`NO_VLAN`].
pub const NO_SESSION: u32 = u32::MAX;
/// See [`NO_VLAN`].
pub const KEEP: u8 = 0xff;
/// Of an account that holds an estimate of the rate, and no tokens.
pub const ESTIMATE: u64 = u64::MAX;
/// The kinds of control frames.
pub const KINDS: usize = 8;
/// Refusals, frames by what they are, and classes.
pub const REFUSALS: usize = 7;
/// See [`REFUSALS`].
pub const CENSUS: usize = 21;
/// See [`REFUSALS`].
pub const CLASSES: usize = 19;

/// `struct state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// Which of two sets of rules is in force.
    pub bank: u32,
    /// 0: nothing is forwarded.
    pub on: u32,
    /// 1: everything passes.
    pub bypass: u32,
    /// 1: the time is the frame's own stamp, for test runs.
    pub clock: u32,
    /// Accounts of a direction.
    pub capacity: u32,
    /// The mark of what is forwarded.
    pub mark: u32,
    /// The interface that frames leave by, by the port they came in at; 0: away.
    pub out: [u32; 2],
    /// Its MTU; 0: unknown.
    pub mtu: [u32; 2],
    /// The key of hashes.
    pub secret: [u64; 2],
}

/// `struct police`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Police {
    /// In bits per second.
    pub rate: u64,
    /// In grains.
    pub depth: u64,
    /// Nanoseconds after which an empty bucket is full.
    pub full: u64,
}

impl Police {
    /// A bucket of so many bytes.
    #[must_use]
    pub fn new(rate: Rate, bytes: u64) -> Police {
        Police::of_grains(rate, bytes.saturating_mul(GRAINS))
    }

    /// A bucket of so many grains.
    #[must_use]
    pub fn of_grains(rate: Rate, depth: u64) -> Police {
        Police { rate: rate.0, depth, full: depth.div_ceil(rate.0.max(1)) }
    }
}

impl From<Policing> for Police {
    fn from(policing: Policing) -> Police {
        Police::new(policing.rate, policing.burst.0)
    }
}

macro_rules! plain {
    ($($kind:ty),+) => { $(
        // SAFETY: integers and arrays of them in C's layout, without padding: any bytes are valid, and none is undefined.
        unsafe impl Pod for $kind {}
    )+ };
}

plain!(
    Queue,
    VirtualBacklog,
    Powers,
    State,
    Rules,
    Terms,
    Account,
    Name,
    Totals,
    CircuitKey,
    Circuit,
    PrefixKey,
    PrefixOwner,
    PortKey,
    SenderKey,
    Sender,
    AllKinds
);

/// A value as a map holds it.
#[must_use]
pub fn bytes_of<V: Pod>(value: &V) -> &[u8] {
    // SAFETY: a `Pod` is plain bytes without padding, as large as it says, and borrowed as long as the slice.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<V>()) }
}

mod owners {
    //! Whose a frame is, and what senders of control frames may send.

    use super::KINDS;

    /// `struct circuit_key`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(C)]
    pub struct CircuitKey {
        /// bank * 2 + direction.
        pub set: u32,
        /// The two outer VLANs.
        pub vlan: [u16; 2],
        /// The PPPoE session.
        pub session: u32,
    }

    /// `struct circuit`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Circuit {
        /// Of prefixes.
        pub group: u32,
        /// Account plus 1.
        pub holder: u32,
    }

    /// `struct prefix_key`, but for its length.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(C)]
    pub struct PrefixKey {
        /// A circuit's, of a family.
        pub group: u32,
        /// IPv4's in the first four bytes.
        pub address: [u8; 16],
    }

    /// `struct prefix`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct PrefixOwner {
        /// Account plus 1, whatever the port.
        pub any: u32,
        /// Of owners by port; 0: none.
        pub list: u32,
    }

    /// `struct port_key`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(C)]
    pub struct PortKey {
        /// See [`PrefixOwner`].
        pub list: u32,
        /// On the inside.
        pub port: u32,
    }

    /// `struct sender_key`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(C)]
    pub struct SenderKey {
        /// direction * 8 + kind.
        pub kind: u32,
        /// The customer's.
        pub account: u32,
    }

    /// `struct bucket`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Bucket {
        /// In grains.
        pub tokens: u64,
        /// When they were counted last.
        pub at: u64,
    }

    /// `struct sender`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Sender {
        pub(in crate::kernel) lock: u32,
        pub(in crate::kernel) pad: u32,
        /// Of one kind.
        pub bucket: Bucket,
    }

    /// `struct all_kinds`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct AllKinds {
        pub(in crate::kernel) lock: u32,
        pub(in crate::kernel) pad: u32,
        /// Of any kind.
        pub any: Bucket,
        /// Of each.
        pub kept: [Bucket; KINDS],
    }
}

mod rules {
    //! How the packets of a direction are treated, and how a customer's are metered.

    use std::fmt;

    use super::{KEEP, Police};

    /// `struct rules`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Rules {
        /// 0: everything passes as it is.
        pub configured: u32,
        /// Nothing that comes in is believed.
        pub edge: u32,
        /// Code points that nobody has bought are cleared.
        pub bleach: u32,
        /// Frames that can't be read are dropped.
        pub drop_unreadable: u32,
        /// Packets with a wrong length field are dropped.
        pub drop_mismatch: u32,
        /// Some customers are known by circuits.
        pub circuits: u32,
        /// Ethernet addresses are told apart.
        pub by_address: u32,
        /// Bytes charged beside the packet's.
        pub overhead: u32,
        /// The fewest bytes charged.
        pub mpu: u32,
        /// The class of the three colours.
        pub assured: u32,
        /// The class of what is left.
        pub best_effort: u32,
        /// The account of who has all addresses outside circuits, plus 1.
        pub rest: u32,
        /// The account of the first kind's policer.
        pub control: u32,
        /// A bit for each class that has a virtual queue.
        pub queued: u32,
        pub(in crate::kernel) pad: u32,
        /// Code points of the colours.
        pub points: [u8; 4],
        /// The class of each code point.
        pub class_of: [u8; 64],
        /// What each becomes that nobody has bought.
        pub becomes: [u8; 64],
        /// Of each sender whom a circuit tells, of each kind.
        pub each: Police,
        /// Of an Ethernet address: all kinds, and what is kept for each.
        pub address: [Police; 2],
        /// Of all addresses together.
        pub addresses: [Police; 2],
    }

    impl fmt::Debug for Rules {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Rules")
                .field("configured", &self.configured)
                .field("edge", &self.edge)
                .finish_non_exhaustive()
        }
    }

    /// Nothing is done in this direction.
    impl Default for Rules {
        fn default() -> Rules {
            let none = Police::default();
            Rules {
                configured: 0,
                edge: 0,
                bleach: 0,
                drop_unreadable: 0,
                drop_mismatch: 0,
                circuits: 0,
                by_address: 0,
                overhead: 0,
                mpu: 0,
                assured: 0,
                best_effort: 0,
                rest: 0,
                control: 0,
                queued: 0,
                pad: 0,
                points: [0; 4],
                class_of: [0; 64],
                becomes: [KEEP; 64],
                each: none,
                address: [none; 2],
                addresses: [none; 2],
            }
        }
    }

    /// The laws of meters, `enum law`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u32)]
    pub enum Law {
        /// One bucket.
        TokenBucket = 0,
        /// RFC 2697.
        SrTcm,
        /// RFC 2698.
        TrTcm,
        /// RFC 4115.
        Rfc4115,
        /// RFC 2859 with two colours.
        Tsw2cm,
        /// RFC 2859.
        Tsw3cm,
    }

    /// `struct terms`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[repr(C)]
    pub struct Terms {
        /// A bit for each DSCP that is metered.
        pub metered: u64,
        /// Of srTCM, the second's `full` is that of both; of TSW2CM and TSW3CM these are the target rates, and the first's `full` is the window.
        pub bucket: [Police; 2],
        /// When the rates came into force.
        pub since: u64,
        /// A [`Law`].
        pub law: u32,
        /// Colour-aware.
        pub aware: u32,
        /// A packet conforms only if it leaves tokens; of TSW2CM: all is OUT above the rate.
        pub more: u32,
        /// This colour and worse are dropped; 3: none.
        pub drop_from: u32,
        /// All that is his passes his policer.
        pub policed: u32,
        /// Its buckets are empty before the first packet.
        pub starts_empty: u32,
        /// The account of the policer of each class that was bought, plus 1.
        pub policer: [u32; 16],
    }

    impl Terms {
        /// Whether its buckets are full before the first packet.
        #[must_use]
        pub fn starts_full(&self) -> bool {
            self.starts_empty == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field of theirs adds up to the whole: there is no padding.
    #[test]
    fn sizes_are_those_of_the_c_structs() {
        let sizes = [
            size_of::<State>(),
            size_of::<Rules>(),
            size_of::<Terms>(),
            size_of::<Account>(),
            size_of::<Totals>(),
        ];
        let colours = 16;
        assert_eq!(sizes[0], 10 * 4 + 2 * 8);
        assert_eq!(sizes[1], 15 * 4 + 4 + 64 + 64 + 5 * 24);
        assert_eq!(sizes[2], 8 + 48 + 8 + 6 * 4 + 64);
        assert_eq!(sizes[3], 8 + 5 * 8 + 6 * colours + 3 * 8 + 4 * colours + 3 * 8);
        assert_eq!(sizes[4], 8 * (9 + REFUSALS + CENSUS + KINDS) + CLASSES * 3 * colours);
        assert_eq!(
            (size_of::<CircuitKey>(), size_of::<PrefixKey>(), size_of::<Sender>(), size_of::<AllKinds>()),
            (12, 20, 24, 152)
        );
        assert_eq!(size_of::<Queue>(), 6 * 8 + 3 * 48 + 2 * 4 + 9 + 2 + 5);
        assert_eq!(size_of::<VirtualBacklog>(), 8 + 4 * 8 + 2 * 24 + 12 + 4 + 24 + 24 + 72);
        assert_eq!(size_of::<Powers>(), 513 * 8);
    }
}
