//! ns-2 2.35: how it computes disciplines and markers that others define, to the last bit and random number.
//!
//! Papers were run on ns-2, and a run of ours that agrees with ns-2's event by event shows that the rest of the simulator is
//! right. So this folder has what ns-2 computes differently from the sources that it names: averages and counts of
//! [RED and RIO](red), the order of steps in [dsRED](dsred), rounding of limits, [policers](policer), its
//! [random numbers](rng), the timers and draws of [PI](pi) and [REM](rem), its fair queues ([SFQ](sfq), [DRR](drr), [FQ](fq)), and its clock.
//!
//! The rest of this crate does not refer to it. A mechanism that ns-2 computes differently is generic over its variant
//! ([RED's](crate::aqm::red::law::Variant), [PI's](crate::aqm::pi::Variant), [the TSW markers'](crate::marker::tsw2cm::Chance)) or, where
//! it decides elsewhere, as [REM](rem) does, is here whole; and one block of the [registry](crate::registry) names what is in this
//! folder. Without both there is no `variant = "ns2"`.
//! Non-goal: ns-2's TCP and order of events, which belong to the simulator.

pub mod addresses;
mod context;
pub mod drr;
pub mod dsred;
pub mod fq;
pub mod offer;
pub mod pi;
pub mod policer;
pub mod red;
pub mod rem;
pub mod rio;
pub mod rng;
pub mod sfq;

pub use context::Moment;
