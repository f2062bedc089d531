//! The context that only ns-2's disciplines and markers have: moments of its clock, addresses, and the intervals of its timers.

use crate::ns2::addresses::Addresses;
use crate::registry::mechanisms::{AnyAqm, AnyMarker};
use crate::units::Time;

/// A moment on ns-2's clock, in its own seconds: sums of doubles, which whole picoseconds can't hold. Traffic in step leaves a
/// link idle for exactly whole packets and a bucket with exactly a packet's tokens, and then the last bit counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Since the start of the run.
    pub secs: f64,
    /// How long the link before which a packet arrives has been idle, if it is: ns-2's own difference.
    pub idle: f64,
}

impl AnyAqm {
    /// Of the call that follows, on ns-2's clock only.
    pub fn tell_moment(&mut self, moment: Moment) {
        match self {
            AnyAqm::Ns2Red(m) => m.law.variant.told.tell(moment),
            AnyAqm::Ns2Rio(m) => m.law.variant.told.tell(moment),
            AnyAqm::RioAtIn(m) => m.law.variant.told.tell(moment),
            AnyAqm::Ns2RioAtIn(m) => m.law.variant.told.tell(moment),
            AnyAqm::Ns2RioPlusOut(m) => m.rio.law.variant.told.tell(moment),
            AnyAqm::RioPlusOutAtIn(m) => m.rio.law.variant.told.tell(moment),
            AnyAqm::Ns2RioPlusOutAtIn(m) => m.rio.law.variant.told.tell(moment),
            AnyAqm::Ns2FddRed(m) => m.red.law.variant.told.tell(moment),
            AnyAqm::DsRed(m) => m.tell_secs(moment.secs),
            AnyAqm::Ns2Fq(m) => m.tell(moment),
            _ => {}
        }
    }

    /// Seconds between its ticks, where ns-2 has a timer for them: ns-2 adds them up in doubles, which picoseconds can't.
    #[must_use]
    pub fn timer_secs(&self) -> Option<f64> {
        match self {
            AnyAqm::Ns2Pi(m) => Some(m.law.interval()),
            AnyAqm::Ns2Rem(m) => Some(m.interval()),
            _ => None,
        }
    }

    /// The addresses of each flow's source and destination, of which ns-2's fair queues take their hash.
    pub fn tell_addresses(&mut self, of: &std::sync::Arc<[(u32, u32)]>) {
        match self {
            AnyAqm::Ns2Sfq(m) => m.addresses = Addresses::told(of.clone()),
            AnyAqm::Ns2Drr(m) => m.addresses = Addresses::told(of.clone()),
            _ => {}
        }
    }
}

impl AnyMarker {
    /// Of the call that follows, on ns-2's clock only.
    pub fn tell_moment(&mut self, now: Time, moment: Moment) {
        match self {
            AnyMarker::TokenBucket(m) => m.tell_secs(now, moment.secs),
            AnyMarker::Tsw2cm(m) => m.rate.tell_secs(moment.secs),
            AnyMarker::Tsw3cm(m) => m.rate.tell_secs(moment.secs),
            AnyMarker::Ns2Tsw2cm(m) => m.rate.tell_secs(moment.secs),
            AnyMarker::Ns2Tsw3cm(m) => m.rate.tell_secs(moment.secs),
            _ => {}
        }
    }
}
