//! The verdict on a packet about to leave, L4S or Classic, given the base probability p′: RFC 9332, Figure 7, lines 4a to 17.
//!
//! ```text
//!              ┌── k·p′ = p_CL ──┐
//!  base AQM ─ p′                 max ── p_L: marks L4S packets
//!              │   native p′_L ──┘
//!              └── p′² = p_C: drops Classic packets, or marks those with ECT(0)
//! ```
//!
//! So p_C = (p_CL/k)² (§2.1, Eq. 1): the window of a Classic flow goes by 1/√p, that of a scalable one by 1/p. From p_C ≥ p_Cmax on
//! marks no longer suffice: p_C drops packets of both kinds, ECN-capable or not.
//! The pseudocode leaves p_CL unbounded, and counts it in the counter that p_C is counted in: above p′ = 1/k what is beyond 1 would
//! turn into drops. It is a probability here, so that L4S packets are dropped "with probability p'^2" and all others marked (§A.2).
//! `l4s = false` turns the L4S treatment off, as RFC 9331 §5.1 has it: all packets are Classic, and ECT(1) counts as Not-ECT.

use crate::aqm::red::EARLY;
use crate::prelude::*;

/// ECN-capable, and dropped all the same: congestion is more than marks can tell of.
pub const OVERLOAD: Cause = Cause::named("overload");

crate::choice! {
    /// The rule where L4S marking saturates (§4.2.3).
    pub enum Saturation {
        /// ECN-capable packets are dropped too, with the Classic probability.
        Drop = "drop",
        /// That probability stops at p_cmax: the queue grows, up to its limit.
        Delay = "delay",
    }
}

crate::params! {
    /// The operator's settings of the coupling, whatever the base.
    pub struct Common {
        /// Coupling factor: an ECT(1) packet is marked with k times the square root of the probability that an ECT(0) packet is marked or a
        /// Not-ECT packet dropped with.
        k: f64 [POSITIVE] = 2.0;
        /// ECT(1) and CE packets get the L4S treatment. If not, all are Classic, and ECT(1) is treated as Not-ECT (RFC 9331 §5.1).
        l4s: bool = true;
        /// ECT(0) packets are marked rather than dropped, until overload.
        ecn: bool = true;
        /// Drops and marks are spaced evenly rather than drawn at random.
        derandomise: bool = true;
        /// Under overload ECN-capable packets are dropped too ("drop"), or the queue may grow ("delay").
        saturation: Saturation = Saturation::Drop;
        /// The Classic probability that counts as overload (p_Cmax). Default, and the most: 1/k², where all L4S packets are marked.
        p_cmax: Option<f64> [UNIT_POSITIVE];
        /// The base probability is not applied while less than this waits. Linux: two full packets.
        min_backlog: Bytes = Bytes(0);
    }
}

/// The coupling's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Coupling factor.
    pub k: f64,
    /// Whether there is an L4S treatment.
    pub l4s: bool,
    /// Whether ECT(0) is marked.
    pub ecn: bool,
    /// Whether likelihoods add up rather than being drawn.
    pub derandomise: bool,
    /// The rule at saturation.
    pub saturation: Saturation,
    /// p_Cmax.
    pub p_cmax: f64,
    /// In bytes.
    pub min_backlog: u64,
}

/// The largest coupling factor; Linux's, too.
pub const MOST_COUPLING: f64 = 255.0;

