//! RIO, RED with IN and OUT: two REDs in one queue, so that OUT packets go first.
//!
//! An IN packet is tested by the average of the IN packets waiting, an OUT packet by the average of all:
//! as the queue grows OUT packets are dropped early, then all of them, and only what IN packets
//! themselves build up costs IN packets. Each colour has its own curve and its own count.
//! Source: Clark and Fang 1998, §III.B; curve, count and idle time as in [RED](super::red).
//! Link idle time ages both averages, at whichever arrival ends it. Out of profile is every colour but green.
//! Non-goal: more than two drop precedences (WRED, RIO-C with three).

use crate::aqm::Aqm;
use crate::aqm::curve::{
    self, Countdown, Curve, Found, Law, Paths, Rule, Scale, Variant, admission, check_thresholds,
};
use crate::estimate::ewma::{QueueAverage, Weight};
use crate::marker::Gauge;
use crate::packet::{Colour, Ecn, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::{Backlog, Bytes, Time};
use crate::verdict::{Admission, Cause, Why};

crate::choice! {
    /// At which arrivals the averages take a sample.
    pub enum AvgUpdate {
        /// The total at every arrival, IN's at IN arrivals (Clark and Fang 1998).
        ClarkFang = "clark_fang",
        /// Both at every arrival.
        EveryArrival = "every_arrival",
        /// Both at IN arrivals only: a known fault of ns-2's Queue/RED/RIO.
        Ns2 = "ns2",
    }
}

crate::params! {
    /// The curve of one colour.
    pub struct Thresholds {
        /// Average below which nothing of this colour is dropped. All thresholds have one unit, packets or bytes.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
    }
}

crate::params! {
    /// What an operator sets.
    pub struct Params {
        /// For IN packets, on the average of IN packets waiting.
        r#in: Thresholds;
        /// For OUT packets, on the average of all packets waiting.
        out: Thresholds;
        /// Weight of the newest sample in both averages.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = false;
        /// After a drop, at least 1/p packets of the colour are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// At which arrivals the averages take a sample.
        avg_update: AvgUpdate = AvgUpdate::ClarkFang;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Typical size on the wire: how fast an idle link ages the averages, and what byte_scaled divides
        /// by. Left out: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
        /// Floyd and Jacobson's algorithm for curve, count and idle time, or ns-2's.
        variant: Variant = Variant::Floyd93;
    }
}

/// What one colour goes by.
#[derive(Clone, Debug)]
struct Group {
    average: QueueAverage,
    curve: Curve,
    count: Countdown,
}

/// All that an arrival touches where nothing is dropped: two cache lines.
#[derive(Clone, Debug)]
pub struct Vars {
    /// Average of IN packets, curve and count of IN.
    r#in: Group,
    /// Average of all packets, curve and count of OUT.
    out: Group,
    weight: Weight,
    rule: Rule,
    avg_update: AvgUpdate,
    /// `avg_update = ns2`: start of an idle stretch that an OUT packet ended and no IN packet has seen yet;
    /// [`Time::NEVER`]: there is none.
    unseen_idle: Time,
}

/// Packets of one colour by what happened to them; the rest joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Dropped by chance.
    pub early: u64,
    /// Dropped because the average was above the curve's end.
    pub forced: u64,
    /// Dropped because the queue was full.
    pub overflow: u64,
    /// Marked congestion experienced.
    pub marked: u64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Rio {
    vars: Vars,
    /// OUT, IN.
    stats: [Stats; 2],
    ecn: bool,
    /// A typical packet, if the probability is scaled by size.
    mean: Option<u32>,
}

impl Build for Params {
    type Mechanism = Rio;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "in.min_th", max_th: "in.max_th" };
        check_thresholds(self.r#in.min_th, self.r#in.max_th, paths, context, &mut warnings)?;
        let paths = Paths { min_th: "out.min_th", max_th: "out.max_th" };
        check_thresholds(self.out.min_th, self.out.max_th, paths, context, &mut warnings)?;
        if !self.r#in.min_th.same_unit(self.out.min_th) {
            return Err(Fault {
                field: "out.min_th",
                problem: format!(
                    "in.min_th is {} and out.min_th is {}: the averages have one unit",
                    self.r#in.min_th, self.out.min_th
                ),
                remedy: "all four thresholds in packets, or all in bytes".into(),
            });
        }
        if self.r#in.min_th.amount() < self.out.max_th.amount() {
            let text = format!(
                "in.min_th ({}) is below out.max_th ({}): IN packets may be dropped while OUT packets still join",
                self.r#in.min_th, self.out.max_th
            );
            warnings.push(Warning { field: "in.min_th", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Rio {
        let mean = self.mean_packet.unwrap_or(context.packet);
        let law = match self.variant {
            Variant::Floyd93 => Law::Floyd93,
            Variant::Ns2 => Law::Ns2Rio,
        };
        let group = |t: &Thresholds| Group {
            average: QueueAverage::default(),
            curve: Curve { min_th: t.min_th.amount(), max_th: t.max_th.amount(), max_p: t.max_p },
            count: Countdown::default(),
        };
        let in_bytes = matches!(self.out.min_th, Backlog::Bytes(_));
        Rio {
            vars: Vars {
                r#in: group(&self.r#in),
                out: group(&self.out),
                weight: Weight::new(self.w_q, context.link_rate, mean),
                rule: Rule { law, gentle: self.gentle, wait: self.wait, in_bytes },
                avg_update: self.avg_update,
                unseen_idle: Time::NEVER,
            },
            stats: [Stats::default(); 2],
            ecn: self.ecn,
            mean: self.byte_scaled.then(|| curve::size_of(mean)),
        }
    }
}

impl Vars {
    /// Brings the averages up to date with an arrival that found `all` and `ins` waiting.
    #[inline]
    fn update(&mut self, now: Time, is_in: bool, all: f64, ins: f64, idle: Option<Time>) {
        let w = &self.weight;
        let ns2 = self.rule.law != Law::Floyd93;
        let sample = |a: &mut QueueAverage, q, idle| match ns2 {
            true => a.sample_ns2(w, now, q, idle),
            false => a.sample(w, now, q, idle),
        };
        match self.avg_update {
            AvgUpdate::Ns2 if !is_in => self.unseen_idle = idle.unwrap_or(self.unseen_idle),
            AvgUpdate::Ns2 => {
                sample(&mut self.out.average, all, idle);
                let unseen = std::mem::replace(&mut self.unseen_idle, Time::NEVER);
                let unseen = (unseen != Time::NEVER).then_some(unseen);
                sample(&mut self.r#in.average, ins, idle.or(unseen));
            }
            AvgUpdate::ClarkFang if !is_in => {
                sample(&mut self.out.average, all, idle);
                if let Some(since) = idle {
                    let a = &mut self.r#in.average;
                    if ns2 { a.age_ns2(w, now, since) } else { a.age(w, now, since) }
                }
            }
            AvgUpdate::ClarkFang | AvgUpdate::EveryArrival => {
                sample(&mut self.out.average, all, idle);
                sample(&mut self.r#in.average, ins, idle);
            }
        }
    }
}

impl Aqm for Rio {
    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let v = &mut self.vars;
        let is_in = packet.colour.is_in();
        let (all, ins) = if v.rule.in_bytes {
            (queue.bytes() as f64, queue.bytes_of(Colour::IN) as f64)
        } else {
            (f64::from(queue.packets()), f64::from(queue.packets_of(Colour::IN)))
        };
        v.update(now, is_in, all, ins, queue.idle_since());
        why.note("queued", all);
        why.note("queued_in", ins);
        why.note("avg", v.out.average.get());
        why.note("avg_in", v.r#in.average.get());
        let (group, queued) = if is_in { (&mut v.r#in, ins) } else { (&mut v.out, all) };
        let scale = self.mean.map(|mean| Scale { size: packet.size, mean });
        let found = Found { avg: group.average.get(), queued, scale };
        let fate = group.count.test(&group.curve, v.rule, found, rng, why);
        let can_mark = self.ecn && packet.ecn != Ecn::NotCapable;
        let verdict = admission(fate, v.rule.law, can_mark, queue.fits(packet.size));
        let stats = &mut self.stats[usize::from(is_in)];
        // ns-2: a forced drop or an overflow restarts IN's count, but not OUT's.
        let restarts = is_in || v.rule.law == Law::Floyd93;
        match verdict {
            Admission::Admit => return verdict,
            Admission::Mark => stats.marked += 1,
            Admission::Drop(Cause::Early) => stats.early += 1,
            Admission::Drop(cause) => {
                *(if cause == Cause::Forced { &mut stats.forced } else { &mut stats.overflow }) += 1;
                if restarts {
                    group.count.restart();
                }
            }
        }
        verdict
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let v = &self.vars;
        show("avg", v.out.average.get());
        show("avg_in", v.r#in.average.get());
        show("p_b_in", v.r#in.curve.p_b(v.r#in.average.get(), v.rule.gentle));
        show("p_b_out", v.out.curve.p_b(v.out.average.get(), v.rule.gentle));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let [out, r#in] = self.stats;
        show("early_in", r#in.early);
        show("early_out", out.early);
        show("forced_in", r#in.forced);
        show("forced_out", out.forced);
        show("overflow_in", r#in.overflow);
        show("overflow_out", out.overflow);
        show("marked_in", r#in.marked);
        show("marked_out", out.marked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::oracle::{Past, Sample, average, p_a};
    use crate::aqm::red::{self, Red};
    use crate::queue::fake::Fake;
    use crate::rng::Rng;
    use crate::units::{Duration, Rate};
    use crate::verdict::{Notes, Silent};
    use Admission::{Admit, Drop};
    use Colour::{Green as I, Red as R, Yellow as O};
    use proptest::prelude::*;

    /// 1,000 packets a second.
    const CONTEXT: Context =
        Context { link_rate: Some(Rate(8_000_000)), contract: None, packet: Bytes(1000), limit: None };

    fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
        Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
    }

    /// Thresholds of paper A, Fig. 3(a).
    fn params(w_q: f64) -> Params {
        Params {
            r#in: thresholds(45.0, 60.0, 0.02),
            out: thresholds(20.0, 40.0, 0.05),
            w_q,
            gentle: false,
            wait: false,
            ecn: false,
            avg_update: AvgUpdate::ClarkFang,
            byte_scaled: false,
            mean_packet: None,
            variant: Variant::Floyd93,
        }
    }

    fn arrive(rio: &mut Rio, at: u64, colour: Colour, queue: &mut Fake, rng: &mut Rng) -> Admission {
        let packet = Packet { size: 1000, colour, ..Packet::default() };
        rio.arrive(Time(at), &packet, queue, rng, &mut Silent)
    }

    /// (colour, IN waiting, OUT waiting) → verdict; with w_q = 1 the averages are the lengths.
    #[test]
    fn golden_sequence() {
        let forced = Drop(Cause::Forced);
        let script = [
            (O, 0, 19, Admit),   // below min_OUT
            (O, 10, 30, forced), // 40 in all: max_OUT, however few of them are OUT
            (R, 40, 0, forced),  // red is out of profile too
            (I, 44, 50, Admit),  // IN looks at IN packets alone
            (I, 60, 0, forced),
            (O, 0, 20, Admit), // at min_OUT p = 0
            (I, 45, 0, Admit), // at min_IN p = 0
        ];
        for (colour, ins, outs, verdict) in script {
            let mut rio = params(1.0).build(&CONTEXT);
            let mut rng = Rng::for_component(1, "rio");
            let got = arrive(&mut rio, 0, colour, &mut Fake::of(ins, outs), &mut rng);
            assert_eq!(got, verdict, "{colour:?} at {ins} + {outs}");
        }
    }

    /// OUT and IN in turn find 14 IN and 6 OUT packets: p_b = 0.3 and 0.12. As drawn from the stream of seed 1.
    #[test]
    fn golden_draws() {
        let (r#in, out) = (thresholds(10.0, 20.0, 0.3), thresholds(5.0, 25.0, 0.4));
        let mut rio = Params { r#in, out, ..params(1.0) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio");
        let text: String = (0..100)
            .map(|i| {
                let (colour, joined, dropped) = if i % 2 == 0 { (O, 'O', 'o') } else { (I, 'I', 'i') };
                let admitted = arrive(&mut rio, i, colour, &mut Fake::of(14, 6), &mut rng) == Admit;
                if admitted { joined } else { dropped }
            })
            .collect();
        let first = "oIOIoiOIoIOIOIoIOioIoIOIoIoIOioIoIOIoIoIOiOIoIOIoI";
        let second = "OioIoIoiOIOioIoiOIoIoIOIoIoIOIoiOIoIOIoiOIoIOIoiOI";
        assert_eq!(text, [first, second].concat());
    }

    #[test]
    fn an_arrival_touches_two_cache_lines() {
        assert!(size_of::<Vars>() <= 128, "{} bytes", size_of::<Vars>());
    }

    /// avg_total and avg_in after one OUT and then one IN arrival that find 8 IN and 4 OUT packets, w_q = ½.
    #[test]
    fn averages_by_option() {
        let after = |avg_update| {
            let mut rio = Params { avg_update, ..params(0.5) }.build(&CONTEXT);
            let mut rng = Rng::for_component(1, "rio");
            [O, I].map(|colour| {
                arrive(&mut rio, 0, colour, &mut Fake::of(8, 4), &mut rng);
                (rio.vars.out.average.get(), rio.vars.r#in.average.get())
            })
        };
        assert_eq!(after(AvgUpdate::ClarkFang), [(6.0, 0.0), (9.0, 4.0)]);
        assert_eq!(after(AvgUpdate::EveryArrival), [(6.0, 4.0), (9.0, 6.0)]);
        assert_eq!(after(AvgUpdate::Ns2), [(0.0, 0.0), (6.0, 4.0)]);
    }

    /// An idle stretch that an OUT packet ends ages IN's average all the same.
    #[test]
    fn idle_time_ages_both_averages() {
        for avg_update in [AvgUpdate::ClarkFang, AvgUpdate::EveryArrival] {
            let mut rio = Params { avg_update, ..params(0.5) }.build(&CONTEXT);
            let mut rng = Rng::for_component(1, "rio");
            arrive(&mut rio, 0, I, &mut Fake::of(8, 4), &mut rng);
            let ms = 1_000_000_000;
            let mut idle = Fake { idle: Some(Time(10 * ms)), ..Fake::of(0, 0) };
            arrive(&mut rio, 12 * ms, O, &mut idle, &mut rng);
            assert_eq!((rio.vars.out.average.get(), rio.vars.r#in.average.get()), (1.5, 1.0));
        }
    }

    #[test]
    fn odd_parameters_are_refused_or_remarked_on() {
        let fields = |p: &Params| {
            let limit = Some(Backlog::Packets(100.0));
            p.check(&Context { limit, ..CONTEXT })
                .map(|w| w.iter().map(|w| w.field).collect::<Vec<_>>())
                .map_err(|f| f.field)
        };
        assert_eq!(fields(&params(0.002)), Ok(vec![]));
        let overlap = Params { r#in: thresholds(30.0, 60.0, 0.02), ..params(0.002) };
        assert_eq!(fields(&overlap), Ok(vec!["in.min_th"]));
        let high = Params { r#in: thresholds(170.5, 300.0, 0.02), ..params(0.002) };
        assert_eq!(fields(&high), Ok(vec!["in.min_th", "in.min_th", "in.max_th"]));
        let crossed = Params { out: thresholds(40.0, 20.0, 0.02), ..params(0.002) };
        assert_eq!(fields(&crossed), Err("out.min_th"));
        let bytes = Thresholds {
            min_th: Backlog::Bytes(20_000.0),
            max_th: Backlog::Bytes(40_000.0),
            ..thresholds(0.0, 0.0, 0.05)
        };
        assert_eq!(fields(&Params { out: bytes, ..params(0.002) }), Err("out.min_th"));
    }

    /// A RED with the thresholds of one colour.
    fn red_of(t: &Thresholds, p: &Params) -> Red {
        let Thresholds { min_th, max_th, max_p } = t.clone();
        let Params { w_q, gentle, wait, ecn, byte_scaled, mean_packet, variant, .. } = *p;
        red::Params { min_th, max_th, max_p, w_q, gentle, wait, ecn, byte_scaled, mean_packet, variant }
            .build(&CONTEXT)
    }

    /// Microseconds since the last arrival, colour, IN and OUT packets waiting, share of the time idle.
    type Step = (u64, Colour, u32, u32, Option<f64>);

    fn arrivals() -> impl Strategy<Value = Vec<Step>> {
        let colour = prop::sample::select(vec![I, O, R]);
        let step = (0u64..20_000, colour, 0u32..80, 0u32..60, prop::option::weighted(0.1, 0f64..=1.0));
        prop::collection::vec(step, 1..300)
    }

    fn queue_of(now: u64, gap: u64, ins: u32, outs: u32, idle: Option<f64>) -> (Fake, Option<u64>) {
        let ps = idle.map(|share| (share * gap as f64 * 1e6) as u64);
        let queue = match ps {
            Some(ps) => Fake { idle: Some(Time(now) - Duration(ps)), ..Fake::of(0, 0) },
            None => Fake::of(ins, outs),
        };
        (queue, ps)
    }

    proptest! {
        /// Where all packets are of one colour, RIO is a RED with that colour's thresholds.
        #[test]
        fn one_colour_alone_is_red(steps in arrivals(), out: bool, gentle: bool, wait: bool, every: bool,
                                   w_q in 0.01f64..=1.0, seed: u64) {
            let avg_update = if every { AvgUpdate::EveryArrival } else { AvgUpdate::ClarkFang };
            let p = Params { gentle, wait, avg_update, ..params(w_q) };
            let (mut rio, mut red) = (p.build(&CONTEXT), red_of(if out { &p.out } else { &p.r#in }, &p));
            let colour = if out { O } else { I };
            let (mut a, mut b) = (Rng::for_component(seed, "rio"), Rng::for_component(seed, "rio"));
            let mut now = 0;
            for (gap, _, ins, outs, idle) in steps {
                now += gap * 1_000_000;
                let (ins, outs) = if out { (0, outs) } else { (ins, 0) };
                let (mut queue, _) = queue_of(now, gap, ins, outs, idle);
                let packet = Packet { size: 1000, colour, ..Packet::default() };
                let one = rio.arrive(Time(now), &packet, &mut queue, &mut a, &mut Silent);
                let other = red.arrive(Time(now), &packet, &mut queue, &mut b, &mut Silent);
                prop_assert_eq!(one, other);
            }
        }

        /// Everything recomputed from the whole past, at every arrival.
        #[test]
        fn agrees_with_the_oracle(steps in arrivals(), gentle: bool, wait: bool, every: bool,
                                  w_q in 0.01f64..=1.0, seed: u64) {
            let avg_update = if every { AvgUpdate::EveryArrival } else { AvgUpdate::ClarkFang };
            let p = Params { gentle, wait, avg_update, ..params(w_q) };
            let mut rio = p.build(&CONTEXT);
            let mut rng = Rng::for_component(seed, "rio");
            let (mut all, mut ins_only) = (Vec::new(), Vec::new());
            let (mut past_in, mut past_out) = (Vec::<Past>::new(), Vec::<Past>::new());
            let mut now = 0;
            for (gap, colour, ins, outs, idle) in steps {
                now += gap * 1_000_000;
                let (mut queue, idle) = queue_of(now, gap, ins, outs, idle);
                let mut slow_rng = rng.clone();
                let mut notes = Notes::default();
                let packet = Packet { size: 1000, colour, ..Packet::default() };
                let fast = rio.arrive(Time(now), &packet, &mut queue, &mut rng, &mut notes);

                let sample = |q: u32| idle.map_or(Sample::Length(f64::from(q)), |ps| Sample::Idle(ps as f64 * 1e-9));
                all.push(sample(ins + outs));
                if colour == I || every || idle.is_some() { ins_only.push(sample(ins)); }
                let group = if colour == I { &rio.vars.r#in } else { &rio.vars.out };
                let samples = if colour == I { &ins_only } else { &all };
                let avg = group.average.get();
                prop_assert!((average(samples, w_q) - avg).abs() < 1e-9);
                let past = if colour == I { &mut past_in } else { &mut past_out };
                let p = p_a(past, avg, &group.curve, gentle, wait);
                let noted = notes.items().iter().find(|(n, _)| *n == "p_a").map(|(_, v)| *v);
                if let Some(noted) = noted { prop_assert!((noted - p).abs() < 1e-9); }
                let p = noted.unwrap_or(p);
                let picked = p >= 1.0 || p > 0.0 && slow_rng.uniform() < p;
                let end = group.curve.max_th * if gentle { 2.0 } else { 1.0 };
                let slow = match picked {
                    true if avg >= end => Drop(Cause::Forced),
                    true => Drop(Cause::Early),
                    false => Admit,
                };
                prop_assert_eq!(fast, slow);
                past.push(Past { avg, dropped: fast != Admit });
            }
            let mut counted = 0;
            Aqm::stats(&rio, &mut |_, n| counted += n);
            let dropped = past_in.iter().chain(&past_out).filter(|p| p.dropped).count();
            prop_assert_eq!(counted, dropped as u64);
        }
    }
}
