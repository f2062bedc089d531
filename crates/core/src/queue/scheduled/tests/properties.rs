//! Properties of every scheduler under any traffic, and each scheduler's own law.

use super::*;

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
