//! Text to typed values, and errors a person can act on.
//!
//! A [`Document`] is a TOML text with the place of every value and the
//! overrides of the command line applied, and what it [`extends`] merged in. A [`Section`] reads one of its tables:
//! it refuses unknown keys and turns text with units ([`quantity`]) into typed values, and writes
//! every [`Problem`] it meets into a [`Report`] instead of stopping at the first.
//! [`mechanism`] reads what a marker or discipline declares about its own parameters;
//! [`named`] reads a mechanism by its name in the registry; [`schema`] and [`show`] print the same declarations.
//!
//! Non-goal: knowing what an experiment is. The rest of the crate does.

pub mod csv;
pub mod document;
pub mod extends;
pub mod mechanism;
pub mod problem;
pub mod quantity;
pub mod schema;
pub mod section;
mod source;
pub mod tree;

use extends::overrides;

pub use document::Document;
pub use mechanism::named;
pub use problem::report;
pub use problem::{Problem, Severity};
pub use report::{Location, Report};
pub use section::{Entry, Section};

pub mod file {
    //! Reads a file named by the user, if it is a regular file of bounded size: a pipe or a device may never end.

    use std::fs::{File, Metadata, OpenOptions};
    use std::io::{Error, ErrorKind, Read, Result};
    use std::path::Path;

    /// The largest configuration that is read, in bytes.
    pub const LARGEST: u64 = 16 << 20;

    /// The bytes of a regular file of at most [`LARGEST`].
    ///
    /// # Errors
    /// As [`File::open`]; also if it is not a regular file or is larger, with what to name instead.
    pub fn read(path: &Path) -> Result<Vec<u8>> {
        fit(&std::fs::metadata(path)?)?;
        let file = open(path)?;
        // Checked again on the open file: the path may name something else by now.
        fit(&file.metadata()?)?;
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
    }

