//! Token bucket: a packet is IN if the bucket holds enough tokens for its size, else OUT.
//!
//! Tokens are bytes and arrive at `rate`; at most `depth` of them are kept; an OUT packet takes none. So in any time t at most
//! rate·t + depth bytes leave as IN.
//! It is the per-flow host marker of papers A and B, and the committed bucket of RFC 2697 §3 without the excess bucket.
//! Non-goal: shaping; it delays nothing.

use std::hint;

use crate::marker::Action;
use crate::prelude::*;
use crate::signal::TOKENS;

crate::choice! {
    /// Which packets conform.
    pub enum Conforms {
        /// Those for which there are enough tokens (RFC 2697 §3).
        AtLeast = "at_least",
        /// Those for which there are more than enough, as some taggers have it: a bucket one packet deep never marks IN.
        MoreThan = "more_than",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Rate at which tokens arrive, counted on the wire. Default: the flow's contract.
        rate: Option<Rate> [POSITIVE];
        /// The most tokens that are kept: the longest burst that can be IN. Packets are full packets.
        depth: Backlog [POSITIVE];
        /// Whether the bucket is full at the start of the run.
        starts_full: bool = true;
        /// Whether a packet is IN if the tokens are at least its size, or only if they are more.
        conforms: Conforms = Conforms::AtLeast;
        /// What happens to packets out of profile: they are marked OUT, or a policer drops them.
        action: Action = Action::Mark;
    }
}

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars {
    /// Tokens in the bucket at `at`, in bytes.
    tokens: f64,
    at: Time,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    /// Tokens a picosecond, in bytes.
    rate: f64,
    /// In bytes.
    depth: f64,
    vars: Vars,
    /// Packets that left as OUT, and as IN.
    marked: [u64; 2],
    conforms: Conforms,
    action: Action,
    /// The last moment told, where the clock is finer than [`Time`].
    told: f64,
}

/// Tokens at `now`, having been `tokens` at `at`: they arrive at `rate` and overflow at `depth`.
#[inline]
fn refill(tokens: f64, rate: f64, at: Time, now: Time, depth: f64) -> f64 {
    let tokens = tokens + rate * now.since(at).picos();
    if tokens < depth { tokens } else { depth }
}

impl Build for Params {
    type Mechanism = TokenBucket;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.rate.or(context.contract).is_none() {
            return Err(Fault {
                field: "rate",
                problem: "the bucket has no rate, and its flow has no contract to take it from".into(),
                remedy: "contract = \"250 kbit/s\" in the flow, or rate = \"250 kbit/s\" here".into(),
            });
        }
        let depth = self.depth.bytes(context.packet);
        let packet = context.packet;
        if depth < packet.0 as f64 || (depth <= packet.0 as f64 && self.conforms == Conforms::MoreThan) {
            return Err(Fault {
                field: "depth",
                problem: format!(
                    "a depth of {} is {} than a packet of {packet}: no packet can ever be IN",
                    self.depth,
                    match self.conforms {
                        Conforms::AtLeast => "less",
                        Conforms::MoreThan => "not more",
                    }
                ),
                remedy: match self.conforms {
                    Conforms::AtLeast => format!("at least \"{packet}\" or \"1 packets\""),
                    Conforms::MoreThan => "more than \"1 packets\", or conforms = \"at_least\"".into(),
                },
            });
        }
        Ok(Vec::new())
    }

    fn build(&self, context: &Context) -> TokenBucket {
        let rate = self.rate.or(context.contract).map_or(0.0, |r| r.0 as f64 / 8e12);
        let depth = self.depth.bytes(context.packet);
        let tokens = if self.starts_full { depth } else { 0.0 };
        TokenBucket {
            rate,
            depth,
            vars: Vars { tokens, at: Time::ZERO },
            marked: [0; 2],
            conforms: self.conforms,
            action: self.action,
            told: 0.0,
        }
    }
}

impl TokenBucket {
    /// Prefetches the bucket: for a burst, all its buckets are touched before the first decision, so that cache misses overlap.
    #[inline(always)]
    pub fn touch(&self) {
        hint::black_box(self.vars.at);
    }
}