impl Common {
    /// §2.5.1: marks are to be no rarer than drops. Whether the base probability is ever applied.
    ///
    /// # Errors
    /// For a coupling factor below 1 or beyond [`MOST_COUPLING`]; and see [`Common::check_overload`].
    pub fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.k > MOST_COUPLING {
            return Err(Fault {
                field: "k",
                problem: format!(
                    "k = {}: L4S packets would all be marked before anything else is noticed",
                    self.k
                ),
                remedy: format!("k = 2 (RFC 9332 §2.5.1), or another of at most {MOST_COUPLING}"),
            });
        }
        if self.k >= 1.0 {
            self.check_overload(self.k)?;
            let spared = context.limit.filter(|l| self.min_backlog.0 as f64 >= l.bytes(context.packet));
            let text = |limit| {
                format!(
                    "a full queue ({limit}) is no more than min_backlog ({}): the limit drops, nothing else ever does",
                    self.min_backlog
                )
            };
            let warning = |limit| Warning { field: "min_backlog", text: text(limit) };
            return Ok(spared.map(warning).into_iter().collect());
        }
        Err(Fault {
            field: "k",
            problem: format!(
                "k = {}: L4S marking would not saturate before Classic drops do, and L4S flows would starve the others",
                self.k
            ),
            remedy: "k = 2 (RFC 9332 §2.5.1), or another of at least 1".into(),
        })
    }

    /// §A.2: whether overload begins no later than L4S marking saturates, with this coupling factor.
    ///
    /// # Errors
    /// For a p_cmax above 1/k²: in between L4S packets would be neither marked more nor dropped, Classic ones would.
    pub fn check_overload(&self, k: f64) -> Result<(), Fault> {
        let saturated = 1.0 / (k * k);
        match self.p_cmax {
            Some(p_cmax) if p_cmax > saturated => Err(Fault {
                field: "p_cmax",
                problem: format!(
                    "p_cmax = {p_cmax}: from a Classic probability of {saturated} on all L4S packets are marked, and up to p_cmax none would be dropped"
                ),
                remedy: format!("p_cmax = {saturated} (RFC 9332 §A.2: 1/k²), which is the default, or less"),
            }),
            _ => Ok(()),
        }
    }

    /// As the law needs it.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            k: self.k,
            l4s: self.l4s,
            ecn: self.ecn,
            derandomise: self.derandomise,
            saturation: self.saturation,
            // Figure 2, line 11.
            p_cmax: self.p_cmax.unwrap_or((1.0 / (self.k * self.k)).min(1.0)),
            min_backlog: self.min_backlog.0,
        }
    }
}

impl Config {
    /// Eq. (2): the probability for Classic packets.
    #[must_use]
    pub fn p_c(&self, p_prime: f64) -> f64 {
        let p_c = p_prime * p_prime;
        if self.saturation == Saturation::Delay { p_c.min(self.p_cmax) } else { p_c }
    }

    /// Eq. (3): the coupled probability for L4S packets.
    #[must_use]
    pub fn p_cl(&self, p_prime: f64) -> f64 {
        (self.k * p_prime).min(1.0)
    }

    /// Which kind of traffic a packet is (§2.3, Figure 3, line 6): [`L4S`] or [`CLASSIC`].
    #[must_use]
    #[inline]
    pub fn kind_of(&self, ecn: Ecn) -> usize {
        if self.l4s && ecn.is_l4s() { L4S } else { CLASSIC }
    }

    /// Whether a Classic packet may be marked. RFC 9331 §5.1: "Once disabled, ECT(1) packets MUST be treated as if they were Not-ECT".
    #[must_use]
    pub fn marks_classic(&self, ecn: Ecn) -> bool {
        self.ecn && ecn.can_mark() && ecn != Ecn::Ect1
    }

    /// Whether packets of either kind are ever marked.
    #[must_use]
    pub fn marks(&self) -> bool {
        self.l4s || self.ecn
    }

    /// Whether marks no longer suffice (§A.2).
    #[must_use]
    pub fn overloaded(&self, p_prime: f64) -> bool {
        self.saturation == Saturation::Drop && p_prime * p_prime >= self.p_cmax
    }
}

/// Packets by what happened to them, and bytes, of one kind of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Asked about as they were about to leave.
    pub seen: u64,
    /// Marked.
    pub marked: u64,
    /// Dropped.
    pub dropped: u64,
    /// Bytes of those not dropped: what was forwarded, from which utilisation follows (RFC 9332 §2.5.2.2).
    pub sent_bytes: u64,
}

