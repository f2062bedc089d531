//! Frames from memory or from a capture, under a virtual clock: equal input gives equal runs on any machine.

use std::collections::VecDeque;
use std::io;

use inprofile_core::units::Time;

use super::{Io, Port, PortCounts, Received};
use crate::packet::Layer;

/// A frame and when it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When.
    pub at: Time,
    /// By which port.
    pub port: Port,
    /// What.
    pub bytes: Vec<u8>,
}

/// The driver.
#[derive(Debug)]
pub struct Replay {
    layer: Layer,
    now: Time,
    to_come: VecDeque<Frame>,
    sent: Vec<Frame>,
    counts: Vec<PortCounts>,
}

impl Replay {
    /// These frames, in the order of their times; of several at one moment the first given is first.
    #[must_use]
    pub fn new(layer: Layer, mut frames: Vec<Frame>) -> Replay {
        frames.sort_by_key(|f| f.at);
        let ports = frames.iter().map(|f| f.port + 1).max().unwrap_or(0).max(2);
        let counts = vec![PortCounts::default(); ports];
        Replay { layer, now: Time::ZERO, to_come: frames.into(), sent: Vec::new(), counts }
    }

    /// The segments sent, and when.
    #[must_use]
    pub fn into_sent(self) -> Vec<Frame> {
        self.sent
    }
}

impl Io for Replay {
    fn layer(&self) -> Layer {
        self.layer
    }

    fn now(&self) -> Time {
        self.now
    }

    /// Lets the clock jump. Without a frame to come or a time to wait for it stops.
    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let next = self.to_come.front().map(|f| f.at);
        if let Some(at) = next.into_iter().chain(until).min() {
            self.now = self.now.max(at);
        }
        Ok(())
    }

    fn peek(&self, see: &mut dyn FnMut(Port, &[u8])) {
        let there = self.to_come.iter().take_while(|f| f.at <= self.now);
        there.for_each(|frame| see(frame.port, &frame.bytes));
    }

    fn receive(&mut self, each: &mut dyn FnMut(Time, Port, &mut [u8])) -> io::Result<Received> {
        let mut frames = 0;
        while self.to_come.front().is_some_and(|f| f.at <= self.now) {
            if let Some(mut frame) = self.to_come.pop_front() {
                self.counts[frame.port].received += 1;
                each(frame.at, frame.port, &mut frame.bytes);
                frames += 1;
            }
        }
        Ok(Received { frames, until: self.now })
    }

    fn send(&mut self, port: Port, frame: &[u8]) -> io::Result<()> {
        if let Some(counts) = self.counts.get_mut(port) {
            counts.sent += 1;
        }
        self.sent.push(Frame { at: self.now, port, bytes: frame.to_vec() });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn ended(&self) -> bool {
        self.to_come.is_empty()
    }

    fn counts(&self, port: Port) -> PortCounts {
        self.counts.get(port).copied().unwrap_or_default()
    }
}

// Frames one after the other in one block of memory, each with a time.

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
