//! Experiments that extend one another: the same as if they were written out, and refused where the mistake is.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_experiment::text::extends::{Base, bases};
use inprofile_experiment::text::{Document, Problem};

const BASE: &str = r#"title = "base"
duration = "10 s"
seeds = 3
[tcp]
congestion = "newreno"
window = "40 packets"
[[links]]
name = "core"
from = "E"
to = "C"
rate = "2 Mbit/s"
delay = "10 ms"
queue = { aqm = "red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets", max_p = 0.1, w_q = 0.02 }
[[flows]]
name = "paid"
from = "E"
to = "C"
contract = "300 kbit/s"
marker = { kind = "token_bucket", depth = "4 packets" }
[[edges]]
node = "E"
marker = { kind = "colour", colour = "out" }
[[monitors]]
queue = "core"
every = "500 ms"
"#;

/// Names and texts.
type Files<'a> = &'a [(&'a str, &'a str)];
/// Old and new.
type Edits<'a> = &'a [(&'a str, &'a str)];

/// The first of these files with what it extends.
fn read(files: Files<'_>, set: &[(String, String)]) -> Result<Scenario, Vec<Problem>> {
    let (file, text) = files[0];
    let found = bases(text, file, &reader(files))?;
    Scenario::parse_extended(text, file, &found, set, &Registry::default())
}

fn reader(files: Files<'_>) -> impl Fn(&Path) -> io::Result<Vec<u8>> {
    let all: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
    move |path| all.get(path.to_str().unwrap()).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn canonical(text: &str) -> String {
    crate::parse(text).canonical()
}

/// `BASE` with each of these texts, found once, replaced.
fn edited(edits: Edits<'_>) -> String {
    edits.iter().fold(BASE.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    })
}

#[test]
fn an_extended_experiment_is_the_same_as_written_out() {
    let red = r#"{ aqm = "red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets", max_p = 0.1, w_q = 0.02 }"#;
    let end = "[[monitors]]\nqueue = \"core\"\nevery = \"500 ms\"\n";
    let of_paid = "[[monitors]]\nflows = \"paid\"\nevery = \"1 s\"\n";
    let free = "[[flows]]\nname = \"free\"\nfrom = \"E\"\nto = \"C\"\n";
    let more = format!("{end}{of_paid}");
    let cases: &[(&str, String, Edits<'_>)] = &[
        ("nothing else", String::new(), &[]),
        ("a value", "duration = \"20 s\"".into(), &[("\"10 s\"", "\"20 s\"")]),
        (
            "a key of a table",
            "[tcp]\nwindow = \"9 packets\"".into(),
            &[("\"40 packets\"\n[[", "\"9 packets\"\n[[")],
        ),
        (
            "a link by its name",
            "[[links]]\nname = \"core\"\nrate = \"3 Mbit/s\"".into(),
            &[("2 Mbit/s", "3 Mbit/s")],
        ),
        (
            "a parameter of the queue",
            "[[links]]\nname = \"core\"\nqueue = { max_p = 0.2 }".into(),
            &[("max_p = 0.1", "max_p = 0.2")],
        ),
        (
            "a parameter beside the same name",
            "[[links]]\nname = \"core\"\nqueue = { aqm = \"red\", max_p = 0.2 }".into(),
            &[("max_p = 0.1", "max_p = 0.2")],
        ),
        (
            "another discipline takes nothing over",
            "[[links]]\nname = \"core\"\nqueue = { aqm = \"drop_tail\", limit = \"9 packets\" }".into(),
            &[(red, "{ aqm = \"drop_tail\", limit = \"9 packets\" }")],
        ),
        (
            "another marker takes nothing over",
            "[[flows]]\nname = \"paid\"\nmarker = { kind = \"colour\", colour = \"out\" }".into(),
            &[(
                "{ kind = \"token_bucket\", depth = \"4 packets\" }",
                "{ kind = \"colour\", colour = \"out\" }",
            )],
        ),
        (
            "an edge by its node",
            "[[edges]]\nnode = \"E\"\nmarker = { colour = \"in\" }".into(),
            &[("colour = \"out\"", "colour = \"in\"")],
        ),
        (
            "a monitor by what it samples",
            "[[monitors]]\nqueue = \"core\"\nevery = \"1 s\"\n".into(),
            &[("500 ms", "1 s")],
        ),
        ("a monitor of something else", of_paid.into(), &[(end, &more)]),
        ("a new name at the end", free.into(), &[("[[edges]]", &format!("{free}[[edges]]"))]),
        ("an empty list", "monitors = []".into(), &[(end, "")]),
    ];
    for (what, over, edits) in cases {
        let over = format!("extends = \"base.toml\"\n{over}");
        let made = read(&[("over.toml", &over), ("base.toml", BASE)], &[]);
        let made = made.unwrap_or_else(|problems| panic!("{what}: {}", problems[0]));
        assert_eq!(made.canonical(), canonical(&edited(edits)), "{what}");
    }
}

#[test]
fn a_new_name_follows_the_one_before_it() {
    let [core, paid, edge] =
        ["queue = \"core\"", "flows = \"paid\"", "edge = \"E\""].map(|of| format!("[[monitors]]\n{of}\n"));
    let all = |monitors: &[&String]| {
        let every = monitors.iter().map(|m| format!("{m}every = \"500 ms\"\n"));
        BASE.replace(&format!("{core}every = \"500 ms\"\n"), &every.collect::<String>())
    };
    let over = format!("extends = \"base.toml\"\n{core}{edge}every = \"500 ms\"\n");
    let made = read(&[("over.toml", &over), ("base.toml", &all(&[&core, &paid]))], &[]).unwrap();
    assert_eq!(made.canonical(), canonical(&all(&[&core, &edge, &paid])));
}

#[test]
fn each_file_of_a_chain_is_beside_the_one_that_names_it() {
    let files: Files<'_> = &[
        ("a/over.toml", "extends = \"b/middle.toml\"\ntitle = \"over\""),
        ("a/b/middle.toml", "extends = \"../base.toml\"\ntitle = \"middle\"\nseeds = 7"),
        ("a/b/../base.toml", BASE),
    ];
    let made = read(files, &[]).unwrap();
    assert_eq!((made.title(), made.seeds()), ("over", 7));
}

