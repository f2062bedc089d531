//! DualPI2: an L4S queue that is kept empty by early marks, a Classic queue whose delay a PI controller holds at a target, and one
//! probability behind both.
//!
//! Every `t_update`, p′ moves by the greater of both queues' delays, so that a flood of L4S packets that answer no mark is held to the
//! same target by drops. Source: RFC 9332, Appendix A: §A.2's pseudocode, with §A.1's text where Linux does more.
//! Non-goals: protecting the L4S queue from single flows that fill it (DOCSIS' queue protection), and identifiers of L4S traffic other
//! than the ECN field (§2.3).

use crate::aqm::l4s::coupling::Coupling;
use crate::aqm::l4s::dual::{self, Bound, Order};
use crate::aqm::l4s::dual::{Base, Dual, Ramp};
use crate::aqm::l4s::pi::{self, Pi};
use crate::params::{Build, Context, Fault, Warning};
use crate::units::{Duration, Time};

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// L4S packets that waited longer than this are marked now and then (minTh).
        min_th: Duration [NON_NEGATIVE] = Duration::from_micros(800);
        /// From min_th on, the probability of a native mark rises to 1 within this (range); "0 s": a step, as of DCTCP.
        range: Duration [NON_NEGATIVE] = Duration::from_micros(400);
        /// No native mark while the L4S queue has no more packets than this, the one about to leave included (Th_len): on slow links one
        /// packet takes longer than min_th.
        th_len: u64 = 1;
        /// How the priority of the L4S queue is bounded.
        l4s_priority: Bound = Bound::Wrr;
        /// With l4s_priority = "wrr": Classic's share of the bytes while both queues have packets.
        classic_weight: f64 [UNIT_POSITIVE] = 0.0625;
        /// With l4s_priority = "ts_fifo": how much longer than the L4S head the Classic head waits before it is sent first.
        tshift: Duration [POSITIVE] = Duration::from_millis(50);
        ..controller: pi::Params;
    }
}

