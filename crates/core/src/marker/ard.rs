//! ARD, the adaptive regulating drop marker, and ARM, the same without its dropper.
//!
//! One leaky bucket serves all flows that enter at an edge router; it is filled at the temporary permitted rate (TPR). While
//! it is nearly empty, IN packets are remarked OUT at random, more likely the emptier it is, and ARD also drops a few of them.
//! A packet that leaves as IN takes a token. Greedy flows have most of their IN packets in such periods and lose most. The TPR
//! adapts to the traffic: the larger the share of OUT packets, the lower it is.
//! Source: Hur 2006 (paper A), §2.1 and Eq. (1)–(4). The bucket starts full; the paper does not say.
//! Non-goal: state per flow; a flow's own contract is left to its host's marker.

use crate::marker::EDGE;
use crate::prelude::*;
use crate::signal::TOKENS;
use crate::units::PS_PER_S;

crate::choice! {
    /// Which packets the dropper sees while the bucket is low.
    pub enum DropOrder {
        /// Every IN packet; what it leaves may be remarked.
        BeforeRemark = "before_remark",
        /// Only those that are to be remarked: some are dropped instead.
        OfRemarked = "of_remarked",
    }
}

crate::choice! {
    /// The unit of a token.
    pub enum Token {
        /// A packet, whatever its size.
        Packet = "packet",
        /// A metered byte.
        Byte = "byte",
    }
}

crate::choice! {
    /// When the bucket has run out of tokens.
    pub enum Empty {
        /// When it holds less than the packet needs: no packet is let by on credit.
        BelowOne = "below_one",
        /// When it holds nothing: the last packet may overdraw it by less than itself.
        Zero = "zero",
    }
}

crate::choice! {
    /// The floor of the TPR.
    pub enum TprFloor {
        /// Nothing: Eq. (2) alone.
        None = "none",
        /// The rate at which IN packets arrived, as Eq. (4) promises; still at most tpr_max.
        LambdaIn = "lambda_in",
    }
}

crate::params! {
    /// The operator's settings of ARD.
    pub struct Params {
        /// The most the TPR can be, and what it is at first: the bottleneck's rate.
        tpr_max: Rate [POSITIVE];
        /// The most tokens that are kept. Packets are full packets.
        bucket: Backlog [POSITIVE];
        /// Level below which IN packets are remarked and dropped at random.
        t_rd: Backlog [NON_NEGATIVE];
        /// Probability of a remark as the bucket runs out (Eq. 1).
        max_rem: f64 [UNIT] = 0.5;
        /// Probability of a drop while the bucket is low or empty.
        p_drop: f64 [UNIT] = 0.02;
        /// How often the TPR is renewed, and the time over which arrivals are measured for it (the paper's nτ).
        interval: Duration [POSITIVE] = Duration::from_millis(100_000);
        /// Whether the dropper comes before the remarking or takes its share of what is remarked.
        drop: DropOrder = DropOrder::BeforeRemark;
        /// Whether a token lets a packet by or a byte.
        token: Token = Token::Packet;
        /// Whether the bucket is out of tokens at less than a packet's worth or at nothing.
        empty: Empty = Empty::BelowOne;
        /// What the TPR never falls below.
        tpr_floor: TprFloor = TprFloor::None;
        /// Of each packet, bytes that neither meters nor tokens count: its headers, where the rates are those of payload.
        unmetered: Bytes = Bytes(0);
        /// If false it only watches: bucket and meters run, and no packet changes.
        act: bool = true;
    }
}

crate::params! {
    /// The operator's settings of ARM.
    pub struct ArmParams {
        /// The most the TPR can be, and what it is at first: the bottleneck's rate.
        tpr_max: Rate [POSITIVE];
        /// The most tokens that are kept. Packets are full packets.
        bucket: Backlog [POSITIVE];
        /// Level below which IN packets are remarked at random.
        t_rd: Backlog [NON_NEGATIVE];
        /// Probability of a remark as the bucket runs out (Eq. 1).
        max_rem: f64 [UNIT] = 0.5;
        /// How often the TPR is renewed, and the time over which arrivals are measured for it (the paper's nτ).
        interval: Duration [POSITIVE] = Duration::from_millis(100_000);
        /// Whether a token lets a packet by or a byte.
        token: Token = Token::Packet;
        /// Whether the bucket is out of tokens at less than a packet's worth or at nothing.
        empty: Empty = Empty::BelowOne;
        /// What the TPR never falls below.
        tpr_floor: TprFloor = TprFloor::None;
        /// Of each packet, bytes that neither meters nor tokens count: its headers, where the rates are those of payload.
        unmetered: Bytes = Bytes(0);
        /// If false it only watches: bucket and meters run, and no packet changes.
        act: bool = true;
    }
}

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars {
    /// Tokens at `at`: packets or bytes.
    tokens: f64,
    at: Time,
    /// Tokens a picosecond, from `tpr`.
    fill: f64,
    /// Bit/s.
    tpr: f64,
    /// Metered bytes that came since `since`: IN, OUT.
    arrived: [u64; 2],
    /// Start of the interval; `None` before the run.
    since: Option<Time>,
    /// Bit/s over the last whole interval: IN, OUT.
    lambda: [f64; 2],
}

