//! Sources and sinks of frames: one small interface, several drivers.
//!
//! [`replay`] takes frames from memory or a capture under a virtual clock; [`tun`] and [`afpacket`] are Linux's.

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system calls and the ring shared with the kernel; each with its reason")]
pub mod afpacket;
#[cfg(target_os = "linux")]
pub mod closed;
#[cfg(target_os = "linux")]
pub mod link;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "socket calls that the standard library lacks; each with its reason")]
pub mod netlink;
pub mod pcap;
pub mod pcapng;
pub mod replay;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system calls; each with its reason")]
pub mod sys;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "ioctl on the device")]
pub mod tun;

use std::io;

use inprofile_core::units::Time;

use crate::packet::Layer;
use replay::Frames;

/// A port, by its number within the driver.
pub type Port = usize;

/// Takes frames in and sends frames out, on some clock.
pub trait Io {
    /// The first layer of its frame.
    fn layer(&self) -> Layer;

    /// The present moment, from the driver's start. It never runs back.
    fn now(&self) -> Time;

    /// Waits until a frame is there or `until` has come, whichever is first; `None`: until a frame is there. It may
    /// wake early.
    ///
    /// # Errors
    /// The system's error.
    fn wait(&mut self, until: Option<Time>) -> io::Result<()>;

    /// Shows frames that have come in and wait to be handed over, at most a batch of each port; a VLAN tag that the driver has yet to
    /// put back is missing. Drivers that can't show any don't.
    fn peek(&self, see: &mut dyn FnMut(Port, &[u8])) {
        let _ = see;
    }

    /// Hands over frames that have come in, at most a batch of them, each with the moment it came, in the order of
    /// these moments; whatever happened in between, they never run back, not from one call to the next either.
    ///
    /// # Errors
    /// The system's error; a port that is down is not an error but gives nothing.
    fn receive(&mut self, each: &mut dyn FnMut(Time, Port, &mut [u8])) -> io::Result<Received>;

    /// Sends a frame, at the latest with the next [`flush`](Io::flush). A frame that the port can't take is lost and
    /// counted, like on any interface.
    ///
    /// # Errors
    /// The system's error, if it isn't about this frame alone.
    fn send(&mut self, port: Port, frame: &[u8]) -> io::Result<()>;

    /// Sends what has gathered.
    ///
    /// # Errors
    /// The system's error.
    fn flush(&mut self) -> io::Result<()>;

    /// Sends these frames, after what has gathered.
    ///
    /// # Errors
    /// As [`send`](Io::send) and [`flush`](Io::flush).
    fn send_all(&mut self, port: Port, frames: &Frames) -> io::Result<()> {
        frames.iter().try_for_each(|frame| self.send(port, frame))?;
        self.flush()
    }

    /// Whether nothing will ever come in again.
    fn ended(&self) -> bool {
        false
    }

    /// The event at a port.
    fn counts(&self, port: Port) -> PortCounts;
}

/// The outcome of a call of [`Io::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many frames.
    pub frames: usize,
    /// Everything that came up to this moment has been handed over: what is due by now and no later than this can
    /// be done without overtaking a frame.
    pub until: Time,
}

/// The event at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Frames received.
    pub received: u64,
    /// Frames that came but found no room in the driver.
    pub missed: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that the port could not take: it was down, or its own queue full.
    pub refused: u64,
}

#[cfg(test)]
mod tests {
    use super::replay::{Frame, Replay};
    use super::*;

    #[test]
    fn a_driver_is_an_object() {
        let mut driver: Box<dyn Io> =
            Box::new(Replay::new(Layer::Ip, vec![Frame { at: Time(7), port: 0, bytes: vec![1, 2, 3] }]));
        driver.wait(Some(Time(5))).unwrap();
        assert_eq!(driver.receive(&mut |_, _, _| {}).unwrap(), Received { frames: 0, until: Time(5) });
        driver.wait(None).unwrap();
        let mut peeked = Vec::new();
        driver.peek(&mut |port, bytes| peeked.push((port, bytes.to_vec())));
        assert_eq!(peeked, [(0, vec![1, 2, 3])]);
        let mut seen = Vec::new();
        driver.receive(&mut |at, port, bytes| seen.push((at, port, bytes.to_vec()))).unwrap();
        assert_eq!((driver.now(), seen, driver.ended()), (Time(7), vec![(Time(7), 0, vec![1, 2, 3])], true));
    }
}
