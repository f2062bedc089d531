//! Adaptive RED: RED that adapts max_p until the average queue settles halfway between the thresholds.
//!
//! Once per interval max_p is increased by a small step if the average is above its target range, and decreased by a factor
//! if it is below. So the average queue, and with it the delay, depends little on the load, and an operator sets a delay
//! instead of thresholds: the thresholds and w_q follow from the delay and the link's rate.
//! Source: Floyd, Gummadi and Shenker 2001, Fig. 1 (max_p), §4.2 (w_q), §4.3 and §6 (thresholds). RED is [RED](super), as in
//! Floyd and Jacobson 1993. Without arrivals the average is not updated, and max_p keeps decreasing to its minimum.
//! Non-goal: adapting w_q or the thresholds during a run.

use crate::aqm::Aqm;
use crate::aqm::red::common::Common;
use crate::aqm::red::{self, DropAt, Red};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Counts;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Backlog, Bytes, Duration, Rate, Time};
use crate::verdict::{Admission, Why};

/// The range that max_p never leaves by its own steps (Fig. 1).
const MAX_P: (f64, f64) = (0.01, 0.5);
/// The least min_th in packets (§4.3).
const LEAST_MIN_TH: f64 = 5.0;
/// The middle of the thresholds' range is meant: from here to there of it (Fig. 1).
const TARGET: (f64, f64) = (0.4, 0.6);

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The average queueing delay to aim at: the default thresholds follow from it.
        target_delay: Duration [POSITIVE] = Duration::from_millis(5);
        /// Default: half of target_delay at the link's rate, and 5 packets at least.
        min_th: Option<Backlog> [NON_NEGATIVE];
        /// Default: 3 min_th.
        max_th: Option<Backlog> [POSITIVE];
        /// Weight of the newest sample in the average. Default: a memory of a second, 1 − e^(−1/C) at C packets a second.
        w_q: Option<f64> [UNIT_POSITIVE];
        /// Drop probability just below max_th, at first.
        max_p: f64 [UNIT_POSITIVE] = 0.1;
        /// How often max_p moves.
        interval: Duration [POSITIVE] = Duration::from_millis(500);
        /// What max_p grows by; never more than a quarter of itself.
        alpha: f64 [UNIT_POSITIVE] = 0.01;
        /// What max_p shrinks to, as a part of itself.
        beta: f64 [UNIT_POSITIVE] = 0.9;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        ..common: Common { gentle = true };
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Ared {
    red: Red,
    /// Where the average is meant to be: from, to.
    target: (f64, f64),
    max_p: f64,
    interval: Duration,
    alpha: f64,
    beta: f64,
    /// Whether an interval has begun.
    begun: bool,
    stats: Stats,
}

/// Steps of max_p.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Upwards.
    pub raised: u64,
    /// Downwards.
    pub lowered: u64,
}

/// Packets a second that the link can send.
fn capacity(link: Rate, packet: Bytes) -> f64 {
    link.0 as f64 / packet.bits() as f64
}

/// §4.2: the weight whose memory is a second.
#[must_use]
pub fn auto_w_q(link: Rate, packet: Bytes) -> f64 {
    -libm::expm1(-1.0 / capacity(link, packet))
}

/// §4.3: half of what the link sends in the target delay, and 5 packets at least.
#[must_use]
pub fn auto_min_th(link: Rate, packet: Bytes, target_delay: Duration) -> f64 {
    LEAST_MIN_TH.max(target_delay.secs() * capacity(link, packet) / 2.0)
}

/// Fig. 1: the next max_p.
#[must_use]
pub fn next_max_p(max_p: f64, avg: f64, target: (f64, f64), alpha: f64, beta: f64) -> f64 {
    if avg > target.1 && max_p <= MAX_P.1 {
        max_p + alpha.min(max_p / 4.0)
    } else if avg < target.0 && max_p >= MAX_P.0 {
        max_p * beta
    } else {
        max_p
    }
}

impl Params {
    /// The RED it is at first. Only with all that has to follow from the link's rate; [`Build::check`] sees to that.
    fn as_red(&self, context: &Context) -> red::Params {
        let packet = self.common.packet(context);
        let link = context.link_rate.unwrap_or(Rate(packet.bits()));
        let in_unit = |packets: f64| match self.max_th {
            Some(Backlog::Bytes(_)) => Backlog::Bytes(packets * packet.0 as f64),
            _ => Backlog::Packets(packets),
        };
        let min_th = self.min_th.unwrap_or_else(|| in_unit(auto_min_th(link, packet, self.target_delay)));
        let max_th = self.max_th.unwrap_or(match min_th {
            Backlog::Packets(n) => Backlog::Packets(3.0 * n),
            Backlog::Bytes(n) => Backlog::Bytes(3.0 * n),
        });
        red::Params {
            min_th,
            max_th,
            max_p: self.max_p,
            byte_scaled: self.byte_scaled,
            drop: DropAt::Tail,
            common: Common { w_q: self.w_q.unwrap_or_else(|| auto_w_q(link, packet)), ..self.common.clone() },
        }
    }
}

impl Build for Params {
    type Mechanism = Ared;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let follows = [("w_q", self.w_q.is_none()), ("min_th", self.min_th.is_none())];
        if let Some((field, _)) = follows.into_iter().find(|(_, left_out)| *left_out)
            && context.link_rate.is_none()
        {
            return Err(Fault {
                field,
                problem: format!(
                    "{field} would follow from the link's rate, and this queue is before no link"
                ),
                remedy: format!("a {field} of its own"),
            });
        }
        self.as_red(context).check(context)
    }

    fn build(&self, context: &Context) -> Ared {
        let p = self.as_red(context);
        let (min_th, range) = (p.min_th.amount(), p.max_th.amount() - p.min_th.amount());
        Ared {
            target: (min_th + TARGET.0 * range, min_th + TARGET.1 * range),
            red: p.discipline(context),
            max_p: self.max_p,
            interval: self.interval,
            alpha: self.alpha,
            beta: self.beta,
            begun: false,
            stats: Stats::default(),
        }
    }
}

impl Mechanism for Ared {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            let next = next_max_p(self.max_p, self.red.avg(), self.target, self.alpha, self.beta);
            self.stats.raised += u64::from(next > self.max_p);
            self.stats.lowered += u64::from(next < self.max_p);
            self.max_p = next;
            self.red.set_max_p(next);
        }
        self.begun = true;
        Some(now + self.interval)
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        self.red.gauges(now, show);
        show("max_p", self.max_p);
    }
}

impl Aqm for Ared {
    fn marks(&self) -> bool {
        self.red.marks()
    }

    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        why.note("max_p", self.max_p);
        self.red.arrive(now, packet, queue, rng, why)
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        self.red.show_counts(queue, show);
        show("raised", self.stats.raised);
        show("lowered", self.stats.lowered);
    }
}

#[cfg(test)]
mod tests;
