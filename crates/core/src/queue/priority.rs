//! Strict priority: the first class that has a packet to send is served.
//!
//! A class waits for all classes before it, and may starve; they are limited by their own set rate
//! (see [`pace`](crate::queue::pace)) or by a marker at the edge, as RFC 3246 §2.2 asks of expedited forwarding. A packet in
//! transmission is never interrupted, so the first class waits for at most one packet of another.
//!
//! Non-goal: shares. See [`drr`](crate::queue::drr).

use crate::params::{Context, Fault, Warning};
use crate::queue::Scheduler;

crate::params! {
    /// The operator's settings of each class: none but its place in the list.
    pub struct Params {}
}

/// The scheduler. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority;

impl Params {
    /// Whatever the place, it fits.
    ///
    /// # Errors
    /// None.
    pub fn check(&self, _: &Context) -> Result<Vec<Warning>, Fault> {
        Ok(Vec::new())
    }

    /// The scheduler of these classes, first served first.
    #[must_use]
    pub fn build(_: &[Params], _: &Context) -> Priority {
        Priority
    }
}

impl Scheduler for Priority {
    fn next(&mut self, heads: &[Option<u32>]) -> Option<usize> {
        heads.iter().position(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_has_something_sends() {
        assert_eq!(Priority.next(&[None, Some(40), Some(1500)]), Some(1));
        assert_eq!(Priority.next(&[Some(1), Some(40), Some(1500)]), Some(0));
        assert_eq!(Priority.next(&[None, None]), None);
    }
}
