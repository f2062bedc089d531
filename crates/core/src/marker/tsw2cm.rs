//! TSW two-colour marker: packets are OUT in proportion to how far the measured rate exceeds the target.
//!
//! A [time-sliding window](crate::estimate::tsw) measures the rate. Up to the target every packet is IN; above it each is OUT
//! with probability (rate − target) / rate, so that the IN packets stay at the target on average. As it is random, OUT packets
//! are spread over a flow's window, where a token bucket marks them in runs. Paper E (Bouras and Sevasti 2004, §5.2) marks
//! packets OUT "when the flow r_i is exceeded": with `excess = "all"` every packet is OUT while the measured rate is above the
//! target.
//! Source: Clark and Fang 1998, §3.3; RFC 2859 §4 without a peak rate; paper E. Non-goal: a bound on bursts.

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::estimate::tsw::TswRate;
use crate::prelude::*;

crate::choice! {
    /// The packets that are OUT while the measured rate is above the target.
    pub enum Excess {
        /// As large a share of the packets as the rate is above the target (RFC 2859).
        Share = "share",
        /// Every packet (Bouras and Sevasti 2004, §5.2, to the letter).
        All = "all",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Committed target rate, counted on the wire. Default: the flow's contract.
        ctr: Option<Rate> [POSITIVE];
        /// Length of the window over which the rate is measured.
        win_length: Duration [POSITIVE] = Duration::from_millis(1000);
        /// What is OUT while the rate is above the target: the share by which it is, or every packet.
        excess: Excess = Excess::Share;
    }
}

/// Packets by verdict.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Left as IN.
    pub marked_in: u64,
    /// Left as OUT.
    pub marked_out: u64,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct Tsw2cm<C = Rfc2859> {
    /// In bytes a second.
    ctr: f64,
    pub(crate) rate: TswRate,
    chance: PhantomData<C>,
    excess: Excess,
    stats: Stats,
}

/// The rate to hold a flow to, its own or its contract.
///
/// # Errors
/// If there is neither.
pub(crate) fn target(ctr: Option<Rate>, context: &Context) -> Result<Rate, Fault> {
    ctr.or(context.contract).ok_or_else(|| Fault {
        field: "ctr",
        problem: "the marker has no target rate, and its flow has no contract to take it from".into(),
        remedy: "contract = \"250 kbit/s\" in the flow, or ctr = \"250 kbit/s\" here".into(),
    })
}

/// How a rate above its target becomes a colour by chance. Rates are in one unit.
pub trait Chance: Clone + Debug + Send + 'static {
    /// Whether a packet is OUT at this rate.
    fn out<W: Why + ?Sized>(rate: f64, ctr: f64, rng: &mut Rng, why: &mut W) -> bool;

    /// The colour of a packet at this rate, with a peak above the target.
    fn colour<W: Why + ?Sized>(rate: f64, ctr: f64, ptr: f64, rng: &mut Rng, why: &mut W) -> Colour;
}

/// RFC 2859 §4.
#[derive(Clone, Copy, Debug)]
pub struct Rfc2859;

/// The chance of OUT at this rate (RFC 2859 §4).
#[inline]
fn p_out(rate: f64, ctr: f64) -> f64 {
    if rate > ctr { (rate - ctr) / rate } else { 0.0 }
}

/// The chances of yellow and red at this rate (RFC 2859 §4: P2 or P0, and P1).
#[inline]
pub(super) fn p_yellow_red(rate: f64, ctr: f64, ptr: f64) -> (f64, f64) {
    if rate <= ctr {
        return (0.0, 0.0);
    }
    ((rate.min(ptr) - ctr) / rate, ((rate - ptr) / rate).max(0.0))
}

impl Chance for Rfc2859 {
    fn out<W: Why + ?Sized>(rate: f64, ctr: f64, rng: &mut Rng, why: &mut W) -> bool {
        rng.chance("u", p_out(rate, ctr), why)
    }

    fn colour<W: Why + ?Sized>(rate: f64, ctr: f64, ptr: f64, rng: &mut Rng, why: &mut W) -> Colour {
        if rate <= ctr {
            return Colour::Green;
        }
        let (yellow, red) = p_yellow_red(rate, ctr, ptr);
        let u = rng.uniform();
        why.note("u", u);
        match u {
            u if u < red => Colour::Red,
            u if u < red + yellow => Colour::Yellow,
            _ => Colour::Green,
        }
    }
}

impl Build for Params {
    type Mechanism = Tsw2cm;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        target(self.ctr, context).map(|_| Vec::new())
    }

    fn build(&self, context: &Context) -> Tsw2cm {
        self.marker(context)
    }
}

impl Params {
    /// The marker, with chances by `C`.
    pub(crate) fn marker<C: Chance>(&self, context: &Context) -> Tsw2cm<C> {
        let ctr = self.ctr.or(context.contract).unwrap_or(Rate(0));
        Tsw2cm {
            ctr: ctr.0 as f64 / 8.0,
            rate: TswRate::new(ctr, self.win_length),
            chance: PhantomData,
            excess: self.excess,
            stats: Stats::default(),
        }
    }
}

impl<C: Chance> Mechanism for Tsw2cm<C> {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("rate", self.rate.bits_per_second());
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("marked_in", self.stats.marked_in);
        show("marked_out", self.stats.marked_out);
    }
}

