//! Scheduled classes by hand, and properties of every scheduler under any traffic.

use super::*;
use crate::aqm::drop_tail::DropTail;
use crate::aqm::red::EARLY;
use crate::queue::drr::Drr;
use crate::queue::priority::Priority;
use crate::testing::*;

const LINK: Rate = Rate(10_000_000);

fn setup(number: u8, limit: f64, rate: Option<u64>) -> Setup {
    let aqm = AnyAqm::DropTail(DropTail::default());
    Setup { number, limit: Backlog::Packets(limit), aqm, rate: rate.map(Rate), burst: Bytes(0) }
}

fn priority(classes: Vec<Setup>) -> Scheduled<Stamped> {
    Scheduled::new(AnyScheduler::Priority(Priority), classes)
}

fn drr(quanta: &[u64], limit: f64) -> Scheduled<Stamped> {
    let classes = (1..).zip(quanta).map(|(n, _)| setup(n, limit, None)).collect();
    Scheduled::new(AnyScheduler::Drr(Drr::new(quanta.iter().copied())), classes)
}

/// A link that a scheduled queue feeds: arrivals in their order, departures whenever it is free.
struct Line {
    queue: Scheduled<Stamped>,
    rng: Rng,
    now: Time,
    free_at: Time,
    /// When each departure began, and what left.
    sent: Vec<(Time, Packet)>,
    dropped: Vec<Packet>,
}

impl Line {
    fn new(queue: Scheduled<Stamped>) -> Line {
        let rng = Rng::for_component(1, "unused");
        Line { queue, rng, now: Time::ZERO, free_at: Time::ZERO, sent: Vec::new(), dropped: Vec::new() }
    }

    /// Serves until `until`.
    fn serve(&mut self, until: Time) {
        while self.free_at < until {
            let at = self.free_at.max(self.now);
            if at >= until {
                break;
            }
            let dropped = &mut self.dropped;
            let next =
                self.queue.depart(at, |p| p.packet, &mut self.rng, &mut Silent, |p, _| dropped.push(*p));
            match (next, self.queue.next_ready()) {
                (Some(packet), _) => {
                    self.sent.push((at, *packet));
                    self.free_at = at + LINK.serialise(packet.bytes());
                }
                (None, Some(ready)) => {
                    assert!(ready > at, "a packet may leave and doesn't: the link is idle in vain");
                    self.free_at = ready;
                }
                (None, None) => break,
            }
            self.now = at;
        }
        self.now = self.now.max(until);
    }

    /// At `at` this comes; the link wakes up if it waits for something later.
    fn offer(&mut self, at: Time, packet: Packet) -> Admission {
        self.serve(at);
        let verdict =
            self.queue.arrive(at, &packet, Stamped { packet, since: at }, &mut self.rng, &mut Silent);
        let sending = self.sent.last().map_or(Time::ZERO, |(began, p)| *began + LINK.serialise(p.bytes()));
        self.free_at = sending.max(at);
        verdict
    }

    fn bytes_of(&self, class: u8) -> u64 {
        self.sent.iter().filter(|(_, p)| p.class == class).map(|(_, p)| u64::from(p.size)).sum()
    }
}

fn packet(class: u8, size: u32) -> Packet {
    Packet { class, size, flow: FlowId(u32::from(class)), ..Packet::default() }
}

#[test]
fn the_first_class_goes_first_but_interrupts_nobody() {
    let mut line = Line::new(priority(vec![setup(1, 10.0, None), setup(2, 10.0, None)]));
    for _ in 0..3 {
        line.offer(Time::ZERO, packet(2, 1250));
    }
    line.offer(Time(MS / 2), packet(1, 125));
    line.serve(Time(10 * MS));
    // 1250 B take 1 ms at 10 Mbit/s, 125 B a tenth.
    let sent: Vec<_> = line.sent.iter().map(|(t, p)| (t.0 * 10 / MS, p.class)).collect();
    assert_eq!(sent, [(0, 2), (10, 1), (11, 2), (21, 2)]);
}

#[test]
fn an_unknown_class_is_served_as_the_last() {
    let q = priority(vec![setup(5, 1.0, None), setup(2, 1.0, None)]);
    assert_eq!([5, 2, 0, 255].map(|n| q.class_of(&packet(n, 1))), [0, 1, 1, 1]);
}

#[test]
#[should_panic(expected = "1 to 255 classes")]
fn a_scheduler_without_classes_is_refused() {
    priority(Vec::new());
}

