//! The interface of every scheduler, which picks the class that sends next.

/// Decides which class's queue the link takes its next packet from. Classes are numbered in the order in which they
/// were given; the container ([`Scheduled`](crate::queue::scheduled::Scheduled)) holds the packets and obeys.
pub trait Scheduler: Send {
    /// The class that sends next; `None` if none may. `heads` has for each class the size of its first packet, if one
    /// waits and may be sent now.
    fn next(&mut self, heads: &[Option<u32>]) -> Option<usize>;

    /// The class just chosen has sent so many bytes: 0 if its discipline dropped all that waited.
    fn sent(&mut self, class: usize, bytes: u32) {
        let _ = (class, bytes);
    }

    /// The class that was served last has nothing left, now that the link is free: told whether or not anybody asks who is next.
    fn emptied(&mut self, class: usize) {
        let _ = class;
    }
}
