//! Every mechanism by name: what `inprofile list` prints, what an experiment file may say, and the
//! enums through which simulator and router call them. A new mechanism adds one line here.

mod schedulers;

pub use schedulers::{AnyScheduler, SchedulerEntry};

use crate::aqm::{self, Aqm};
use crate::marker::{self, Gauge, Marker};
use crate::packet::{Direction, Packet};
use crate::params::{Build, Context, Fault, Field, Params, Values, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::{Oracle, Outbox, Signal};
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Departure, Mark, Why};

/// A mechanism as a user finds it.
pub struct Entry<M: 'static> {
    /// The word in a file.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What an operator sets.
    pub fields: &'static [Field],
    /// Whether these values go together in this place.
    pub check: fn(&Values, &Context) -> Result<Vec<Warning>, Fault>,
    /// The mechanism in its first state; `check` has passed.
    pub build: fn(&Values, &Context) -> M,
}

// Derived, these would ask that M be Copy; an entry holds no M.
impl<M> Clone for Entry<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Entry<M> {}

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
            markers: MARKERS.to_vec(),
            aqms: AQMS.to_vec(),
            schedulers: schedulers::SCHEDULERS.to_vec(),
        }
    }
}

/// One table, one line a mechanism: its name, type and parameters, where it comes from, what it does. Makes the list
/// of entries, the enum, and a macro that calls whichever mechanism an enum holds. What takes much room is boxed, as
/// every host has a queue, and may have a marker, of its own.
macro_rules! mechanisms {
    (
        ($d:tt) $(#[$meta:meta])* $any:ident: $dyn:path, $list:ident, $each:ident {
            $( $name:literal = $variant:ident($t:ty, $params:ty), $source:literal, $summary:literal; )*
        }
    ) => {
        const $list: &[Entry<$any>] = &[ $( Entry {
            name: $name,
            summary: $summary,
            source: $source,
            fields: <$params as Params>::FIELDS,
            check: |v, c| <$params as Params>::from_values(v).check(c),
            build: |v, c| $any::$variant(<$params as Params>::from_values(v).build(c).into()),
        }, )* ];

        $(#[$meta])*
        pub enum $any {
            $( #[doc = concat!("`", $name, "`: ", $summary)] $variant($t), )*
            /// A user's own.
            Custom(Box<dyn $dyn>),
        }

        macro_rules! $each {
            ($d self:expr, $d m:ident => $d body:expr) => {
                match $d self {
                    $( $any::$variant($d m) => $d body, )*
                    $any::Custom($d m) => $d body,
                }
            };
        }

        impl std::fmt::Debug for $any {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $( $any::$variant(_) => stringify!($variant), )*
                    $any::Custom(_) => "Custom",
                })
            }
        }

        impl $any {
            /// Whether it looks at what passes in the reverse direction: see the trait's `SEES_REVERSE`.
            #[must_use]
            pub fn sees_reverse(&self) -> bool {
                use $dyn as _;
                $each!(self, m => m.sees_reverse())
            }
            /// Whether its ticks send signals: see the trait's `SENDS`.
            #[must_use]
            pub fn sends(&self) -> bool {
                use $dyn as _;
                $each!(self, m => m.sends())
            }
            /// Sees a packet pass.
            #[inline]
            pub fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
                $each!(self, m => m.observe(now, packet, direction));
            }
            /// Called at the start of the run and then at each time it returned.
            pub fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
                $each!(self, m => m.tick(now, outbox))
            }
            /// A signal has arrived.
            pub fn signal(&mut self, now: Time, signal: &Signal) {
                $each!(self, m => m.signal(now, signal));
            }
            /// What it wants to be told of the truth, if anything.
            pub fn oracle(&self) -> Option<Oracle> {
                $each!(self, m => m.oracle())
            }
            /// Shows the state at `now`.
            pub fn gauges(&self, now: Time, show: Gauge<'_>) {
                $each!(self, m => m.gauges(now, show));
            }
            /// Shows the counts.
            pub fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
                $each!(self, m => m.stats(show));
            }
        }
    };
}

