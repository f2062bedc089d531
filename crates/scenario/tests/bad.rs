//! Wrong files: each is refused, with the message beside it. `UPDATE_GOLDEN=1` writes the messages anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use inprofile_core::registry::Registry;
use inprofile_scenario::{Problem, Scenario, Severity};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad")
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

fn problems(path: &Path) -> Vec<Problem> {
    let bytes = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    match Scenario::parse_bytes(&bytes, name, &[], &Registry::default()) {
        Ok(_) => panic!("{name} was taken for a good file"),
        Err(problems) => problems,
    }
}

#[test]
fn every_wrong_file_is_refused_with_its_message() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let files = files();
    assert!(files.len() >= 30, "only {} wrong files", files.len());
    let mut differ = String::new();
    for path in files {
        let said: String = problems(&path).iter().fold(String::new(), |mut all, p| {
            writeln!(all, "{p}").unwrap();
            all
        });
        let golden = path.with_extension("txt");
        if update {
            std::fs::write(&golden, &said).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if said != expected {
            write!(differ, "{}\n--- expected\n{expected}--- said\n{said}", path.display()).unwrap();
        }
    }
    assert!(differ.is_empty(), "messages differ (UPDATE_GOLDEN=1 accepts them):\n{differ}");
}

#[test]
fn every_message_says_where_what_and_what_to_write() {
    for path in files() {
        let problems = problems(&path);
        assert!(problems.iter().any(|p| p.severity == Severity::Error), "{}", path.display());
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
    let problems = problems(&folder().join("several-at-once.toml"));
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
    let good = std::fs::read_to_string(folder().join("../good/two-flows.toml")).unwrap();
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
            "--set links.botleneck.rate=2 Mbit/s: error: links.botleneck.rate: nothing in \"links\" is called \"botleneck\"\n  did you mean \"bottleneck\"? Known here: edge, bottleneck",
        ),
        (
            "flows.tcp.maker.depth",
            "3 packets",
            "--set flows.tcp.maker.depth=3 packets: error: flows.tcp.maker: unknown key\n  did you mean \"marker\"? Known here: name, count, from, join, to, rtt, start, stop, contract, marker, class, traffic, tcp",
        ),
        (
            "title.x",
            "1",
            "--set title.x=1: error: title.x: \"title\" is a text; it has no parts\n  write a key such as links.bottleneck.queue.limit",
        ),
    ];
    for (key, value, message) in expected {
        assert_eq!(set(key, value), message);
    }
}
