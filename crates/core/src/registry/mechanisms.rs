//! The table of markers and disciplines, one line each, and the enums through which simulator and router call them.

use std::ops::{Deref, DerefMut};

use crate::aqm::red::law::Floyd93;
use crate::aqm::red::{self, rio, rio_plus_out};
use crate::aqm::{self, fdd_red};
use crate::marker::meter::{Meter, rfc4115, srtcm, trtcm};
use crate::ns2::rio::AtInOnly;
use crate::packet::Direction;
use crate::params::{Check, Field, Make, Params};
use crate::prelude::*;
use crate::{marker, ns2};

/// A mechanism as a user finds it.
pub struct Entry<M: 'static> {
    /// The word in a file.
    pub name: &'static str,
    /// Its law in a sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The operator's settings.
    pub fields: &'static [Field],
    /// Whether these values go together in this place.
    pub check: Check,
    /// The mechanism in its first state; `check` has passed.
    pub build: Make<M>,
}

// Derived, these would ask that M be Copy; an entry holds no M.
impl<M> Clone for Entry<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Entry<M> {}

/// One table, one line a mechanism: its name, type and parameters, where it comes from, what it does. Makes the list
/// of entries, the enum, and a macro that calls whichever mechanism an enum holds. What takes much room is boxed, as
/// every host has a queue, and may have a marker, of its own. What is no decision (ticks, signals, gauges, …) is called on the
/// mechanism as an object, to which the enum dereferences.
macro_rules! mechanisms {
    (
        ($d:tt) $(#[$meta:meta])* $any:ident: $kind:path, $custom:path, $list:ident, $each:ident {
            $( $name:literal = $variant:ident($t:ty, $params:ty), $source:literal, $summary:literal; )*
        }
        variants { $( $other:ident($r:ty), )* }
    ) => {
        pub(super) const $list: &[Entry<$any>] = &[ $( Entry {
            name: $name,
            summary: $summary,
            source: $source,
            fields: <$params as Params>::FIELDS,
            check: &|v, c| <$params as Params>::from_values(v).check(c),
            build: &|v, c| $any::$variant(<$params as Params>::from_values(v).build(c).into()),
        }, )* ];

        $(#[$meta])*
        pub enum $any {
            $( #[doc = concat!("`", $name, "`: ", $summary)] $variant($t), )*
            $( #[doc = concat!("Another implementation's variant: `", stringify!($other), "`.")] $other($r), )*
            /// A user's own.
            Custom(Box<dyn $custom>),
        }

        /// One of ours by its type, a user's own as an object.
        macro_rules! $each {
            ($d self:expr, $d m:ident => $d ours:expr, $d custom:expr) => {
                match $d self {
                    $( $any::$variant($d m) => $d ours, )*
                    $( $any::$other($d m) => $d ours, )*
                    $any::Custom($d m) => $d custom,
                }
            };
        }

        impl std::fmt::Debug for $any {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $( $any::$variant(_) => stringify!($variant), )*
                    $( $any::$other(_) => stringify!($other), )*
                    $any::Custom(_) => "Custom",
                })
            }
        }

        #[cfg(test)]
        impl $any {
            /// Every mechanism's parameters can be read back as written.
            pub(super) fn parameters_round_trip() {
                $( super::tests::round_trips::<$params>(); )*
            }
        }

        impl Deref for $any {
            type Target = dyn $kind;
            fn deref(&self) -> &(dyn $kind + 'static) {
                use $custom as _;
                $each!(self, m => m.object(), m.object())
            }
        }

        impl DerefMut for $any {
            fn deref_mut(&mut self) -> &mut (dyn $kind + 'static) {
                use $custom as _;
                $each!(self, m => m.object_mut(), m.object_mut())
            }
        }
    };
}

