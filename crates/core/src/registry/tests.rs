use super::*;
use crate::mechanism::Mechanism;
use crate::params::{Context, Default as Fallback, Kind, Value, Values};
use crate::queue;
use crate::queue::scheduler::Scheduler;
use crate::units::{Backlog, Bytes, Duration, Rate};
use crate::verdict::Silent;
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
        Kind::Number => Value::Number(0.5),
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
        assert!(number.is_none_or(|x| f.bounds.allow(x)), "{mechanism}.{}: default out of bounds", f.name);
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

fn round_trips<P: Params + PartialEq + std::fmt::Debug>() {
    let p = P::from_values(&values_of(P::FIELDS));
    assert_eq!(p.values(), values_of(P::FIELDS));
    assert_eq!(P::from_values(&p.values()), p);
}

#[test]
fn parameters_can_be_read_back_as_written() {
    round_trips::<marker::token_bucket::Params>();
    round_trips::<marker::tsw2cm::Params>();
    round_trips::<marker::tsw3cm::Params>();
    round_trips::<marker::ard::Params>();
    round_trips::<marker::ard::ArmParams>();
    round_trips::<marker::blind_drop::Params>();
    round_trips::<marker::probe::Params>();
    round_trips::<marker::every_nth::Params>();
    round_trips::<marker::twam::Params>();
    round_trips::<marker::meter::srtcm::Params>();
    round_trips::<marker::meter::trtcm::Params>();
    round_trips::<marker::meter::rfc4115::Params>();
    round_trips::<marker::colour::Params>();
    round_trips::<aqm::drop_tail::Params>();
    round_trips::<aqm::red::Params>();
    round_trips::<aqm::rio::Params>();
    round_trips::<aqm::ared::Params>();
    round_trips::<aqm::dwred::Params>();
    round_trips::<aqm::rio_plus_out::Params>();
    round_trips::<queue::priority::Params>();
    round_trips::<queue::drr::Params>();
    round_trips::<aqm::fdd_red::Params>();
    round_trips::<aqm::wred::Params>();
    round_trips::<aqm::fq_codel::Params>();
    round_trips::<aqm::fq_pie::Params>();
    round_trips::<aqm::sfq::Params>();
    round_trips::<ns2::dsred::Params>();
    round_trips::<ns2::sfq::Params>();
    round_trips::<ns2::drr::Params>();
}

/// A user's own marker needs no change here.
#[test]
fn a_registry_takes_more() {
    struct AllOut;
    impl Mechanism for AllOut {}

    impl Marker for AllOut {
        fn mark<W: Why + ?Sized>(&mut self, _: Time, _: &Packet, _: &mut Rng, _: &mut W) -> Mark {
            Mark::Pass(crate::packet::Colour::OUT)
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
    assert_eq!(mark, Mark::Pass(crate::packet::Colour::OUT));
}
