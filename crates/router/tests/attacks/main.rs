//! Attempts to cheat the meter, the queues and the shaper: what a customer may send, and what comes of it.

mod bench;
mod circuits;
mod classes;
mod control;
mod frames;
mod leaky_bucket;
mod long_run;
mod meter;
mod mutated;
mod search;

mod table {
    //! `docs/threats.md`: the tests that its tables name are there.

    use std::fs;
    use std::path::Path;

    /// Every Rust file below a folder: its path in words, and its text.
    fn sources(folder: &Path, found: &mut Vec<(Vec<String>, String)>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let words =
                    path.with_extension("").iter().map(|w| w.to_string_lossy().into_owned()).collect();
                found.push((words, fs::read_to_string(&path).expect("a text")));
            }
        }
    }

    /// `module::test`, `module::part_of_a_test…` or `module::module`.
    #[test]
    fn every_test_that_the_tables_name_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = Vec::new();
        for folder in ["router/src", "router/tests", "live/src", "live/tests"] {
            sources(&root.join("crates").join(folder), &mut files);
        }
        let text = fs::read_to_string(root.join("docs/threats.md")).expect("the tables");
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let last_cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
        let mut named = 0;
        for name in last_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            let Some((modules, test)) = name.rsplit_once("::") else { continue };
            named += 1;
            let there = files.iter().any(|(words, text)| {
                let has = |word: &str| words.iter().any(|w| w == word);
                let begins = format!("fn {}", test.trim_end_matches('…'));
                modules.split("::").all(has)
                    && (text.contains(&begins) || words.last().is_some_and(|w| w == test))
            });
            assert!(there, "docs/threats.md names `{name}`, and there is no such test");
        }
        assert!(named > 40, "{named} tests are named");
    }
}
