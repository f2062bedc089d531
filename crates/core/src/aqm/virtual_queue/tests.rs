use std::collections::VecDeque;

use super::*;
use crate::aqm::red::common::{Common, Thresholds};
use crate::params::{Field, Kind, Params as _, fields};
use crate::testing::*;
use crate::units::PS_PER_S;

/// A thousand full packets a second, on a link of twice that.
const RATE: Rate = Rate(8_000_000);
pub(crate) const CONTEXT: Context = Context {
    link_rate: Some(Rate(16_000_000)),
    contract: None,
    packet: Bytes(1000),
    limit: Some(Backlog::Packets(1000.0)),
};

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
    Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
}

fn common(w_q: f64) -> Common {
    Common { w_q, gentle: false, wait: false, ecn: true, mean_packet: None }
}

pub(crate) fn red(w_q: f64) -> red::Params {
    let (min_th, max_th) = (Backlog::Packets(5.0), Backlog::Packets(15.0));
    let common = common(w_q);
    red::Params { min_th, max_th, max_p: 0.5, byte_scaled: false, drop: DropAt::Tail, common }
}

pub(crate) fn wred(averages: wred::Averages) -> wred::Params {
    wred::Params {
        green: thresholds(15.0, 25.0, 0.1),
        yellow: thresholds(4.0, 15.0, 0.3),
        red: None,
        green_ecn: None,
        yellow_ecn: None,
        red_ecn: None,
        averages,
        common: common(0.02),
    }
}

pub(crate) fn rio() -> rio::Params {
    rio::Params {
        r#in: thresholds(12.0, 20.0, 0.1),
        out: thresholds(4.0, 12.0, 0.3),
        avg_update: rio::AvgUpdate::ClarkFang,
        count: rio::Counted::Own,
        byte_scaled: false,
        watch: false,
        common: common(0.02),
    }
}

pub(crate) fn params(law: Law) -> Params {
    Params {
        virtual_rate: RATE,
        virtual_limit: Backlog::Packets(30.0),
        law,
        red: (law == Law::Red).then(|| red(0.02)),
        ared: None,
        rio: (law == Law::Rio).then(rio),
        rio_plus_out: None,
        wred: (law == Law::Wred).then(|| wred(wred::Averages::Shared)),
    }
}

/// First in, first out, byte by byte at the rate: what is left of each packet, in the counter's units.
#[derive(Default)]
struct Bytewise {
    waiting: VecDeque<(Colour, u128)>,
    last: u64,
    /// When the last byte of what waited was sent.
    empty_since: Option<Time>,
}

const BYTE: u128 = 8 * PS_PER_S as u128;

impl Bytewise {
    fn drain(&mut self, now: u64) {
        let mut credit = u128::from(RATE.0) * u128::from(now - self.last);
        let (mut spent, was) = (0, self.waiting.len());
        while let Some((_, left)) = self.waiting.front_mut() {
            let part = credit.min(*left);
            credit -= part;
            *left -= part;
            spent += part;
            if *left > 0 {
                break;
            }
            self.waiting.pop_front();
        }
        if was > 0 && self.waiting.is_empty() {
            self.empty_since = Some(Time(self.last + spent.div_ceil(u128::from(RATE.0)) as u64));
        }
        self.last = now;
    }

    fn level(&self) -> u128 {
        self.waiting.iter().map(|(_, left)| left).sum()
    }

    fn of(&self, colour: Colour) -> f64 {
        self.waiting.iter().filter(|(c, _)| *c == colour).map(|(_, left)| *left as f64 / BYTE as f64).sum()
    }
}

/// Gaps up to a few packet times, now and then long ones; sizes; colours; ECN.
fn arrivals(n: usize) -> impl Strategy<Value = Vec<(u64, u32, usize, bool)>> {
    let gap = prop_oneof![8 => 0..1_200_000_000u64, 1 => 0..60_000_000_000u64];
    prop::collection::vec((gap, 40..1500u32, 0..3usize, any::<bool>()), n)
}

pub(crate) fn packet(size: u32, colour: Colour, ecn: bool) -> Packet {
    let ecn = if ecn { Ecn::Ect0 } else { Ecn::NotCapable };
    Packet { flow: FlowId(1), size, colour, ecn, ..Packet::default() }
}

