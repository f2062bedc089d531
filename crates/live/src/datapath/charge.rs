//! How many bytes a frame counts for: to meters and queues, and to the link.

use crate::packet::{Link, Seen, TAG};

/// VLAN tags that meters leave out, as customers' frames have them on an access line.
const USUAL_TAGS: u8 = 2;
/// Bytes of a PPPoE session's header with the number of PPP's protocol, which they leave out as well.
const SESSION: u32 = 8;

/// The bytes that a packet counts for beside its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Bytes that each packet takes on the link in addition.
    pub overhead: u32,
    /// The fewest bytes that a packet counts for, overhead included: `tc`'s minimum packet unit.
    pub mpu: u32,
}

impl Charge {
    /// To meters, queues and counts: the packet, and any tags and labels beyond two tags and a session.
    #[must_use]
    pub fn packet(self, seen: &Seen) -> u32 {
        match seen {
            Ok(h) => (h.size + self.overhead).max(self.mpu) + beyond_usual(&h.link),
            Err(opaque) => (opaque.size + self.overhead).max(self.mpu),
        }
    }

    /// To the link: all that was received behind the Ethernet header but for padding. What is shorter than the minimum may be padded
    /// to it, its VLAN tags beside that.
    #[must_use]
    pub fn link(self, seen: &Seen) -> u32 {
        let all = match seen {
            Ok(h) => (h.size + h.link.bytes() + self.overhead).max(self.mpu_with_tags(&h.link)),
            Err(_) => 0,
        };
        all.max(self.packet(seen))
    }

    fn mpu_with_tags(self, link: &Link) -> u32 {
        if self.mpu == 0 { 0 } else { self.mpu + tag_bytes(link.tags) }
    }
}

/// Bytes of so many VLAN tags.
fn tag_bytes(tags: u8) -> u32 {
    u32::from(tags) * TAG as u32
}

/// Bytes before the IP header that are neither of the first two tags nor of a session: third and fourth tags, and labels.
fn beyond_usual(link: &Link) -> u32 {
    let session = if link.session.is_some() { SESSION } else { 0 };
    link.bytes().saturating_sub(tag_bytes(link.tags.min(USUAL_TAGS)) + session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Layer, parse};

    fn behind(tags: usize, bytes: u16) -> Seen {
        let mut frame = vec![0; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend(bytes.to_be_bytes());
        frame.resize(frame.len() - 4 + usize::from(bytes), 0);
        parse(Layer::Ethernet, &frame)
    }

    #[test]
    fn a_meter_leaves_two_tags_out_and_the_link_none() {
        let wire = Charge { overhead: 38, mpu: 84 };
        for (tags, bytes, packet, link) in [
            (0, 20, 84, 84),
            (2, 20, 84, 92),
            (3, 20, 88, 96),
            (4, 46, 92, 100),
            (2, 1000, 1038, 1046),
            (4, 1000, 1046, 1054),
        ] {
            let seen = behind(tags, bytes);
            assert_eq!((wire.packet(&seen), wire.link(&seen)), (packet, link), "{tags} tags, {bytes} B");
        }
        let plain = Charge::default();
        assert_eq!((plain.packet(&behind(2, 1000)), plain.link(&behind(2, 1000))), (1000, 1008));
        // Too deep to be read: all of it, either way.
        assert_eq!((plain.packet(&behind(5, 1000)), plain.link(&behind(5, 1000))), (1020, 1020));
    }
}
