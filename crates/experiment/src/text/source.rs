//! A text with its lines, and what is wrong with one that is not UTF-8 or not TOML.

use crate::text::problem::{Problem, Severity};
use crate::text::quantity::clip;

/// Where values are written.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Its name in messages: the file, or `--set KEY=VALUE`.
    pub name: String,
    pub text: String,
    /// Byte offset of the start of each line of a file; an override has no lines.
    pub lines: Option<Vec<usize>>,
}

impl Source {
    pub fn file(text: &str, name: &str) -> Source {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Source { name: name.to_owned(), text: text.to_owned(), lines: Some(lines) }
    }

    /// Line and column of a byte, both from 1, the column in characters.
    pub fn line_column(&self, at: usize) -> Option<(u32, u32)> {
        let lines = self.lines.as_ref()?;
        let line = lines.partition_point(|start| *start <= at).max(1);
        let before = self.text.get(lines[line - 1]..at).unwrap_or("");
        Some((line as u32, before.chars().count() as u32 + 1))
    }
}

/// The text of these bytes.
pub(crate) fn utf8<'b>(bytes: &'b [u8], file: &str) -> Result<&'b str, Vec<Problem>> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let good = &bytes[..error.valid_up_to()];
    let line = good.iter().filter(|b| **b == b'\n').count() + 1;
    let start = good.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let column = String::from_utf8_lossy(&good[start..]).chars().count() + 1;
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let is = if utf16 { "the file is UTF-16 text" } else { "the file is not UTF-8 text" };
    Err(vec![Problem {
        file: file.to_owned(),
        line: u32::try_from(line).ok(),
        column: u32::try_from(column).ok(),
        path: String::new(),
        value: bytes.get(error.valid_up_to()).map(|b| format!("byte 0x{b:02x}")),
        problem: is.into(),
        remedy: "save it as UTF-8; accented letters in another encoding are the usual cause".into(),
        severity: Severity::Error,
    }])
}

/// The syntax errors, one problem a line.
pub(super) fn syntax(source: &Source, errors: &[toml::de::Error]) -> Vec<Problem> {
    let text = &source.text;
    let mut problems: Vec<Problem> = Vec::new();
    let mut last = None;
    // Only the first few are reported.
    for error in errors.iter().take(1000) {
        let span = error.span().unwrap_or(0..0);
        let (line, column) = source.line_column(span.start).unwrap_or((1, 1));
        let written = text.lines().nth(line as usize - 1).unwrap_or("").trim();
        let duplicate = error.message() == "duplicate key";
        let unquoted = error.message().starts_with("string values must be quoted");
        // The same message again is a consequence of the first; so is everything after a list left open.
        let repeated = last == Some(error.message()) && !duplicate && !unquoted;
        let echo = repeated || last.is_some_and(|m| m.contains("array"));
        last = last.filter(|m| m.contains("array")).or(Some(error.message()));
        if echo || problems.iter().any(|p| p.line == Some(line)) || problems.len() == 20 {
            continue;
        }
        let key = clip(text.get(span.clone()).unwrap_or(""));
        let (problem, remedy) = if duplicate {
            (format!("\"{key}\" is given twice"), "keep one of the two".to_owned())
        } else {
            (format!("invalid TOML: {}", error.message()), syntax_remedy(error.message(), written))
        };
        problems.push(Problem {
            file: source.name.clone(),
            line: Some(line),
            column: Some(column),
            path: if duplicate { key } else { String::new() },
            value: Some(clip(written)).filter(|w| !w.is_empty() && !duplicate),
            problem,
            remedy,
            severity: Severity::Error,
        });
    }
    problems.sort_by_key(|p| (p.line, p.column));
    problems
}

/// The commonest slips: a quantity without quotes, a quote or a list left open.
fn syntax_remedy(message: &str, line: &str) -> String {
    if message.contains("array") {
        return "close the list that begins here or above with ], and put commas between its values"
            .to_owned();
    }
    if line.matches('"').count() % 2 == 1 {
        return "close the quotes".to_owned();
    }
    if let Some((key, value)) = line.split_once('=')
        && let value = value.trim()
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !value.contains(['"', '\'', '{', '['])
        && !value.is_empty()
    {
        return format!("put strings and quantities in quotes: {} = \"{}\"", clip(key.trim()), clip(value));
    }
    "write key = value, [table] or [[list of tables]]; strings and quantities in quotes".to_owned()
}
