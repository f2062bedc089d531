//! A TOML text and its overrides as one tree, and the places of its values in messages.

use toml::de::DeTable;

use crate::text::extends::{self, Base};
use crate::text::overrides;
use crate::text::problem::{Problem, Severity};
use crate::text::quantity::clip;
use crate::text::source::{Source, syntax, utf8};
use crate::text::tree::{self, Item, Node, Origin, Table};
use crate::text::written;

/// A text, what it extends, its overrides, and the tree of all.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file, then those that it extends, then the overrides.
    sources: Vec<Source>,
    root: Table,
}

/// Larger files are refused.
const LARGEST_FILE: usize = crate::text::file::LARGEST as usize;
/// The most memory that a text's tree may take while it is built, in bytes, by [`tree_size`].
const LARGEST_TREE: usize = 150 << 20;

/// An upper estimate of the memory, in bytes, that the tree of a text will take, from its characters alone and before
/// anything is built; the weights are measured. Strings and comments are counted too. It leaves room for a hundred
/// thousand flows with a contract each.
fn tree_size(text: &str) -> usize {
    let takes = |byte| match byte {
        // The end of a value or of a line, or the start of a list.
        b',' | b'=' | b'[' | b'\n' => 300,
        // A table, perhaps.
        b'{' => 1500,
        b'.' => 900,
        b' ' | b'\t' | b']' | b'}' => 60,
        _ => 0,
    };
    text.bytes().map(takes).sum()
}

impl Document {
    /// From bytes, which must be UTF-8; `file` is its name in messages, `set` the overrides in order.
    ///
    /// # Errors
    /// The place of the first byte that is not UTF-8; else as [`Document::parse`].
    pub fn parse_bytes(bytes: &[u8], file: &str, set: &[(String, String)]) -> Result<Document, Vec<Problem>> {
        Document::parse(utf8(bytes, file)?, file, set)
    }

    /// From text. An override whose value is not a TOML value is taken as a string.
    ///
    /// # Errors
    /// Every violation of TOML's grammar; or every override that names no place in the file.
    pub fn parse(text: &str, file: &str, set: &[(String, String)]) -> Result<Document, Vec<Problem>> {
        Document::parse_extended(text, file, &[], set)
    }

    /// The same of a text that extends `bases`, as [`extends::bases`] finds them.
    ///
    /// # Errors
    /// As [`Document::parse`], of any of the texts.
    pub fn parse_extended(
        text: &str,
        file: &str,
        bases: &[Base],
        set: &[(String, String)],
    ) -> Result<Document, Vec<Problem>> {
        let mut document = Document { sources: Vec::new(), root: Table::default() };
        let texts = std::iter::once((text, file));
        let texts: Vec<_> = texts.chain(bases.iter().map(|b| (b.text.as_str(), b.file.as_str()))).collect();
        let mut size = 0;
        let mut trees = Vec::new();
        for (text, file) in texts {
            trees.push(document.add(text, file, &mut size)?);
        }
        // From the last base, which extends nothing, to the file itself.
        for mut over in trees.into_iter().rev() {
            if !bases.is_empty() {
                over.0.retain(|(key, ..)| key != extends::KEY);
            }
            extends::merge(&mut document.root, over);
        }
        document.apply(set)?;
        Ok(document)
    }

    /// Adds a file; its tree. `size` is that of the trees so far.
    fn add(&mut self, text: &str, file: &str, size: &mut usize) -> Result<Table, Vec<Problem>> {
        let source = self.sources.len() as u32;
        self.sources.push(Source::file(text, file));
        let whole = Origin { source, ..Origin::default() };
        if text.len() > LARGEST_FILE {
            let size = text.len() >> 20;
            return Err(vec![self.problem(
                "",
                whole,
                false,
                format!("the file has {size} MiB; the maximum is {} MiB", LARGEST_FILE >> 20),
                "give flows a count instead of a table each".into(),
            )]);
        }
        *size += tree_size(text);
        if *size > LARGEST_TREE {
            return Err(vec![self.problem(
                "",
                whole,
                false,
                format!(
                    "the file's values, keys and lines would take about {} MiB of memory; the maximum is {} MiB",
                    *size >> 20,
                    LARGEST_TREE >> 20
                ),
                "give flows a count instead of a table or value each".into(),
            )]);
        }
        let (root, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            Ok(tree::table(root.get_ref(), source))
        } else {
            Err(syntax(&self.sources[source as usize], &errors))
        }
    }

