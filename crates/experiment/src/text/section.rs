//! Reads a table: known keys only, each value by its type, every mistake reported with its place.
//!
//! A reading function returns `None` only where it has reported a problem (or, for
//! [`Section::get`], where the key is absent), so a caller can go on and find further problems.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use inprofile_core::units::{Backlog, Bytes, Duration, Rate};

use crate::text::nearest::{nearest, suggest};
use crate::text::problem::Wrong;
use crate::text::quantity::{self, Unit};
use crate::text::report::{Location, Report};
use crate::text::tree::{Item, Node, Origin, Table};

/// A table being read.
#[derive(Clone, Debug)]
pub struct Section<'d, 'r> {
    table: &'d Table,
    place: Location,
    report: &'r Report<'d>,
    /// Known keys that an unknown one was probably meant to be. They are not reported as missing too.
    misspelt: RefCell<Vec<String>>,
}

/// A value being read.
#[derive(Clone, Debug)]
pub struct Entry<'d, 'r> {
    node: &'d Node,
    place: Location,
    report: &'r Report<'d>,
}

impl<'d, 'r> Section<'d, 'r> {
    /// The whole document; keys other than `known` are reported.
    #[must_use]
    pub fn root(report: &'r Report<'d>, known: &[&str]) -> Section<'d, 'r> {
        let place = Location { path: String::new(), origin: Origin::default(), quoted: false };
        let section =
            Section { table: report.document().root(), place, report, misspelt: RefCell::default() };
        section.refuse_unknown(known);
        section
    }

    /// Its place.
    #[must_use]
    pub fn place(&self) -> &Location {
        &self.place
    }

    /// The table itself.
    pub(crate) fn table(&self) -> &'d Table {
        self.table
    }

    /// Where problems go.
    #[must_use]
    pub fn report(&self) -> &'r Report<'d> {
        self.report
    }

    /// The value under `key`, if there is one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Entry<'d, 'r>> {
        let node = self.table.get(key)?;
        let place = Location { path: self.path(key), origin: node.origin, quoted: true };
        Some(Entry { node, place, report: self.report })
    }

    /// Every value with its key, in the order of the file: of a table whose keys the user chooses.
    pub fn entries(&self) -> impl Iterator<Item = (&'d str, Entry<'d, 'r>)> {
        let entry = |node: &'d Node, key: &str| {
            let place = Location { path: self.path(key), origin: node.origin, quoted: true };
            Entry { node, place, report: self.report }
        };
        let table: &'d Table = self.table;
        table.0.iter().map(move |(key, _, node)| (key.as_str(), entry(node, key)))
    }

    /// The value under `key`, which must be there; `example` shows how to write it.
    #[must_use]
    pub fn need(&self, key: &str, example: &str) -> Option<Entry<'d, 'r>> {
        let entry = self.get(key);
        if entry.is_none() && !self.is_misspelt(key) {
            self.report.error(&self.missing(key), "is missing", format!("write {key} = {example}"));
        }
        entry
    }

    /// Whether an unknown key was probably meant to be this one, and has been reported.
    #[must_use]
    pub fn is_misspelt(&self, key: &str) -> bool {
        self.misspelt.borrow().iter().any(|k| k == key)
    }

    /// The place at which to complain about a key that isn't there.
    #[must_use]
    pub fn missing(&self, key: &str) -> Location {
        Location { path: self.path(key), origin: self.place.origin, quoted: false }
    }

    /// The place of a value by its path within this table (`in.min_th`), or the nearest table to it.
    #[must_use]
    pub fn locate(&self, path: &str) -> Location {
        let mut place = self.missing(path);
        let mut table = self.table;
        for part in path.split('.') {
            let Some(node) = table.get(part) else { return place };
            place.origin = node.origin;
            match &node.item {
                Item::Table(inner) => table = inner,
                _ => return Location { quoted: true, ..place },
            }
        }
        place
    }

    /// Reports every key but the known ones.
    pub fn refuse_unknown(&self, known: &[&str]) {
        for (key, origin, node) in &self.table.0 {
            if !known.contains(&key.as_str()) {
                // A message about an override names the key already.
                let named = self.report.document().is_override(*origin);
                let origin = if named { node.origin } else { *origin };
                let place = Location { path: self.path(&quantity::clip(key)), origin, quoted: false };
                if self.report.is_full() {
                    self.report.error(&place, "unknown key", "");
                    continue;
                }
                self.report.error(&place, "unknown key", suggest(key, known));
                self.misspelt.borrow_mut().extend(nearest(key, known.iter().copied()).map(str::to_owned));
            }
        }
    }

    fn path(&self, key: &str) -> String {
        if self.place.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place.path) }
    }
}