    /// Without waiting for a writer, should the path name a pipe.
    fn open(path: &Path) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(target_os = "linux")]
        {
            use std::os::unix::fs::OpenOptionsExt;
            /// `O_NONBLOCK` on Linux.
            const AT_ONCE: i32 = 0o4000;
            options.custom_flags(AT_ONCE);
        }
        options.open(path)
    }

    fn fit(found: &Metadata) -> Result<()> {
        let kind = found.file_type();
        if !kind.is_file() {
            let what = if kind.is_dir() { "a folder" } else { "a pipe, a device or a socket" };
            let text = format!(
                "is {what}: name a regular file; what a program prints has to be written to one first"
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        if found.len() > LARGEST { Err(too_large(found.len())) } else { Ok(()) }
    }

    fn too_large(size: u64) -> Error {
        let text = format!("has {size} B, and {LARGEST} are read at most: name the file that was meant");
        Error::new(ErrorKind::InvalidInput, text)
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::*;

        #[test]
        fn what_has_no_end_is_refused_and_a_file_is_read() {
            for path in ["/dev/zero", "/dev/null", "/"] {
                let refused = read(Path::new(path)).unwrap_err();
                assert!(refused.to_string().contains("name a regular file"), "{path}: {refused}");
            }
            let place = std::env::temp_dir().join(format!("inprofile-file-{}", std::process::id()));
            let file = File::create(&place).unwrap();
            file.set_len(LARGEST + 1).unwrap();
            assert!(read(&place).unwrap_err().to_string().contains("are read at most"));
            std::fs::write(&place, "a = 1").unwrap();
            assert_eq!(read(&place).unwrap(), b"a = 1");
            std::fs::remove_file(&place).unwrap();
            assert_eq!(read(&place).unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
}

pub mod nearest {
    //! Which known name was probably meant.

    /// The known name nearest to `name`, if one is near enough to be worth a guess: at most a third of
    /// its letters inserted, omitted, replaced or swapped with a neighbour.
    #[must_use]
    pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        // A longer name is not a typing error, and the table of distances would grow with it.
        const LONGEST: usize = 64;
        let plain: Vec<char> = name.chars().take(LONGEST + 1).flat_map(char::to_lowercase).collect();
        if plain.len() > LONGEST {
            return None;
        }
        known
            .into_iter()
            .filter_map(|k| {
                let target: Vec<char> = k.chars().flat_map(char::to_lowercase).collect();
                let d = distance(&plain, &target);
                (d <= (target.len().max(plain.len()) / 3).max(1) && d < target.len()).then_some((d, k))
            })
            .min_by_key(|(d, _)| *d)
            .map(|(_, k)| k)
    }

    /// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
    fn distance(a: &[char], b: &[char]) -> usize {
        let mut before = vec![0; b.len() + 1];
        let mut last: Vec<usize> = (0..=b.len()).collect();
        for i in 1..=a.len() {
            let mut row = vec![i];
            for j in 1..=b.len() {
                let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut d = replaced.min(last[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    d = d.min(before[j - 2] + 1);
                }
                row.push(d);
            }
            before = std::mem::replace(&mut last, row);
        }
        last[b.len()]
    }

    /// `did you mean "limit"? Known here: …`: the remedy for an unknown name.
    #[must_use]
    pub fn suggest(name: &str, known: &[&str]) -> String {
        let all = known.join(", ");
        match nearest(name, known.iter().copied()) {
            Some(n) => format!("did you mean \"{n}\"? Known here: {all}"),
            None => format!("known here: {all}"),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn typing_errors_are_recognised() {
            let known = ["min_th", "max_th", "max_p", "limit", "aqm"];
            assert_eq!(nearest("limt", known), Some("limit"));
            assert_eq!(nearest("mx_p", known), Some("max_p"));
            assert_eq!(nearest("qam", known), Some("aqm"));
            assert_eq!(nearest("Limit", known), Some("limit"));
            assert_eq!(nearest("bandwidth", known), None);
            assert_eq!(nearest("", known), None);
            assert_eq!(nearest(&"x".repeat(100_000), known), None);
        }
    }
}

mod written {
    //! A tree written out as TOML: plain values first, then tables, then lists of tables, and what lies deeper on one line.

    use std::fmt::Write as _;

    use crate::text::tree::{Item, Node, Table};

    /// The text; it reads back as the same tree.
    pub(crate) fn written(root: &Table) -> String {
        let tables = |node: &Node| {
            matches!(&node.item, Item::List(list) if !list.is_empty()
            && list.iter().all(|n| matches!(n.item, Item::Table(_))))
        };
        let mut parts = [String::new(), String::new(), String::new()];
        for (name, _, node) in &root.0 {
            let name = key(name);
            match &node.item {
                Item::Table(table) => section(&mut parts[1], &format!("[{name}]"), table),
                Item::List(list) if tables(node) => {
                    for one in list {
                        if let Item::Table(table) = &one.item {
                            section(&mut parts[2], &format!("[[{name}]]"), table);
                        }
                    }
                }
                item => line(&mut parts[0], &name, item),
            }
        }
        parts.concat()
    }

    fn section(out: &mut String, head: &str, table: &Table) {
        let _ = write!(out, "\n{head}\n");
        for (name, _, node) in &table.0 {
            line(out, &key(name), &node.item);
        }
    }

    fn line(out: &mut String, name: &str, item: &Item) {
        let _ = writeln!(out, "{name} = {}", inline(item));
    }

    /// A value on one line.
    fn inline(item: &Item) -> String {
        match item {
            Item::Text(text) => quoted(text),
            Item::Number(digits, _) => digits.clone(),
            Item::Flag(flag) => flag.to_string(),
            Item::Date(date) => date.clone(),
            Item::List(list) => {
                let each: Vec<String> = list.iter().map(|node| inline(&node.item)).collect();
                format!("[{}]", each.join(", "))
            }
            Item::Table(table) if table.0.is_empty() => "{}".to_owned(),
            Item::Table(table) => {
                let each =
                    table.0.iter().map(|(name, _, node)| format!("{} = {}", key(name), inline(&node.item)));
                format!("{{ {} }}", each.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// A key, quoted unless TOML allows it bare.
    fn key(name: &str) -> String {
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
    }

    /// A string as JSON has it, which TOML reads as the same; only U+007F has to be escaped as well.
    fn quoted(text: &str) -> String {
        serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
    }
}

pub mod show {
    //! Typed values written out: as an operator would write them, and as JSON.

    use inprofile_core::params::{Field, Value, Values};
    use inprofile_core::units::{Backlog, Bytes, Rate};
    use serde_json::{Map, Value as Json, json};

    /// As in an experiment file: `"1.2 Mbit/s"`, `0.02`, `{ min_th = "45 packets" }`.
    #[must_use]
    pub fn toml(value: &Value) -> String {
        match value {
            Value::Flag(b) => b.to_string(),
            Value::Count(n) => n.to_string(),
            Value::Number(x) => x.to_string(),
            Value::Rate(r) => format!("\"{r}\""),
            Value::Duration(d) => format!("\"{d}\""),
            Value::Bytes(b) => format!("\"{b}\""),
            Value::Backlog(b) => format!("\"{b}\""),
            Value::Choice(word) => format!("\"{word}\""),
            Value::Group(values) => {
                let inner: Vec<String> = values.0.iter().map(|(n, v)| format!("{n} = {}", toml(v))).collect();
                format!("{{ {} }}", inner.join(", "))
            }
        }
    }

    /// As JSON a person reads: quantities are texts with units; numbers and words are themselves.
    #[must_use]
    pub fn json(value: &Value) -> Json {
        match value {
            Value::Flag(b) => json!(b),
            Value::Count(n) => json!(n),
            Value::Number(x) => json!(x),
            Value::Rate(r) => json!(r.to_string()),
            Value::Duration(d) => json!(d.to_string()),
            Value::Bytes(b) => json!(b.to_string()),
            Value::Backlog(b) => json!(b.to_string()),
            Value::Choice(word) => json!(word),
            Value::Group(values) => all(values, json),
        }
    }

    /// As JSON in base units: bit/s, ps, B; an amount of queue says which of its two units it is in.
    /// Equal values, however they were written, give equal JSON.
    #[must_use]
    pub fn base(value: &Value) -> Json {
        match value {
            Value::Rate(r) => json!(r.0),
            Value::Duration(d) => json!(d.0),
            Value::Bytes(b) => json!(b.0),
            Value::Backlog(b) => backlog(*b),
            Value::Group(values) => all(values, base),
            plain => json(plain),
        }
    }

    /// `{"packets": 45.0}` or `{"bytes": 46800.0}`.
    #[must_use]
    pub fn backlog(amount: Backlog) -> Json {
        match amount {
            Backlog::Packets(n) => json!({ "packets": n }),
            Backlog::Bytes(b) => json!({ "bytes": b }),
        }
    }

    /// Values as an object, each written by `write`.
    #[must_use]
    pub fn all(values: &Values, write: impl Fn(&Value) -> Json + Copy) -> Json {
        Json::Object(values.0.iter().map(|(n, v)| ((*n).to_owned(), write(v))).collect::<Map<_, _>>())
    }

    /// The source of a parameter's default, as its documentation says after `Default:`.
    #[must_use]
    pub fn derived(field: &Field) -> String {
        let doc = field.summary();
        match doc.split_once("Default: ") {
            Some((_, rest)) => rest.trim_end_matches('.').to_owned(),
            None => "derived".to_owned(),
        }
    }

    /// Values as JSON; amounts of queue as [`amount`] has them.
    #[must_use]
    pub fn values(all: &Values, packet: Bytes, rate: Option<Rate>) -> Json {
        let write = |value: &Value| match value {
            Value::Backlog(b) => amount(*b, packet, rate),
            Value::Group(inner) => values(inner, packet, rate),
            plain => json(plain),
        };
        Json::Object(all.0.iter().map(|(n, v)| ((*n).to_owned(), write(v))).collect::<Map<_, _>>())
    }

    /// An amount of queue as it was written, in full packets, in bytes, and the time it takes at the link's rate.
    #[must_use]
    pub fn amount(b: Backlog, packet: Bytes, rate: Option<Rate>) -> Json {
        let bytes = b.bytes(packet);
        let mut out = json!({ "is": b.to_string(), "packets": b.packets(packet), "bytes": bytes });
        if let Some(rate) = rate {
            out["ms"] = json!(bytes * 8e3 / rate.0 as f64);
        }
        out
    }

    /// JSON in one line with every object's keys in alphabetical order, whatever order they were put in.
    #[must_use]
    pub fn canonical(value: &Json) -> String {
        let mut text = String::new();
        write_canonical(value, &mut text);
        text
    }

    fn write_canonical(value: &Json, out: &mut String) {
        match value {
            Json::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort_unstable();
                out.push('{');
                for (i, key) in keys.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&Json::from(key.as_str()).to_string());
                    out.push(':');
                    write_canonical(&map[key], out);
                }
                out.push('}');
            }
            Json::Array(list) => {
                out.push('[');
                for (i, item) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_canonical(item, out);
                }
                out.push(']');
            }
            plain => out.push_str(&plain.to_string()),
        }
    }
}