#[test]
fn each_class_has_its_own_limit_and_counts() {
    let mut line = Line::new(priority(vec![setup(1, 1.0, None), setup(2, 3.0, None)]));
    let verdicts: Vec<_> = (0..10)
        .map(|i| {
            line.queue.arrive(
                Time::ZERO,
                &packet(1 + i % 2, 1000),
                Stamped { packet: packet(1 + i % 2, 1000), since: Time::ZERO },
                &mut line.rng,
                &mut Silent,
            )
        })
        .collect();
    assert_eq!(verdicts.iter().filter(|v| **v == Admission::Admit).count(), 4);
    let counts = [0, 1].map(|i| *line.queue.classes()[i].queue.counts());
    assert_eq!(counts.map(|c| (c.arrived[0], c.dropped_of(Colour::IN))), [(5, 4), (5, 2)]);
}

/// The queue that a class's discipline sees is idle from the end of its last packet to its next arrival, whatever the
/// link does for others.
#[test]
fn a_class_is_idle_by_itself() {
    let mut line = Line::new(priority(vec![setup(1, 9.0, None), setup(2, 9.0, None)]));
    let idle = |line: &Line| [0, 1].map(|i| line.queue.classes()[i].queue.idle_since());
    line.offer(Time::ZERO, packet(1, 1250));
    line.offer(Time::ZERO, packet(2, 1250));
    line.offer(Time::ZERO, packet(2, 1250));
    assert_eq!(idle(&line), [None, None]);
    line.serve(Time(MS / 2));
    assert_eq!(idle(&line), [None, None], "on the link is not idle");
    line.serve(Time(3 * MS / 2));
    assert_eq!(idle(&line), [Some(Time(MS)), None]);
    line.offer(Time(3 * MS / 2), packet(1, 1250));
    assert_eq!(idle(&line), [None, None], "waiting behind another class is not idle");
}

/// Drops every second packet at its departure.
#[derive(Default)]
struct Thinning(bool);
impl Mechanism for Thinning {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        (now < Time(5 * MS)).then(|| now + crate::units::Duration(2 * MS))
    }

    /// Hears one signal: from then on its turn comes the other way round.
    fn signal(&mut self, _: Time, _: &Signal) {
        self.0 = !self.0;
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("turn", u64::from(self.0));
    }
}

impl Aqm for Thinning {
    fn serves(&self) -> bool {
        true
    }

    fn arrive(&mut self, _: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        Admission::Admit
    }

    fn depart(&mut self, _: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.0 = !self.0;
        if self.0 { Departure::Drop(EARLY) } else { Departure::Send }
    }
}

#[test]
fn signals_are_for_one_class_or_for_all() {
    let thin = |number| Setup { aqm: AnyAqm::Custom(Box::<Thinning>::default()), ..setup(number, 9.0, None) };
    let mut q = priority(vec![thin(1), thin(2)]);
    let turns = |q: &Scheduled<Stamped>| {
        let mut turns = Vec::new();
        q.classes().iter().for_each(|c| c.aqm.stats(&mut |_, turn| turns.push(turn)));
        turns
    };
    let signal = Signal { topic: "any", flow: None, value: 1.0 };
    q.signal(Time::ZERO, Some(1), &signal);
    assert_eq!(turns(&q), [0, 1]);
    q.signal(Time::ZERO, None, &signal);
    assert_eq!(turns(&q), [1, 0]);
}

#[test]
fn what_a_discipline_drops_at_departure_is_neither_sent_nor_charged() {
    let thin =
        |number| Setup { aqm: AnyAqm::Custom(Box::<Thinning>::default()), ..setup(number, 99.0, None) };
    let scheduler = AnyScheduler::Drr(Drr::new([1000, 1000].into_iter()));
    let mut line = Line::new(Scheduled::new(scheduler, vec![thin(1), thin(2)]));
    for i in 0..20 {
        line.offer(Time::ZERO, packet(1 + i % 2, 1000));
    }
    line.serve(Time(100 * MS));
    // The last of a class that is dropped leaves it empty: the other goes on.
    assert_eq!((line.sent.len(), line.dropped.len()), (10, 10));
    assert_eq!((line.bytes_of(1), line.bytes_of(2)), (5000, 5000));
}

#[test]
fn disciplines_are_due_each_at_its_own_time() {
    let thin = Setup { aqm: AnyAqm::Custom(Box::<Thinning>::default()), ..setup(1, 9.0, None) };
    let mut q = priority(vec![thin, setup(2, 9.0, None)]);
    let mut due = Some(Time::ZERO);
    let mut times = Vec::new();
    while let Some(at) = due {
        times.push(at.0 / MS);
        due = q.tick(at, &mut Outbox::default());
    }
    assert_eq!(times, [0, 2, 4, 6]);
}

