//! Rows of a CSV file in the place of a list of tables: each row a table, each field a value that knows its line and column.
//!
//! Of RFC 4180 this is the plain part: one header line, commas, no quotes, lines that end in a line feed. So what is read and
//! written again is the same, byte for byte; and what a spreadsheet adds (a byte order mark, CR LF, quotes, semicolons) is an error that
//! says how to remove it. It knows nothing of what columns mean.

use super::document::Document;
use super::nearest::suggest;
use super::problem::Problem;
use super::tree::{Item, Node, Origin, Table};

/// A column that a file may have.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// The key of the table that its fields are.
    pub key: &'static str,
    /// How a field reads.
    pub kind: Kind,
}

/// How a field reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As text.
    Text,
    /// Words with spaces between, each as text.
    Texts,
    /// Words with spaces between: whole numbers, else text.
    Numbers,
}

/// What is wrong with a file, at some bytes of it.
struct Fault {
    at: (usize, usize),
    problem: String,
    remedy: String,
}

fn fault(at: (usize, usize), problem: impl Into<String>, remedy: impl Into<String>) -> Fault {
    Fault { at, problem: problem.into(), remedy: remedy.into() }
}

impl Document {
    /// The rows of a CSV file, as tables of this document; `file` is its name in messages. A field that is empty is a key that is
    /// not there.
    ///
    /// # Errors
    /// Every line that is no row of these columns.
    pub fn rows(&mut self, bytes: &[u8], file: &str, columns: &[Column]) -> Result<Vec<Node>, Vec<Problem>> {
        let text = super::source::utf8(bytes, file)?;
        let source = self.add_source(text, file);
        rows(text, source, columns).map_err(|faults| {
            let told = |f: Fault| {
                let origin = Origin { source, start: f.at.0 as u32, end: f.at.1 as u32 };
                self.problem("", origin, f.at.1 > f.at.0, f.problem, f.remedy)
            };
            faults.into_iter().take(20).map(told).collect()
        })
    }
}

fn rows(text: &str, source: u32, columns: &[Column]) -> Result<Vec<Node>, Vec<Fault>> {
    if text.starts_with('\u{feff}') {
        let remedy = "save it as UTF-8 without one: sed -i '1s/^\\xef\\xbb\\xbf//' FILE";
        return Err(vec![fault((0, 0), "the file begins with a byte order mark", remedy)]);
    }
    let known: Vec<&str> = columns.iter().map(|c| c.heading).collect();
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines.push((start, line));
        start += line.len();
    }
    let Some((_, first)) = lines.first() else {
        let remedy = format!("begin it with the columns: {}", known.join(","));
        return Err(vec![fault((0, 0), "the file is empty", remedy)]);
    };
    let faults: Vec<Fault> = lines.iter().filter_map(|(at, line)| shape(*at, line)).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let head = header(first, &known)?;
    let columns: Vec<Column> = head.iter().map(|place| columns[*place]).collect();
    let mut found = Vec::new();
    let mut faults = Vec::new();
    for (at, line) in &lines[1..] {
        match row(*at, line.trim_end_matches('\n'), source, &columns) {
            Ok(table) => found.push(table),
            Err(wrong) => faults.push(wrong),
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

/// What is wrong with a line, whatever its columns.
fn shape(at: usize, line: &str) -> Option<Fault> {
    let plain = line.trim_end_matches('\n');
    let whole = (at, at + plain.len());
    if line.ends_with("\r\n") {
        let remedy = "save it with line feeds alone, as Unix has them: sed -i 's/\\r$//' FILE";
        return Some(fault((at, at), "the line ends in CR LF", remedy));
    }
    if !line.ends_with('\n') {
        return Some(fault(
            whole,
            "the last line has no end",
            "the file may have been cut short: end it with a line feed",
        ));
    }
    if plain.is_empty() {
        return Some(fault((at, at), "the line is empty", "remove it"));
    }
    if let Some(i) = plain.find('"') {
        return Some(fault((at + i, whole.1), "a quotation mark", "write fields without quotation marks"));
    }
    let odd = plain.find(|c: char| c.is_control())?;
    Some(fault(
        (at + odd, at + odd),
        "a control character",
        "remove it; fields have commas between, not tabs",
    ))
}

/// The place of each heading among the known ones.
fn header(line: &str, known: &[&str]) -> Result<Vec<usize>, Vec<Fault>> {
    let mut places = Vec::new();
    let mut faults = Vec::new();
    for (at, heading) in fields(0, line.trim_end_matches('\n')) {
        let whole = (at, at + heading.len());
        match known.iter().position(|k| *k == heading) {
            Some(place) if places.contains(&place) => {
                faults.push(fault(whole, "the column is there twice", "keep one of the two"));
            }
            Some(place) => places.push(place),
            None if line.contains(';') && !line.contains(',') => {
                faults.push(fault(whole, "there are semicolons between the fields", "write commas"));
            }
            None => faults.push(fault(whole, "there is no such column", suggest(heading, known))),
        }
    }
    if faults.is_empty() { Ok(places) } else { Err(faults) }
}

/// Fields with their places.
fn fields(start: usize, line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = start;
    line.split(',').map(move |field| {
        let here = at;
        at += field.len() + 1;
        (here, field)
    })
}

fn row(start: usize, line: &str, source: u32, columns: &[Column]) -> Result<Node, Fault> {
    let whole = (start, start + line.len());
    let count = line.split(',').count();
    if count != columns.len() {
        let problem = format!("{count} fields, and the header has {}", columns.len());
        let headings: Vec<&str> = columns.iter().map(|c| c.heading).collect();
        let remedy = format!("write {}; a field may be empty", headings.join(","));
        return Err(fault(whole, problem, remedy));
    }
    let mut table = Table::default();
    for ((at, field), column) in fields(start, line).zip(columns) {
        let origin = Origin { source, start: at as u32, end: (at + field.len()) as u32 };
        if field.trim() != field {
            let end = at + field.len();
            return Err(fault((at, end), "spaces around a field", format!("write \"{}\"", field.trim())));
        }
        if field.is_empty() {
            continue;
        }
        let item = match column.kind {
            Kind::Text => Item::Text(field.to_owned()),
            Kind::Texts | Kind::Numbers => Item::List(words(at, field, source, column.kind)),
        };
        table.0.push((column.key.to_owned(), origin, Node { item, origin }));
    }
    let origin = Origin { source, start: whole.0 as u32, end: whole.1 as u32 };
    Ok(Node { item: Item::Table(table), origin })
}

fn words(at: usize, field: &str, source: u32, kind: Kind) -> Vec<Node> {
    let mut place = at;
    let mut found = Vec::new();
    for word in field.split(' ') {
        let (start, end) = (place, place + word.len());
        place = end + 1;
        let origin = Origin { source, start: start as u32, end: end as u32 };
        let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        let item = if kind == Kind::Numbers && plain {
            Item::Number(word.to_owned(), true)
        } else {
            Item::Text(word.to_owned())
        };
        found.push(Node { item, origin });
    }
    found
}
