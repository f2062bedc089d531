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