/// A class at a set rate that is always full sends exactly that, over a second as over a hundred, though each packet
/// may have to wait for one of the other's.
#[test]
fn a_set_rate_is_held_exactly() {
    let rate = 3_000_001;
    let mut line = Line::new(priority(vec![setup(1, 1e6, Some(rate)), setup(2, 1e6, None)]));
    let seconds = 20;
    for _ in 0..seconds * 400 {
        line.offer(Time::ZERO, packet(1, 1040));
        line.offer(Time::ZERO, packet(2, 1500));
        line.offer(Time::ZERO, packet(2, 1500));
    }
    line.serve(Time(seconds * 1000 * MS));
    for s in [1, 10, seconds] {
        let before = line.sent.iter().filter(|(t, p)| p.class == 1 && *t < Time(s * 1000 * MS));
        let bits = 8.0 * before.map(|(_, p)| f64::from(p.size)).sum::<f64>();
        let due = rate as f64 * s as f64;
        // The packet due at the very end may have been let go, or be held up by one of the other class.
        assert!(
            bits >= due - 8.0 * 1040.0 && bits <= due + 2.0 * 8.0 * 1040.0,
            "{s} s: {bits} bit, {due} due"
        );
    }
    // All the rest goes to the other class: the link is never idle.
    let all = 8 * (line.bytes_of(1) + line.bytes_of(2));
    assert!(all.abs_diff(LINK.0 * seconds) <= 8 * 1500, "{all}");
}

#[test]
fn a_class_at_a_set_rate_leaves_the_link_idle() {
    let mut line = Line::new(priority(vec![setup(1, 10.0, Some(1_000_000))]));
    for _ in 0..4 {
        line.offer(Time(MS), packet(1, 1000));
    }
    line.serve(Time(100 * MS));
    // 8 ms apart at 1 Mbit/s, though the link takes 0.8.
    assert_eq!(line.sent.iter().map(|(t, _)| t.0 / MS).collect::<Vec<_>>(), [1, 9, 17, 25]);
    assert_eq!(line.queue.next_ready(), None);
}

/// Notes how long each packet has been in the queue when it is asked about.
struct Sojourns(std::sync::Arc<std::sync::Mutex<Vec<u64>>>);

impl Mechanism for Sojourns {}

impl Aqm for Sojourns {
    fn serves(&self) -> bool {
        true
    }

    fn arrive(&mut self, _: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        Admission::Admit
    }

    fn depart(&mut self, _: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.0.lock().unwrap().push(at.now.since(at.since).0);
        Departure::Send
    }
}

/// 1,250 B take a millisecond: three packets at once wait for 0, 1 and 2 ms; one that is taken over by another set-up, which
/// starts at 2.5 ms, has waited since it came all the same.
#[test]
fn a_discipline_is_told_since_when_a_packet_waits() {
    let told = std::sync::Arc::default();
    let class = || Setup {
        number: 1,
        limit: Backlog::Packets(9.0),
        aqm: AnyAqm::Custom(Box::new(Sojourns(std::sync::Arc::clone(&told)))),
        rate: None,
        burst: Bytes(0),
    };
    let ms = 1_000_000_000;
    let mut line = Line::new(priority(vec![class()]));
    for _ in 0..3 {
        line.offer(Time::ZERO, packet(1, 1250));
    }
    line.offer(Time(ms / 2), packet(1, 1250));
    line.serve(Time(5 * ms / 2));
    let mut new = priority(vec![class()]);
    let old = std::mem::replace(&mut line.queue, priority(vec![class()]));
    new.take_over(old, &[Migration { class: 0, unchanged: false }], Time(5 * ms / 2));
    line.queue = new;
    line.serve(Time(9 * ms));
    assert_eq!(*told.lock().unwrap(), [0, ms, 2 * ms, 3 * ms - ms / 2]);
}

/// Random traffic: when, of which class, how large.
fn traffic() -> impl Strategy<Value = Vec<(u64, u8, u32)>> {
    prop::collection::vec((0u64..3 * MS, 1u8..=3, 40u32..=1500), 1..300)
}