mechanisms! { ($)
    /// Any marker.
    AnyMarker: marker::Marker, marker::DynMarker, MARKERS, each_marker {
    "token_bucket" = TokenBucket(marker::token_bucket::TokenBucket, marker::token_bucket::Params),
        "RFC 2697 §3 (committed bucket); Hur 2006; Kim 1999",
        "IN while the bucket holds the packet's size in tokens, else OUT.";
    "tsw2cm" = Tsw2cm(marker::tsw2cm::Tsw2cm, marker::tsw2cm::Params),
        "Clark and Fang 1998, §3.3; RFC 2859 with two colours",
        "Measures the rate over a time-sliding window; OUT with the probability by which it is above the target.";
    "tsw3cm" = Tsw3cm(Box<marker::tsw3cm::Tsw3cm>, marker::tsw3cm::Params),
        "RFC 2859",
        "Measures the rate over a time-sliding window; yellow between committed and peak target, red above, at random.";
    "arm" = Arm(Box<marker::ard::Ard>, marker::ard::ArmParams),
        "Hur 2006, §2.1",
        "Aggregate bucket at an adaptive rate that remarks IN packets at random when it runs low.";
    "ard" = Ard(Box<marker::ard::Ard>, marker::ard::Params),
        "Hur 2006, §2.1–2.2",
        "The arm marker with a dropper: some of the packets that find the bucket low are dropped instead.";
    "blind_drop" = BlindDrop(marker::blind_drop::BlindDrop, marker::blind_drop::Params),
        "placebo for the dropper of Hur 2006",
        "Drops packets at random at a set probability, whatever the traffic does.";
    "probe" = Probe(Box<marker::probe::Probe>, marker::probe::Params),
        "Neglia et al. 2003, §2",
        "Nearly all IN, and an occasional OUT packet that finds out early about congestion.";
    "every_nth" = EveryNth(Box<marker::every_nth::EveryNth>, marker::every_nth::Params),
        "Neglia et al. 2003, footnote 1",
        "Every n-th packet OUT, whatever the traffic does.";
    "twam" = Twam(Box<marker::twam::Twam>, marker::twam::Params),
        "Bouras and Sevasti 2004, §3",
        "IN with a probability that shares out the sum of the flows' windows by their contracts.";
    "srtcm" = SrTcm(Box<Meter<srtcm::SrTcm>>, srtcm::Params),
        "RFC 2697",
        "Single-rate three-colour marker: one rate, a committed and an excess burst.";
    "trtcm" = TrTcm(Box<Meter<trtcm::TrTcm>>, trtcm::Params),
        "RFC 2698",
        "Two-rate three-colour marker: red above the peak rate, else yellow above the committed rate.";
    "rfc4115" = Rfc4115(Box<Meter<rfc4115::Rfc4115>>, rfc4115::Params),
        "RFC 4115",
        "Two-rate three-colour marker whose green packets cost no excess tokens.";
    "fair_policer" = FairPolicer(Box<marker::fair_policer::FairPolicer>, marker::fair_policer::Params),
        "Shan et al. 2021 (FairPolicer); Tahir et al. 2024 (phantom queues)",
        "One rate and burst for all flows that pass, shared equally among those that send: the rest is dropped.";
    "colour" = Colour(marker::colour::Constant, marker::colour::Params),
        "RFC 2597 §2",
        "Gives every packet the same colour: traffic that nobody meters.";
    }
    variants {
        Ns2Tsw2cm(marker::tsw2cm::Tsw2cm<ns2::dsred::Policer>),
        Ns2Tsw3cm(Box<marker::tsw3cm::Tsw3cm<ns2::dsred::Policer>>),
    }
}

