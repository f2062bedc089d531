//! PIE's parameters (RFC 8033): what an operator sets, the checks, and the settings that the law works with.

use super::{Control, Pie, WHOLE_WEIGHT};
use crate::aqm::beyond_full_queue;
use crate::params::{Build, Context, Fault, Warning};
use crate::units::{Backlog, Bytes, Duration};

/// So many targets may pass between updates; with more a warning. Linux's first defaults were 30 ms and 20 ms.
const LONGEST_UPDATE: u64 = 4;

crate::choice! {
    /// Whose algorithm.
    pub enum Variant {
        /// RFC 8033.
        Rfc8033 = "rfc8033",
        /// Linux's `sch_pie`: departures, not updates, use up the burst allowance; the current delay, not that of the last update,
        /// decides whether a packet is safe; above a delay of 250 ms every update adds another 2 % to the probability.
        Linux = "linux",
    }
}

crate::choice! {
    /// How the queueing delay is measured (§4.3).
    pub enum DelayFrom {
        /// By how long the last packet to leave had waited.
        Timestamp = "timestamp",
        /// By Little's law: bytes waiting / the measured dequeue rate (§5.2).
        DequeueRate = "dequeue_rate",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The queueing delay to aim at (QDELAY_REF).
        target: Duration [POSITIVE] = Duration::from_millis(15);
        /// How often the drop probability is updated (T_UPDATE).
        t_update: Duration [POSITIVE] = Duration::from_millis(15);
        /// Weight of the delay's distance from target, per second.
        alpha: f64 [GAIN] = 0.125;
        /// Weight of the delay's change since the last update, per second.
        beta: f64 [GAIN] = 1.25;
        /// How long a busy period may last before anything is dropped early (MAX_BURST).
        max_burst: Duration [NON_NEGATIVE] = Duration::from_millis(150);
        /// How the queueing delay is measured.
        delay_from: DelayFrom = DelayFrom::Timestamp;
        /// With delay_from = "dequeue_rate": how many bytes leave during one measurement of the rate (DQ_THRESHOLD), 64 KiB at most.
        dq_threshold: Bytes [POSITIVE] = Bytes(16_384);
        /// Drops are spaced: none within 0.85/p packets of the last, and one after 8.5/p at the latest (§5.4).
        derandomise: bool = true;
        /// At a drop probability of 10 % or more, an update raises it by at most 2 % (§5.5).
        cap_step: bool = true;
        /// Inactive until this share of the limit is waiting, and again once congestion is over (§5.3). Default: always active.
        active_above: Option<f64> [UNIT_POSITIVE];
        /// Packets of ECN-capable transports are marked rather than dropped early, while the drop probability is below mark_ecnth.
        ecn: bool = false;
        /// The drop probability from which ECN-capable packets are dropped too (§5.1).
        mark_ecnth: f64 [UNIT] = 0.1;
        /// Typical size on the wire: nothing is dropped early while at most two such packets wait. Default: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
        /// RFC 8033's algorithm, or Linux's.
        variant: Variant = Variant::Rfc8033;
    }
}

impl Build for Params {
    type Mechanism = Pie;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.dq_threshold.0 as f64 > WHOLE_WEIGHT {
            return Err(Fault {
                field: "dq_threshold",
                problem: format!(
                    "{} is above 64 KiB, where a sample would weigh more than 1",
                    self.dq_threshold
                ),
                remedy: "dq_threshold = \"16384 B\", or another of at most 65536 B".into(),
            });
        }
        if self.variant == Variant::Linux && self.active_above.is_some() {
            return Err(Fault {
                field: "active_above",
                problem: "Linux's PIE is always at work".into(),
                remedy: "no active_above, or variant = \"rfc8033\"".into(),
            });
        }
        let mut warnings = Vec::new();
        if self.t_update.0 > self.target.0.saturating_mul(LONGEST_UPDATE) {
            // RFC 8033 §4.2: alpha and beta belong to updates every 15 ms, as often as the target.
            let text = format!(
                "the drop probability moves every {} only, and target is {}: queues come and go between two updates",
                self.t_update, self.target
            );
            warnings.push(Warning { field: "t_update", text });
        }
        let Some(limit) = context.limit else { return Ok(warnings) };
        let bytes = limit.bytes(context.packet);
        if self.delay_from == DelayFrom::DequeueRate && bytes < self.dq_threshold.0 as f64 {
            return Err(Fault {
                field: "dq_threshold",
                problem: format!(
                    "the dequeue rate is measured while {} wait, and the limit is {limit}: there would never be a delay to act on",
                    self.dq_threshold
                ),
                remedy: "a smaller dq_threshold, a longer limit, or delay_from = \"timestamp\"".into(),
            });
        }
        warnings.extend(beyond_full_queue(self.target, context, "PIE"));
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Pie {
        let control = Box::new(self.control(context));
        Pie { vars: control.vars(), control, begun: false }
    }
}

impl Params {
    /// The law's settings for this queue.
    #[must_use]
    pub fn control(&self, context: &Context) -> Control {
        let mean = self.mean_packet.unwrap_or(context.packet).0;
        let active_from = self.active_above.map(|share| match context.limit {
            Some(Backlog::Packets(n)) => Backlog::Packets(n * share),
            Some(Backlog::Bytes(n)) => Backlog::Bytes(n * share),
            None => Backlog::Packets(0.0),
        });
        Control { params: self.clone(), safe_bytes: 2 * mean, active_from }
    }
}