impl TokenBucket {
    /// Brings the bucket up to date on a clock of seconds in double precision; nothing is left for [`refill`] to add.
    pub(crate) fn tell_secs(&mut self, now: Time, secs: f64) {
        // The rate in bit/s was a whole number, and is one again.
        let rate = libm::round(self.rate * 8e12) / 8.0;
        self.vars.tokens = (self.vars.tokens + rate * (secs - self.told)).min(self.depth);
        self.vars.at = now;
        self.told = secs;
    }
}

impl Mechanism for TokenBucket {
    fn signal(&mut self, now: Time, signal: &Signal) {
        if signal.topic == TOKENS {
            let v = &mut self.vars;
            v.tokens = refill(v.tokens, self.rate, v.at, now, self.depth).min(signal.value.max(0.0));
            v.at = now;
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        show("tokens", refill(self.vars.tokens, self.rate, self.vars.at, now, self.depth));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("marked_in", self.marked[1]);
        show("marked_out", self.marked[0]);
    }
}

impl Marker for TokenBucket {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        let v = &mut self.vars;
        v.tokens = refill(v.tokens, self.rate, v.at, now, self.depth);
        v.at = now;
        why.note("tokens", v.tokens);
        let size = f64::from(packet.size);
        if v.tokens > size || (v.tokens >= size && self.conforms == Conforms::AtLeast) {
            v.tokens -= size;
            self.marked[1] += 1;
            Mark::Pass(Colour::IN)
        } else {
            self.marked[0] += 1;
            self.action.on(Colour::OUT, Colour::OUT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn bucket(rate: u64, depth: f64) -> TokenBucket {
        let context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
        let p = Params {
            rate: Some(Rate(rate)),
            depth: Backlog::Bytes(depth),
            starts_full: true,
            conforms: Conforms::AtLeast,
            action: Action::Mark,
        };
        p.build(&context)
    }

    fn verdicts(b: &mut TokenBucket, arrivals: &[(u64, u32)]) -> Vec<Colour> {
        let mut rng = Rng::for_component(0, "unused");
        arrivals
            .iter()
            .map(|&(us, size)| {
                let p = Packet { size, ..Packet::default() };
                match b.mark(Time(us * 1_000_000), &p, &mut rng, &mut Silent) {
                    Mark::Pass(c) => c,
                    Mark::Drop(_) => unreachable!("a token bucket drops nothing"),
                }
            })
            .collect()
    }

    #[test]
    fn golden_sequence() {
        use Colour::{Green as I, Yellow as O};
        // 8 Mbit/s is a byte a microsecond; 2,000 bytes deep.
        let mut b = bucket(8_000_000, 2000.0);
        let arrivals = [
            (0, 1000),
            (0, 1000),
            (0, 1),
            (999, 1000),
            (1000, 1000),
            (1500, 500),
            (9000, 2001),
            (9000, 2000),
        ];
        assert_eq!(verdicts(&mut b, &arrivals), [I, I, O, O, I, I, O, I]);
    }

    /// Two packets at once find two packets' tokens: a tagger that asks for more marks one of them.
    #[test]
    fn exactly_enough_is_not_more() {
        let context = Context { link_rate: None, contract: Some(Rate(8)), packet: Bytes(1000), limit: None };
        let of = |conforms, packets| Params {
            rate: None,
            depth: Backlog::Packets(packets),
            starts_full: true,
            conforms,
            action: Action::Mark,
        };
        let burst = |conforms| verdicts(&mut of(conforms, 2.0).build(&context), &[(0, 1000), (0, 1000)]);
        assert_eq!(burst(Conforms::AtLeast), [Colour::IN, Colour::IN]);
        assert_eq!(burst(Conforms::MoreThan), [Colour::IN, Colour::OUT]);
        assert_eq!(of(Conforms::AtLeast, 1.0).check(&context), Ok(vec![]));
        assert_eq!(of(Conforms::MoreThan, 1.0).check(&context).expect_err("never IN").field, "depth");
    }

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert!(size_of::<TokenBucket>() <= 64, "{} bytes", size_of::<TokenBucket>());
    }

    /// Seconds that are told fill the bucket, and the time that comes with them does not fill it again.
    #[test]
    fn told_seconds_count_once() {
        let mut b = bucket(8_000_000, 2000.0);
        assert_eq!(verdicts(&mut b, &[(0, 1000), (0, 1000)]), [Colour::IN, Colour::IN]);
        b.tell_secs(Time(1_000_000_000), 0.001);
        assert_eq!(verdicts(&mut b, &[(1000, 1000), (1000, 1)]), [Colour::IN, Colour::OUT]);
    }

    proptest! {
        /// RFC 2475 §2.3.3.3: a policer drops exactly what would be OUT, and what it passes is never more than rate·t + depth.
        #[test]
        fn a_policer_drops_what_would_be_out(rate in 1_000u64..100_000_000, depth in 1500f64..100_000.0,
                    gaps in prop::collection::vec((0u64..5_000, 40u32..1500), 1..200)) {
            let mut policer = TokenBucket { action: Action::Drop, ..bucket(rate, depth) };
            let mut t = 0;
            let arrivals: Vec<_> = gaps.iter().map(|&(g, s)| { t += g; (t, s) }).collect();
            let colours = verdicts(&mut bucket(rate, depth), &arrivals);
            let mut rng = Rng::for_component(0, "unused");
            let mut passed = Vec::new();
            for (&(us, size), colour) in arrivals.iter().zip(colours) {
                let p = Packet { size, ..Packet::default() };
                let verdict = policer.mark(Time(us * 1_000_000), &p, &mut rng, &mut Silent);
                let out = colour == Colour::OUT;
                prop_assert_eq!(verdict, if out { Mark::Drop(crate::marker::POLICED) } else { Mark::Pass(Colour::IN) });
                if !out { passed.push((us, f64::from(size))); }
            }
            for (i, first) in passed.iter().enumerate() {
                let mut sum = 0.0;
                for (at, size) in &passed[i..] {
                    sum += size;
                    prop_assert!(sum <= rate as f64 / 8.0 * (at - first.0) as f64 * 1e-6 + depth + 1e-6);
                }
            }
        }

        /// Never more than rate·t + depth, over every stretch of the run.
        #[test]
        fn conforms(rate in 1_000u64..100_000_000, depth in 1500f64..100_000.0,
                    gaps in prop::collection::vec((0u64..5_000, 40u32..1500), 1..200)) {
            let mut t = 0;
            let arrivals: Vec<_> = gaps.iter().map(|&(g, s)| { t += g; (t, s) }).collect();
            let colours = verdicts(&mut bucket(rate, depth), &arrivals);
            for from in 0..arrivals.len() {
                let mut passed = 0.0;
                for to in from..arrivals.len() {
                    if colours[to] == Colour::IN { passed += f64::from(arrivals[to].1); }
                    let t = (arrivals[to].0 - arrivals[from].0) as f64 * 1e-6;
                    prop_assert!(passed <= rate as f64 / 8.0 * t + depth + 1e-6);
                }
            }
        }

        /// The law in whole numbers: tokens in 1/8,000,000,000,000ths of a byte, no floating point.
        #[test]
        fn agrees_with_the_oracle(rate in 1_000u64..100_000_000, depth in 1500u64..100_000,
                                  gaps in prop::collection::vec((0u64..5_000, 40u32..1500), 1..300)) {
            const UNIT: u128 = 8_000_000_000_000;
            let mut t = 0;
            let arrivals: Vec<_> = gaps.iter().map(|&(g, s)| { t += g; (t, s) }).collect();
            let fast = verdicts(&mut bucket(rate, depth as f64), &arrivals);
            let (mut tokens, mut last) = (u128::from(depth) * UNIT, 0u64);
            for (i, &(us, size)) in arrivals.iter().enumerate() {
                tokens = (tokens + u128::from(rate) * u128::from(us - last) * 1_000_000).min(u128::from(depth) * UNIT);
                last = us;
                let need = u128::from(size) * UNIT;
                // Within a millionth of a byte of the boundary either answer is right.
                let near = tokens.abs_diff(need) < UNIT / 1_000_000;
                let slow = if tokens >= need { Colour::IN } else { Colour::OUT };
                if !near { prop_assert_eq!(fast[i], slow); }
                if fast[i] == Colour::IN { tokens = tokens.saturating_sub(need); }
            }
        }
    }
}