/// The law and its state.
#[derive(Clone, Debug)]
pub struct Coupling {
    config: Config,
    /// recur()'s counts: of L4S packets, of Classic ones.
    counts: [f64; 2],
    /// Of L4S packets, of Classic ones.
    tallies: [Tally; 2],
}

/// Places in pairs.
pub const L4S: usize = 0;
/// See [`L4S`].
pub const CLASSIC: usize = 1;

impl Coupling {
    /// Nothing has been seen.
    #[must_use]
    pub fn new(config: Config) -> Coupling {
        Coupling { config, counts: [0.0; 2], tallies: [Tally::default(); 2] }
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Shows the counts of both kinds.
    pub fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let [l4s, classic] = self.tallies;
        show("l4s", l4s.seen);
        show("l4s_marked", l4s.marked);
        show("l4s_dropped", l4s.dropped);
        show("l4s_sent_bytes", l4s.sent_bytes);
        show("classic", classic.seen);
        show("classic_marked", classic.marked);
        show("classic_dropped", classic.dropped);
        show("classic_sent_bytes", classic.sent_bytes);
    }

    /// The verdict on a packet. `p_prime`: the base probability; `native`: that of the L4S queue's own AQM (p′_L), of which Classic
    /// packets know nothing; `waiting`: bytes in the queue or queues.
    #[inline(always)]
    pub fn decide<W: Why + ?Sized>(
        &mut self,
        packet: &Packet,
        (p_prime, native): (f64, f64),
        waiting: u64,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        let kind = self.config.kind_of(packet.ecn);
        let p_prime = if waiting < self.config.min_backlog { 0.0 } else { p_prime };
        let verdict = if kind == L4S {
            self.of_l4s(p_prime, native, rng, why)
        } else {
            self.of_classic(packet.ecn, p_prime, rng, why)
        };
        let tally = &mut self.tallies[kind];
        tally.seen += 1;
        match verdict {
            Departure::Send => {}
            Departure::Mark => tally.marked += 1,
            Departure::Drop(_) => {
                tally.dropped += 1;
                return verdict;
            }
        }
        tally.sent_bytes += u64::from(packet.size);
        verdict
    }

    /// Figure 7, lines 4b to 8j.
    fn of_l4s<W: Why + ?Sized>(
        &mut self,
        p_prime: f64,
        native: f64,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        let p_cl = self.config.p_cl(p_prime);
        why.note("p_cl", p_cl);
        let p_l = native.max(p_cl);
        why.note("p_l", p_l);
        if !self.config.overloaded(p_prime) {
            return if self.recur(L4S, p_l, rng, why) { Departure::Mark } else { Departure::Send };
        }
        let p_c = self.config.p_c(p_prime);
        why.note("p_c", p_c);
        if self.recur(L4S, p_c, rng, why) {
            return Departure::Drop(OVERLOAD);
        }
        // At the default p_cmax p_CL is 1; below it the native AQM still counts.
        if self.recur(L4S, p_l, rng, why) { Departure::Mark } else { Departure::Send }
    }

    /// Figure 7, lines 11 to 17.
    fn of_classic<W: Why + ?Sized>(
        &mut self,
        ecn: Ecn,
        p_prime: f64,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        let p_c = self.config.p_c(p_prime);
        why.note("p_c", p_c);
        if !self.recur(CLASSIC, p_c, rng, why) {
            return Departure::Send;
        }
        match (self.config.marks_classic(ecn), self.config.overloaded(p_prime)) {
            (true, false) => Departure::Mark,
            (true, true) => Departure::Drop(OVERLOAD),
            (false, _) => Departure::Drop(EARLY),
        }
    }

    /// Figure 4, lines 23 to 30: true with this likelihood.
    fn recur<W: Why + ?Sized>(&mut self, kind: usize, likelihood: f64, rng: &mut Rng, why: &mut W) -> bool {
        if !self.config.derandomise {
            return rng.chance("u", likelihood, why);
        }
        let count = &mut self.counts[kind];
        *count += likelihood;
        let struck = *count > 1.0;
        if struck {
            *count -= 1.0;
        }
        struck
    }
}

#[cfg(test)]
mod tests;
