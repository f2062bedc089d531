//! A parsed text as a tree in which every value knows its place in the text.

use toml::de::{DeTable, DeValue};

/// The place of a value: in a file, or in an override.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// 0: the file; then the files it extends, then the overrides.
    pub source: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub item: Item,
    /// Its place; of a table, that of its header or braces.
    pub origin: Origin,
}

/// A value as TOML knows it; numbers keep their digits.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// In quotes.
    Text(String),
    /// Without quotes: its decimal digits, and whether it was written as a whole number.
    Number(String, bool),
    /// `true` or `false`.
    Flag(bool),
    /// A date or time of day; no experiment uses one.
    Date(String),
    /// `[ … ]`, or tables under one `[[name]]`.
    List(Vec<Node>),
    /// `{ … }` or `[name]`.
    Table(Table),
}

impl Item {
    /// Its type, in messages.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Item::Text(_) => "a string",
            Item::Number(..) => "a number",
            Item::Flag(_) => "true or false",
            Item::Date(_) => "a date",
            Item::List(_) => "a list",
            Item::Table(_) => "a table",
        }
    }
}

/// Keys and values in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(pub Vec<(String, Origin, Node)>);

impl Table {
    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(k, ..)| k == key).map(|(.., node)| node)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(k, ..)| k == key).map(|(.., node)| node)
    }

    /// The table's own `name` or `node`, by which `--set` addresses it.
    #[must_use]
    pub fn own_name(&self) -> Option<&str> {
        ["name", "node"].iter().find_map(|key| match self.get(key) {
            Some(Node { item: Item::Text(t), .. }) => Some(t.as_str()),
            _ => None,
        })
    }
}

/// Copies a parsed table, its keys back in the order of the text.
pub(crate) fn table(parsed: &DeTable<'_>, source: u32) -> Table {
    let mut rows: Vec<_> = parsed
        .iter()
        .map(|(key, value)| {
            let origin = origin(key.span(), source);
            (key.get_ref().to_string(), origin, node(value.get_ref(), value.span(), source))
        })
        .collect();
    rows.sort_by_key(|(_, origin, _)| origin.start);
    Table(rows)
}

fn origin(span: std::ops::Range<usize>, source: u32) -> Origin {
    Origin { source, start: span.start as u32, end: span.end as u32 }
}

/// Copies a parsed value.
pub(crate) fn node(parsed: &DeValue<'_>, span: std::ops::Range<usize>, source: u32) -> Node {
    let item = match parsed {
        DeValue::String(t) => Item::Text(t.to_string()),
        DeValue::Integer(i) => {
            let digits = i.as_str();
            let decimal =
                i128::from_str_radix(digits, i.radix()).map_or(digits.to_owned(), |n| n.to_string());
            Item::Number(decimal, true)
        }
        DeValue::Float(f) => Item::Number(f.as_str().to_owned(), false),
        DeValue::Boolean(b) => Item::Flag(*b),
        DeValue::Datetime(d) => Item::Date(d.to_string()),
        DeValue::Array(list) => {
            Item::List(list.iter().map(|v| node(v.get_ref(), v.span(), source)).collect())
        }
        DeValue::Table(t) => Item::Table(table(t, source)),
    };
    Node { item, origin: origin(span, source) }
}