impl<C: Chance> Marker for Tsw2cm<C> {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        let rate = self.rate.packet(now, packet.size);
        why.note("rate", rate * 8.0);
        let out = match self.excess {
            // Bouras and Sevasti 2004, §5.2
            Excess::All => rate > self.ctr,
            Excess::Share => C::out(rate, self.ctr, rng, why),
        };
        if out {
            self.stats.marked_out += 1;
            Mark::Pass(Colour::OUT)
        } else {
            self.stats.marked_in += 1;
            Mark::Pass(Colour::IN)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::*;

    fn marker<C: Chance>(ctr: u64) -> Tsw2cm<C> {
        let context =
            Context { link_rate: None, contract: Some(Rate(ctr)), packet: Bytes(1000), limit: None };
        let p = Params { ctr: None, win_length: Duration::from_millis(1000), excess: Excess::Share };
        p.check(&context).expect("a contract is enough");
        p.marker(&context)
    }

    /// A packet of 1,000 B each `gap_us`: which of them are IN.
    fn steady<C: Chance>(m: &mut Tsw2cm<C>, gap_us: u64, n: u64, rng: &mut Rng) -> Vec<bool> {
        let p = Packet { size: 1000, ..Packet::default() };
        (1..=n)
            .map(|i| m.mark(Time(i * gap_us * 1_000_000), &p, rng, &mut Silent) == Mark::Pass(Colour::IN))
            .collect()
    }

    #[test]
    fn golden_sequence() {
        // 80 kbit/s promised, 160 sent: the estimate climbs from 10 to 20 kB/s, P(OUT) from 0 to ½. As drawn from the stream of seed 1.
        let mut rng = Rng::for_component(1, "tsw2cm");
        let ins = steady(&mut marker::<Rfc2859>(80_000), 50_000, 60, &mut rng);
        let text: String = ins.iter().map(|i| if *i { 'I' } else { 'o' }).collect();
        assert_eq!(text, "IIIIIIoIIIIIIIoIIoooIoooIIoIoIIoIIoIIoIIIIIIIIIIIIooIoooIIII");
    }

    /// Within the target all is IN and nothing is drawn.
    pub(crate) fn within_the_target<C: Chance>() {
        let (mut rng, mut untouched) = (Rng::for_component(1, "x"), Rng::for_component(1, "x"));
        // The very first packet is above: (rate + size) / (gap + 1 s); a longer gap brings it back to the target.
        let ins = steady(&mut marker::<C>(80_000), 100_001, 500, &mut rng);
        assert!(ins.iter().all(|i| *i));
        assert_eq!(rng.uniform(), untouched.uniform());
    }

    /// With `excess = "all"` a packet is OUT exactly when the rate after it is above the target.
    pub(crate) fn all_of_the_excess<C: Chance>() {
        let mut m = Tsw2cm { excess: Excess::All, ..marker::<C>(80_000) };
        let (mut rng, mut untouched) = (Rng::for_component(1, "x"), Rng::for_component(1, "x"));
        // 160 kbit/s: from the first packet on, (10,000 + 1,000) B / 1.05 s > 10,000 B/s.
        assert!(steady(&mut m, 50_000, 100, &mut rng).iter().all(|is_in| !is_in));
        assert_eq!((m.stats.marked_in, m.stats.marked_out), (0, 100));
        // After a minute's silence the estimate is next to nothing, and 40 kbit/s is within the target.
        let late = Packet { size: 1000, ..Packet::default() };
        let ins = (0..100).filter(|i| {
            m.mark(Time((65_000 + i * 200) * 1_000_000_000), &late, &mut rng, &mut Silent)
                == Mark::Pass(Colour::IN)
        });
        assert_eq!(ins.count(), 100);
        assert_eq!(rng.uniform(), untouched.uniform());
    }

    /// The IN part of a steady stream of so many times the target is the target, within chance (5 standard deviations).
    pub(crate) fn in_keeps_to_the_target<C: Chance>(ctr: u64, times: f64, seed: u64) {
        let gap = (8000.0 / (ctr as f64 * times) * 1e6) as u64;
        let mut rng = Rng::for_component(seed, "tsw2cm");
        let mut m = marker::<C>(ctr);
        steady(&mut m, gap, 4000, &mut rng);
        let p = Packet { size: 1000, ..Packet::default() };
        let n = 4000;
        let is_in =
            |i: &u64| m.mark(Time(i * gap * 1_000_000), &p, &mut rng, &mut Silent) == Mark::Pass(Colour::IN);
        let ins = (4001..4001 + n).filter(is_in).count() as f64;
        let share = ctr as f64 / (8000.0 / (gap as f64 * 1e-6));
        let sd = (n as f64 * share * (1.0 - share)).sqrt();
        assert!((ins - n as f64 * share).abs() < 5.0 * sd + 1.0, "{ins} of {n}, share {share}");
    }

    #[test]
    fn within_the_target_all_is_in_and_nothing_is_drawn() {
        within_the_target::<Rfc2859>();
    }

    /// Bouras and Sevasti 2004, §5.2.
    #[test]
    fn every_packet_is_out_while_the_rate_is_exceeded() {
        all_of_the_excess::<Rfc2859>();
    }

    #[test]
    fn a_flow_without_contract_needs_a_rate() {
        let context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
        let p = Params { ctr: None, win_length: Duration::from_millis(1), excess: Excess::Share };
        assert_eq!(p.check(&context).expect_err("no rate").field, "ctr");
        assert_eq!(Params { ctr: Some(Rate(1)), ..p }.check(&context), Ok(vec![]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// RFC 2859 §4 and Clark and Fang 1998, §3.3: what is IN of a steady stream is the target, within chance (5 standard deviations).
        #[test]
        fn in_packets_keep_to_the_target(ctr in 100_000u64..1_000_000, times in 1.1f64..8.0, seed in 0u64..1000) {
            in_keeps_to_the_target::<Rfc2859>(ctr, times, seed);
        }
    }
}
