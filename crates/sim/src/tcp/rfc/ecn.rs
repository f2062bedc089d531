//! Explicit congestion notification in the sender (RFC 3168): what its segments say, and which echoes count.
//!
//! That both ends agree is a setting of the flow; the bits of the SYN that negotiate it are not modelled.

use crate::tcp::Bits;

/// What the sender remembers of its reductions.
#[derive(Clone, Debug, Default)]
pub struct Ecn {
    /// One past the highest segment sent when the window was last reduced.
    reduced_at: u32,
    /// That reduction was on account of an echo.
    by_echo: bool,
    /// The receiver is still to be told of it.
    tell: bool,
    /// The window is down to one segment and an echo came: nothing is sent until the timer expires.
    pub stopped: bool,
    /// How often in a row that was so.
    pub in_a_row: u32,
}

impl Ecn {
    /// Whether an echo that acknowledges all before `next` tells of congestion that was not reacted to.
    /// RFC 3168 §6.1.2: once a window of data. Echoes last until the receiver has seen CWR, which the first segment sent
    /// after a reduction carries.
    pub fn tells_more(&self, next: u32) -> bool {
        next > self.reduced_at
    }

    /// Whether the window was already reduced on account of an echo since `segment` was sent: its loss is then no
    /// further congestion (RFC 3168 §6.1.2).
    pub fn covers(&self, segment: u32) -> bool {
        self.by_echo && segment < self.reduced_at
    }

    /// The window was reduced, for whatever reason, when `end` was one past the highest segment sent: the next new
    /// segment says so (RFC 3168 §6.1.2).
    pub fn reduced(&mut self, end: u32, by_echo: bool) {
        self.reduced_at = end;
        self.by_echo = by_echo;
        self.tell = true;
    }

    /// What a segment's headers say. RFC 3168 §6.1.1: a SYN is never ECT. §6.1.5: nor is what is sent again, and it
    /// carries no CWR.
    pub fn bits(&mut self, segment: u32, again: bool) -> Bits {
        if segment == 0 || again {
            return Bits::default();
        }
        Bits { capable: true, cwr: std::mem::take(&mut self.tell) }
    }
}