proptest! {
    /// The sum is that of a byte-wise queue to the last unit, and so is the moment at which it empties. Within one colour the
    /// parts are, too; of several, none is negative and they make up the whole.
    #[test]
    fn the_counter_is_a_bytewise_queue(arrivals in arrivals(200), one_colour in any::<bool>()) {
        let (mut counter, mut oracle) = (
            VirtualBacklog::new(RATE, Backlog::Packets(1000.0), Bytes(1000)),
            Bytewise { empty_since: Some(Time::ZERO), ..Bytewise::default() },
        );
        let mut now = 0;
        for (gap, size, colour, _) in arrivals {
            now += gap;
            let colour = Colour::ALL[if one_colour { 0 } else { colour }];
            counter.drain(Time(now));
            oracle.drain(now);
            prop_assert_eq!(counter.level(), oracle.level());
            prop_assert_eq!(counter.idle_since(), oracle.empty_since.filter(|_| oracle.level() == 0));
            let parts = Colour::ALL.map(|c| counter.length_of(c, true));
            prop_assert!(parts.iter().all(|part| *part >= 0.0));
            prop_assert!((parts.iter().sum::<f64>() - counter.length(true)).abs() < 1e-6);
            if one_colour {
                prop_assert!((parts[0] - oracle.of(Colour::Green)).abs() < 1e-6);
            }
            counter.add(Time(now), size, colour);
            oracle.waiting.push_back((colour, u128::from(size) * BYTE));
            oracle.empty_since = None;
        }
    }
}

/// What a law sees of the byte-wise queue.
struct Seen(Fake, f64);

