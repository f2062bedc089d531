//! TCP's rules as timed packet traces, a file a topic, beside this one; `script.rs` describes the language.

mod play;
mod script;

use std::path::{Path, PathBuf};

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of this file")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "trace"))
        .collect();
    files.sort();
    files
}

/// The traces of a file, each below a line `== name`: name, number of that line, text.
fn each(text: &str) -> Vec<(&str, usize, &str)> {
    let begins = |&at: &usize| at == 0 || text[..at].ends_with('\n');
    let starts: Vec<usize> = text.match_indices("== ").map(|(at, _)| at).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let traces = starts.iter().zip(ends).map(|(&start, end)| {
        let (name, below) = text[start + 3..end].split_once('\n').expect("a trace below its name");
        (name, text[..start].lines().count() + 1, below)
    });
    traces.collect()
}

#[test]
fn every_trace_holds() {
    let files = traces();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        for (name, begins, trace) in each(&text) {
            count += 1;
            let result = script::Script::parse(trace).and_then(|script| play::play(&script));
            if let Err((line, problem)) = result {
                wrong.push(format!("{file}:{}: {name}: {problem}", begins + line));
            }
        }
    }
    assert!(count > 120, "only {count} traces");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
