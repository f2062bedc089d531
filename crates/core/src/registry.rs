//! Every mechanism by name: what `inprofile list` prints, and what an experiment file may say. A new mechanism adds one line to
//! the table of [mechanisms].

pub mod mechanisms;

use mechanisms::schedulers;

pub use mechanisms::{AnyAqm, AnyMarker, Entry};
pub use schedulers::{AnyScheduler, SchedulerEntry};

use crate::ns2;

/// The markers, disciplines and schedulers an experiment may name. [`Registry::default`] has all of ours;
/// push an [`Entry`] to add one of your own.
#[derive(Clone)]
pub struct Registry {
    /// For flows and edges.
    pub markers: Vec<Entry<AnyMarker>>,
    /// For queues.
    pub aqms: Vec<Entry<AnyAqm>>,
    /// For queues of several classes.
    pub schedulers: Vec<SchedulerEntry>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            markers: ns2::offer::markers(mechanisms::MARKERS),
            aqms: ns2::offer::aqms(mechanisms::AQMS),
            schedulers: schedulers::SCHEDULERS.to_vec(),
        }
    }
}

#[cfg(test)]
mod texts {
    //! The defaults of the five papers' mechanisms: what the papers' texts favour (docs/readings). Tests of a law
    //! set every option; were a default another, they would not see it, and every experiment would.

    use crate::aqm::{fdd_red, red};
    use crate::marker::{ard, probe, tsw2cm, twam};
    use crate::params::{Default, Field, Params, Value};
    use crate::units::Duration;

    /// The default of a field, or of a field of its groups.
    fn default_of(fields: &[Field], name: &str) -> Value {
        let field = fields.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no field {name}"));
        let Default::Value(value) = field.default else { panic!("{name} has no default") };
        value()
    }

