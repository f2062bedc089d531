use super::*;
use crate::aqm::drop_tail::DropTail;
use crate::queue::priority::Priority;
use crate::testing::*;
use crate::units::PS_PER_S;

fn class(number: u8, limit: f64, rate: Option<u64>) -> Setup {
    let aqm = AnyAqm::DropTail(DropTail::default());
    Setup { number, limit: Backlog::Packets(limit), aqm, rate: rate.map(Rate), burst: Bytes(0) }
}

fn member(level: u8, quantum: u32, shape: Option<(u64, u64)>) -> MemberSetup {
    MemberSetup {
        scheduler: AnyScheduler::Priority(Priority),
        classes: vec![class(0, 1000.0, None)],
        level,
        quantum,
        shape: shape.map(|(rate, burst)| Shape { rate: Rate(rate), burst: Bytes(burst) }),
    }
}

/// A link before the hierarchy; the flow of a packet is its member, its `seq` its number.
struct Line {
    queue: Hierarchy<Stamped>,
    rate: Rate,
    rng: Rng,
    free_at: Time,
    came: u32,
    /// When each departure began.
    sent: Vec<(Time, Packet)>,
}

impl Line {
    fn new(rate: u64, members: Vec<MemberSetup>) -> Line {
        let mut queue = Hierarchy::default();
        members.into_iter().enumerate().for_each(|(i, m)| queue.put(Time::ZERO, i, m, &[]));
        let rng = Rng::for_component(1, "unused");
        Line { queue, rate: Rate(rate), rng, free_at: Time::ZERO, came: 0, sent: Vec::new() }
    }

    fn arrive(&mut self, now: Time, member: usize, size: u32) -> Admission {
        self.arrive_in(now, member, 0, size)
    }

    fn arrive_in(&mut self, now: Time, member: usize, class: u8, size: u32) -> Admission {
        let packet = Packet { flow: FlowId(member as u32), size, seq: self.came, class, ..Packet::default() };
        self.came += 1;
        let held = Stamped { packet, since: now };
        self.queue.arrive(now, member, &packet, held, &mut self.rng, &mut Silent)
    }

    /// Serves until `until`; `left` is told each departure and may bring something.
    fn serve(&mut self, mut now: Time, until: Time, mut left: impl FnMut(&mut Line, Time, Packet)) {
        loop {
            let at = self.free_at.max(now);
            if at >= until {
                return;
            }
            match self.queue.depart(at, |p| p.packet, &mut self.rng, &mut Silent, |_, _| ()) {
                Some(Stamped { packet, .. }) => {
                    self.free_at = at + self.rate.serialise(packet.bytes());
                    self.sent.push((at, packet));
                    left(self, at, packet);
                }
                None => match self.queue.next_ready() {
                    Some(ready) => {
                        assert!(ready > at, "a packet may leave and does not: the link is idle in vain");
                        now = ready;
                    }
                    None => return,
                },
            }
        }
    }

    /// Keeps these members backlogged until then, each with packets of `size(member, count)`.
    fn backlogged(&mut self, members: usize, until: Time, size: impl Fn(usize, u32) -> u32) {
        for m in 0..members {
            (0..3).for_each(|k| {
                self.arrive(Time::ZERO, m, size(m, k));
            });
        }
        self.serve(Time::ZERO, until, |line, at, packet| {
            let (m, n) = (packet.flow.0 as usize, line.came);
            line.arrive(at, m, size(m, n));
        });
    }

    fn bytes(&self, members: usize) -> Vec<f64> {
        let mut all = vec![0.0; members];
        self.sent.iter().for_each(|(_, p)| all[p.flow.0 as usize] += f64::from(p.size));
        all
    }
}