impl Queue for Seen {
    fn length(&self, in_bytes: bool) -> f64 {
        if in_bytes { self.1 } else { self.1 / 1000.0 }
    }
    fn length_of(&self, _: Colour, in_bytes: bool) -> f64 {
        // Laws with one average add up the colours.
        self.length(in_bytes) / 3.0
    }
    fn fits(&self, size: u32) -> bool {
        self.1 + f64::from(size) <= 30_000.0
    }
    fn idle_since(&self) -> Option<Time> {
        self.0.idle
    }
    fn packets(&self) -> u32 {
        self.0.packets()
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn packets_of(&self, colour: Colour) -> u32 {
        self.0.packets_of(colour)
    }
    fn bytes_of(&self, colour: Colour) -> u64 {
        self.0.bytes_of(colour)
    }
    fn limit(&self) -> Backlog {
        Backlog::Bytes(30_000.0)
    }
}

/// The verdicts of a law before a real, byte-wise queue of the virtual rate.
fn real(law: &mut impl Aqm, arrivals: &[(u64, u32, usize, bool)]) -> Vec<Admission> {
    let mut rng = Rng::for_component(7, "law");
    let mut queue = Bytewise { empty_since: Some(Time::ZERO), ..Bytewise::default() };
    let mut now = 0;
    let mut verdict = |&(gap, size, colour, ecn): &(u64, u32, usize, bool)| {
        now += gap;
        queue.drain(now);
        let idle = queue.empty_since.filter(|_| queue.level() == 0);
        let mut seen = Seen(Fake { idle, ..Fake::of(0, 0) }, queue.level() as f64 / BYTE as f64);
        let colour = Colour::ALL[colour];
        let verdict = law.arrive(&packet(size, colour, ecn), At::silent(Time(now), &mut seen, &mut rng));
        if !matches!(verdict, Admission::Drop(_)) {
            queue.waiting.push_back((colour, u128::from(size) * BYTE));
            queue.empty_since = None;
        }
        verdict
    };
    arrivals.iter().map(&mut verdict).collect()
}

/// Those of a virtual queue, in front of a real one that is ample.
fn virtually(params: &Params, arrivals: &[(u64, u32, usize, bool)]) -> Vec<Admission> {
    let mut aqm = params.build(&CONTEXT);
    let mut rng = Rng::for_component(7, "law");
    let mut now = 0;
    let mut verdict = |&(gap, size, colour, ecn): &(u64, u32, usize, bool)| {
        now += gap;
        let packet = packet(size, Colour::ALL[colour], ecn);
        match aqm.arrive(&packet, At::silent(Time(now), &mut Fake::of(0, 0), &mut rng)) {
            Admission::Drop(POLICED) => Admission::Drop(Cause::OVERFLOW),
            verdict => verdict,
        }
    };
    arrivals.iter().map(&mut verdict).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every law with one average gives, arrival by arrival, the verdicts that it gives before a byte-wise first-in-first-out queue of
    /// the virtual rate, draw by draw.
    #[test]
    fn verdicts_are_those_of_a_real_queue_of_the_rate(arrivals in arrivals(400)) {
        let place = params(Law::Red).place(&CONTEXT);
        let virtual_red = virtually(&params(Law::Red), &arrivals);
        prop_assert_eq!(&virtual_red, &real(&mut red(0.02).build(&place), &arrivals));
        let virtual_wred = virtually(&params(Law::Wred), &arrivals);
        // A sum of three parts is rounded elsewhere: w_q = 0.02 does not carry 1e-12 of a packet to another verdict.
        prop_assert_eq!(&virtual_wred, &real(&mut wred(wred::Averages::Shared).build(&place), &arrivals));
        let drop_tail = virtually(&params(Law::DropTail), &arrivals);
        prop_assert_eq!(&drop_tail, &real(&mut DropTail::default(), &arrivals));
    }

    /// In any stretch of time no more is accepted than the rate lets by and the virtual queue holds; and at a link of at least
    /// that rate no more ever waits, the packet in transmission included, than in the virtual queue.
    #[test]
    fn no_more_is_accepted_than_rate_and_limit_allow(arrivals in arrivals(300), law in 0..3usize, from in 0..300usize) {
        let params = params([Law::DropTail, Law::Red, Law::Rio][law]);
        let verdicts = virtually(&params, &arrivals);
        let (mut begun, mut now, mut accepted) = (None, 0u64, 0u128);
        for ((gap, size, ..), verdict) in arrivals.iter().zip(verdicts).skip(from) {
            now = if begun.is_some() { now + gap } else { 0 };
            begun = Some(());
            if !matches!(verdict, Admission::Drop(_)) {
                accepted += u128::from(*size) * BYTE;
            }
            let allowed = u128::from(RATE.0) * u128::from(now) + 30_000 * BYTE;
            prop_assert!(accepted <= allowed, "{accepted} of {allowed}");
        }
    }

    /// A real first-in-first-out queue does not count the packet in transmission: with the same packets, at the same rate, its length is at
    /// most the virtual one, and less by at most that packet.
    #[test]
    fn a_real_queue_is_shorter_by_the_packet_in_transmission(arrivals in arrivals(200)) {
        let mut counter = VirtualBacklog::new(RATE, Backlog::Packets(1000.0), Bytes(1000));
        let mut fifo: Fifo<Stamped> = Fifo::new(Backlog::Packets(1000.0));
        let mut aqm = AnyAqm::DropTail(DropTail::default());
        let mut rng = Rng::for_component(1, "unused");
        let (mut now, mut sends_until, mut sending) = (Time::ZERO, Time::ZERO, 0);
        for (gap, size, colour, _) in arrivals {
            now += Duration(gap);
            while sends_until <= now {
                let Some(next) = fifo.pop() else {
                    sending = 0;
                    break;
                };
                sending = next.packet.size;
                sends_until = sends_until.max(next.since) + RATE.serialise(next.packet.bytes());
            }
            counter.drain(now);
            let (real, ours) = (fifo.bytes() as f64, counter.length(true));
            // Each transmission ends on a whole picosecond, 10⁻⁶ B at this rate.
            prop_assert!(real <= ours + 1e-3 && ours <= real + f64::from(sending) + 1e-3, "{} {} {}", real, ours, sending);
            let packet = packet(size, Colour::ALL[colour], false);
            fifo.arrive(now, &packet, Stamped { packet, since: now }, &mut aqm, &mut rng, &mut Silent);
            counter.add(now, size, packet.colour);
        }
    }
}

/// Full packets at `times` the virtual rate, for `seconds` after `warm_up` more: the share of them that is accepted.
fn accepted(params: &Params, times: f64, (warm_up, seconds): (f64, f64)) -> f64 {
    let mut aqm = params.build(&CONTEXT);
    let mut rng = Rng::for_component(3, "law");
    let gap = 1e9 / times;
    let (mut all, mut joined) = (0.0, 0.0);
    for i in 0..((warm_up + seconds) * 1e12 / gap) as u64 {
        let now = Time((i as f64 * gap) as u64);
        let packet = packet(1000, Colour::OUT, false);
        let verdict = aqm.arrive(&packet, At::silent(now, &mut Fake::of(0, 0), &mut rng));
        if now.secs() >= warm_up {
            all += 1.0;
            joined += f64::from(u8::from(verdict == Admission::Admit));
        }
    }
    joined / all
}

/// In equilibrium as much is accepted as drains, whatever the law; RED's average stands where its drops make up the difference. Its count is 1
/// at the first test after a drop, so gaps are uniform from 1 to 1/p_b − 1 (Floyd and Jacobson 1993, §7) and 2·p_b of the packets go.
#[test]
fn fixed_points() {
    for law in [Law::DropTail, Law::Red, Law::Rio, Law::Wred] {
        for times in [1.05, 1.25, 1.5] {
            let share = accepted(&params(law), times, (5.0, 20.0));
            assert!((share * times - 1.0).abs() < 0.002, "{law:?} at {times}: {share}");
        }
    }
    let mut aqm = params(Law::Red).build(&CONTEXT);
    let mut rng = Rng::for_component(3, "law");
    let (mut sum, mut n) = (0.0, 0.0);
    for i in 0..50_000u64 {
        let now = Time(i * 800_000_000);
        aqm.arrive(&packet(1000, Colour::OUT, false), At::silent(now, &mut Fake::of(0, 0), &mut rng));
        if i > 10_000 {
            aqm.gauges(now, &mut |name, value| sum += if name == "avg" { value } else { 0.0 });
            n += 1.0;
        }
    }
    // 20 % have to go: p_b = 0.1, and avg = 5 + 10 · p_b / 0.5.
    assert!((sum / n - 7.0).abs() < 0.05, "{}", sum / n);
}

/// Two flows of packets, a third of them IN, at 1.6 times the rate: as drawn from the stream of seed 1.
fn drawn(law: Law) -> String {
    let mut aqm = params(law).build(&CONTEXT);
    let mut rng = Rng::for_component(1, "law");
    let verdict = |i: u64| {
        let colour = if i.is_multiple_of(3) { Colour::IN } else { Colour::OUT };
        let packet = packet(1000, colour, i.is_multiple_of(4));
        match aqm.arrive(&packet, At::silent(Time(i * 625_000_000), &mut Fake::of(0, 0), &mut rng)) {
            Admission::Admit => '.',
            Admission::Mark => 'm',
            Admission::Drop(POLICED) => 'p',
            Admission::Drop(red::EARLY) => 'e',
            Admission::Drop(red::FORCED) => 'f',
            Admission::Drop(cause) => panic!("{cause:?}"),
        }
    };
    (0..240).map(verdict).collect::<String>()[140..].to_owned()
}

#[test]
fn golden_draws() {
    let all = [Law::DropTail, Law::Red, Law::Rio, Law::Wred].map(drawn);
    let known = [
        "..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p..p.p..p.",
        ".eee.e.em.e.m.e..e..me..m...mee..e.e..ee.e..me...e..m.ee.e...ee.m..e..ee.e..m...m..e..ee.e.em.e.m...",
        "..ee....m...m....ee....em..e..e.m...m....ee.me.e...e..e.me..m....e...e..m..e.ff.ff.ff.ff.ff.ff.ff.ff",
        "f..e.ee.me....e..e..me..m....e...e....ee....m.....ee.e...e..m....e...e.e..e...e..e..m.e..e..ff.ff.ff",
    ];
    assert_eq!(all, known);
}

/// Of forty at once so many joined as there is room for.
fn checked(aqm: &VirtualQueue, counts: &Counts) -> Counts {
    let shown = shown(aqm, counts);
    assert!(shown["early"] > 0 && shown["marked"] > 0 && shown["policed"] > 0, "{shown:?}");
    assert_eq!((40 - shown["early"] - shown["policed"], shown["overflow"]), (12, 0), "{shown:?}");
    Counts::default()
}

/// Marked packets join, drops do not; what the virtual queue has no room for is policed, what the real one has none for is overflow.
#[test]
fn counts_by_cause() {
    let tight = Params { red: Some(red(1.0)), virtual_limit: Backlog::Packets(12.0), ..params(Law::Red) };
    let mut aqm = tight.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "law");
    let mut counts = Counts::default();
    let mut real = Fake::of(0, 0);
    for i in 0..60 {
        if i == 40 {
            (real.limit, counts) = (0.0, checked(&aqm, &counts));
        }
        let packet = packet(1000, Colour::OUT, i % 2 == 0);
        let verdict = aqm.arrive(&packet, At::silent(Time(i / 40 * PS_PER_S), &mut real, &mut rng));
        count(&mut counts, packet.colour, verdict);
    }
    assert_eq!(shown(&aqm, &counts)["overflow"], 20, "the real queue takes nothing any more");
    assert_eq!(aqm.backlog.level(), 0, "what the real queue refuses is not counted");
}