/// Packets by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Remarked OUT while the bucket was low.
    pub remarked_early: u64,
    /// Remarked OUT because there was no token.
    pub remarked_empty: u64,
    /// Dropped while the bucket was low.
    pub dropped_low: u64,
    /// Dropped when there was no token.
    pub dropped_empty: u64,
    /// Came as IN and left as IN.
    pub passed_in: u64,
    /// Came as OUT and left so.
    pub passed_out: u64,
}

/// The marker, with or without its dropper.
#[derive(Clone, Debug)]
pub struct Ard {
    vars: Vars,
    /// In tokens.
    depth: f64,
    /// In tokens.
    t_rd: f64,
    max_rem: f64,
    p_drop: f64,
    /// Tokens in a bit.
    tokens_per_bit: f64,
    tpr_max: f64,
    interval: Duration,
    drop: DropOrder,
    token: Token,
    empty: Empty,
    tpr_floor: TprFloor,
    unmetered: u32,
    act: bool,
    stats: Stats,
}

/// Eq. (1): the lower the bucket, the likelier a remark. Only for `tokens` < `t_rd`.
#[must_use]
#[inline]
pub fn p_rem(tokens: f64, t_rd: f64, max_rem: f64) -> f64 {
    (t_rd - tokens) * max_rem / t_rd
}

/// Eq. (2): the share of `tpr_max` that IN packets had of the traffic. Keeps `old` if there was none.
#[must_use]
pub fn next_tpr(old: f64, tpr_max: f64, lambda_in: f64, lambda_out: f64, floor: TprFloor) -> f64 {
    let all = lambda_in + lambda_out;
    if all <= 0.0 {
        return old;
    }
    let tpr = tpr_max * (lambda_in / all);
    match floor {
        TprFloor::None => tpr,
        TprFloor::LambdaIn => tpr.max(lambda_in.min(tpr_max)),
    }
}

/// Tokens at `now`, having been `tokens` at `at`.
#[inline]
fn refill(tokens: f64, fill: f64, at: Time, now: Time, depth: f64) -> f64 {
    (tokens + fill * now.since(at).0 as f64).min(depth)
}

