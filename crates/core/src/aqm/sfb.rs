//! SFB, Stochastic Fair BLUE: a flow that does not answer to marks is found by hashing, and let through at a set rate only.
//!
//! Each flow falls into one bin of each level, by a hash of the level's own. A bin whose packets reach `bin_size` raises
//! its probability, an empty one lowers it; an arrival is dropped with the least probability of its bins. A flow that does not
//! respond drives all its bins to 1, while others have a bin without it; who is at 1 in all is in the penalty box, whose
//! flows together get `penalty_rate`. Hashes change every `rehash`; for `warmup` before, flows in the box teach the next
//! set of bins, so that a change sets none of them free.
//! Source: Feng, Kandlur, Saha and Shin 2001, its algorithm and "moving hash functions"; as Linux's `sch_sfb` (tc-sfb(8)) has it: levels,
//! bins and defaults, `bin_max`, and above a probability of 1/2 drops take the place of marks: at p, a packet is dropped with 2(p − 1/2)
//! even where it could be marked. Otherwise than there, a new set of bins starts from 0 and counts all that waits, and the box is a
//! token bucket.
//! Non-goal: fairness among flows that respond.

use crate::prelude::*;
use crate::rng::mix;

/// Dropped with the probability of its bins.
pub const EARLY: Cause = Cause::named("early");
/// Beyond the rate of the penalty box.
pub const PENALTY: Cause = Cause::named("penalty");
/// All of its bins were at their limit.
pub const BIN_FULL: Cause = Cause::named("bin_full");

/// The most levels, and bins of a level: all are looked at, or made, at once.
const MOST: (u64, u64) = (16, 65_536);
/// Above this probability drops take the place of some marks; at 1, of all.
const HALF: f64 = 0.5;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Levels: hashes of each flow.
        levels: u64 [POSITIVE] = 8;
        /// Bins of a level.
        bins: u64 [POSITIVE] = 16;
        /// Packets of a bin from which its probability rises.
        bin_size: u64 [POSITIVE] = 20;
        /// Packets that each of a flow's bins holds when the flow's arrivals are dropped: 1.2 to 1.5 bin_size.
        bin_max: u64 [POSITIVE] = 25;
        /// What a bin's probability rises by at an arrival.
        increment: f64 [UNIT_POSITIVE] = 0.0005;
        /// What an empty bin's probability falls by at an arrival.
        decrement: f64 [UNIT_POSITIVE] = 0.00005;
        /// Packets a second that all flows in the penalty box get together.
        penalty_rate: f64 [NON_NEGATIVE] = 10.0;
        /// Packets that they may send at once.
        penalty_burst: u64 [POSITIVE] = 20;
        /// How often the hashes change.
        rehash: Duration [POSITIVE] = Duration::from_millis(600_000);
        /// For how long before that the next bins learn from the flows in the penalty box.
        warmup: Duration [NON_NEGATIVE] = Duration::from_millis(60_000);
        /// Packets of ECN-capable transports are marked rather than dropped early.
        ecn: bool = false;
    }
}

impl Build for Params {
    type Mechanism = Sfb;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let fault = |field, problem, remedy: String| Err(Fault { field, problem, remedy });
        if self.levels > MOST.0 {
            return fault(
                "levels",
                format!("{} hashes at each arrival", self.levels),
                format!("at most {}", MOST.0),
            );
        }
        if self.bins > MOST.1 {
            return fault("bins", format!("{} bins in each level", self.bins), format!("at most {}", MOST.1));
        }
        if self.bin_max < self.bin_size {
            let problem = format!(
                "bin_max ({}) is below bin_size ({}): bins would be full before their probability rises",
                self.bin_max, self.bin_size
            );
            return fault("bin_max", problem, "1.2 to 1.5 times bin_size".into());
        }
        if self.warmup >= self.rehash {
            let problem = format!("warmup ({}) is not below rehash ({})", self.warmup, self.rehash);
            return fault("warmup", problem, "a part of rehash, such as a tenth; \"0 s\" for none".into());
        }
        let mut warnings = Vec::new();
        if let Some(limit) = context.limit
            && limit.packets(context.packet) <= self.bin_size as f64
        {
            let text = format!(
                "bin_size is {} and the queue holds {limit}: it is full before a bin is, and SFB hardly ever acts",
                self.bin_size
            );
            warnings.push(Warning { field: "bin_size", text });
        }
        Ok(warnings)
    }

    fn build(&self, _: &Context) -> Sfb {
        let set = Set {
            key: 0,
            levels: vec![vec![Bin::default(); self.bins as usize].into_boxed_slice(); self.levels as usize],
        };
        let tokens = self.penalty_burst as f64;
        Sfb {
            now_used: set.clone(),
            next: set,
            keyed: false,
            warming: false,
            since: Time::ZERO,
            penalty: Penalty { tokens, at: Time::ZERO },
            p_min: 0.0,
            params: Box::new(self.clone()),
            rehashed: 0,
        }
    }
}

/// Where a part of the flows is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    /// The probability, 0 to 1.
    p: f64,
    /// Packets waiting.
    packets: u32,
}

/// The bins of all levels, under hashes of their own.
#[derive(Clone, Debug)]
struct Set {
    key: u64,
    levels: Vec<Box<[Bin]>>,
}

/// A flow's bin in a level of so many.
fn place(key: u64, level: usize, flow: FlowId, bins: usize) -> usize {
    (mix(mix(key.wrapping_add(level as u64)) ^ u64::from(flow.0)) % bins as u64) as usize
}

impl Set {
    /// The flow's bin of each level.
    fn bins(&mut self, flow: FlowId) -> impl Iterator<Item = &mut Bin> {
        let key = self.key;
        self.levels.iter_mut().enumerate().map(move |(level, bins)| {
            let at = place(key, level, flow, bins.len());
            &mut bins[at]
        })
    }

