//! The meters on the hand-derived vectors of `validation/meters`.

use inprofile_core::marker::Action;
use inprofile_core::marker::meter::{Mode, rfc4115, srtcm, trtcm};
use inprofile_core::packet::{Colour, Packet};
use inprofile_core::params::{Build, Context};
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Rate, Time};
use inprofile_core::verdict::{Mark, Silent};
use toml::de::{DeTable, DeValue};

/// Packets of a byte: no setup is refused, and depths are in bytes anyhow.
const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1), limit: None };

struct Vector<'a>(&'a DeTable<'a>);

impl Vector<'_> {
    fn number(&self, key: &str) -> u64 {
        number(self.0.get(key).unwrap_or_else(|| panic!("{}: no {key}", self.text("name"))).get_ref())
    }
    fn rate(&self, key: &str) -> Rate {
        Rate(self.number(key))
    }
    fn depth(&self, key: &str) -> Backlog {
        Backlog::Bytes(self.number(key) as f64)
    }
    fn text(&self, key: &str) -> String {
        text(self.0.get(key).unwrap_or_else(|| panic!("a vector has no {key}")).get_ref())
    }
    fn mode(&self) -> Mode {
        let word = self.text("mode");
        Mode::ALL.into_iter().find(|m| m.word() == word).unwrap_or_else(|| panic!("mode {word}"))
    }
}

fn number(value: &DeValue<'_>) -> u64 {
    match value {
        DeValue::Integer(n) => n.as_str().parse().unwrap_or_else(|_| panic!("{n} is no number")),
        other => panic!("{other:?} where a number belongs"),
    }
}

fn text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => s.to_string(),
        other => panic!("{other:?} where a text belongs"),
    }
}

fn colour(value: &DeValue<'_>) -> Colour {
    match text(value).as_str() {
        "green" => Colour::Green,
        "yellow" => Colour::Yellow,
        "red" => Colour::Red,
        other => panic!("{other} is no colour"),
    }
}

/// Every vector of the file; returns how many, and packets.
fn hold(file: &str, build: impl Fn(&Vector<'_>) -> AnyMarker) -> (usize, usize) {
    let document = DeTable::parse(file).expect("the vectors are TOML");
    let Some(DeValue::Array(vectors)) = document.get_ref().get("vector").map(|v| v.get_ref()) else {
        panic!("no vectors");
    };
    let mut rng = Rng::for_component(0, "unused");
    let mut packets = 0;
    for vector in vectors.iter() {
        let DeValue::Table(table) = vector.get_ref() else { panic!("a vector is a table") };
        let vector = Vector(table);
        let mut meter = build(&vector);
        let Some(DeValue::Array(list)) = table.get("packets").map(|p| p.get_ref()) else {
            panic!("{}: no packets", vector.text("name"));
        };
        for (i, packet) in list.iter().enumerate() {
            let DeValue::Array(fields) = packet.get_ref() else { panic!("a packet is a list") };
            let [at, size, came, left] = [0, 1, 2, 3].map(|k| fields[k].get_ref());
            let packet = Packet { size: number(size) as u32, colour: colour(came), ..Packet::default() };
            let mark = meter.mark(Time(number(at) * 1_000_000), &packet, &mut rng, &mut Silent);
            assert_eq!(mark, Mark::Pass(colour(left)), "{}, packet {}", vector.text("name"), i + 1);
            packets += 1;
        }
    }
    (vectors.len(), packets)
}

/// RFC 2697 §2, §3.
#[test]
fn srtcm_as_derived_by_hand() {
    let done = hold(include_str!("../../../validation/meters/srtcm.toml"), |v| {
        let (cbs, ebs) = (v.depth("cbs"), v.depth("ebs"));
        let p = srtcm::Params { cir: Some(v.rate("cir")), cbs, ebs, mode: v.mode(), action: Action::Mark };
        AnyMarker::SrTcm(Box::new(p.build(&CONTEXT)))
    });
    assert_eq!(done, (21, 74));
}

/// RFC 2698 §2, §3.
#[test]
fn trtcm_as_derived_by_hand() {
    let done = hold(include_str!("../../../validation/meters/trtcm.toml"), |v| {
        let (cir, pir) = (Some(v.rate("cir")), v.rate("pir"));
        let p = trtcm::Params {
            cir,
            pir,
            cbs: v.depth("cbs"),
            pbs: v.depth("pbs"),
            mode: v.mode(),
            action: Action::Mark,
        };
        AnyMarker::TrTcm(Box::new(p.build(&CONTEXT)))
    });
    assert_eq!(done, (18, 66));
}

/// RFC 4115 §1, §3.
#[test]
fn rfc4115_as_derived_by_hand() {
    let done = hold(include_str!("../../../validation/meters/rfc4115.toml"), |v| {
        let prose = v.0.contains_key("boundary") && v.text("boundary") == rfc4115::Boundary::MoreThan.word();
        let p = rfc4115::Params {
            cir: Some(v.rate("cir")),
            eir: v.rate("eir"),
            cbs: v.depth("cbs"),
            ebs: v.depth("ebs"),
            mode: v.mode(),
            boundary: if prose { rfc4115::Boundary::MoreThan } else { rfc4115::Boundary::AtLeast },
            action: Action::Mark,
        };
        AnyMarker::Rfc4115(Box::new(p.build(&CONTEXT)))
    });
    assert_eq!(done, (16, 65));
}
