//! The options by which a file selects ns-2's variants: their names, their checks, and what they build.
//!
//! A mechanism that ns-2 computes differently keeps its own parameters and gets one more, `variant` (for drop-tail it is
//! `limit_rule`, and RIO's `avg_update` has one more choice); with `ns2` there, ns-2's version is built.

use crate::aqm::drop_tail::DropTail;
use crate::aqm::red::law::Floyd93;
use crate::aqm::red::{self, rio, rio_plus_out};
use crate::aqm::{fdd_red, pi, rem};
use crate::marker::{tsw2cm, tsw3cm};
use crate::ns2::red::{Ns2Red, Ns2Rio};
use crate::ns2::rio::AtInOnly;
use crate::params::{Bounds, Check, Default, Field, Kind, Make, Params, Value, Values, joined_len, same};
use crate::prelude::*;
use crate::registry::mechanisms::{AnyAqm, AnyMarker, Entry};

/// The word for ns-2's variant.
pub const NS2: &str = "ns2";
/// The word for Floyd and Jacobson's.
pub const FLOYD93: &str = "floyd93";
/// The word for Hollot, Misra, Towsley and Gong's.
pub const HOLLOT01: &str = "hollot01";
/// The word for Athuraliya, Li, Low and Yin's.
pub const ATHURALIYA01: &str = "athuraliya01";
/// The word for RFC 2859's.
pub const RFC2859: &str = "rfc2859";

/// Whether a parameter says that ns-2's variant is meant.
#[must_use]
pub fn is_set(values: &Values, name: &str) -> bool {
    values.get(name) == Some(&Value::Choice(NS2))
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    doc: &'static [&'static str],
    default: &'static (dyn Fn() -> Value + Send + Sync),
) -> Field {
    Field { name, kind: Kind::Choice(words), bounds: Bounds::ANY, doc, default: Default::Value(default) }
}

const LIMIT_RULE: Field = choice(
    "limit_rule",
    &["waiting", NS2],
    &[
        "Whether a limit of n packets holds n waiting packets (`waiting`), or n − 1 as in ns-2 (`ns2`). Under `[tcp] profile = \"ns2\"`, the default is `ns2` for a limit in packets, in any engine.",
    ],
    &|| Value::Choice("waiting"),
);
const VARIANT: Field = choice(
    "variant",
    &[FLOYD93, NS2],
    &["Floyd and Jacobson's algorithm (1993, Fig. 2), or ns-2 2.35's, to the last bit and random number."],
    &|| Value::Choice(FLOYD93),
);
const VARIANT_OF_RED: Field = choice(
    "variant",
    &[FLOYD93, NS2],
    &[
        "Floyd and Jacobson's algorithm, or ns-2's, random number by random number: with thresholds in bytes that counts the limit in bytes, too, a packet for mean_packet, and lets a packet join while fewer wait; `drop = \"front\"` is the packet behind the front one, as ns-2's `drop_front_` has it.",
    ],
    &|| Value::Choice(FLOYD93),
);
const VARIANT_OF_PI: Field = choice(
    "variant",
    &[HOLLOT01, NS2],
    &[
        "Hollot et al.'s algorithm (2001, §5), or ns-2 2.35's, random number by random number: every arrival that finds room draws one, and with q_ref in bytes the limit counts in bytes, too, a packet for mean_packet.",
    ],
    &|| Value::Choice(HOLLOT01),
);
const VARIANT_OF_REM: Field = choice(
    "variant",
    &[ATHURALIYA01, NS2],
    &[
        "Athuraliya et al.'s algorithm (2001), or ns-2 2.35's, random number by random number: of a limit of n packets n − 1 wait, every arrival that finds room draws, with b_star in bytes a chance is scaled by size, and with ecn departures are marked and nothing is dropped early.",
    ],
    &|| Value::Choice(ATHURALIYA01),
);
const CHANCES: Field =
    choice("variant", &[RFC2859, NS2], &["RFC 2859's algorithm, or ns-2's to the last bit."], &|| {
        Value::Choice(RFC2859)
    });