    /// The algorithm: an arrival of this flow moves its bins' probabilities. The least of them, and the fewest packets.
    fn update(&mut self, flow: FlowId, p: &Params) -> (f64, u32) {
        let (mut p_min, mut fewest) = (1.0f64, u32::MAX);
        for bin in self.bins(flow) {
            if bin.packets == 0 {
                bin.p = (bin.p - p.decrement).max(0.0);
            } else if u64::from(bin.packets) >= p.bin_size {
                bin.p = (bin.p + p.increment).min(1.0);
            }
            p_min = p_min.min(bin.p);
            fewest = fewest.min(bin.packets);
        }
        (p_min, fewest)
    }

    /// Starts over with another hash; what waits is counted.
    fn begin<Q: Queue + ?Sized>(&mut self, key: u64, queue: &Q) {
        self.key = key;
        self.levels.iter_mut().flatten().for_each(|bin| *bin = Bin::default());
        for flow in (0..queue.packets()).filter_map(|position| queue.flow_at(position)) {
            self.bins(flow).for_each(|bin| bin.packets += 1);
        }
    }
}

/// The penalty box: a token bucket for all its flows together.
#[derive(Clone, Copy, Debug)]
struct Penalty {
    tokens: f64,
    at: Time,
}

impl Penalty {
    /// Whether one of its packets may pass.
    fn passes(&mut self, now: Time, rate: f64, burst: f64) -> bool {
        self.tokens = (self.tokens + rate * now.since(self.at).secs()).min(burst);
        self.at = now;
        let passes = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(passes));
        passes
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Sfb {
    now_used: Set,
    next: Set,
    /// Whether the hashes have keys yet: the first arrival draws them.
    keyed: bool,
    /// Whether the next set learns.
    warming: bool,
    /// When the hashes changed last.
    since: Time,
    penalty: Penalty,
    /// Of the last arrival.
    p_min: f64,
    params: Box<Params>,
    /// How often the hashes changed.
    rehashed: u64,
}

impl Sfb {
    /// "Moving hash functions": changes the hashes when it is time, or lets the next set learn.
    fn move_hashes<Q: Queue + ?Sized>(&mut self, now: Time, queue: &Q, rng: &mut Rng) {
        let key = |rng: &mut Rng| rng.uniform().to_bits();
        if !self.keyed {
            self.keyed = true;
            (self.now_used.key, self.next.key) = (key(rng), key(rng));
            self.since = now;
        }
        let age = now.since(self.since);
        if age >= self.params.rehash {
            if !self.warming {
                self.next.begin(self.next.key, queue);
            }
            std::mem::swap(&mut self.now_used, &mut self.next);
            self.next.key = key(rng);
            (self.warming, self.since) = (false, now);
            self.rehashed += 1;
        } else if !self.warming && age >= Duration(self.params.rehash.0 - self.params.warmup.0) {
            self.warming = true;
            self.next.begin(self.next.key, queue);
        }
    }

    /// The verdict on an arrival that fits.
    fn decide<W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let p = &self.params;
        let (p_min, fewest) = self.now_used.update(packet.flow, p);
        self.p_min = p_min;
        why.note("p_min", p_min);
        why.note("bin_packets", f64::from(fewest));
        if u64::from(fewest) >= p.bin_max {
            return Admission::Drop(BIN_FULL);
        }
        if p_min >= 1.0 {
            if self.warming {
                self.next.update(packet.flow, p);
            }
            if self.penalty.passes(now, p.penalty_rate, p.penalty_burst as f64) {
                return Admission::Admit;
            }
            return Admission::Drop(PENALTY);
        }
        if p_min <= 0.0 {
            return Admission::Admit;
        }
        let u = rng.uniform();
        why.note("u", u);
        if u >= p_min {
            return Admission::Admit;
        }
        let too_high = u < 2.0 * (p_min - HALF);
        if p.ecn && packet.ecn.can_mark() && !too_high {
            return Admission::Mark;
        }
        Admission::Drop(EARLY)
    }
}

impl Mechanism for Sfb {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let all = || self.now_used.levels.iter().flatten();
        show("p_min", self.p_min);
        show("p_most", all().map(|bin| bin.p).fold(0.0, f64::max));
        show("bins_at_1", all().filter(|bin| bin.p >= 1.0).count() as f64);
    }
}

impl Aqm for Sfb {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.params.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        self.move_hashes(at.now, at.queue, at.rng);
        if !at.queue.fits(packet.size) {
            return Admission::Drop(Cause::OVERFLOW);
        }
        let verdict = self.decide(at.now, packet, at.rng, at.why);
        if !matches!(verdict, Admission::Drop(_)) {
            self.now_used.bins(packet.flow).for_each(|bin| bin.packets += 1);
            if self.warming {
                self.next.bins(packet.flow).for_each(|bin| bin.packets += 1);
            }
        }
        verdict
    }

    fn depart(&mut self, packet: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        // A queue taken over from another discipline has packets that no bin has counted.
        let fewer = |bin: &mut Bin| bin.packets = bin.packets.saturating_sub(1);
        self.now_used.bins(packet.flow).for_each(fewer);
        if self.warming {
            self.next.bins(packet.flow).for_each(fewer);
        }
        Departure::Send
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        let causes =
            [("early", EARLY), ("penalty", PENALTY), ("bin_full", BIN_FULL), ("overflow", Cause::OVERFLOW)];
        causes.into_iter().for_each(|(name, cause)| show(name, queue.dropped_by(cause)));
        show("marked", queue.marked());
        show("rehashed", self.rehashed);
    }
}

#[cfg(test)]
mod tests;