impl<'d, 'r> Entry<'d, 'r> {
    /// Its place.
    #[must_use]
    pub fn place(&self) -> &Location {
        &self.place
    }

    /// Where problems go.
    #[must_use]
    pub fn report(&self) -> &'r Report<'d> {
        self.report
    }

    /// Whether it is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.node.item, Item::List(_))
    }

    /// Whether it is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.node.item, Item::Table(_))
    }

    /// The text, if it is one; nothing is reported.
    #[must_use]
    pub fn as_text(&self) -> Option<&'d str> {
        if let Item::Text(t) = &self.node.item { Some(t) } else { None }
    }

    /// The whole number, if it is one; nothing is reported.
    #[must_use]
    pub fn as_whole(&self) -> Option<u64> {
        if let Item::Number(digits, true) = &self.node.item { digits.parse().ok() } else { None }
    }

    /// Reports a problem of this value.
    pub fn wrong<T>(&self, wrong: Wrong) -> Option<T> {
        self.report.wrong(&self.place, wrong);
        None
    }

    fn expected<T>(&self, what: &str, example: &str) -> Option<T> {
        let problem = format!("{what} is expected here, not {}", self.node.item.noun());
        self.wrong(Wrong::new(problem, format!("write {example}")))
    }

    /// A text.
    #[must_use]
    pub fn text(&self, example: &str) -> Option<&'d str> {
        match &self.node.item {
            Item::Text(t) => Some(t),
            _ => self.expected("a string", example),
        }
    }

    /// A table with these keys.
    #[must_use]
    pub fn section(&self, known: &[&str]) -> Option<Section<'d, 'r>> {
        let section = self.open("{ … }")?;
        section.refuse_unknown(known);
        Some(section)
    }

    /// A table with keys that are not known yet.
    #[must_use]
    pub fn open(&self, example: &str) -> Option<Section<'d, 'r>> {
        match &self.node.item {
            Item::Table(table) => {
                let place = Location { quoted: false, ..self.place.clone() };
                Some(Section { table, place, report: self.report, misspelt: RefCell::default() })
            }
            _ => self.expected("a table", example),
        }
    }

    /// The elements of a list of tables, each under its own name where it has one.
    #[must_use]
    pub fn tables(&self, example: &str) -> Option<Vec<Section<'d, 'r>>> {
        let Item::List(list) = &self.node.item else { return self.expected("a list of tables", example) };
        let mut sections = Vec::with_capacity(list.len());
        let mut whole = true;
        for (i, node) in list.iter().enumerate() {
            let name = if let Item::Table(t) = &node.item { t.own_name() } else { None };
            let path = match name {
                Some(name) => format!("{}.{}", self.place.path, quantity::clip(name)),
                None => format!("{}.{i}", self.place.path),
            };
            let element = self.element(node, path);
            match element.open(example) {
                Some(section) => sections.push(section),
                None => whole = false,
            }
        }
        whole.then_some(sections)
    }

    /// The elements of a list.
    #[must_use]
    pub fn elements(&self, example: &str) -> Option<Vec<Entry<'d, 'r>>> {
        let Item::List(list) = &self.node.item else { return self.expected("a list", example) };
        let path = |i| format!("{}.{i}", self.place.path);
        Some(list.iter().enumerate().map(|(i, node)| self.element(node, path(i))).collect())
    }

    fn element(&self, node: &'d Node, path: String) -> Entry<'d, 'r> {
        let place = Location { path, origin: node.origin, quoted: true };
        Entry { node, place, report: self.report }
    }

    /// A quantity, by its parser in [`quantity`].
    fn quantity<T>(&self, unit: Unit, parse: fn(&str) -> Result<T, Wrong>) -> Option<T> {
        match &self.node.item {
            Item::Text(text) => parse(text).map_or_else(|wrong| self.wrong(wrong), Some),
            // The parser says what is wrong with a bare number: no unit, a sign, NaN.
            Item::Number(digits, _) => match parse(digits) {
                Ok(_) => self.expected(
                    unit.noun(),
                    &format!("a number and its unit in quotes, such as \"{}\"", unit.example()),
                ),
                Err(wrong) => self.wrong(wrong),
            },
            _ => self.expected(
                unit.noun(),
                &format!("a number and its unit in quotes, such as \"{}\"", unit.example()),
            ),
        }
    }

    /// A rate, possibly 0.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.quantity(Unit::Rate, quantity::rate)
    }

    /// A rate above 0.
    #[must_use]
    pub fn positive_rate(&self) -> Option<Rate> {
        let rate = self.rate()?;
        if rate.0 > 0 {
            Some(rate)
        } else {
            self.wrong(Wrong::new("a rate must be above 0", "write a rate such as \"1.2 Mbit/s\""))
        }
    }

    /// A length of time.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        self.quantity(Unit::Time, quantity::duration)
    }

    /// A length of time above 0.
    #[must_use]
    pub fn positive_duration(&self) -> Option<Duration> {
        self.above_0(self.duration()?, "100 ms")
    }

    /// A time of a run, which is proposed in seconds.
    #[must_use]
    pub fn moment(&self) -> Option<Duration> {
        self.quantity(Unit::Moment, quantity::moment)
    }

    /// A time of a run, above 0.
    #[must_use]
    pub fn positive_moment(&self) -> Option<Duration> {
        self.above_0(self.moment()?, "100 s")
    }

    fn above_0(&self, time: Duration, example: &str) -> Option<Duration> {
        if time.0 > 0 {
            Some(time)
        } else {
            self.wrong(Wrong::new("must be above 0", format!("write a time such as \"{example}\"")))
        }
    }

    /// A size.
    #[must_use]
    pub fn bytes(&self) -> Option<Bytes> {
        self.quantity(Unit::Size, quantity::bytes)
    }

    /// Packets or bytes.
    #[must_use]
    pub fn backlog(&self) -> Option<Backlog> {
        self.quantity(Unit::Backlog, quantity::backlog)
    }

    /// A size in bytes within `bounds`.
    #[must_use]
    pub fn bytes_in(&self, bounds: RangeInclusive<u32>) -> Option<u32> {
        let size = self.bytes()?;
        match u32::try_from(size.0) {
            Ok(n) if bounds.contains(&n) => Some(n),
            _ => self.wrong(Wrong::new(
                "the size is out of bounds",
                format!("write a size from \"{} B\" to \"{} B\"", bounds.start(), bounds.end()),
            )),
        }
    }

    /// Whole packets within `bounds`, such as `"20 packets"`.
    #[must_use]
    pub fn packets_in(&self, bounds: RangeInclusive<u32>) -> Option<u32> {
        let remedy = || format!("write \"{} packets\" to \"{} packets\"", bounds.start(), bounds.end());
        match self.backlog()? {
            Backlog::Packets(n)
                if n.fract() == 0.0 && n >= f64::from(*bounds.start()) && n <= f64::from(*bounds.end()) =>
            {
                Some(n as u32)
            }
            Backlog::Packets(_) => {
                self.wrong(Wrong::new("not a whole number of packets within bounds", remedy()))
            }
            Backlog::Bytes(_) => self.wrong(Wrong::new("is counted in packets, not in bytes", remedy())),
        }
    }

    /// A whole number within `bounds`.
    #[must_use]
    pub fn count_in(&self, bounds: RangeInclusive<u64>) -> Option<u64> {
        let (least, most) = (*bounds.start(), *bounds.end());
        let remedy = if most == u64::MAX {
            format!("write a whole number from {least}")
        } else {
            format!("write a whole number from {least} to {most}")
        };
        match &self.node.item {
            Item::Number(digits, true) => match digits.parse::<u64>() {
                Ok(n) if bounds.contains(&n) => Some(n),
                _ => self.wrong(Wrong::new("the number is out of bounds", remedy)),
            },
            Item::Number(..) => self.wrong(Wrong::new("a whole number is expected here", remedy)),
            Item::Text(_) => self.wrong(Wrong::new(
                "a whole number is expected here, not a string",
                format!("{remedy}, without quotes"),
            )),
            _ => self.wrong(Wrong::new(
                format!("a whole number is expected here, not {}", self.node.item.noun()),
                remedy,
            )),
        }
    }

    /// A finite number without a unit.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match &self.node.item {
            Item::Number(digits, _) => match digits.replace('_', "").parse::<f64>() {
                Ok(x) if x.is_finite() => Some(x),
                _ => self.wrong(Wrong::new("not a finite number", "write a number such as 0.5")),
            },
            _ => self.expected("a number", "it without quotes and without a unit, such as 0.5"),
        }
    }

    /// `true` or `false`.
    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        match &self.node.item {
            Item::Flag(b) => Some(*b),
            _ => self.expected("true or false", "true or false, without quotes"),
        }
    }

    /// One of a set of words.
    #[must_use]
    pub fn word(&self, words: &[&'static str], what: &str) -> Option<&'static str> {
        let example =
            format!("one of {}", words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", "));
        let text = self.text(&example)?;
        match words.iter().find(|w| **w == text) {
            Some(word) => Some(word),
            None => self.wrong(Wrong::new(format!("unknown {what}"), suggest(text, words))),
        }
    }
}
