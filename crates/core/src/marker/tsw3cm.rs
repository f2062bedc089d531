//! TSWTCM, the time-sliding window three-colour marker: green up to the committed rate, yellow up to the peak rate, red above,
//! at random.
//!
//! A [time-sliding window](crate::estimate::tsw) measures the rate. The probability of each colour is its share of the rate:
//! green for the part below the committed target, yellow for the part between, red for the part above the peak.
//! Source: RFC 2859 §4, Fig. 3. Non-goal: colour-aware metering; it ignores the colour that a packet comes with.

use std::marker::PhantomData;

use crate::estimate::tsw::TswRate;
use crate::marker::tsw2cm::{Chance, Rfc2859, target};
use crate::prelude::*;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Committed target rate, counted on the wire. Default: the flow's contract.
        ctr: Option<Rate> [POSITIVE];
        /// Peak target rate, counted on the wire; at least the committed one.
        ptr: Rate [POSITIVE];
        /// Length of the window over which the rate is measured.
        win_length: Duration [POSITIVE] = Duration::from_millis(1000);
    }
}

/// The marker, and its packets by verdict.
#[derive(Clone, Debug)]
pub struct Tsw3cm<C = Rfc2859> {
    /// In bytes a second.
    ctr: f64,
    /// In bytes a second.
    ptr: f64,
    pub(crate) rate: TswRate,
    chance: PhantomData<C>,
    /// Packets that left green, yellow and red.
    marked: [u64; 3],
}

impl Build for Params {
    type Mechanism = Tsw3cm;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let ctr = target(self.ctr, context)?;
        if self.ptr.0 < ctr.0 {
            return Err(Fault {
                field: "ptr",
                problem: format!("the peak target rate ({}) is below the committed one ({ctr})", self.ptr),
                remedy: format!("at least \"{ctr}\""),
            });
        }
        Ok(Vec::new())
    }

    fn build(&self, context: &Context) -> Tsw3cm {
        self.marker(context)
    }
}

impl Params {
    /// The marker, with chances by `C`.
    pub(crate) fn marker<C: Chance>(&self, context: &Context) -> Tsw3cm<C> {
        let ctr = self.ctr.or(context.contract).unwrap_or(Rate(0));
        Tsw3cm {
            ctr: ctr.0 as f64 / 8.0,
            ptr: self.ptr.0 as f64 / 8.0,
            rate: TswRate::new(ctr, self.win_length),
            chance: PhantomData,
            marked: [0; 3],
        }
    }
}

impl<C: Chance> Mechanism for Tsw3cm<C> {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("rate", self.rate.bits_per_second());
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let [green, yellow, red] = self.marked;
        show("marked_green", green);
        show("marked_yellow", yellow);
        show("marked_red", red);
    }
}

impl<C: Chance> Marker for Tsw3cm<C> {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        let rate = self.rate.packet(now, packet.size);
        why.note("rate", rate * 8.0);
        let colour = C::colour(rate, self.ctr, self.ptr, rng, why);
        self.marked[colour as usize] += 1;
        Mark::Pass(colour)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::marker::tsw2cm::p_yellow_red;
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

    fn params(ctr: u64, ptr: u64) -> Params {
        Params { ctr: Some(Rate(ctr)), ptr: Rate(ptr), win_length: Duration::from_millis(1000) }
    }

    fn steady<C: Chance>(
        m: &mut Tsw3cm<C>,
        gap_us: u64,
        packets: std::ops::Range<u64>,
        rng: &mut Rng,
    ) -> Vec<Colour> {
        let p = Packet { size: 1000, ..Packet::default() };
        packets
            .map(|i| match m.mark(Time(i * gap_us * 1_000_000), &p, rng, &mut Silent) {
                Mark::Pass(colour) => colour,
                Mark::Drop(_) => unreachable!("it drops nothing"),
            })
            .collect()
    }