    fn word_of<P: Params>(name: &str) -> &'static str {
        let Value::Choice(word) = default_of(P::FIELDS, name) else { panic!("{name} is no choice") };
        word
    }

    fn number_of<P: Params>(name: &str) -> f64 {
        let Value::Number(x) = default_of(P::FIELDS, name) else { panic!("{name} is no number") };
        x
    }

    /// Hur 2006, §2.1 and §3.
    #[test]
    fn ard() {
        let of = |name| (number_of::<ard::Params>(name), number_of::<ard::ArmParams>("max_rem"));
        assert_eq!((of("max_rem"), of("p_drop").0), ((0.5, 0.5), 0.02));
        let Value::Duration(interval) = default_of(ard::Params::FIELDS, "interval") else { panic!("a time") };
        // "τ = 0.1 s and n = 1000"
        assert_eq!(interval, Duration::from_millis(100 * 1000));
        assert_eq!(word_of::<ard::Params>("token"), "packet");
    }

    /// Kim 1999, §4: avg_in and avg_total "whenever a packet arrives".
    #[test]
    fn ri_plus_o() {
        assert_eq!(word_of::<red::rio_plus_out::Params>("avg_update"), "every_arrival");
    }

    /// Neglia et al. 2003, §2: OUT once the burst "has become longer than" A; every replica is a loss; no bound of A from below.
    #[test]
    fn probe() {
        let words = ["increase", "boundary", "loss"].map(word_of::<probe::Params>);
        assert_eq!(words, ["2A+1", "L<=A", "each_replica"]);
        assert_eq!(["alpha", "a_init", "a_min"].map(number_of::<probe::Params>), [0.5, 10.0, 0.0]);
    }

    /// Hashemi et al. 2014, Fig. 2 and §III: decision 0028.
    #[test]
    fn fdd_red() {
        let names = [
            "latest",
            "charge",
            "victim_flow",
            "victim_packet",
            "applies_to",
            "rtt",
            "idle_penalty",
            "idle_from",
            "rtt_source",
        ];
        let words = names.map(word_of::<fdd_red::Params>);
        assert_eq!(
            words,
            [
                "oldest",
                "both",
                "ledger",
                "head",
                "early_and_overflow",
                "base",
                "forget",
                "departure",
                "estimated"
            ]
        );
    }

    /// Bouras and Sevasti 2004, §3 (Eq. 3), §4 (Eq. 5: "fewer Out packets fall within the … region") and §5.2.
    #[test]
    fn twam_and_dwred() {
        assert_eq!(word_of::<twam::Params>("shares"), "contract");
        assert_eq!(word_of::<red::dwred::Params>("colours"), "out");
        assert_eq!(["min_share", "max_p"].map(number_of::<red::dwred::Params>), [0.15, 0.1]);
        assert_eq!(word_of::<tsw2cm::Params>("excess"), "share");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::Marker;
    use crate::mechanism::Mechanism;
    use crate::packet::{Colour, Ecn, FlowId, Packet};
    use crate::params::{Context, Default as Fallback, Field, Kind, Params, Value, Values};
    use crate::queue::Queue;
    use crate::queue::Scheduler;
    use crate::queue::fifo::{Fifo, Stamped};
    use crate::rng::Rng;
    use crate::signal::Outbox;
    use crate::units::{Backlog, Bytes, Duration, Rate, Time};
    use crate::verdict::{Mark, Silent, Why};
    use std::collections::BTreeSet;

    const CONTEXT: Context = Context {
        link_rate: Some(Rate(1_200_000)),
        contract: Some(Rate(250_000)),
        packet: Bytes(1040),
        limit: Some(Backlog::Packets(100.0)),
    };

    /// A value of the field's kind: its default, or one that every mechanism so far can live with.
    fn value_of(field: &Field) -> Value {
        if let Fallback::Value(default) = field.default {
            return default();
        }
        match field.kind {
            Kind::Flag => Value::Flag(true),
            Kind::Count => Value::Count(7),
            Kind::Number => Value::Number(0.25),
            Kind::Rate => Value::Rate(Rate(1_000_000)),
            Kind::Duration => Value::Duration(Duration::from_millis(100)),
            Kind::Bytes => Value::Bytes(Bytes(2000)),
            Kind::Backlog if field.name.starts_with("max") => Value::Backlog(Backlog::Packets(60.0)),
            Kind::Backlog => Value::Backlog(Backlog::Packets(20.0)),
            Kind::Choice(words) => Value::Choice(words[0]),
            Kind::Group(fields) => Value::Group(values_of(fields)),
        }
    }

    fn values_of(fields: &[Field]) -> Values {
        Values(fields.iter().map(|f| (f.name, value_of(f))).collect())
    }

    /// Documentation, names and defaults of these fields and of the groups among them.
    fn inspect(mechanism: &str, fields: &[Field]) {
        let names: BTreeSet<_> = fields.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), fields.len(), "{mechanism}: a name twice");
        for f in fields {
            assert!(!f.summary().is_empty(), "{mechanism}.{}: no documentation", f.name);
            let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            assert!(f.name.bytes().all(word), "{mechanism}.{}", f.name);
            let number = match value_of(f) {
                Value::Number(x) => Some(x),
                Value::Count(n) => Some(n as f64),
                Value::Rate(r) => Some(r.0 as f64),
                Value::Duration(d) => Some(d.secs()),
                Value::Bytes(b) => Some(b.0 as f64),
                Value::Backlog(b) => Some(b.amount()),
                _ => None,
            };
            assert!(
                number.is_none_or(|x| f.bounds.allow(x)),
                "{mechanism}.{}: default out of bounds",
                f.name
            );
            // Tables take their memory at the start: no file may ask for more than there is.
            assert!(f.name != "flows" || f.bounds.max <= 1e6, "{mechanism}: a table of any size");
            if let Kind::Choice(words) = f.kind {
                assert!(matches!(value_of(f), Value::Choice(w) if words.contains(&w)));
            }
            if let Kind::Group(fields) = f.kind {
                inspect(mechanism, fields);
            }
        }
    }

    fn catalogue<M>(entries: &[Entry<M>]) {
        let names: BTreeSet<_> = entries.iter().map(|e| e.name).collect();
        assert_eq!(names.len(), entries.len(), "a mechanism's name twice");
        for e in entries {
            assert!(!e.summary.is_empty() && !e.source.is_empty(), "{}", e.name);
            inspect(e.name, e.fields);
            let values = values_of(e.fields);
            (e.check)(&values, &CONTEXT).unwrap_or_else(|f| panic!("{}: {f:?}", e.name));
            (e.build)(&values, &CONTEXT);
        }
    }

    #[test]
    fn every_mechanism_is_described_and_builds() {
        let r = Registry::default();
        catalogue(&r.markers);
        catalogue(&r.aqms);
    }

    /// Keys that a class has whatever its discipline and its scheduler are.
    const OF_A_CLASS: [&str; 4] = ["name", "aqm", "limit", "rate"];

    #[test]
    fn every_scheduler_is_described_and_builds() {
        let r = Registry::default();
        let taken: BTreeSet<&str> =
            r.aqms.iter().flat_map(|e| e.fields.iter().map(|f| f.name)).chain(OF_A_CLASS).collect();
        for e in &r.schedulers {
            assert!(!e.summary.is_empty() && !e.source.is_empty(), "{}", e.name);
            inspect(e.name, e.fields);
            let class = values_of(e.fields);
            (e.check)(&class, &CONTEXT).unwrap_or_else(|f| panic!("{}: {f:?}", e.name));
            let mut scheduler = (e.build)(&[class.clone(), class], &CONTEXT);
            assert_eq!(scheduler.next(&[None, Some(1000)]), Some(1), "{}", e.name);
            assert!(
                e.fields.iter().all(|f| !taken.contains(f.name)),
                "{}: a class has such a key already",
                e.name
            );
        }
        let of_aqms = r.aqms.iter().flat_map(|e| e.fields.iter().map(|f| f.name));
        for name in of_aqms {
            assert!(!OF_A_CLASS.contains(&name), "{name} is a key of classes");
        }
    }

    pub(super) fn round_trips<P: Params + PartialEq + std::fmt::Debug>() {
        let p = P::from_values(&values_of(P::FIELDS));
        assert_eq!(p.values(), values_of(P::FIELDS));
        assert_eq!(P::from_values(&p.values()), p);
    }

    #[test]
    fn parameters_can_be_read_back_as_written() {
        AnyMarker::parameters_round_trip();
        AnyAqm::parameters_round_trip();
        AnyScheduler::parameters_round_trip();
    }

    /// A user's own marker needs no change here.
    #[test]
    fn a_registry_takes_more() {
        struct AllOut;
        impl Mechanism for AllOut {}

        impl Marker for AllOut {
            fn mark<W: Why + ?Sized>(&mut self, _: Time, _: &Packet, _: &mut Rng, _: &mut W) -> Mark {
                Mark::Pass(Colour::OUT)
            }
        }
        let mut r = Registry::default();
        r.markers.push(Entry {
            name: "all_out",
            summary: "Everything OUT.",
            source: "this test",
            fields: &[],
            check: &|_, _| Ok(Vec::new()),
            build: &|_, _| AnyMarker::Custom(Box::new(AllOut)),
        });
        catalogue(&r.markers);
        let mut m = (r.markers[r.markers.len() - 1].build)(&Values::default(), &CONTEXT);
        let mut rng = Rng::for_component(1, "custom");
        let mark = m.mark(Time::ZERO, &Packet::default(), &mut rng, &mut Silent);
        assert_eq!(mark, Mark::Pass(Colour::OUT));
    }

    /// Asks for the figures behind each verdict, and forgets them.
    struct Asks;

    impl Why for Asks {
        fn note(&mut self, _: &'static str, _: f64) {}
    }

    /// The values by default, and with each other word of each choice.
    fn each_choice(fields: &[Field]) -> Vec<Values> {
        let mut all = vec![values_of(fields)];
        for (i, field) in fields.iter().enumerate() {
            if let Kind::Choice(words) = field.kind {
                all.extend(words.iter().map(|&word| {
                    let mut values = values_of(fields);
                    values.0[i].1 = Value::Choice(word);
                    values
                }));
            }
        }
        all
    }

    /// A thousand packets of a few flows and colours, some of them ECN-capable, too many for the link: when each comes.
    fn traffic() -> Vec<(Time, Packet)> {
        let mut rng = Rng::for_component(3, "traffic");
        let mut now = Time::ZERO;
        let mut packet = |_| {
            // Now and then the link has time to run idle.
            let most = if rng.below(50) == 0 { 300_000 } else { 9_000 };
            now += Duration::from_micros(u64::from(rng.below(most)));
            let colour = Colour::ALL[rng.below(3) as usize];
            let ecn = if rng.below(4) == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
            (
                now,
                Packet {
                    flow: FlowId(rng.below(5)),
                    size: 40 + rng.below(1460),
                    colour,
                    ecn,
                    ..Packet::default()
                },
            )
        };
        (0..1000).map(&mut packet).collect()
    }

    /// The decisions of a discipline at a link of 7 ms a packet, and the next random number. Every packet is accounted for.
    fn decisions<W: Why>(aqm: &mut AnyAqm, traffic: &[(Time, Packet)], why: &mut W) -> (Vec<String>, f64) {
        let limit = CONTEXT.limit.expect("the one that disciplines are built with");
        let mut queue: Fifo<Stamped> = Fifo::before(limit, aqm);
        let mut rng = Rng::for_component(1, "discipline");
        let mut outbox = Outbox::default();
        let mut tick = aqm.tick(Time::ZERO, &mut outbox);
        let (mut log, mut busy_until, mut lost) = (Vec::new(), None::<Time>, 0);
        for &(now, packet) in traffic {
            while let Some(at) = tick.filter(|at| *at <= now) {
                tick = aqm.tick(at, &mut outbox);
            }
            while let Some(at) = busy_until.filter(|at| *at <= now) {
                let mut dropped = |p: Stamped, cause| log.push(format!("{at:?} {:?} {cause:?}", p.flow));
                let sent = queue.depart(at, |p| p.packet, aqm, &mut rng, why, &mut dropped);
                busy_until = sent.map(|_| at + Duration::from_millis(7));
                log.push(format!("{at:?} {:?}", sent.map(|p| (p.flow, p.ecn))));
                if sent.is_none() {
                    queue.went_idle(at);
                }
            }
            let verdict = queue.arrive(now, &packet, Stamped { packet, since: now }, aqm, &mut rng, why);
            lost += u64::from(matches!(verdict, crate::verdict::Admission::Drop(_)));
            log.push(format!("{now:?} {verdict:?}"));
            if busy_until.is_none() {
                busy_until = Some(now);
            }
        }
        let counts = queue.counts();
        let dropped: u64 = Colour::ALL.iter().map(|c| counts.dropped_of(*c)).sum();
        let sent: u64 = counts.sent.iter().sum();
        assert_eq!(traffic.len() as u64, sent + dropped + u64::from(queue.packets()), "a packet is lost");
        assert!(dropped >= lost);
        (log, rng.uniform())
    }

    /// Asking for the figures behind its verdicts changes no verdict of any discipline or marker, and draws no random number.
    #[test]
    fn asking_why_changes_no_verdict() {
        let r = Registry::default();
        let traffic = traffic();
        for e in &r.aqms {
            for values in each_choice(e.fields).iter().filter(|v| (e.check)(v, &CONTEXT).is_ok()) {
                let silent = decisions(&mut (e.build)(values, &CONTEXT), &traffic, &mut Silent);
                let asked = decisions(&mut (e.build)(values, &CONTEXT), &traffic, &mut Asks);
                assert_eq!(silent, asked, "{}: {values:?}", e.name);
            }
        }
        for e in &r.markers {
            for values in each_choice(e.fields).iter().filter(|v| (e.check)(v, &CONTEXT).is_ok()) {
                fn marks<W: Why>(
                    marker: &mut AnyMarker,
                    traffic: &[(Time, Packet)],
                    why: &mut W,
                ) -> (Vec<Mark>, f64) {
                    let mut rng = Rng::for_component(1, "marker");
                    let marks = traffic.iter().map(|(now, p)| marker.mark(*now, p, &mut rng, why)).collect();
                    (marks, rng.uniform())
                }
                let silent = marks(&mut (e.build)(values, &CONTEXT), &traffic, &mut Silent);
                let asked = marks(&mut (e.build)(values, &CONTEXT), &traffic, &mut Asks);
                assert_eq!(silent, asked, "{}: {values:?}", e.name);
            }
        }
    }
}
