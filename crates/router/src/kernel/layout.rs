//! What the maps hold: `bpf/layout.h` in Rust, field by field.

use aya::Pod;
use inprofile_core::units::Rate;

use crate::config::frames::Policing;

mod counts;
mod owners;
mod queues;
mod rules;

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
