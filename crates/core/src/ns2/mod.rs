//! ns-2 2.35: how it computes disciplines and markers that others define, to the last bit and random number.
//!
//! Papers were run on ns-2, and a run of ours that agrees with ns-2's event by event shows that the rest of the simulator is
//! right. So this folder has what ns-2 computes differently from the sources that it names: averages and counts of
//! [RED and RIO](red), the order of steps in [dsRED](dsred), rounding of limits, [policers](policer), its
//! [random numbers](rng), the timers and draws of [PI](pi) and [REM](rem), its fair queues ([SFQ](sfq), [DRR](drr), [FQ](fq)), and its clock.
//!
//! The rest of this crate does not refer to it. A mechanism that ns-2 computes differently is generic over its reading
//! ([RED's](crate::aqm::red::law::Reading), [PI's](crate::aqm::pi::Reading), [the TSW markers'](crate::marker::tsw2cm::Chance)) or, where
//! it decides elsewhere, as [REM](rem) does, is here whole; and one block of the [registry](crate::registry) names what is in this
//! folder. Without both there is no `variant = "ns2"`.
//! Non-goal: ns-2's TCP and order of events, which belong to the simulator.

pub mod addresses;
pub mod drr;
pub mod dsred;
pub mod fq;
mod moment;
pub mod offer;
pub mod pi;
pub mod policer;
pub mod red;
pub mod rem;
pub mod rio;
pub mod rng;
pub mod sfq;

use crate::registry::mechanisms::{AnyAqm, AnyMarker};
use crate::units::Time;
pub use moment::Moment;
pub use offer::{is_set, without_fault, word};

impl AnyAqm {
    /// Of the call that follows, on ns-2's clock only.
    pub fn tell_moment(&mut self, moment: Moment) {
        match self {
            AnyAqm::Ns2Red(m) => m.law.reading.told.tell(moment),
            AnyAqm::Ns2Rio(m) => m.law.reading.told.tell(moment),
            AnyAqm::RioAtIn(m) => m.law.reading.told.tell(moment),
            AnyAqm::Ns2RioAtIn(m) => m.law.reading.told.tell(moment),
            AnyAqm::Ns2RioPlusOut(m) => m.rio.law.reading.told.tell(moment),
            AnyAqm::RioPlusOutAtIn(m) => m.rio.law.reading.told.tell(moment),
            AnyAqm::Ns2RioPlusOutAtIn(m) => m.rio.law.reading.told.tell(moment),
            AnyAqm::Ns2FddRed(m) => m.red.law.reading.told.tell(moment),
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
            AnyAqm::Ns2Sfq(m) => m.addresses = addresses::Addresses::told(of.clone()),
            AnyAqm::Ns2Drr(m) => m.addresses = addresses::Addresses::told(of.clone()),
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
