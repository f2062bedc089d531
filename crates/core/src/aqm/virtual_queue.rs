//! Virtual queue: a drop law decides by the backlog that a slower link would have, and what it lets by goes straight to the real one.
//!
//! A [counter](backlog) drains at `virtual_rate`, at or below the link's, and grows by each accepted packet. The law (RED, RIO, a limit, …) sees
//! this counter in place of the queue. Since no more than that is accepted in the long run, the real queue is never longer than the
//! virtual one, and holds bursts only: delay is spared at the price of the bandwidth between that rate and the link's. A datapath that cannot see
//! its queue's backlog can keep such a counter all the same.
//! Source: the idea is that of the adaptive virtual queue (Kunniyur and Srikant 2001), whose rate is fixed here, and of the phantom queues of
//! HULL (Alizadeh et al. 2012) and BC-PQP (2024); the laws are those of their own files.
//! A packet in transmission counts until it is sent, unlike in a real queue, of which it is no part. A packet that a full real queue
//! refuses is not counted.
//! Non-goal: adapting the rate to the load (AVQ), and laws that take out waiting packets or decide at departure: nothing waits here.

pub mod backlog;
pub mod whole;

use backlog::VirtualBacklog;

use crate::aqm::drop_tail::DropTail;
use crate::aqm::red::{self, DropAt, ared, rio, rio_plus_out, wred};
use crate::marker::POLICED;
use crate::mechanism::FlowGauge;
use crate::prelude::*;

/// The most packets or bytes that a virtual queue may hold, as a real one.
const LARGEST_LIMIT: f64 = 1e9;

crate::choice! {
    /// The law that is asked about the virtual backlog.
    pub enum Law {
        /// What does not fit into virtual_limit is dropped, nothing else.
        DropTail = "drop_tail",
        /// RED, set by `red`.
        Red = "red",
        /// Adaptive RED, set by `ared`.
        Ared = "ared",
        /// RIO, set by `rio`.
        Rio = "rio",
        /// RI+O, set by `rio_plus_out`.
        RioPlusOut = "rio_plus_out",
        /// WRED, set by `wred`.
        Wred = "wred",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Rate at which the virtual queue drains: at most the link's.
        virtual_rate: Rate [POSITIVE];
        /// The most that the virtual queue holds; a packet is so many bytes as a full one has.
        virtual_limit: Backlog [POSITIVE];
        /// The law that decides by the virtual backlog.
        law: Law;
        /// Settings of law = "red". Default: none.
        red: Option<red::Params>;
        /// Settings of law = "ared". Default: those of ared.
        ared: Option<ared::Params>;
        /// Settings of law = "rio". Default: none.
        rio: Option<rio::Params>;
        /// Settings of law = "rio_plus_out". Default: none.
        rio_plus_out: Option<rio_plus_out::Params>;
        /// Settings of law = "wred". Default: none.
        wred: Option<wred::Params>;
    }
}

/// A law at work.
#[derive(Clone, Debug)]
enum AnyLaw {
    DropTail(DropTail),
    Red(red::Red),
    Ared(ared::Ared),
    Rio(rio::Rio),
    RioPlusOut(rio_plus_out::RioPlusOut),
    Wred(wred::Wred),
}