/// All customers backlogged for 10 s, each with its own packet sizes: no share is off by 1 %.
#[test]
fn shares_are_as_the_quanta() {
    const N: usize = 200;
    let quantum = |i: usize| [1500, 3000, 6000][i % 3];
    let members = (0..N).map(|i| member(0, quantum(i), None)).collect();
    let mut line = Line::new(200_000_000, members);
    let sizes = [64, 1500, 576, 1500, 40, 1280];
    line.backlogged(N, Time(10 * PS_PER_S), |m, n| sizes[(m + n as usize) % sizes.len()]);
    let (bytes, quanta) = (line.bytes(N), (0..N).map(|i| f64::from(quantum(i))).sum::<f64>());
    let all: f64 = bytes.iter().sum();
    assert!((all - 250e6).abs() < 1500.0, "the link was never idle: {all}");
    let worst = (0..N).map(|i| (bytes[i] / all * quanta / f64::from(quantum(i)) - 1.0).abs());
    let worst = worst.fold(0.0, f64::max);
    assert!(worst < 0.01, "{worst}");
}

/// A member that alternates sizes and empties its queue to shed its debt gets no more than its share.
#[test]
fn debt_is_not_forgiven() {
    let mut line = Line::new(10_000_000, (0..3).map(|_| member(0, 1500, None)).collect());
    for m in 1..3 {
        (0..3).for_each(|_| {
            line.arrive(Time::ZERO, m, 1500);
        });
    }
    let pair = |line: &mut Line, at| [1499, 1500].map(|size| line.arrive(at, 0, size));
    pair(&mut line, Time::ZERO);
    line.serve(Time::ZERO, Time(10 * PS_PER_S), |line, at, packet| match packet.flow.0 {
        0 if line.queue.classes(0).is_some_and(|c| c[0].queue.waiting() == [0; 3]) => {
            pair(line, at);
        }
        0 => {}
        m => {
            line.arrive(at, m as usize, 1500);
        }
    });
    let bytes = line.bytes(3);
    assert!(bytes[0] <= 1.001 * bytes[1] && bytes[0] > 0.5 * bytes[1], "{bytes:?}");
}

#[test]
fn lower_levels_go_first() {
    let mut line = Line::new(8_000_000, vec![member(1, 1500, None), member(0, 1500, None)]);
    (0..4).for_each(|_| {
        line.arrive(Time::ZERO, 0, 1000);
    });
    line.serve(Time::ZERO, Time(MS / 2), |_, _, _| ());
    (0..3).for_each(|_| {
        line.arrive(Time(MS / 2), 1, 1000);
    });
    line.serve(Time(MS / 2), Time(100 * MS), |_, _, _| ());
    let order: Vec<u32> = line.sent.iter().map(|(_, p)| p.flow.0).collect();
    assert_eq!(order, [0, 1, 1, 1, 0, 0, 0]);
}

/// A customer's shaper on a free link: its rate, exactly, over 10 s; beside others, never more than rate·t + burst.
#[test]
fn a_shaper_keeps_its_rate() {
    let mut line = Line::new(100_000_000, vec![member(0, 1500, Some((10_000_000, 3000)))]);
    line.backlogged(1, Time(10 * PS_PER_S), |_, n| 64 + n % 1400);
    let bytes = line.bytes(1)[0];
    assert!((bytes / 12.5e6 - 1.0).abs() < 0.001, "{bytes}");
}

/// A member held by its shaper rejoins the turns as soon as it may: the others do not wait for it, and the link is never idle
/// while one may send.
#[test]
fn a_held_member_holds_up_nobody() {
    let mut line =
        Line::new(10_000_000, vec![member(0, 1500, Some((1_000_000, 3000))), member(0, 1500, None)]);
    line.backlogged(2, Time(10 * PS_PER_S), |_, _| 1000);
    let bytes = line.bytes(2);
    assert!((bytes[0] / 1.25e6 - 1.0).abs() < 0.01, "{bytes:?}");
    assert!((bytes[1] / 11.25e6 - 1.0).abs() < 0.01, "{bytes:?}");
}