/// RIO's option with the word for the fault in ns-2's averages.
const fn avg_update(default: &'static (dyn Fn() -> Value + Send + Sync)) -> Field {
    choice(
        "avg_update",
        &["clark_fang", "every_arrival", "own_colour", NS2],
        &[
            "At which arrivals the averages take a sample; `ns2`: both at IN arrivals only, a known fault of ns-2's Queue/RED/RIO.",
        ],
        default,
    )
}

/// Fields of some parameters, each in its place; `ours` stand for those of the same name, or after all.
const fn offered<const N: usize>(fields: &[Field], ours: &[Field]) -> [Field; N] {
    let mut all = [fields[0]; N];
    let (mut n, mut i) = (0, 0);
    while i < fields.len() + ours.len() {
        let field = if i < fields.len() { fields[i] } else { ours[i - fields.len()] };
        let mut at = n;
        let mut j = 0;
        while j < n {
            if same(all[j].name, field.name) {
                at = j;
            }
            j += 1;
        }
        all[at] = field;
        if at == n {
            n += 1;
        }
        i += 1;
    }
    all
}

/// [`offered`], of parameters.
macro_rules! fields {
    ([$($ours:expr),*], $params:ty) => {{
        const OURS: &[Field] = &[$($ours),*];
        const ALL: [Field; joined_len(OURS, <$params>::FIELDS)] = offered(<$params>::FIELDS, OURS);
        &ALL
    }};
}

/// An entry with these fields, check and build.
fn entry<M>(ours: &Entry<M>, fields: &'static [Field], check: Check, build: Make<M>) -> Entry<M> {
    Entry { fields, check, build, ..*ours }
}

/// The disciplines, with what ns-2 makes of them.
#[must_use]
pub fn aqms(ours: &[Entry<AnyAqm>]) -> Vec<Entry<AnyAqm>> {
    let with_ns2 = |e: &Entry<AnyAqm>| match e.name {
        "drop_tail" => entry(e, &[LIMIT_RULE], &check_limit, &build_drop_tail),
        "red" => entry(
            e,
            fields!([VARIANT_OF_RED], red::Params),
            &|v, c| red::Params::from_values(v).check(c),
            &|v, c| {
                let p = red::Params::from_values(v);
                if is_set(v, "variant") {
                    AnyAqm::Ns2Red(Box::new(p.discipline::<Ns2Red>(c)))
                } else {
                    AnyAqm::Red(Box::new(p.build(c)))
                }
            },
        ),
        "rio" => entry(
            e,
            fields!([VARIANT, avg_update(&|| Value::Choice("clark_fang"))], rio::Params),
            &|v, c| own_counts(v).and_then(|()| rio::Params::from_values(&without_fault(v)).check(c)),
            &|v, c| {
                let p = rio::Params::from_values(&without_fault(v));
                match (is_set(v, "variant"), is_set(v, "avg_update")) {
                    (false, false) => AnyAqm::Rio(Box::new(p.build(c))),
                    (true, false) => AnyAqm::Ns2Rio(Box::new(p.discipline::<Ns2Rio>(c))),
                    (false, true) => AnyAqm::RioAtIn(Box::new(p.discipline::<AtInOnly<Floyd93>>(c))),
                    (true, true) => AnyAqm::Ns2RioAtIn(Box::new(p.discipline::<AtInOnly<Ns2Rio>>(c))),
                }
            },
        ),
        "rio_plus_out" => entry(
            e,
            fields!([VARIANT, avg_update(&|| Value::Choice("every_arrival"))], rio_plus_out::Params),
            &|v, c| {
                own_counts(v).and_then(|()| rio_plus_out::Params::from_values(&without_fault(v)).check(c))
            },
            &|v, c| {
                let p = rio_plus_out::Params::from_values(&without_fault(v));
                match (is_set(v, "variant"), is_set(v, "avg_update")) {
                    (false, false) => AnyAqm::RioPlusOut(Box::new(p.build(c))),
                    (true, false) => AnyAqm::Ns2RioPlusOut(Box::new(p.discipline::<Ns2Rio>(c))),
                    (false, true) => AnyAqm::RioPlusOutAtIn(Box::new(p.discipline::<AtInOnly<Floyd93>>(c))),
                    (true, true) => AnyAqm::Ns2RioPlusOutAtIn(Box::new(p.discipline::<AtInOnly<Ns2Rio>>(c))),
                }
            },
        ),
        "pi" => entry(
            e,
            fields!([VARIANT_OF_PI], pi::Params),
            &|v, c| pi::Params::from_values(v).check(c),
            &|v, c| {
                let p = pi::Params::from_values(v);
                if is_set(v, "variant") {
                    AnyAqm::Ns2Pi(Box::new(p.discipline(c)))
                } else {
                    AnyAqm::Pi(Box::new(p.build(c)))
                }
            },
        ),
        "rem" => entry(
            e,
            fields!([VARIANT_OF_REM], rem::Params),
            &|v, c| {
                let p = rem::Params::from_values(v);
                if is_set(v, "variant") { super::rem::check(&p, c) } else { p.check(c) }
            },
            &|v, c| {
                let p = rem::Params::from_values(v);
                if is_set(v, "variant") {
                    AnyAqm::Ns2Rem(Box::new(super::rem::Rem::new(&p, c)))
                } else {
                    AnyAqm::Rem(Box::new(p.build(c)))
                }
            },
        ),
        "fdd_red" => entry(
            e,
            fields!([VARIANT], fdd_red::Params),
            &|v, c| fdd_red::Params::from_values(v).check(c),
            &|v, c| {
                let p = fdd_red::Params::from_values(v);
                if is_set(v, "variant") {
                    AnyAqm::Ns2FddRed(Box::new(p.discipline::<Ns2Red>(c)))
                } else {
                    AnyAqm::FddRed(Box::new(p.build(c)))
                }
            },
        ),
        _ => *e,
    };
    ours.iter().map(with_ns2).collect()
}

