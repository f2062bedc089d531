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