/// A flood at a held member does not grow the heap.
#[test]
fn arrivals_at_a_held_member_cost_no_memory() {
    let mut line = Line::new(10_000_000, Vec::new());
    let classes = vec![class(0, 1e6, Some(1000)), class(1, 10.0, None)];
    line.queue.put(Time::ZERO, 0, MemberSetup { classes, ..member(0, 1500, None) }, &[]);
    for i in 0..10_000u64 {
        let now = Time(i * MS / 10);
        line.arrive(now, 0, 1000);
        line.serve(now, now + crate::units::Duration(1), |_, _, _| ());
    }
    assert!(line.queue.held.len() <= 2 && line.queue.turns[0].len() <= 1, "{}", line.queue.held.len());
    // Its other class is not held: it goes at once.
    let now = line.free_at.max(Time(2 * PS_PER_S));
    line.arrive_in(now, 0, 1, 1000);
    line.serve(now, now + crate::units::Duration(1), |_, _, _| ());
    assert_eq!(line.sent.last().unwrap().1.class, 1);
}

proptest! {
    /// The bound on the difference of what two members have sent, at every moment, whatever sizes and quanta.
    #[test]
    fn the_bound_holds(quanta in prop::collection::vec(64u32..9000, 2..6),
                       sizes in prop::collection::vec(40u32..1500, 1..40)) {
        let n = quanta.len();
        let mut line = Line::new(10_000_000, quanta.iter().map(|q| member(0, *q, None)).collect());
        line.backlogged(n, Time(PS_PER_S / 2), |m, k| sizes[(m * 7 + k as usize) % sizes.len()]);
        let mut sent = vec![0.0; n];
        let smallest = f64::from(*quanta.iter().min().unwrap());
        for (_, p) in &line.sent {
            let m = p.flow.0 as usize;
            sent[m] += f64::from(p.size) / f64::from(quanta[m]);
            let (least, most) = sent.iter().fold((f64::MAX, 0.0f64), |(a, b), s| (a.min(*s), b.max(*s)));
            prop_assert!(most - least < 3.0 + 2.0 * 1500.0 / smallest, "{:?}", sent);
        }
    }

    /// Over any stretch no more than rate·t + burst and a packet, beside others and with pauses.
    #[test]
    fn a_shaper_never_passes_more(rate in 100_000u64..9_000_000, burst in 1500u64..20_000,
                                  arrivals in prop::collection::vec((0u64..40, 0usize..3, 40u32..1500), 1..200)) {
        let mut line = Line::new(10_000_000, vec![
            member(0, 1500, Some((rate, burst))), member(0, 1500, None), member(0, 1500, None)]);
        let mut now = 0;
        for (gap, m, size) in arrivals {
            line.serve(Time(now), Time(now + gap * MS / 10), |_, _, _| ());
            now += gap * MS / 10;
            line.arrive(Time(now), m, size);
        }
        line.serve(Time(now), Time(100 * PS_PER_S), |_, _, _| ());
        prop_assert_eq!(line.sent.len() as u32, line.came, "all leave in the end");
        let his: Vec<_> = line.sent.iter().filter(|(_, p)| p.flow.0 == 0).collect();
        for from in 0..his.len() {
            let mut bytes = 0.0;
            for (at, p) in &his[from..] {
                let t = (at.0 - his[from].0.0) as f64 * 1e-12;
                // The last packet may begin where the bound is.
                prop_assert!(bytes <= rate as f64 / 8.0 * t + burst as f64 + 1.0, "{} after {}", bytes, t);
                bytes += f64::from(p.size);
            }
        }
    }

    /// With one member it equals that member's scheduler: same packets at the same times, with set rates too.
    #[test]
    fn one_member_equals_its_scheduler(rates in (prop::option::of(500_000u64..9_000_000), prop::option::of(500_000u64..9_000_000)),
                                       arrivals in prop::collection::vec((0u64..30, 0u8..2, 40u32..1500), 1..100)) {
        let classes = || vec![class(0, 20.0, rates.0), class(1, 20.0, rates.1)];
        let mut line = Line::new(10_000_000, vec![MemberSetup { classes: classes(), ..member(0, 1500, None) }]);
        let mut alone: Scheduled<Stamped> = Scheduled::new(AnyScheduler::Priority(Priority), classes());
        let (mut rng, mut sent) = (Rng::for_component(1, "unused"), Vec::new());
        let (mut now, mut free_at) = (0, Time::ZERO);
        let mut serve = |alone: &mut Scheduled<Stamped>, from: Time, until: Time, rng: &mut Rng| {
            let mut now = from;
            loop {
                let at = free_at.max(now);
                if at >= until { return; }
                match alone.depart(at, |p| p.packet, rng, &mut Silent, |_, _| ()) {
                    Some(p) => { free_at = at + Rate(10_000_000).serialise(p.packet.bytes()); sent.push((at, p.packet)); }
                    None => match alone.next_ready() { Some(ready) => now = ready, None => return },
                }
            }
        };
        for (gap, class, size) in arrivals {
            let next = now + gap * MS / 10;
            line.serve(Time(now), Time(next), |_, _, _| ());
            serve(&mut alone, Time(now), Time(next), &mut rng);
            now = next;
            let packet = Packet { size, seq: line.came, class, ..Packet::default() };
            let verdict = line.arrive_in(Time(now), 0, class, size);
            prop_assert_eq!(verdict, alone.arrive(Time(now), &packet, Stamped { packet, since: Time(now) }, &mut rng, &mut Silent));
        }
        line.serve(Time(now), Time(100 * PS_PER_S), |_, _, _| ());
        serve(&mut alone, Time(now), Time(100 * PS_PER_S), &mut rng);
        prop_assert_eq!(line.sent, sent);
    }

    /// Members come, change and go under traffic: no packet is lost or invented, each member's leave in order, and a removed member
    /// is gone once it is empty.
    #[test]
    fn changes_lose_nothing(steps in prop::collection::vec((0u64..20, 0usize..5, 0u8..6, 40u32..1500), 1..200)) {
        let mut line = Line::new(10_000_000, (0..5).map(|_| member(0, 1500, None)).collect());
        let (mut now, mut dropped, mut there) = (0, 0, [true; 5]);
        for (gap, m, what, size) in steps {
            line.serve(Time(now), Time(now + gap * MS / 10), |_, _, _| ());
            now += gap * MS / 10;
            match what {
                0 => { line.queue.leave(m); there[m] = false; }
                1 | 2 => {
                    let shape = (what == 2).then_some((1_000_000, 3000));
                    let migration = Migration { class: 0, unchanged: true };
                    line.queue.put(Time(now), m, member(size as u8 % 3, 1500 + size, shape), &[migration]);
                    there[m] = true;
                }
                _ if there[m] => dropped += u32::from(matches!(line.arrive(Time(now), m, size), Admission::Drop(_))),
                _ => {}
            }
        }
        line.serve(Time(now), Time(1000 * PS_PER_S), |_, _, _| ());
        let _ = line.queue.depart(Time(1000 * PS_PER_S), |p| p.packet, &mut line.rng, &mut Silent, |_, _| ());
        prop_assert_eq!(line.sent.len() as u32 + dropped, line.came);
        for m in 0..5 {
            let order: Vec<u32> = line.sent.iter().filter(|(_, p)| p.flow.0 == m).map(|(_, p)| p.seq).collect();
            prop_assert!(order.is_sorted());
        }
        prop_assert_eq!(line.queue.members().collect::<Vec<_>>(), (0..5).filter(|m| there[*m]).collect::<Vec<_>>());
        let counted = line.queue.members().flat_map(|m| line.queue.classes(m).unwrap())
            .fold(*line.queue.gone(), |all, c| all.and(c.queue.counts()));
        prop_assert_eq!(counted.sent[Colour::Green as usize], line.sent.len() as u64);
    }
}