/// The markers, with what ns-2 makes of them.
#[must_use]
pub fn markers(ours: &[Entry<AnyMarker>]) -> Vec<Entry<AnyMarker>> {
    let with_ns2 = |e: &Entry<AnyMarker>| match e.name {
        "tsw2cm" => entry(
            e,
            fields!([CHANCES], tsw2cm::Params),
            &|v, c| tsw2cm::Params::from_values(v).check(c),
            &|v, c| {
                let p = tsw2cm::Params::from_values(v);
                if is_set(v, "variant") {
                    AnyMarker::Ns2Tsw2cm(p.marker(c))
                } else {
                    AnyMarker::Tsw2cm(p.build(c))
                }
            },
        ),
        "tsw3cm" => entry(
            e,
            fields!([CHANCES], tsw3cm::Params),
            &|v, c| tsw3cm::Params::from_values(v).check(c),
            &|v, c| {
                let p = tsw3cm::Params::from_values(v);
                if is_set(v, "variant") {
                    AnyMarker::Ns2Tsw3cm(Box::new(p.marker(c)))
                } else {
                    AnyMarker::Tsw3cm(Box::new(p.build(c)))
                }
            },
        ),
        _ => *e,
    };
    ours.iter().map(with_ns2).collect()
}

/// The word of a choice.
#[must_use]
pub fn word(values: &Values, name: &str) -> &'static str {
    match values.get(name) {
        Some(Value::Choice(word)) => word,
        _ => "",
    }
}

/// The same with a word for `avg_update` that RIO itself knows.
#[must_use]
pub fn without_fault(values: &Values) -> Values {
    let known = |(name, value): &(&'static str, Value)| match (*name, value) {
        ("avg_update", Value::Choice(NS2)) => ("avg_update", Value::Choice("clark_fang")),
        _ => (*name, value.clone()),
    };
    Values(values.0.iter().map(known).collect())
}