#[test]
fn figures_behind_a_verdict() {
    let mut aqm = params(Law::DropTail).build(&CONTEXT);
    let mut rng = Rng::for_component(1, "law");
    let mut notes = Notes::default();
    for _ in 0..2 {
        notes.clear();
        let mut queue = Fake::of(9, 9);
        aqm.arrive(&packet(500, Colour::IN, false), At::new(Time::ZERO, &mut queue, &mut rng, &mut notes));
    }
    assert_eq!(notes.items()[0], ("virtual_backlog", 0.5));
    let mut shown = Vec::new();
    aqm.gauges(Time(250_000_000), &mut |name, value| shown.push((name, value)));
    assert_eq!(shown, [("virtual_backlog", 0.75)]);
}

#[test]
fn what_does_not_go_together() {
    let check = |p: Params| fields(p.check(&CONTEXT));
    for law in [Law::DropTail, Law::Red, Law::Ared, Law::Rio, Law::Wred] {
        assert_eq!(check(params(law)), Ok(vec![]), "{law:?}");
    }
    let with = |law, change: &dyn Fn(&mut Params)| {
        let mut p = params(law);
        change(&mut p);
        check(p)
    };
    assert_eq!(with(Law::Red, &|p| p.virtual_rate = Rate(16_000_001)), Err("virtual_rate"));
    assert_eq!(with(Law::Red, &|p| p.virtual_rate = Rate(16_000_000)), Ok(vec![]));
    assert_eq!(with(Law::Red, &|p| p.red = None), Err("law"));
    assert_eq!(with(Law::Red, &|p| p.rio = Some(rio())), Ok(vec!["rio"]));
    assert_eq!(with(Law::DropTail, &|p| p.virtual_limit = Backlog::Bytes(999.0)), Err("virtual_limit"));
    assert_eq!(with(Law::DropTail, &|p| p.virtual_limit = Backlog::Packets(2e9)), Err("virtual_limit"));
    assert_eq!(with(Law::DropTail, &|p| p.virtual_limit = Backlog::Packets(1.5)), Err("virtual_limit"));
    let above = |p: &mut Params| p.virtual_limit = Backlog::Packets(1001.0);
    assert_eq!(with(Law::DropTail, &above), Ok(vec!["virtual_limit"]));
    // The law's own check, with its place and its limit.
    let of_red =
        |change: &dyn Fn(&mut red::Params)| with(Law::Red, &|p| change(p.red.as_mut().expect("set")));
    assert_eq!(of_red(&|red| red.drop = DropAt::Front), Err("red.drop"));
    assert_eq!(of_red(&|red| red.min_th = Backlog::Packets(15.0)), Err("red.min_th"));
    assert_eq!(of_red(&|red| red.max_th = Backlog::Packets(31.0)), Ok(vec!["red.max_th"]));
    let reversed = |p: &mut Params| p.rio.as_mut().expect("set").out = thresholds(9.0, 8.0, 0.1);
    assert_eq!(with(Law::Rio, &reversed), Err("rio.out.min_th"));
}

/// Every path is that of a setting.
#[test]
fn paths_of_settings_exist() {
    fn holds(fields: &[Field], path: &str) -> bool {
        let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
        fields.iter().find(|f| f.name == first).is_some_and(|f| match (f.kind, rest) {
            (Kind::Group(inner), Some(rest)) => holds(inner, rest),
            (_, rest) => rest.is_none(),
        })
    }
    for (law, field, path) in PATHS {
        assert!(holds(Params::FIELDS, path), "{path}");
        assert_eq!(*path, format!("{law}.{field}"));
    }
}
