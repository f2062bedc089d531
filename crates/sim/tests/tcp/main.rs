//! TCP's rules as timed packet traces: one `*.trace` per rule, beside this file; `script.rs` describes the language.

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

#[test]
fn every_trace_holds() {
    let files = traces();
    assert!(files.len() > 20, "only {} traces", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        let result = script::Script::parse(&text).and_then(|script| play::play(&script));
        if let Err((line, problem)) = result {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            wrong.push(format!("{name}:{line}: {problem}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