/// ns-2's RIO has a count for each colour and nothing else.
fn own_counts(values: &Values) -> Result<(), Fault> {
    if is_set(values, "variant") && values.get("count") == Some(&Value::Choice(rio::Counted::Shared.word())) {
        return Err(Fault {
            field: "count",
            problem: "variant = \"ns2\" counts IN and OUT packets apart, as ns-2 does".into(),
            remedy: "count = \"own\", or variant = \"floyd93\"".into(),
        });
    }
    Ok(())
}

fn check_limit(values: &Values, context: &Context) -> Result<Vec<Warning>, Fault> {
    match context.limit {
        Some(Backlog::Packets(n)) if n < 2.0 && is_set(values, "limit_rule") => Err(Fault {
            field: "limit_rule",
            problem: format!("with limit_rule = \"ns2\" a limit of {n} packets drops everything"),
            remedy: "a limit of at least 2 packets".into(),
        }),
        Some(Backlog::Bytes(_)) if is_set(values, "limit_rule") => Err(Fault {
            field: "limit_rule",
            problem: "limit_rule = \"ns2\" is about packets, the limit is in bytes".into(),
            remedy: "a limit in packets, or limit_rule = \"waiting\"".into(),
        }),
        _ => Ok(Vec::new()),
    }
}

fn build_drop_tail(values: &Values, _: &Context) -> AnyAqm {
    AnyAqm::DropTail(if is_set(values, "limit_rule") {
        DropTail::with_the_one_in_transmission()
    } else {
        DropTail::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_limit_that_drops_everything_is_refused() {
        let registry = Registry::default();
        let drop_tail = registry.aqms.iter().find(|e| e.name == "drop_tail").unwrap();
        let check = |rule, limit| {
            let context =
                Context { link_rate: None, contract: None, packet: Bytes(1000), limit: Some(limit) };
            let values = Values(vec![("limit_rule", Value::Choice(rule))]);
            (drop_tail.check)(&values, &context).map_err(|f| f.field)
        };
        assert_eq!(check(NS2, Backlog::Packets(1.0)), Err("limit_rule"));
        assert_eq!(check(NS2, Backlog::Bytes(9e9)), Err("limit_rule"));
        assert_eq!(check(NS2, Backlog::Packets(2.0)), Ok(Vec::new()));
        assert_eq!(check("waiting", Backlog::Bytes(9e9)), Ok(Vec::new()));
    }

    /// Each word builds what it says, and what a mechanism has without ns-2 is all there, once.
    #[test]
    fn words_build_what_they_say() {
        let registry = Registry::default();
        for e in &registry.aqms {
            let names: Vec<_> = e.fields.iter().map(|f| f.name).collect();
            assert!((1..names.len()).all(|i| !names[..i].contains(&names[i])), "{}: {names:?}", e.name);
        }
        let rio = registry.aqms.iter().find(|e| e.name == "rio").unwrap();
        let packets = |n| Value::Backlog(Backlog::Packets(n));
        let group = || {
            let th = [("min_th", packets(5.0)), ("max_th", packets(15.0)), ("max_p", Value::Number(0.1))];
            Value::Group(Values(th.to_vec()))
        };
        let context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
        let built = |variant, avg_update| {
            let given = vec![
                ("in", group()),
                ("out", group()),
                ("variant", Value::Choice(variant)),
                ("avg_update", Value::Choice(avg_update)),
            ];
            format!("{:?}", (rio.build)(&Values(given).filled(rio.fields), &context))
        };
        assert_eq!(built(FLOYD93, "own_colour"), "Rio");
        assert_eq!(built(NS2, "every_arrival"), "Ns2Rio");
        assert_eq!(built(FLOYD93, NS2), "RioAtIn");
        assert_eq!(built(NS2, NS2), "Ns2RioAtIn");
        let shared = |variant| {
            let given = vec![
                ("in", group()),
                ("out", group()),
                ("variant", Value::Choice(variant)),
                ("count", Value::Choice("shared")),
            ];
            (rio.check)(&Values(given).filled(rio.fields), &context).map(|_| ()).map_err(|f| f.field)
        };
        assert_eq!((shared(FLOYD93), shared(NS2)), (Ok(()), Err("count")));
    }
}