mechanisms! { ($)
    /// Any queue discipline.
    AnyAqm: aqm::Aqm, aqm::DynAqm, AQMS, each_aqm {
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
        "Kim 1999, §4 (RI+O)",
        "RIO with a third RED on the average of OUT packets, for OUT packets that have passed the second.";
    "fdd_red" = FddRed(Box<aqm::fdd_red::FddRed>, aqm::fdd_red::Params),
        "Seyyed Hashemi et al. 2014 (FDD-RED)",
        "RED decides that a packet goes, a ledger whose: drops are spread evenly, more to short round-trip times.";
    "dwred" = Dwred(Box<aqm::dwred::Dwred>, aqm::dwred::Params),
        "Bouras and Sevasti 2004, §4 (DWRED)",
        "WRED whose thresholds follow the sum of the flows' windows, as the edge tells it.";
    "wred" = Wred(Box<aqm::wred::Wred>, aqm::wred::Params),
        "Floyd and Jacobson 1993; RFC 2597 §4",
        "RED with a curve per colour, on one average of the whole queue or on an average per colour.";
    "pie" = Pie(Box<aqm::pie::Pie>, aqm::pie::Params),
        "RFC 8033",
        "Drops at random on arrival, with a probability that a PI controller moves to hold the queueing delay at a target.";
    "pi" = Pi(Box<aqm::pi::Pi>, aqm::pi::Params),
        "Hollot, Misra, Towsley and Gong 2001 (PI)",
        "Drops at random on arrival, with a probability that a PI controller moves to hold the queue at a length.";
    "rem" = Rem(Box<aqm::rem::Rem>, aqm::rem::Params),
        "Athuraliya, Li, Low and Yin 2001 (REM)",
        "A price follows the excess of input over capacity and of backlog over a target; drops are exponential in it.";
    "codel" = Codel(Box<aqm::codel::Codel>, aqm::codel::Params),
        "RFC 8289",
        "Drops at the head while packets have waited longer than a target for an interval, ever more often until they don't.";
    "pi2" = Pi2(Box<aqm::pi2::Pi2>, aqm::pi2::Params),
        "RFC 9332 §2.4; De Schepper et al. 2016",
        "Holds the queueing delay at a target by a PI controller whose probability is squared for drops, and marks ECT(1) with k times it.";
    "fq_codel" = FqCodel(Box<aqm::fq_codel::FqCodel>, aqm::fq_codel::Params),
        "RFC 8290",
        "A queue for each flow, round robin among them with sparse flows first, and CoDel within each.";
    "fq_pie" = FqPie(Box<aqm::fq_pie::FqPie>, aqm::fq_pie::Params),
        "Ramakrishnan et al. 2019; RFC 8290 §4; RFC 8033",
        "A queue for each flow, round robin among them with sparse flows first, and PIE within each.";
    "sfq" = Sfq(Box<aqm::sfq::Sfq>, aqm::sfq::Params),
        "McKenney 1990; Linux's sch_sfq",
        "Stochastic fairness: a queue for each flow by a hash that may change, round robin, and the longest queue loses.";
    "dualpi2" = DualPi2(Box<aqm::dualpi2::DualPi2>, aqm::dualpi2::Params),
        "RFC 9332, Appendix A",
        "Two coupled queues: an L4S one that is kept short by early marks, and a Classic one whose delay a PI controller holds at a target.";
    "curvy_red" = CurvyRed(Box<aqm::curvy_red::CurvyRed>, aqm::curvy_red::Params),
        "RFC 9332, Appendix B",
        "The two coupled queues of dualpi2, with a RED in delay that drops with the square of the average in place of the controller.";
    "choke" = Choke(Box<aqm::choke::Choke>, aqm::choke::Params),
        "Pan, Prabhakar and Psounis 2000 (CHOKe)",
        "RED that compares each arrival with a waiting packet drawn at random: both are dropped if they are of one flow.";
    "sfb" = Sfb(Box<aqm::sfb::Sfb>, aqm::sfb::Params),
        "Feng, Kandlur, Saha and Shin 2001 (SFB)",
        "Finds flows that do not respond by hashing, with a drop probability for each bin, and limits their rate.";
    "cobalt" = Cobalt(Box<aqm::cobalt::Cobalt>, aqm::cobalt::Params),
        "Høiland-Jørgensen, Täht and Morton 2018 (CAKE)",
        "CoDel whose rate of drops falls as it rose, and BLUE, which drops more while the queue is full.";
    "virtual_queue" = VirtualQueue(Box<aqm::virtual_queue::VirtualQueue>, aqm::virtual_queue::Params),
        "Kunniyur and Srikant 2001 (AVQ, at a fixed rate); Alizadeh et al. 2012 (phantom queues)",
        "A drop law decides by the backlog that a slower link would have; the real queue is shorter than that.";
    "ns2_sfq" = Ns2Sfq(Box<ns2::sfq::Sfq>, ns2::sfq::Params),
        "ns-2.35, Queue/SFQ",
        "ns-2's own SFQ: hashed queues take turns packet by packet, and each may hold half of the room that is left.";
    "ns2_drr" = Ns2Drr(Box<ns2::drr::Drr>, ns2::drr::Params),
        "ns-2.35, Queue/DRR; Shreedhar and Varghese 1996",
        "ns-2's own DRR: a queue for each source, deficit round robin in bytes, and the fattest loses its head.";
    "ns2_fq" = Ns2Fq(Box<ns2::fq::Fq>, ns2::fq::Params),
        "ns-2.35, Queue/FQ; Demers, Keshav and Shenker 1989",
        "ns-2's own FQ: a drop-tail queue for each flow, and the packet that would finish first goes first.";
    "dsred" = DsRed(Box<ns2::dsred::DsRed>, ns2::dsred::Params),
        "ns-2.35, dsRED/core",
        "ns-2's own RIO-C, RIO-D and WRED, with its faults: for comparing with what it published.";
    }
    variants {
        Ns2Red(Box<red::Red<ns2::red::Ns2Red>>),
        Ns2Rio(Box<rio::Rio<ns2::red::Ns2Rio>>),
        RioAtIn(Box<rio::Rio<AtInOnly<Floyd93>>>),
        Ns2RioAtIn(Box<rio::Rio<AtInOnly<ns2::red::Ns2Rio>>>),
        Ns2RioPlusOut(Box<rio_plus_out::RioPlusOut<ns2::red::Ns2Rio>>),
        RioPlusOutAtIn(Box<rio_plus_out::RioPlusOut<AtInOnly<Floyd93>>>),
        Ns2RioPlusOutAtIn(Box<rio_plus_out::RioPlusOut<AtInOnly<ns2::red::Ns2Rio>>>),
        Ns2Pi(Box<aqm::pi::Pi<ns2::pi::QueuePi>>),
        Ns2Rem(Box<ns2::rem::Rem>),
        Ns2FddRed(Box<fdd_red::FddRed<ns2::red::Ns2Red>>),
    }
}