impl Build for Params {
    type Mechanism = Ard;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.unmetered.0 >= context.packet.0 {
            return Err(Fault {
                field: "unmetered",
                problem: format!(
                    "{} of a packet of {} leave nothing to count",
                    self.unmetered, context.packet
                ),
                remedy: "the headers alone, such as \"40 B\"".into(),
            });
        }
        let packet = Bytes(context.packet.0 - self.unmetered.0);
        if self.bucket.bytes(packet) < packet.0 as f64 {
            return Err(Fault {
                field: "bucket",
                problem: format!(
                    "a bucket of {} holds less than a packet of {packet}: every IN packet would be remarked",
                    self.bucket
                ),
                remedy: format!("at least \"{packet}\" or \"1 packets\""),
            });
        }
        let mut warnings = Vec::new();
        if self.t_rd.bytes(packet) > self.bucket.bytes(packet) {
            let text = format!(
                "{} is above the bucket's {}: even a full bucket counts as low",
                self.t_rd, self.bucket
            );
            warnings.push(Warning { field: "t_rd", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Ard {
        let packet = Bytes(context.packet.0.saturating_sub(self.unmetered.0).max(1));
        let tokens = |b: Backlog| match self.token {
            Token::Packet => b.packets(packet),
            Token::Byte => b.bytes(packet),
        };
        let tokens_per_bit = match self.token {
            Token::Packet => 1.0 / packet.bits() as f64,
            Token::Byte => 1.0 / 8.0,
        };
        let mut ard = Ard {
            vars: Vars {
                tokens: tokens(self.bucket),
                at: Time::ZERO,
                fill: 0.0,
                tpr: 0.0,
                arrived: [0; 2],
                since: None,
                lambda: [0.0; 2],
            },
            depth: tokens(self.bucket),
            t_rd: tokens(self.t_rd),
            max_rem: self.max_rem,
            p_drop: self.p_drop,
            tokens_per_bit,
            tpr_max: self.tpr_max.0 as f64,
            interval: self.interval,
            drop: self.drop,
            token: self.token,
            empty: self.empty,
            tpr_floor: self.tpr_floor,
            unmetered: u32::try_from(self.unmetered.0).unwrap_or(u32::MAX),
            act: self.act,
            stats: Stats::default(),
        };
        ard.set_tpr(self.tpr_max.0 as f64);
        ard
    }
}

impl ArmParams {
    /// ARM is ARD that never drops.
    fn as_ard(&self) -> Params {
        let ArmParams { tpr_max, bucket, t_rd, max_rem, interval, token, empty, tpr_floor, unmetered, act } =
            *self;
        let (p_drop, drop) = (0.0, DropOrder::BeforeRemark);
        Params {
            tpr_max,
            bucket,
            t_rd,
            max_rem,
            p_drop,
            interval,
            drop,
            token,
            empty,
            tpr_floor,
            unmetered,
            act,
        }
    }
}

impl Build for ArmParams {
    type Mechanism = Ard;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        self.as_ard().check(context)
    }

    fn build(&self, context: &Context) -> Ard {
        self.as_ard().build(context)
    }
}

impl Ard {
    fn set_tpr(&mut self, tpr: f64) {
        self.vars.tpr = tpr;
        self.vars.fill = tpr * self.tokens_per_bit / PS_PER_S as f64;
    }

    #[inline]
    fn tokens_at(&self, now: Time) -> f64 {
        let v = &self.vars;
        refill(v.tokens, v.fill, v.at, now, self.depth)
    }

    /// §2.1: an IN packet that finds the bucket at its present level.
    #[inline]
    fn regulate<W: Why + ?Sized>(&mut self, need: f64, rng: &mut Rng, why: &mut W) -> Mark {
        let tokens = self.vars.tokens;
        let s = &mut self.stats;
        let out_of_tokens = match self.empty {
            Empty::BelowOne => tokens < need,
            Empty::Zero => tokens <= 0.0,
        };
        if out_of_tokens {
            if self.act && rng.chance("u_drop", self.p_drop, why) {
                s.dropped_empty += 1;
                return Mark::Drop(EDGE);
            }
            if self.act {
                s.remarked_empty += 1;
                return Mark::Pass(Colour::OUT);
            }
            s.passed_in += 1;
            return Mark::Pass(Colour::IN);
        }
        if self.act && tokens < self.t_rd {
            let p_rem = p_rem(tokens, self.t_rd, self.max_rem);
            why.note("p_rem", p_rem);
            let (drop, remark) = match self.drop {
                DropOrder::BeforeRemark => {
                    let drop = rng.chance("u_drop", self.p_drop, why);
                    (drop, !drop && rng.chance("u_rem", p_rem, why))
                }
                DropOrder::OfRemarked => {
                    let chosen = rng.chance("u_rem", p_rem, why);
                    let drop = chosen && rng.chance("u_drop", self.p_drop, why);
                    (drop, chosen && !drop)
                }
            };
            if drop {
                s.dropped_low += 1;
                return Mark::Drop(EDGE);
            }
            if remark {
                s.remarked_early += 1;
                return Mark::Pass(Colour::OUT);
            }
        }
        self.vars.tokens -= need;
        s.passed_in += 1;
        Mark::Pass(Colour::IN)
    }
}

impl Mechanism for Ard {
    /// Renews the TPR from what came since the last time.
    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        let elapsed = self.vars.since.map(|since| now.since(since));
        if let Some(elapsed) = elapsed.filter(|e| *e > Duration::ZERO) {
            self.vars.tokens = self.tokens_at(now);
            self.vars.at = now;
            let lambda = self.vars.arrived.map(|bytes| bytes as f64 * 8.0 / elapsed.secs());
            self.vars.lambda = lambda;
            self.set_tpr(next_tpr(self.vars.tpr, self.tpr_max, lambda[0], lambda[1], self.tpr_floor));
        }
        self.vars.arrived = [0; 2];
        self.vars.since = Some(now);
        Some(now + self.interval)
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        if signal.topic == TOKENS {
            self.vars.tokens = self.tokens_at(now).min(signal.value.max(0.0));
            self.vars.at = now;
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        show("tokens", self.tokens_at(now));
        show("tpr", self.vars.tpr);
        show("lambda_in", self.vars.lambda[0]);
        show("lambda_out", self.vars.lambda[1]);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let s = &self.stats;
        show("remarked_early", s.remarked_early);
        show("remarked_empty", s.remarked_empty);
        show("dropped_low", s.dropped_low);
        show("dropped_empty", s.dropped_empty);
        show("passed_in", s.passed_in);
        show("passed_out", s.passed_out);
    }
}

impl Marker for Ard {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        self.vars.tokens = self.tokens_at(now);
        self.vars.at = now;
        why.note("tokens", self.vars.tokens);
        why.note("tpr", self.vars.tpr);
        let is_in = packet.colour.is_in();
        let metered = packet.size.saturating_sub(self.unmetered);
        self.vars.arrived[usize::from(!is_in)] += u64::from(metered);
        if !is_in {
            self.stats.passed_out += 1;
            return Mark::Pass(packet.colour);
        }
        let need = match self.token {
            Token::Packet => 1.0,
            Token::Byte => f64::from(metered),
        };
        self.regulate(need, rng, why)
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
