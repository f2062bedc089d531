//! What a user is told of mechanisms and keys: the catalogue, the schema, and the proposals for what has no default.

use inprofile_core::params::{Default, Field};
use inprofile_core::registry::Registry;
use inprofile_experiment::text::mechanism;
use inprofile_experiment::{Problem, Scenario, catalogue, schema};

#[test]
fn the_catalogue_has_every_parameter_once() {
    let all = catalogue(&Registry::default());
    let entries = all.as_array().unwrap();
    let rio = entries.iter().find(|e| e["name"] == "rio").unwrap();
    assert_eq!(rio["kind"], "aqm");
    let names: Vec<_> =
        rio["parameters"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["in.min_th", "in.max_th", "in.max_p", "out.min_th"]);
    let w_q = rio["parameters"].as_array().unwrap().iter().find(|p| p["name"] == "w_q").unwrap();
    assert_eq!(
        (w_q["default"].as_str(), w_q["bounds"].as_str()),
        (Some("0.002"), Some("above 0 and at most 1"))
    );
    let rate = &entries[0]["parameters"][0];
    assert_eq!(
        (rate["name"].as_str(), rate["default"].as_str()),
        (Some("rate"), Some("the flow's contract"))
    );
    for entry in entries {
        assert!(
            !entry["summary"].as_str().unwrap().is_empty() && !entry["source"].as_str().unwrap().is_empty()
        );
        for p in entry["parameters"].as_array().unwrap() {
            assert!(!p["doc"].as_str().unwrap().is_empty(), "{p}");
            assert_eq!(p.as_object().unwrap().len(), 6);
        }
    }
}

#[test]
fn the_schema_knows_every_key_the_parser_knows() {
    let schema = schema(&Registry::default());
    let keys =
        |v: &serde_json::Value| v["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(keys(&schema).len(), 14);
    for (table, at, count) in [
        ("links", "items", 15),
        ("trees", "items", 6),
        ("flows", "items", 13),
        ("edges", "items", 2),
        ("signals", "items", 4),
        ("monitors", "items", 4),
    ] {
        assert_eq!(keys(&schema["properties"][table][at]).len(), count, "{table}");
        for key in keys(&schema["properties"][table][at]) {
            // A key the schema has and the parser does not would be refused as unknown.
            let text = format!("[[{table}]]\n{key} = 1\n");
            let problems = Scenario::parse(&text, "x", &[], &Registry::default()).unwrap_err();
            assert!(problems.iter().all(|p| p.problem != "unknown key"), "{table}.{key}");
        }
    }
    let plan = &schema["properties"]["plan"];
    for (table, known, count) in [("plan", plan, 5), ("plan.router", &plan["properties"]["router"], 5)] {
        assert_eq!(keys(known).len(), count, "{table}");
        for key in keys(known) {
            let problems =
                Scenario::parse(&format!("[{table}]\n{key} = 1\n"), "x", &[], &Registry::default());
            assert!(problems.unwrap_err().iter().all(|p| p.problem != "unknown key"), "{table}.{key}");
        }
    }
    assert!(schema["properties"]["links"]["items"].get("required").is_none(), "the base may have it");
    for (part, place) in [(&schema, "#/$defs/queue_in_part"), (&schema["then"], "#/$defs/queue")] {
        let queue = &part["properties"]["links"]["items"]["properties"]["queue"]["$ref"];
        assert_eq!(queue.as_str(), Some(place));
    }
    assert!(schema["$defs"]["queue_in_part"]["anyOf"][0].get("required").is_none());
    let rio = schema["$defs"]["queue"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["properties"]["aqm"]["const"] == "rio")
        .unwrap()
        .clone();
    assert_eq!(rio["required"], serde_json::json!(["aqm", "limit", "in", "out"]));
    assert_eq!(rio["additionalProperties"], false);
    assert_eq!(rio["properties"]["w_q"]["exclusiveMinimum"], 0.0);
}

/// The proposals for parameters without a default: together a good setting, and each that may be left out is one with them.
#[test]
fn what_is_proposed_is_accepted() {
    fn accepted(name: &str, fields: &[Field], check: &dyn Fn(&str) -> Result<Scenario, Vec<Problem>>) {
        let one = |f: &Field| format!(", {} = {}", f.name, mechanism::example(f));
        let of = |fields: &[&Field]| fields.iter().map(|f| one(f)).collect::<String>();
        let needed: Vec<&Field> = fields.iter().filter(|f| matches!(f.default, Default::Required)).collect();
        let derived = fields.iter().filter(|f| matches!(f.default, Default::Derived));
        let settings = derived.map(|f| [&needed[..], &[f]].concat()).chain([needed.clone()]);
        for text in settings.map(|fields| of(&fields)) {
            check(&text).unwrap_or_else(|problems| panic!("{name}{text}: {problems:#?}"));
        }
    }
    let registry = Registry::default();
    let file = include_str!("good/two-flows.toml");
    let parse = |old: &str, new: &str| {
        assert_eq!(file.matches(old).count(), 1);
        Scenario::parse(&file.replace(old, new), "proposed.toml", &[], &registry)
    };
    for aqm in &registry.aqms {
        accepted(aqm.name, aqm.fields, &|text| {
            let new = format!(r#"aqm = "{}", limit = "100 packets"{text}"#, aqm.name);
            parse(r#"aqm = "drop_tail", limit = "100 packets""#, &new)
        });
    }
    for marker in &registry.markers {
        accepted(marker.name, marker.fields, &|text| {
            parse(
                r#"kind = "token_bucket", depth = "2 packets""#,
                &format!(r#"kind = "{}"{text}"#, marker.name),
            )
        });
    }
}