    #[test]
    fn golden_sequence() {
        // 80 kbit/s committed, 120 peak, 160 sent; as drawn from the stream of seed 1.
        let mut rng = Rng::for_component(1, "tsw3cm");
        let mut m = params(80_000, 120_000).build(&CONTEXT);
        let text: String =
            steady(&mut m, 50_000, 1..61, &mut rng).iter().map(|c| ['g', 'y', 'R'][*c as usize]).collect();
        assert_eq!(text, "ggggggggyyyggggyyyyyggggRgygRRgRRygygRRygggygyggygggyRggggRg");
    }

    /// RFC 2859 §4: P2 or P0, and P1.
    #[test]
    fn chances_by_hand() {
        assert_eq!(p_yellow_red(100.0, 100.0, 200.0), (0.0, 0.0));
        assert_eq!(p_yellow_red(160.0, 80.0, 200.0), (0.5, 0.0));
        assert_eq!(p_yellow_red(400.0, 100.0, 200.0), (0.25, 0.5));
        assert_eq!(p_yellow_red(400.0, 100.0, 100.0), (0.0, 0.75));
    }

    /// A flow within its rate: all green, and so many numbers drawn for 50 packets.
    pub(crate) fn within_its_rate<C: Chance>(draws: u32) {
        let (mut rng, mut beside) = (Rng::for_component(1, "x"), Rng::for_component(1, "x"));
        let mut m: Tsw3cm<C> = params(80_000, 120_000).marker(&CONTEXT);
        assert!(steady(&mut m, 100_001, 1..51, &mut rng).iter().all(|c| *c == Colour::Green));
        for _ in 0..draws {
            beside.uniform();
        }
        assert_eq!(rng.uniform(), beside.uniform());
    }

    /// The shares of yellow and red are those of the RFC, within chance.
    pub(crate) fn shares<C: Chance>(times: f64, peak: f64, seed: u64) {
        let ctr = 200_000.0;
        let gap = (8000.0 / (ctr * times) * 1e6) as u64;
        let (yellow, red) = p_yellow_red(8000.0 / (gap as f64 * 1e-6), ctr, ctr * peak);
        let mut rng = Rng::for_component(seed, "tsw3cm");
        let mut m: Tsw3cm<C> = params(ctr as u64, (ctr * peak) as u64).marker(&CONTEXT);
        steady(&mut m, gap, 1..2000, &mut rng);
        let n = 4000.0;
        let seen = steady(&mut m, gap, 2000..6000, &mut rng);
        for (colour, share) in [(Colour::Yellow, yellow), (Colour::Red, red)] {
            let count = seen.iter().filter(|c| **c == colour).count() as f64;
            let sd = (n * share * (1.0 - share)).sqrt();
            assert!((count - n * share).abs() < 5.0 * sd + 2.0, "{colour:?}: {count}, share {share}");
        }
    }

    #[test]
    fn nothing_is_drawn_for_a_flow_within_its_rate() {
        within_its_rate::<Rfc2859>(0);
    }

    #[test]
    fn a_peak_below_the_committed_rate_is_refused() {
        assert_eq!(params(2, 1).check(&CONTEXT).expect_err("reversed").field, "ptr");
        assert_eq!(params(2, 2).check(&CONTEXT), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn chances_make_a_whole(rate in 0f64..1e9, ctr in 1f64..1e8, more in 0f64..1e8) {
            let (yellow, red) = p_yellow_red(rate, ctr, ctr + more);
            prop_assert!(yellow >= 0.0 && red >= 0.0 && yellow + red <= 1.0);
            // What is neither yellow nor red is the committed rate.
            if rate > ctr {
                prop_assert!(((1.0 - yellow - red) * rate - ctr).abs() < 1e-6 * rate);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn shares_are_those_of_the_rfc(times in 1.05f64..6.0, peak in 1.0f64..4.0, seed in 0u64..1000) {
            shares::<Rfc2859>(times, peak, seed);
        }
    }
}
