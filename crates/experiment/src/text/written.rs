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
