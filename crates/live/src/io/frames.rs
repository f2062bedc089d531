//! Frames one after the other in one block of memory, each with a time.

use inprofile_core::units::Time;

/// Frames, in order. What has been cleared keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    times: Vec<Time>,
}

impl Frames {
    /// One more.
    pub fn push(&mut self, at: Time, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.lengths.push(frame.len());
        self.times.push(at);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map(move |length| {
            let (frame, after) = rest.split_at(*length);
            rest = after;
            frame
        })
    }

    /// Their moments, in order.
    #[must_use]
    pub fn times(&self) -> &[Time] {
        &self.times
    }

    /// All bytes, and how many of them belong to each.
    #[must_use]
    pub fn parts(&self) -> (&[u8], &[usize]) {
        (&self.bytes, &self.lengths)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// None any more.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
        self.times.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out_in_order() {
        let mut f = Frames::default();
        for (at, bytes) in [(3, &b"one"[..]), (5, b""), (4, b"three")] {
            f.push(Time(at), bytes);
        }
        assert_eq!(f.iter().collect::<Vec<_>>(), [&b"one"[..], b"", b"three"]);
        assert_eq!(
            (f.times(), f.parts()),
            (&[Time(3), Time(5), Time(4)][..], (&b"onethree"[..], &[3, 0, 5][..]))
        );
        f.clear();
        assert!(f.is_empty() && f.iter().next().is_none() && f.parts().0.is_empty());
    }
}
