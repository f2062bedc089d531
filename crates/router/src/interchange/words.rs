//! A text as words with their positions, errors that point to them, and sizes and rates in tc's notation.

use inprofile_experiment::text::nearest::suggest;
use inprofile_experiment::text::{Problem, Severity};

/// A word and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    pub text: &'a str,
    pub line: u32,
    pub column: u32,
}

/// The lines of a text, each as its words; without empty ones and what follows `#`.
pub fn lines<'a>(text: &'a str, comment: char) -> Vec<Vec<Word<'a>>> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split(comment).next().unwrap_or("");
        let mut words = Vec::new();
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            let tail = &rest[start..];
            let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
            let before = line.len() - tail.len();
            words.push(Word {
                text: &tail[..end],
                line: number,
                column: line[..before].chars().count() as u32 + 1,
            });
            rest = &tail[end..];
        }
        if !words.is_empty() {
            all.push(words);
        }
    }
    all
}

/// Complaints about a file.
pub struct Complaints<'f> {
    file: &'f str,
    pub all: Vec<Problem>,
}

impl<'f> Complaints<'f> {
    pub fn new(file: &'f str) -> Complaints<'f> {
        Complaints { file, all: Vec::new() }
    }

    /// About one word.
    pub fn word(&mut self, word: &Word<'_>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.push(Some(word), problem.into(), remedy.into());
    }

    /// A word that means nothing here.
    pub fn unknown(&mut self, word: &Word<'_>, known: &[&str]) {
        self.word(word, "unknown word", suggest(word.text, known));
    }

    /// About something that isn't there; `near` is the word it belongs to.
    pub fn missing(
        &mut self,
        near: Option<&Word<'_>>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(near, problem.into(), remedy.into());
    }

    fn push(&mut self, word: Option<&Word<'_>>, problem: String, remedy: String) {
        self.all.push(Problem {
            file: self.file.to_owned(),
            line: word.map(|w| w.line),
            column: word.map(|w| w.column),
            path: String::new(),
            value: word.map(|w| w.text.chars().take(40).collect()),
            problem,
            remedy,
            severity: Severity::Error,
        });
    }
}

/// tc(8), PARAMETERS: a bare number counts bytes, k, m and g are powers of 1024, `kbit` counts bits.
pub(super) fn size(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024.0 * 1024.0 / 8.0,
        "gbit" => 1024.0 * 1024.0 * 1024.0 / 8.0,
        _ => return None,
    };
    Some((number * factor).floor())
}

/// tc(8), PARAMETERS: a bare number counts bits a second, `bps` bytes a second; k is 1000, ki 1024.
pub(super) fn rate(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = text[end..].to_ascii_lowercase();
    let (prefix, bits) = match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, 8.0),
        (None, None) if unit.is_empty() => ("", 1.0),
        _ => return None,
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bps = number * bits * factor;
    (1.0..=1e13).contains(&bps).then_some(bps as u64)
}
