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