/// For a queue's departures, which are its own business.
pub(crate) use each_aqm;

impl AnyMarker {
    /// Shows it a packet that goes forward, and asks for its verdict.
    #[inline]
    pub fn mark<W: Why>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        each_marker!(self, m => {
            m.observe(now, packet, Direction::Forward);
            m.mark(now, packet, rng, why)
        }, {
            m.observe(now, packet, Direction::Forward);
            m.mark_dyn(now, packet, rng, why)
        })
    }
}

/// A decision as a function of its own: inlined into one function, each would save the registers that any of them needs. What it decides
/// with comes in registers.
trait Apart: Aqm + Sized {
    #[inline(never)]
    fn arrive_apart<Q: Queue, W: Why>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        self.arrive(packet, At::new(now, queue, rng, why))
    }
}

impl<A: Aqm> Apart for A {}

impl AnyAqm {
    /// Decides on an arrival.
    #[inline(always)]
    pub fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue, impl Why>) -> Admission {
        let At { now, queue, rng, why, .. } = at;
        each_aqm!(self, m => m.arrive_apart(now, packet, queue, rng, why),
            m.arrive_dyn(packet, At::new(now, queue, rng, why)))
    }
}

pub(super) mod schedulers {
    //! Every scheduler by name. A new one adds one line here.

    use crate::params::{Check, Context, Field, Params, Values};
    use crate::queue;
    use crate::queue::Scheduler;

    /// A scheduler as a user finds it. Its parameters are set for each class.
    #[derive(Clone, Copy)]
    pub struct SchedulerEntry {
        /// The word in a file.
        pub name: &'static str,
        /// Its law in a sentence.
        pub summary: &'static str,
        /// Where it comes from.
        pub source: &'static str,
        /// The operator's settings of each class.
        pub fields: &'static [Field],
        /// Whether one class's values make sense in this place.
        pub check: Check,
        /// The scheduler of classes with these values, in order; `check` has passed for each.
        pub build: fn(&[Values], &Context) -> AnyScheduler,
    }

    /// One table, one line per scheduler.
    macro_rules! schedulers {
        ($( $name:literal = $variant:ident($t:ty, $params:ty), $source:literal, $summary:literal; )*) => {
            pub(crate) const SCHEDULERS: &[SchedulerEntry] = &[ $( SchedulerEntry {
                name: $name,
                summary: $summary,
                source: $source,
                fields: <$params as Params>::FIELDS,
                check: &|v, c| <$params as Params>::from_values(v).check(c),
                build: |classes, c| {
                    let classes: Vec<$params> = classes.iter().map(<$params as Params>::from_values).collect();
                    AnyScheduler::$variant(<$params>::build(&classes, c))
                },
            }, )* ];

            /// Any scheduler.
            pub enum AnyScheduler {
                $( #[doc = concat!("`", $name, "`: ", $summary)] $variant($t), )*
                /// A user's own.
                Custom(Box<dyn Scheduler>),
            }

            impl std::fmt::Debug for AnyScheduler {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(match self {
                        $( AnyScheduler::$variant(_) => stringify!($variant), )*
                        AnyScheduler::Custom(_) => "Custom",
                    })
                }
            }

            #[cfg(test)]
            impl AnyScheduler {
                /// Every scheduler's parameters can be read back as written.
                pub(crate) fn parameters_round_trip() {
                    $( super::super::tests::round_trips::<$params>(); )*
                }
            }

            impl Scheduler for AnyScheduler {
                fn next(&mut self, heads: &[Option<u32>]) -> Option<usize> {
                    match self {
                        $( AnyScheduler::$variant(s) => s.next(heads), )*
                        AnyScheduler::Custom(s) => s.next(heads),
                    }
                }
                fn sent(&mut self, class: usize, bytes: u32) {
                    match self {
                        $( AnyScheduler::$variant(s) => s.sent(class, bytes), )*
                        AnyScheduler::Custom(s) => s.sent(class, bytes),
                    }
                }
                fn emptied(&mut self, class: usize) {
                    match self {
                        $( AnyScheduler::$variant(s) => s.emptied(class), )*
                        AnyScheduler::Custom(s) => s.emptied(class),
                    }
                }
            }
        };
    }

    schedulers! {
        "priority" = Priority(queue::priority::Priority, queue::priority::Params),
            "RFC 3246 §2 (expedited forwarding); RFC 2475",
            "The first class in the list that has something to send sends.";
        "drr" = Drr(queue::drr::Drr, queue::drr::Params),
            "Shreedhar and Varghese 1996",
            "Classes take turns of a quantum of bytes each; what is left of one is kept for the next.";
    }
}
