use super::*;
use crate::registry::Registry;
use crate::units::Bytes;

#[test]
fn a_limit_that_drops_everything_is_refused() {
    let registry = Registry::default();
    let drop_tail = registry.aqms.iter().find(|e| e.name == "drop_tail").unwrap();
    let check = |rule, limit| {
        let context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: Some(limit) };
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
