//! Every mechanism by name: what `inprofile list` prints, and what an experiment file may say. A new mechanism adds one line to
//! the table of [mechanisms].

pub mod mechanisms;
mod schedulers;

pub use mechanisms::{AnyAqm, AnyMarker, Entry};
pub use schedulers::{AnyScheduler, SchedulerEntry};

use crate::ns2;

/// The markers, disciplines and schedulers an experiment may name. [`Registry::default`] has all of ours;
/// push an [`Entry`] to add one of your own.
#[derive(Clone)]
pub struct Registry {
    /// For flows and edges.
    pub markers: Vec<Entry<AnyMarker>>,
    /// For queues.
    pub aqms: Vec<Entry<AnyAqm>>,
    /// For queues of several classes.
    pub schedulers: Vec<SchedulerEntry>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            markers: ns2::offer::markers(mechanisms::MARKERS),
            aqms: ns2::offer::aqms(mechanisms::AQMS),
            schedulers: schedulers::SCHEDULERS.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