    /// Adds a text that has lines; its number among the sources.
    pub(super) fn add_source(&mut self, text: &str, name: &str) -> u32 {
        self.sources.push(Source::file(text, name));
        self.sources.len() as u32 - 1
    }

    /// The whole text as a table that may be changed, for what other files have in its places.
    pub fn root_mut(&mut self) -> &mut Table {
        &mut self.root
    }

    /// The file's name in messages.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.sources[0].name
    }

    /// The number of a file or override by its name in messages, in the order in which problems are told: the file, what it
    /// extends, the overrides.
    pub(crate) fn rank(&self, name: &str) -> usize {
        self.sources.iter().position(|source| source.name == name).unwrap_or(usize::MAX)
    }

    /// Whether this is a place in an override.
    pub(crate) fn is_override(&self, origin: Origin) -> bool {
        self.sources.get(origin.source as usize).is_some_and(|source| source.lines.is_none())
    }

    /// The whole text written out: what it extends is part of it, and so are the overrides.
    #[must_use]
    pub fn written(&self) -> String {
        written::written(&self.root)
    }

    /// The whole text as a table.
    #[must_use]
    pub fn root(&self) -> &Table {
        &self.root
    }

    /// The characters at `origin`, in one line and shortened.
    #[must_use]
    pub fn excerpt(&self, origin: Origin) -> Option<String> {
        let text = &self.sources.get(origin.source as usize)?.text;
        let text = text.get(origin.start as usize..origin.end as usize)?;
        let line = text.lines().next().unwrap_or("");
        let mut cut: String = line.chars().take(60).collect();
        if cut.len() < text.trim_end().len() {
            cut.push('…');
        }
        (!cut.is_empty()).then_some(cut)
    }

    /// An error at `origin`.
    #[must_use]
    pub fn problem(
        &self,
        path: &str,
        origin: Origin,
        show: bool,
        problem: String,
        remedy: String,
    ) -> Problem {
        let source = &self.sources[origin.source as usize];
        let (line, column) = source.line_column(origin.start as usize).unzip();
        let value = if show { self.excerpt(origin) } else { None };
        Problem {
            file: source.name.clone(),
            line,
            column,
            path: path.to_owned(),
            value,
            problem,
            remedy,
            severity: Severity::Error,
        }
    }

    /// Where the value under a key is written, as `file:line` or `--set KEY=VALUE`, and whether it is written at all; if
    /// not, the nearest table around it. Keys are those of `--set`: tables in lists go by name or number.
    #[must_use]
    pub fn place_of(&self, key: &str) -> (String, bool) {
        let (mut table, mut list, mut at) = (Some(&self.root), None::<&[Node]>, None);
        let mut written = true;
        for part in key.split('.') {
            let found = match (table, list) {
                (Some(inner), _) => inner.get(part),
                (None, Some(nodes)) => overrides::named(nodes, part).map(|index| &nodes[index]),
                (None, None) => None,
            };
            let Some(node) = found else {
                written = false;
                break;
            };
            at = Some(node.origin);
            (table, list) = match &node.item {
                Item::Table(inner) => (Some(inner), None),
                Item::List(nodes) => (None, Some(nodes.as_slice())),
                _ => (None, None),
            };
        }
        let place = at.map(|origin: Origin| {
            let source = &self.sources[origin.source as usize];
            match source.line_column(origin.start as usize) {
                Some((line, _)) => format!("{}:{line}", source.name),
                None => source.name.clone(),
            }
        });
        (place.unwrap_or_else(|| self.file().to_owned()), written)
    }

    /// Puts every override in its place.
    fn apply(&mut self, set: &[(String, String)]) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        for (key, value) in set {
            let source = self.sources.len() as u32;
            let name = format!("--set {}={}", clip(key), clip(value));
            self.sources.push(Source { name, text: value.clone(), lines: None });
            if let Err(wrong) = overrides::put(&mut self.root, key, value, source) {
                let origin = Origin { source, start: 0, end: 0 };
                problems.push(self.problem(&clip(key), origin, false, wrong.problem, wrong.remedy));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_place_by_the_names_of_tables() {
        let text = "title = \"x\"\n[tcp]\nwindow = 3\n\n[[links]]\nname = \"a\"\n\n[[links]]\nname = \"b\"\n[links.queue]\naqm = \"red\"\n";
        let set = [("links.a.queue".to_owned(), "{ aqm = \"pie\" }".to_owned())];
        let document = Document::parse(text, "f.toml", &set).unwrap();
        for (key, place, written) in [
            ("tcp.window", "f.toml:3", true),
            ("links.b.queue.aqm", "f.toml:11", true),
            ("links.a.queue.aqm", "--set links.a.queue={ aqm = \"pie\" }", true),
            ("tcp.profile", "f.toml:2", false),
            ("flows.x", "f.toml", false),
        ] {
            assert_eq!(document.place_of(key), (place.to_owned(), written), "{key}");
        }
    }

    fn at(text: &str, path: &[&str]) -> (Option<u32>, Option<u32>, Option<String>) {
        let document = Document::parse(text, "f.toml", &[]).unwrap();
        let mut table = document.root();
        let mut origin = Origin::default();
        for part in path {
            let node = table.get(part).unwrap();
            origin = node.origin;
            if let Item::Table(inner) = &node.item {
                table = inner;
            }
        }
        let p = document.problem("", origin, true, String::new(), String::new());
        (p.line, p.column, p.value)
    }

    #[test]
    fn places_are_lines_and_columns_of_characters() {
        let text = "a = \"é\" # ü\r\n[t]\nα = 1\n".replace('α', "\"α\"") + "x = [ \"ü\", 2 ]";
        assert_eq!(at(&text, &["a"]), (Some(1), Some(5), Some("\"é\"".into())));
        assert_eq!(at(&text, &["t"]), (Some(2), Some(1), Some("[t]".into())));
        assert_eq!(at(&text, &["t", "α"]), (Some(3), Some(7), Some("1".into())));
        assert_eq!(at(&text, &["t", "x"]), (Some(4), Some(5), Some("[ \"ü\", 2 ]".into())));
    }

    #[test]
    fn keys_keep_the_order_of_the_text_and_numbers_their_digits() {
        let document = Document::parse("z = 0.10\na = 0x10\nm = 1_000", "f", &[]).unwrap();
        let keys: Vec<_> = document.root().0.iter().map(|(k, ..)| k.as_str()).collect();
        assert_eq!(keys, ["z", "a", "m"]);
        let item = |key| document.root().get(key).map(|n| n.item.clone());
        assert_eq!(item("z"), Some(Item::Number("0.10".into(), false)));
        assert_eq!(item("a"), Some(Item::Number("16".into(), true)));
        assert_eq!(item("m"), Some(Item::Number("1000".into(), true)));
    }

    #[test]
    fn a_text_that_would_take_much_memory_is_refused_before_its_tree_is_built() {
        let contracts = format!("a = [{}]", "\"1.5 Mbit/s\", ".repeat(100_000));
        assert!(Document::parse(&contracts, "f", &[]).is_ok());
        for part in ["[", "1,", "{", "\n", "a=", "[[t]]\n", "{a=1},", "a ", "a.b.", "]"] {
            let text = format!("a = [{}", part.repeat((15 << 20) / part.len()));
            let refused = Document::parse(&text, "f", &[]).unwrap_err();
            assert!(refused[0].problem.contains("the maximum is 150 MiB"), "{part}: {:?}", refused[0]);
        }
    }

    #[test]
    fn what_is_no_toml_is_quoted_shortened() {
        let text = format!("{} = 1 x", vec!["a"; 100_000].join("."));
        for p in Document::parse(&text, "f", &[]).unwrap_err() {
            assert!(p.to_string().len() < 500, "{} bytes", p.to_string().len());
        }
    }

    #[test]
    fn a_byte_that_is_no_text_has_a_place() {
        let p = &Document::parse_bytes(b"a = 1\nb = \"\xc3\xa9\xff\"", "f.toml", &[]).unwrap_err()[0];
        assert_eq!((p.line, p.column), (Some(2), Some(7)));
        assert_eq!(p.value.as_deref(), Some("byte 0xff"));
    }

    #[test]
    fn a_byte_order_mark_is_no_problem() {
        assert!(Document::parse_bytes(b"\xef\xbb\xbfa = 1\n", "f", &[]).is_ok());
    }

    #[test]
    fn deep_nesting_and_long_garbage_are_refused_quickly() {
        assert!(Document::parse(&format!("a = {}", "[".repeat(1_000_000)), "f", &[]).is_err());
        assert!(Document::parse(&vec!["a"; 100_000].join("."), "f", &[]).is_err());
        assert!(Document::parse(&"? ".repeat(200_000), "f", &[]).is_err());
        assert!(Document::parse(&"?\n".repeat(200_000), "f", &[]).unwrap_err().len() <= 20);
    }
}