#[test]
fn overrides_are_put_on_top() {
    let files: Files<'_> = &[("over.toml", "extends = \"base.toml\"\ntitle = \"over\""), ("base.toml", BASE)];
    let set = |key: &str, value: &str| read(files, &[(key.to_owned(), value.to_owned())]);
    assert_eq!(set("title", "\"set\"").unwrap().title(), "set");
    let said = set("links.core.rate", "2").unwrap_err()[0].to_string();
    assert!(said.starts_with("--set links.core.rate=2: error: links.core.rate = 2: a rate needs"), "{said}");
}

#[test]
fn a_value_has_its_place_in_the_file_that_gives_it() {
    let over = "extends = \"base.toml\"\n[tcp]\nwindow = \"9 packets\"";
    let found = [Base { file: "base.toml".into(), text: BASE.into() }];
    let document = Document::parse_extended(over, "over.toml", &found, &[]).unwrap();
    assert_eq!(document.place_of("tcp.window"), ("over.toml:3".to_owned(), true));
    assert_eq!(document.place_of("links.core.rate"), ("base.toml:11".to_owned(), true));
}

#[test]
fn what_is_written_out_needs_no_other_file() {
    let over = "extends = \"base.toml\"\ntitle = \"\\\"ü\\\" \\\\ \\u007f\"\n[[links]]\nname = \"core\"\nqueue = { max_p = 1e-1 }";
    let found = [Base { file: "base.toml".into(), text: BASE.into() }];
    let document = Document::parse_extended(over, "over.toml", &found, &[]).unwrap();
    let again = Document::parse(&document.written(), "over.toml", &[]).unwrap();
    assert_eq!(again.written(), document.written());
    assert!(document.written().contains(r#"title = "\"ü\" \\ \u007f""#), "{}", document.written());
    let files: Files<'_> = &[("over.toml", &over.replace("\\u007f", "")), ("base.toml", BASE)];
    let made = read(files, &[]).unwrap();
    let whole = Document::parse_extended(files[0].1, "over.toml", &found, &[]).unwrap().written();
    assert_eq!(canonical(&whole), made.canonical());
}

#[test]
fn a_mistake_is_told_where_it_is() {
    let over = |line: &str| format!("title = \"over\"\n{line}\n");
    let deep: Vec<(String, String)> =
        (0..20).map(|i| (format!("{i}.toml"), format!("extends = \"{}.toml\"", i + 1))).collect();
    let deep: Vec<(&str, &str)> = deep.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let wrong_base = edited(&[("2 Mbit/s", "2")]);
    let to_base = over("extends = \"base.toml\"");
    let cases: &[(Files<'_>, &str)] = &[
        (
            &[("over.toml", &over("extends = \"bse.toml\""))],
            "over.toml:2:11: error: extends = \"bse.toml\": there is no file bse.toml\n  name an experiment file, by its path from the folder of over.toml",
        ),
        (
            &[("over.toml", &over("extends = 3"))],
            "over.toml:2:11: error: extends = 3: this is a number, not the name of a file\n  write extends = \"base.toml\", a file beside this one",
        ),
        (
            &[("over.toml", &over("extends = \" \""))],
            "over.toml:2:11: error: extends = \" \": this names no file\n  write extends = \"base.toml\", a file beside this one",
        ),
        (
            &[("over.toml", &over("extends = \"./x/../over.toml\""))],
            "over.toml:2:11: error: extends = \"./x/../over.toml\": ./x/../over.toml extends itself by this\n  name a file that does not lead back here",
        ),
        (
            &[("over.toml", &to_base), ("base.toml", "extends = \"over.toml\"")],
            "base.toml:1:11: error: extends = \"over.toml\": over.toml extends itself by this\n  name a file that does not lead back here",
        ),
        (
            &deep,
            "16.toml:1:11: error: extends = \"17.toml\": more than 16 files extend one another\n  write some of them as one",
        ),
        (
            &[("over.toml", &to_base), ("base.toml", "extends = \"over.toml\"\nseeds = ")],
            "base.toml:2:9: error: seeds =: invalid TOML: string values must be quoted, expected literal string\n  write key = value, [table] or [[list of tables]]; strings and quantities in quotes",
        ),
        (
            &[("over.toml", &to_base), ("base.toml", &wrong_base)],
            "base.toml:11:8: error: links.core.rate = \"2\": a rate needs a unit\n  write \"2 Mbit/s\" (units: bit/s, kbit/s, Mbit/s or Gbit/s)",
        ),
        (
            &[("over.toml", &format!("{to_base}[tcp]\nwindw = \"9 packets\"")), ("base.toml", BASE)],
            "over.toml:4:1: error: tcp.windw: unknown key",
        ),
        (
            &[
                ("over.toml", &format!("{to_base}[[links]]\nname = \"cor\"\nrate = \"3 Mbit/s\"")),
                ("base.toml", BASE),
            ],
            "over.toml:3:1: error: links.cor.from: is missing",
        ),
        (
            &[("over.toml", &format!("{to_base}speed = 1")), ("base.toml", &format!("speed = 2\n{BASE}"))],
            "over.toml:3:1: error: speed: unknown key",
        ),
    ];
    for (files, expected) in cases {
        let said = read(files, &[]).unwrap_err()[0].to_string();
        let said = if expected.contains('\n') { said.as_str() } else { said.lines().next().unwrap() };
        assert!(said.starts_with(expected), "expected:\n{expected}\nsaid:\n{said}");
    }
}

#[test]
fn a_name_given_twice_in_one_file_is_refused_as_ever() {
    let over = "extends = \"base.toml\"\n[[links]]\nname = \"core\"\n[[links]]\nname = \"core\"\nrate = \"3 Mbit/s\"\n";
    let twice = format!(
        "{over}from = \"E\"\nto = \"C\"\ndelay = \"1 ms\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}"
    );
    let said = read(&[("over.toml", &twice), ("base.toml", BASE)], &[]).unwrap_err()[0].to_string();
    assert!(
        said.starts_with(
            "over.toml:5:8: error: links.core.name = \"core\": a link with this name already exists"
        ),
        "{said}"
    );
}

#[test]
fn a_base_that_is_no_text_has_a_place_too() {
    let read = |_: &Path| Ok(b"title = \"\xff\"".to_vec());
    let said = bases("extends = \"base.toml\"", "over.toml", &read).unwrap_err()[0].to_string();
    assert!(said.starts_with("base.toml:1:10: error: byte 0xff: the file is not UTF-8 text"), "{said}");
}

#[test]
fn a_text_that_comes_from_no_file_extends_nothing() {
    for (text, set) in [("extends = \"base.toml\"", None), (BASE, Some(("extends", "\"base.toml\"")))] {
        let set = crate::overrides(set.as_slice());
        let problems = Scenario::parse(text, "x.toml", &set, &Registry::default()).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].problem.contains("only an experiment in a file can extend another"));
    }
}

#[test]
fn all_files_together_take_no_more_memory_than_one_may() {
    let much = format!("a = [{}]", "1,".repeat(300_000));
    let over = format!("extends = \"base.toml\"\n{much}");
    let found = [Base { file: "base.toml".into(), text: much.clone() }];
    assert!(Document::parse(&much, "base.toml", &[]).is_ok());
    let Err(refused) = Document::parse_extended(&over, "over.toml", &found, &[]) else {
        panic!("not refused")
    };
    let said = refused[0].to_string();
    assert!(
        said.starts_with("base.toml:1:1: error: the file's values") && said.contains("150 MiB"),
        "{said}"
    );
}