mechanisms! { ($)
    /// Any marker.
    AnyMarker: marker::DynMarker, MARKERS, each_marker {
    "token_bucket" = TokenBucket(marker::token_bucket::TokenBucket, marker::token_bucket::Params),
        "RFC 2697 §3 (committed bucket); papers A and B",
        "IN while the bucket holds the packet's size in tokens, else OUT.";
    "tsw2cm" = Tsw2cm(marker::tsw2cm::Tsw2cm, marker::tsw2cm::Params),
        "Clark and Fang 1998, §3.3; RFC 2859 with two colours",
        "Measures the rate over a time-sliding window; OUT with the probability by which it is above the target.";
    "tsw3cm" = Tsw3cm(Box<marker::tsw3cm::Tsw3cm>, marker::tsw3cm::Params),
        "RFC 2859",
        "Measures the rate over a time-sliding window; yellow between committed and peak target, red above, at random.";
    "arm" = Arm(Box<marker::ard::Ard>, marker::ard::ArmParams),
        "paper A, §2.1",
        "Aggregate bucket at an adaptive rate that remarks IN packets at random when it runs low.";
    "ard" = Ard(Box<marker::ard::Ard>, marker::ard::Params),
        "paper A, §2.1–2.2",
        "The arm marker with a dropper: some of the packets that find the bucket low are dropped instead.";
    "blind_drop" = BlindDrop(marker::blind_drop::BlindDrop, marker::blind_drop::Params),
        "placebo for paper A",
        "Drops packets at random at a set probability, whatever the traffic does.";
    "probe" = Probe(Box<marker::probe::Probe>, marker::probe::Params),
        "paper C, §2",
        "Nearly all IN, and an occasional OUT packet that finds out early about congestion.";
    "every_nth" = EveryNth(Box<marker::every_nth::EveryNth>, marker::every_nth::Params),
        "paper C, footnote 1",
        "Every n-th packet OUT, whatever the traffic does.";
    "twam" = Twam(Box<marker::twam::Twam>, marker::twam::Params),
        "paper E, §3",
        "IN with a probability that shares out the sum of the flows' windows by their contracts.";
    "srtcm" = SrTcm(Box<marker::meter::srtcm::SrTcm>, marker::meter::srtcm::Params),
        "RFC 2697",
        "Single-rate three-colour marker: one rate, a committed and an excess burst.";
    "trtcm" = TrTcm(Box<marker::meter::trtcm::TrTcm>, marker::meter::trtcm::Params),
        "RFC 2698",
        "Two-rate three-colour marker: red above the peak rate, else yellow above the committed rate.";
    "rfc4115" = Rfc4115(Box<marker::meter::rfc4115::Rfc4115>, marker::meter::rfc4115::Params),
        "RFC 4115",
        "Two-rate three-colour marker whose green packets cost no excess tokens.";
    "colour" = Colour(marker::colour::Constant, marker::colour::Params),
        "RFC 2597 §2",
        "Gives every packet the same colour: traffic that nobody meters.";
    }
}

