//! Wrong files: each is refused, with its message. `cases.diff` has them as edits of a good file.
//! `UPDATE_GOLDEN=1` rewrites the messages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use inprofile_core::registry::Registry;
use inprofile_experiment::{Problem, Scenario, Severity};

/// A wrong file and what is said of it.
struct Case {
    name: String,
    bytes: Vec<u8>,
    said: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn table() -> String {
    std::fs::read_to_string(folder().join("cases.diff")).unwrap()
}

/// The cases of the table, which begin at `=== NAME`, `=== NAME (from BASE)` or `=== NAME (in ENCODING)`.
fn edited(table: &str) -> Vec<Case> {
    let cases = table.split("\n=== ").skip(1);
    cases
        .map(|case| {
            let (head, body) = case.split_once('\n').unwrap();
            let (head, encoding) = head.split_once(" (in ").unwrap_or((head, "UTF-8)"));
            let (name, base) = head.split_once(" (from ").unwrap_or((head, "two-flows)"));
            let (said, edits): (Vec<&str>, Vec<&str>) =
                body.lines().filter(|l| !l.is_empty()).partition(|l| l.starts_with('>'));
            let good = match base.trim_end_matches(')') {
                "nothing" => String::new(),
                base => std::fs::read_to_string(folder().join(format!("good/{base}.toml"))).unwrap(),
            };
            let hunks = edits.split(|l| *l == "@@").filter(|hunk| !hunk.is_empty());
            let bytes = encoded(&hunks.fold(good, |text, hunk| edit(&text, hunk, name)), encoding);
            let said = said.iter().map(|l| format!("{}\n", l.strip_prefix("> ").unwrap())).collect();
            Case { name: name.to_owned(), bytes, said }
        })
        .collect()
}

/// One edit: the lines it keeps and removes are in the text, in one place.
fn edit(text: &str, hunk: &[&str], name: &str) -> String {
    let side = |without: char| -> String {
        hunk.iter().filter(|l| !l.starts_with(without)).map(|l| format!("{}\n", &l[1..])).collect()
    };
    let (old, new) = (side('+'), side('-'));
    assert!(hunk.iter().all(|l| l.starts_with([' ', '+', '-'])), "{name}: {hunk:?}");
    if text.is_empty() {
        assert_eq!(old, "", "{name} is made from nothing");
        return new;
    }
    // Whole lines: each begins after a line's end.
    let (text, old, new) = (format!("\n{text}"), format!("\n{old}"), format!("\n{new}"));
    assert_eq!(text.matches(&old).count(), 1, "{name}: not once in the good file:{old}");
    text.replacen(&old, &new, 1)[1..].to_owned()
}

fn encoded(text: &str, encoding: &str) -> Vec<u8> {
    match encoding.trim_end_matches(')') {
        "UTF-8" => text.as_bytes().to_owned(),
        "UTF-16" => "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect(),
        "Latin-1" => text.chars().map(|c| u8::try_from(c).expect("a character of Latin-1")).collect(),
        other => panic!("no file is made in {other}"),
    }
}

fn cases() -> Vec<Case> {
    let all = edited(&table());
    assert!(all.len() >= 110, "only {} wrong files", all.len());
    all
}

fn problems(case: &Case) -> Vec<Problem> {
    match Scenario::parse_bytes(&case.bytes, &format!("{}.toml", case.name), &[], &Registry::default()) {
        Ok(_) => panic!("{} was taken for a good file", case.name),
        Err(problems) => problems,
    }
}

fn messages(case: &Case) -> String {
    problems(case).iter().map(|p| format!("{p}\n")).collect()
}

#[test]
fn every_wrong_file_is_refused_with_its_message() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return update();
    }
    let mut differ = String::new();
    for case in cases() {
        let said = messages(&case);
        if said != case.said {
            write!(differ, "{}\n--- expected\n{}--- said\n{said}", case.name, case.said).unwrap();
        }
    }
    assert!(differ.is_empty(), "messages differ (UPDATE_GOLDEN=1 accepts them):\n{differ}");
}

/// Rewrites the messages, into the table and beside the files.
fn update() {
    let old = table();
    let mut parts = old.split("\n=== ");
    let mut new = format!("{}\n", parts.next().unwrap());
    for (part, case) in parts.zip(edited(&old)) {
        let edits = part.lines().take_while(|l| !l.starts_with('>') && !l.is_empty());
        let said = messages(&case).lines().map(|l| format!("> {l}\n")).collect::<String>();
        write!(new, "=== {}\n{said}\n", edits.collect::<Vec<_>>().join("\n")).unwrap();
    }
    std::fs::write(folder().join("cases.diff"), format!("{}\n", new.trim_end())).unwrap();
}

#[test]
fn every_message_says_where_what_and_what_to_write() {
    for case in cases() {
        let problems = problems(&case);
        assert!(problems.iter().any(|p| p.severity == Severity::Error), "{}", case.name);
        for p in problems {
            assert!(p.file.ends_with(".toml") && p.line.is_some() && p.column.is_some(), "{p}");
            assert!(!p.problem.is_empty(), "{p}");
            assert!(!p.remedy.is_empty() || p.severity == Severity::Warning, "{p}");
            let text = p.to_string();
            assert!(!text.contains("Some(") && !text.contains("None"), "{text}");
        }
    }
}

#[test]
fn one_file_tells_all_its_problems() {
    let all = cases();
    let problems = problems(all.iter().find(|c| c.name == "several-at-once").unwrap());
    let paths: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    let expected = [
        "measure.from",
        "tcp.windw",
        "links.bottleneck.rate",
        "links.bottleneck.queue.out.max_p",
        "flows.tcp.to",
        "flows.tcp.marker.depth",
        "edges.ER.marker.kind",
        "monitors.0.every",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn overrides_are_named_as_they_were_given() {
    let good = std::fs::read_to_string(folder().join("good/two-flows.toml")).unwrap();
    let set = |key: &str, value: &str| {
        let set = [(key.to_owned(), value.to_owned())];
        Scenario::parse(&good, "two-flows.toml", &set, &Registry::default()).unwrap_err()[0].to_string()
    };
    let expected = [
        (
            "links.bottleneck.rate",
            "2",
            "--set links.bottleneck.rate=2: error: links.bottleneck.rate = 2: a rate needs a unit\n  write \"2 Mbit/s\" (units: bit/s, kbit/s, Mbit/s or Gbit/s)",
        ),
        (
            "links.botleneck.rate",
            "2 Mbit/s",
            "--set links.botleneck.rate=2 Mbit/s: error: links.botleneck.rate: nothing in \"links\" is named \"botleneck\"\n  did you mean \"bottleneck\"? Known here: edge, bottleneck",
        ),
        (
            "flows.tcp.maker.depth",
            "3 packets",
            "--set flows.tcp.maker.depth=3 packets: error: flows.tcp.maker: unknown key\n  did you mean \"marker\"? Known here: name, count, from, join, to, rtt, start, stop, contract, marker, class, traffic, tcp",
        ),
        (
            "title.x",
            "1",
            "--set title.x=1: error: title.x: \"title\" is a string; it has no keys\n  write a key such as links.bottleneck.queue.limit",
        ),
    ];
    for (key, value, message) in expected {
        assert_eq!(set(key, value), message);
    }
}
