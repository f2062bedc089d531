//! `[[…templates]]` and `[[…groups]]`: settings that many customers share are written once.
//!
//! A template may have any key of a customer except those that identify one; a customer's own keys override its template's. A
//! group is a name under which customers are counted together; it may name a template for its members, which a member's own
//! template overrides.

use std::collections::BTreeMap;

use inprofile_experiment::text::nearest::suggest;
use inprofile_experiment::text::problem::Wrong;
use inprofile_experiment::text::{Entry, Section};

use super::values;

/// The keys that identify a customer; no two customers share one.
pub(super) const IDENTITY: [&str; 7] = ["name", "prefix", "port", "vlan", "session", "template", "group"];

/// All templates and groups of a direction.
pub(super) struct Common<'d, 'r> {
    templates: BTreeMap<String, Section<'d, 'r>>,
    /// Each with the template of its members.
    groups: Vec<(String, Option<String>)>,
}

impl<'d, 'r> Common<'d, 'r> {
    /// Reads them; `keys` are a template's.
    pub(super) fn read(section: &Section<'d, 'r>, keys: &[&str]) -> Option<Common<'d, 'r>> {
        let mut common = Common { templates: BTreeMap::new(), groups: Vec::new() };
        let mut whole = true;
        for table in tables(section, "templates")? {
            table.refuse_unknown(&[&["name"], keys].concat());
            let Some(entry) = table.need("name", "\"gold\"") else {
                whole = false;
                continue;
            };
            match values::name(&entry, "\"gold\"") {
                Some(name) if common.templates.contains_key(&name) => {
                    whole = false;
                    entry.wrong::<()>(Wrong::new("another template has this name", "give each its own"));
                }
                Some(name) => {
                    common.templates.insert(name, table);
                }
                None => whole = false,
            }
        }
        for table in tables(section, "groups")? {
            table.refuse_unknown(&["name", "template"]);
            let template = common.template_of(&table);
            let Some(entry) = table.need("name", "\"site-3\"") else {
                whole = false;
                continue;
            };
            match (values::name(&entry, "\"site-3\""), template) {
                (Some(name), _) if common.groups.iter().any(|(n, _)| *n == name) => {
                    whole = false;
                    entry.wrong::<()>(Wrong::new("another group has this name", "give each its own"));
                }
                (Some(name), Some(template)) => common.groups.push((name, template)),
                _ => whole = false,
            }
        }
        whole.then_some(common)
    }

    /// The template that a table names, if it does.
    fn template_of(&self, table: &Section<'_, '_>) -> Option<Option<String>> {
        let Some(entry) = table.get("template") else { return Some(None) };
        let name = entry.text("\"gold\"")?;
        if self.templates.contains_key(name) {
            return Some(Some(name.to_owned()));
        }
        let known: Vec<&str> = self.templates.keys().map(String::as_str).collect();
        let remedy = if known.is_empty() {
            "add it: [[….templates]] with this name".to_owned()
        } else {
            suggest(name, &known)
        };
        entry.wrong(Wrong::new("there is no such template", remedy))
    }

    /// A customer's template and the place of his group.
    pub(super) fn of(&self, table: &Section<'d, 'r>) -> Option<(Option<&Section<'d, 'r>>, Option<usize>)> {
        let own = self.template_of(table);
        let group = match table.get("group") {
            Some(entry) => {
                let name = entry.text("\"site-3\"")?;
                let found = self.groups.iter().position(|(n, _)| n == name);
                if found.is_none() {
                    let known: Vec<&str> = self.groups.iter().map(|(n, _)| n.as_str()).collect();
                    let remedy = if known.is_empty() {
                        "add it: [[….groups]] with this name".to_owned()
                    } else {
                        suggest(name, &known)
                    };
                    return entry.wrong(Wrong::new("there is no such group", remedy));
                }
                found
            }
            None => None,
        };
        let template = own?.or_else(|| self.groups[group?].1.clone());
        Some((template.and_then(|name| self.templates.get(&name)), group))
    }

    /// The names of the groups.
    pub(super) fn groups(self) -> Vec<String> {
        self.groups.into_iter().map(|(name, _)| name).collect()
    }
}

fn tables<'d, 'r>(section: &Section<'d, 'r>, key: &str) -> Option<Vec<Section<'d, 'r>>> {
    section.get(key).map_or(Some(Vec::new()), |e| e.tables(&format!("[[….{key}]]")))
}

/// A customer's keys: its own, else its template's.
pub(super) struct Terms<'a, 'd, 'r> {
    pub(super) own: &'a Section<'d, 'r>,
    pub(super) template: Option<&'a Section<'d, 'r>>,
}

impl<'d, 'r> Terms<'_, 'd, 'r> {
    pub(super) fn get(&self, key: &str) -> Option<Entry<'d, 'r>> {
        self.own.get(key).or_else(|| self.template?.get(key))
    }

    /// The table that has a key, if one has.
    pub(super) fn with(&self, key: &str) -> &Section<'d, 'r> {
        self.template.filter(|t| self.own.get(key).is_none() && t.get(key).is_some()).unwrap_or(self.own)
    }
}