mechanisms! { ($)
    /// Any queue discipline.
    AnyAqm: aqm::DynAqm, AQMS, each_aqm {
    "drop_tail" = DropTail(aqm::drop_tail::DropTail, aqm::drop_tail::Params),
        "RFC 7567 §2",
        "Drops what finds the queue full.";
    "red" = Red(Box<aqm::red::Red>, aqm::red::Params),
        "Floyd and Jacobson 1993; gentle: Floyd 2000",
        "Drops at random, the more the longer the average queue, before it is full.";
    "ared" = Ared(Box<aqm::ared::Ared>, aqm::ared::Params),
        "Floyd, Gummadi and Shenker 2001",
        "RED that moves max_p until the average queue is halfway between thresholds that follow from a delay.";
    "rio" = Rio(Box<aqm::rio::Rio>, aqm::rio::Params),
        "Clark and Fang 1998",
        "Two REDs in one queue: IN packets by the average of IN packets, OUT packets by that of all.";
    "rio_plus_out" = RioPlusOut(Box<aqm::rio_plus_out::RioPlusOut>, aqm::rio_plus_out::Params),
        "paper B, §4 (RI+O)",
        "RIO with a third RED on the average of OUT packets, for OUT packets that have passed the second.";
    "fdd_red" = FddRed(Box<aqm::fdd_red::FddRed>, aqm::fdd_red::Params),
        "paper D (FDD-RED)",
        "RED decides that a packet goes, a ledger whose: drops are spread evenly, more to short round-trip times.";
    "dwred" = Dwred(Box<aqm::dwred::Dwred>, aqm::dwred::Params),
        "paper E, §4 (DWRED)",
        "WRED whose thresholds follow the sum of the flows' windows, as the edge tells it.";
    "wred" = Wred(Box<aqm::wred::Wred>, aqm::wred::Params),
        "Floyd and Jacobson 1993; RFC 2597 §4",
        "RED with a curve per colour, on one average of the whole queue or on an average per colour.";
    "dsred" = DsRed(Box<aqm::dsred::DsRed>, aqm::dsred::Params),
        "ns-2.35, dsRED/core",
        "ns-2's own RIO-C, RIO-D and WRED, with its faults: for comparing with what it published.";
    }
}

impl AnyMarker {
    /// The moment of the call that follows on ns-2's clock: see [`marker::Marker::tell_secs`].
    pub fn tell_secs(&mut self, now: Time, secs: f64) {
        each_marker!(self, m => m.tell_secs(now, secs));
    }

    /// Decides on a packet.
    #[inline]
    pub fn mark<W: Why>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        each_marker!(self, m => m.mark(now, packet, rng, why))
    }
}

/// Calls a discipline's `arrive` as a function of its own: all of them in one would be for each to save what registers any
/// of them needs.
#[inline(never)]
fn apart<M, Q, W>(
    m: &mut M,
    now: Time,
    packet: &Packet,
    queue: &mut Q,
    rng: &mut Rng,
    why: &mut W,
    arrive: impl FnOnce(&mut M, Time, &Packet, &mut Q, &mut Rng, &mut W) -> Admission,
) -> Admission {
    arrive(m, now, packet, queue, rng, why)
}

impl AnyAqm {
    /// Whether the queue has to be served packet by packet: see [`aqm::Aqm::serves_as_set`].
    #[must_use]
    pub fn serves(&self) -> bool {
        use crate::aqm::DynAqm;
        each_aqm!(self, m => m.serves())
    }

    /// Whether it sees more than arrivals in their order: see [`aqm::Aqm::KEEPS_TIME`].
    #[must_use]
    pub fn keeps_time(&self) -> bool {
        use crate::aqm::DynAqm;
        each_aqm!(self, m => m.keeps_time())
    }

    /// How it reads a limit, where that is a way of its own: see [`aqm::Aqm::joins_below`].
    #[must_use]
    pub fn joins_below(&self, limit: Backlog) -> Option<u64> {
        each_aqm!(self, m => m.joins_below(limit))
    }

    /// The moment of the call that follows on ns-2's clock: see [`aqm::Aqm::tell_secs`].
    pub fn tell_secs(&mut self, secs: f64) {
        each_aqm!(self, m => m.tell_secs(secs));
    }

    /// Decides on an arrival.
    #[inline]
    pub fn arrive<Q: Queue, W: Why>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        each_aqm!(self, m => apart(m, now, packet, queue, rng, why, |m, now, packet, queue, rng, why| {
            m.arrive(now, packet, queue, rng, why)
        }))
    }

    /// Shows what it keeps of each flow: see [`aqm::Aqm::flow_gauges`].
    pub fn flow_gauges(&self, now: Time, show: aqm::FlowGauge<'_>) {
        each_aqm!(self, m => m.flow_gauges(now, show));
    }

    /// Decides on a departure.
    #[inline]
    pub fn depart<Q: Queue, W: Why>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        each_aqm!(self, m => m.depart(now, packet, queue, rng, why))
    }
}

#[cfg(test)]
mod tests;