/// The scheduler by name.
fn scheduled(kind: &str, rate: Option<u64>) -> Scheduled<Stamped> {
    let classes = vec![setup(1, 5.0, rate), setup(2, 20.0, None), setup(3, 20.0, None)];
    let scheduler = match kind {
        "priority" => AnyScheduler::Priority(Priority),
        _ => AnyScheduler::Drr(Drr::new([500, 1500, 3000].into_iter())),
    };
    Scheduled::new(scheduler, classes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For each class, arrived = sent + dropped + waiting; what is sent is in order within its class; and without a set
    /// rate the link never idles while something waits ([`Line::serve`] asserts it).
    #[test]
    fn nothing_is_lost_or_made_up(
        traffic in traffic(),
        kind in prop::sample::select(vec!["priority", "drr"]),
        rate in prop::option::of(500_000u64..20_000_000),
    ) {
        let mut line = Line::new(scheduled(kind, rate));
        let mut at = Time::ZERO;
        for (n, &(gap, class, size)) in (0u32..).zip(&traffic) {
            at = Time(at.0 + gap);
            line.offer(at, Packet { seq: n, ..packet(class, size) });
        }
        for class in line.queue.classes() {
            let c = class.queue.counts();
            let waiting = u64::from(class.queue.packets());
            prop_assert_eq!(c.arrived[0], c.sent[0] + c.dropped_of(Colour::IN) + waiting);
        }
        line.serve(Time::NEVER);
        let waiting: u32 = line.queue.classes().iter().map(|c| c.queue.packets()).sum();
        prop_assert_eq!(waiting, 0);
        let sent: u64 = line.queue.classes().iter().map(|c| c.queue.counts().sent[0]).sum();
        prop_assert_eq!(sent, line.sent.len() as u64);
        for class in 1..=3 {
            let order: Vec<u32> = line.sent.iter().filter(|(_, p)| p.class == class).map(|(_, p)| p.seq).collect();
            prop_assert!(order.windows(2).all(|w| w[0] < w[1]));
        }
    }

    /// Work conservation: without set rates the link is busy exactly as a single queue would keep it.
    #[test]
    fn a_scheduler_does_as_much_as_one_queue(
        traffic in traffic(),
        kind in prop::sample::select(vec!["priority", "drr"]),
    ) {
        let ample = |n| setup(n, 1e6, None);
        let scheduler = scheduled(kind, None).scheduler;
        let mut line = Line::new(Scheduled::new(scheduler, vec![ample(1), ample(2), ample(3)]));
        let (mut at, mut done) = (Time::ZERO, Time::ZERO);
        for &(gap, class, size) in &traffic {
            at = Time(at.0 + gap);
            line.offer(at, packet(class, size));
            done = done.max(at) + LINK.serialise(Bytes(u64::from(size)));
        }
        line.serve(Time::NEVER);
        let (began, last) = line.sent[line.sent.len() - 1];
        prop_assert_eq!(began + LINK.serialise(last.bytes()), done);
    }

    /// Strictness: at no departure does a packet of an earlier class wait.
    #[test]
    fn priority_is_strict(traffic in traffic()) {
        let mut line = Line::new(scheduled("priority", None));
        let mut at = Time::ZERO;
        let mut arrivals = Vec::new();
        for &(gap, class, size) in &traffic {
            at = Time(at.0 + gap);
            if line.offer(at, packet(class, size)) == Admission::Admit {
                arrivals.push((at, class));
            }
        }
        line.serve(Time::NEVER);
        for (i, (began, p)) in line.sent.iter().enumerate() {
            for class in 1..p.class {
                let came = arrivals.iter().filter(|(t, c)| *c == class && t < began).count();
                let left = line.sent[..i].iter().filter(|(_, q)| q.class == class).count();
                prop_assert!(left >= came, "class {class} waits at {began:?} while {} leaves", p.class);
            }
        }
    }

    /// Shreedhar and Varghese's bound on the fairness measure: between classes that always have something to send, what they
    /// sent in units of quanta differs by at most 1 + 2 Max / the smaller quantum, at every moment; so none starves.
    #[test]
    fn drr_is_fair_to_the_byte(
        quanta in prop::collection::vec(64u64..5000, 2..5),
        sizes in prop::collection::vec(40u32..=1500, 50..200),
    ) {
        let mut line = Line::new(drr(&quanta, 1e6));
        for i in 0..sizes.len() {
            for class in 1..=quanta.len() as u8 {
                // Each class its own sequence of sizes.
                let size = sizes[(i * usize::from(class)) % sizes.len()];
                line.offer(Time::ZERO, packet(class, size));
            }
        }
        line.serve(Time::NEVER);
        let least = *quanta.iter().min().unwrap() as f64;
        let bound = 1.0 + 2.0 * 1500.0 / least;
        let mut sent = vec![0.0; quanta.len()];
        let mut left = vec![sizes.len(); quanta.len()];
        for (_, p) in &line.sent {
            let class = usize::from(p.class) - 1;
            sent[class] += f64::from(p.size) / quanta[class] as f64;
            left[class] -= 1;
            if left.contains(&0) {
                break;
            }
            let (low, high) = sent.iter().fold((f64::MAX, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
            prop_assert!(high - low <= bound, "{sent:?} of {quanta:?}");
        }
    }
}