/// Calls whichever law it is.
macro_rules! each_law {
    ($self:expr, $law:ident => $call:expr) => {
        match $self {
            AnyLaw::DropTail($law) => $call,
            AnyLaw::Red($law) => $call,
            AnyLaw::Ared($law) => $call,
            AnyLaw::Rio($law) => $call,
            AnyLaw::RioPlusOut($law) => $call,
            AnyLaw::Wred($law) => $call,
        }
    };
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct VirtualQueue {
    law: AnyLaw,
    backlog: VirtualBacklog,
}

/// The paths of a law's settings, as they are where the law is part of this: `min_th` of red is `red.min_th`.
macro_rules! paths {
    ($($law:literal: $($field:literal)*;)*) => {
        /// Law, field, path.
        const PATHS: &[(&str, &str, &str)] = &[$($(($law, $field, concat!($law, ".", $field)),)*)*];
    };
}
paths! {
    "red": "min_th" "max_th" "drop";
    "ared": "min_th" "max_th" "w_q";
    "rio": "in.min_th" "in.max_th" "out.min_th" "out.max_th";
    "rio_plus_out": "in.min_th" "in.max_th" "total.min_th" "total.max_th" "out.min_th" "out.max_th" "strictness";
    "wred": "green.min_th" "green.max_th" "yellow.min_th" "yellow.max_th" "red.min_th" "red.max_th" "green_ecn.min_th"
        "green_ecn.max_th" "yellow_ecn.min_th" "yellow_ecn.max_th" "red_ecn.min_th" "red_ecn.max_th" "red_ecn";
}

/// The path of a law's setting; where it has none here, that of the law's settings.
fn path(law: &'static str, field: &str) -> &'static str {
    PATHS.iter().find(|(l, f, _)| *l == law && *f == field).map_or(law, |(_, _, path)| path)
}

impl Params {
    /// The place of a law: a link of the virtual queue's rate, with its limit.
    fn place(&self, context: &Context) -> Context {
        Context { link_rate: Some(self.virtual_rate), limit: Some(self.virtual_limit), ..*context }
    }

    /// The law's word, and whether its settings are there, for each that has any.
    fn given(&self) -> [(Law, &'static str, bool); 5] {
        [
            (Law::Red, "red", self.red.is_some()),
            (Law::Ared, "ared", self.ared.is_some()),
            (Law::Rio, "rio", self.rio.is_some()),
            (Law::RioPlusOut, "rio_plus_out", self.rio_plus_out.is_some()),
            (Law::Wred, "wred", self.wred.is_some()),
        ]
    }

    fn ared(&self) -> ared::Params {
        self.ared.clone().unwrap_or_else(crate::params::defaults)
    }

    /// What the law's own check says of its settings; nothing where they are missing.
    fn check_law(&self, place: &Context) -> Result<Vec<Warning>, Fault> {
        let none = Ok(Vec::new());
        match self.law {
            Law::DropTail => none,
            Law::Red => self.red.as_ref().map_or(none, |law| check_red(law, place)),
            Law::Ared => self.ared().check(place),
            Law::Rio => self.rio.as_ref().map_or(none, |law| law.check(place)),
            Law::RioPlusOut => self.rio_plus_out.as_ref().map_or(none, |law| law.check(place)),
            Law::Wred => self.wred.as_ref().map_or(none, |law| law.check(place)),
        }
    }

    /// Whether virtual queue and link go together.
    fn check_place(&self, context: &Context, warnings: &mut Vec<Warning>) -> Result<(), Fault> {
        if let Some(link) = context.link_rate
            && self.virtual_rate > link
        {
            return Err(Fault {
                field: "virtual_rate",
                problem: format!(
                    "the virtual queue drains at {}, the link sends at {link}: it would be empty while the real queue fills",
                    self.virtual_rate
                ),
                remedy: format!("a virtual_rate of at most \"{link}\"; 95 % of it is usual"),
            });
        }
        let (full, most) = (self.virtual_limit.bytes(context.packet), self.virtual_limit.amount());
        if full < context.packet.0 as f64 || most > LARGEST_LIMIT {
            let (problem, bound) = if most > LARGEST_LIMIT {
                ("is more than a queue can hold", "at most \"1000000000 packets\"".into())
            } else {
                ("has no room for a full packet", format!("at least \"1 packets\" or \"{}\"", context.packet))
            };
            return Err(Fault {
                field: "virtual_limit",
                problem: format!("a virtual queue of {} {problem}", self.virtual_limit),
                remedy: bound,
            });
        }
        if self.virtual_limit.amount().fract() != 0.0 {
            return Err(Fault {
                field: "virtual_limit",
                problem: format!("{} is not a whole number of packets or bytes", self.virtual_limit),
                remedy: "\"100 packets\"".into(),
            });
        }
        if let Some(limit) = context.limit.filter(|limit| limit.bytes(context.packet) < full) {
            let text = format!(
                "the real queue's limit ({limit}) is below virtual_limit ({}): a burst may overflow it, which the law does not see",
                self.virtual_limit
            );
            warnings.push(Warning { field: "virtual_limit", text });
        }
        Ok(())
    }
}

/// RED's check; a virtual queue has no packet to take out in place of an arrival.
fn check_red(law: &red::Params, place: &Context) -> Result<Vec<Warning>, Fault> {
    if law.drop != DropAt::Tail {
        return Err(Fault {
            field: "drop",
            problem: "no packet waits in a virtual queue that could be dropped in place of the arrival"
                .into(),
            remedy: "drop = \"tail\", which is the default".into(),
        });
    }
    law.check(place)
}

impl Build for Params {
    type Mechanism = VirtualQueue;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        self.check_place(context, &mut warnings)?;
        for (law, word, given) in self.given() {
            if law == self.law && !given && law != Law::Ared {
                return Err(Fault {
                    field: "law",
                    problem: format!("law = \"{word}\" has no settings"),
                    remedy: format!(
                        "its settings beside it: {word} = {{ … }}, with the keys of aqm = \"{word}\""
                    ),
                });
            }
            if law != self.law && given {
                let text = format!("the law is another: {word} = {{ … }} is not used");
                warnings.push(Warning { field: word, text });
            }
        }
        let word = self.given().iter().find(|(law, ..)| *law == self.law).map_or("law", |(_, word, _)| word);
        let found = self.check_law(&self.place(context));
        let found = found.map_err(|fault| Fault { field: path(word, fault.field), ..fault })?;
        warnings.extend(found.into_iter().map(|w| Warning { field: path(word, w.field), ..w }));
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> VirtualQueue {
        let place = self.place(context);
        let (red, rio, wred) = (self.red.as_ref(), self.rio.as_ref(), self.wred.as_ref());
        let law = match self.law {
            Law::DropTail => None,
            Law::Red => red.map(|law| AnyLaw::Red(law.build(&place))),
            Law::Ared => Some(AnyLaw::Ared(self.ared().build(&place))),
            Law::Rio => rio.map(|law| AnyLaw::Rio(law.build(&place))),
            Law::RioPlusOut => self.rio_plus_out.as_ref().map(|law| AnyLaw::RioPlusOut(law.build(&place))),
            Law::Wred => wred.map(|law| AnyLaw::Wred(law.build(&place))),
        };
        // `check` has passed: a law that needs settings has them.
        let law = law.unwrap_or_else(|| AnyLaw::DropTail(DropTail::default()));
        VirtualQueue {
            law,
            backlog: VirtualBacklog::new(self.virtual_rate, self.virtual_limit, context.packet),
        }
    }
}

impl VirtualQueue {
    /// The law as an object, for the hooks that decide nothing.
    fn law(&self) -> &dyn Aqm {
        each_law!(&self.law, law => law as &dyn Aqm)
    }

    /// The law as an object, for the hooks that decide nothing.
    fn law_mut(&mut self) -> &mut dyn Aqm {
        each_law!(&mut self.law, law => law as &mut dyn Aqm)
    }
}

impl Mechanism for VirtualQueue {
    fn keeps_time(&self) -> bool {
        self.law().keeps_time()
    }

    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        self.law_mut().tick(now, outbox)
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        self.law_mut().signal(now, signal);
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        show("virtual_backlog", self.backlog.at(now));
        self.law().gauges(now, show);
    }

    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>) {
        self.law().flow_gauges(now, show);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.law().stats(show);
    }
}

impl Aqm for VirtualQueue {
    fn marks(&self) -> bool {
        self.law().marks()
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let VirtualQueue { law, backlog } = self;
        backlog.drain(at.now);
        if at.why.asks() {
            at.why.note("virtual_backlog", backlog.at(at.now));
        }
        match each_law!(law, law => law.arrive(packet, At::new(at.now, backlog, at.rng, at.why))) {
            Admission::Drop(Cause::OVERFLOW) => Admission::Drop(POLICED),
            Admission::Drop(cause) => Admission::Drop(cause),
            _ if !at.queue.fits(packet.size) => Admission::Drop(Cause::OVERFLOW),
            accepted => {
                backlog.add(at.now, packet.size, packet.colour);
                accepted
            }
        }
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        self.law().show_counts(queue, show);
        show("policed", queue.dropped_by(POLICED));
    }
}

#[cfg(test)]
pub(crate) mod tests;