impl Build for Params {
    type Mechanism = DualPi2;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        dual::fit(self.classic_weight)?;
        let mut warnings = self.controller.fit(context)?;
        if self.min_th + self.range > self.controller.target {
            let text = format!(
                "all L4S packets are marked from a delay of {} on, above target ({}): the L4S queue may be the longer one",
                self.min_th + self.range,
                self.controller.target
            );
            warnings.push(Warning { field: "min_th", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> DualPi2 {
        let ramp = Ramp {
            min_th: self.min_th.secs(),
            range: self.range.secs(),
            th_len: u32::try_from(self.th_len).unwrap_or(u32::MAX),
        };
        let order = Order::new(self.l4s_priority, self.classic_weight, self.tshift, context);
        let coupling = Coupling::new(self.controller.coupling.config());
        Dual::new(Pi::new(self.controller.gains()), coupling, ramp, order, context.packet)
    }
}

/// The discipline.
pub type DualPi2 = Dual<Pi>;

impl Base for Pi {
    fn p_prime(&self) -> f64 {
        Pi::p_prime(self)
    }

    /// Figure 8, line 2a.
    fn tick(&mut self, now: Time, [l4s, classic]: [f64; 2]) -> Option<Time> {
        Some(self.update(now, classic.max(l4s)))
    }
}

#[cfg(test)]
mod shares {
    //! The purpose of the coupling: a scalable flow and a Classic one get about the same rate (RFC 9332 §2.1, Appendix C). Windows and
    //! acknowledgements of two textbook senders over a link of a packet a millisecond.

    use std::collections::BTreeMap;

    use super::tests::bench;
    use super::*;
    use crate::testing::*;

    const MS: Duration = Duration::from_millis(1);

    /// A sender that always has something to send.
    struct Sender {
        ecn: Ecn,
        cwnd: f64,
        flight: u32,
        /// Until the packets sent before the last reduction are acknowledged, a Classic sender ignores further marks.
        recover: u32,
        sent: u32,
        acked: u32,
    }

    impl Sender {
        fn new(ecn: Ecn) -> Sender {
            Sender { ecn, cwnd: 10.0, flight: 0, recover: 0, sent: 0, acked: 0 }
        }

        /// Reno halves its window once a round trip (RFC 3168 §6.1.2); a scalable sender takes half a packet off for each mark, as DCTCP
        /// does on average (RFC 9332, Eq. 6: r = 2/(R p)). Both gain a packet a round trip.
        fn on_ack(&mut self, marked: bool) {
            self.flight -= 1;
            self.acked += 1;
            if self.ecn == Ecn::Ect1 {
                self.cwnd += 1.0 / self.cwnd - if marked { 0.5 } else { 0.0 };
            } else if marked && self.acked > self.recover {
                self.cwnd /= 2.0;
                self.recover = self.sent;
            } else {
                self.cwnd += 1.0 / self.cwnd;
            }
            self.cwnd = self.cwnd.max(2.0);
        }
    }

    /// The rates of both senders and their mean waits in ms, over the second half; `rtt` is without queues.
    fn compete(mut b: Bench, kinds: [Ecn; 2], rtt: u64, ms: u64) -> ([f64; 2], [f64; 2]) {
        let mut senders = kinds.map(Sender::new);
        // When which acknowledgement returns, and whose a packet is.
        let mut acks = BTreeMap::<u64, Vec<(usize, bool)>>::new();
        let mut owner = Vec::new();
        let (mut got, mut waits) = ([0.0; 2], [0.0; 2]);
        for t in 0..ms {
            b.to(Time::ZERO + MS * t);
            for (who, marked) in acks.remove(&t).unwrap_or_default() {
                senders[who].on_ack(marked);
            }
            for (who, s) in senders.iter_mut().enumerate() {
                while f64::from(s.flight + 1) <= s.cwnd {
                    b.arrive(s.ecn);
                    owner.push(who);
                    (s.flight, s.sent) = (s.flight + 1, s.sent + 1);
                }
            }
            if let Some(p) = b.depart() {
                let who = owner[p.number as usize];
                acks.entry(t + rtt).or_default().push((who, p.ecn == Ecn::Experienced));
                if t >= ms / 2 {
                    got[who] += 1.0;
                    waits[who] += p.waited.secs() * 1e3;
                }
            }
        }
        assert!(b.dropped.is_empty() && b.conserves(), "marks suffice");
        (got, [waits[0] / got[0], waits[1] / got[1]])
    }

    /// Appendix C, Eq. (10): r_L/r_C = R_C/(1.22 R_L). L4S packets hardly wait, Classic ones for about the target.
    #[test]
    fn a_scalable_and_a_classic_flow_share_the_link() {
        let (got, waits) = compete(bench(&defaults()), [Ecn::Ect1, Ecn::Ect0], 50, 60_000);
        let (r_l, r_c) = (50.0 + waits[0], 50.0 + waits[1]);
        let ratio = got[0] / got[1];
        println!("rates {got:?}, waits {waits:?} ms, ratio {ratio}");
        let expected = r_c / (1.22 * r_l);
        assert!((ratio / expected - 1.0).abs() < 0.35, "{ratio}, by Eq. (10) {expected}");
        assert!(waits[0] < 2.0, "L4S waits {} ms", waits[0]);
        assert!(waits[1] > 5.0 && waits[1] < 20.0, "Classic waits {} ms", waits[1]);
        assert!(got[0] + got[1] > 0.95 * 30_000.0, "{got:?}");
    }

    /// The failure that the coupling prevents: one queue that marks both alike is the scalable flow's.
    #[test]
    fn without_coupling_the_classic_flow_starves() {
        let codel = crate::aqm::codel::Params { ecn: true, ..defaults() };
        let aqm = AnyAqm::Codel(Box::new(codel.build(&CONTEXT)));
        let (got, _) = compete(Bench::new(aqm, Backlog::Packets(1000.0)), [Ecn::Ect1, Ecn::Ect0], 50, 60_000);
        assert!(got[0] > 4.0 * got[1], "{got:?}");
    }
}

#[cfg(test)]
mod tests;
