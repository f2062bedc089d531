//! `[[trees]]`: an access network said in a few lines. Each is written out as the links, groups of flows and edges that it stands
//! for, before anything else is read, so that all that holds for those holds for a tree; a mistake in it is reported once, at the
//! tree's own line.
//!
//! A node's contracts are checked here: at each level they add up to at most what the node has, its own contract or the
//! rate of its link, unless the level states by how much it is oversubscribed.

mod level;

use inprofile_core::rng::Rng;
use inprofile_core::units::Rate;

use crate::model::{MAX_FLOWS, MAX_TABLES, Tree, TreeLevel};
use crate::read::names;
use crate::text::problem::Wrong;
use crate::text::tree::{Item, Node, Origin, Table};
use crate::text::{Document, Entry, Location, Problem, Report, Section, quantity};
use level::Level;

/// The key of trees.
pub(crate) const KEY: &str = "trees";

/// The document with its trees written out, and their shapes. `first`: of each level only the first node of each node above.
///
/// # Errors
/// Mistakes in a tree itself; those in its links and flows are found when the document is read.
pub(crate) fn expand(document: &Document, first: bool) -> Result<(Document, Vec<Tree>), Vec<Problem>> {
    let report = Report::new(document);
    let root =
        Section::root(&report, &document.root().0.iter().map(|(k, ..)| k.as_str()).collect::<Vec<_>>());
    let Some(entry) = root.get(KEY) else { return Ok((document.clone(), Vec::new())) };
    let mut made = Made::default();
    let mut trees = Vec::new();
    // The file's own links come first.
    let own = |key: &str| match document.root().get(key).map(|node| &node.item) {
        Some(Item::List(list)) => list.len(),
        _ => 0,
    };
    let mut so_far = Counts { links: own("links"), groups: own("flows"), flows: 0 };
    for section in entry.tables("[[trees]]").unwrap_or_default() {
        if let Some(plan) = Plan::read(&section, &mut so_far) {
            trees.extend(plan.write(&section, first, &mut made));
        }
    }
    if report.has_errors() {
        return Err(report.finish());
    }
    for tree in &mut trees {
        tree.groups.0 += own("flows");
        tree.levels.iter_mut().for_each(|level: &mut TreeLevel| level.links.0 += own("links"));
    }
    let mut whole = document.clone();
    let table = whole.root_mut();
    table.0.retain(|(key, ..)| key != KEY);
    for (key, nodes) in [("links", made.links), ("flows", made.flows), ("edges", made.edges)] {
        match table.get_mut(key) {
            Some(Node { item: Item::List(list), .. }) => list.extend(nodes),
            // What is no list is reported as such.
            Some(_) => {}
            None if nodes.is_empty() => {}
            None => {
                let origin = entry.place().origin;
                table.0.push((key.to_owned(), origin, Node { item: Item::List(nodes), origin }));
            }
        }
    }
    Ok((whole, trees))
}

/// How many there are so far: those of the file itself, and of its trees.
struct Counts {
    links: usize,
    groups: usize,
    /// Of trees alone.
    flows: u64,
}

/// What trees stand for.
#[derive(Default)]
struct Made {
    links: Vec<Node>,
    flows: Vec<Node>,
    edges: Vec<Node>,
}

/// A tree as read.
struct Plan<'d, 'r> {
    name: String,
    root: String,
    down: bool,
    levels: Vec<Level<'d, 'r>>,
    flows: Vec<Section<'d, 'r>>,
}

impl<'d, 'r> Plan<'d, 'r> {
    fn read(section: &Section<'d, 'r>, so_far: &mut Counts) -> Option<Plan<'d, 'r>> {
        section.refuse_unknown(&["name", "root", "direction", "draw", "levels", "flows"]);
        let name = section.need("name", "\"isp\"").and_then(|e| names::name(&e));
        let root = section.need("root", "\"core\"").and_then(|e| names::name(&e));
        let down = match section.get("direction") {
            Some(e) => e.word(&["down", "up"], "direction").map(|word| word == "down"),
            None => Some(true),
        };
        let draw = match section.get("draw") {
            Some(e) => e.count_in(0..=u64::from(u32::MAX)),
            None => Some(1),
        };
        let levels = section.need("levels", "[{ name = \"street\", fan_out = 10, … }]");
        let tables = levels
            .as_ref()
            .and_then(|e| e.tables("levels, each with name, fan_out, rate, delay and queue"))?;
        if let (Some(entry), true) = (&levels, tables.is_empty()) {
            return entry.wrong(Wrong::new(
                "a tree has a level at least",
                "write levels = [{ name = \"street\", … }]",
            ));
        }
        let flows = match section.get("flows") {
            Some(e) => e.tables("groups of flows of each leaf")?,
            None => Vec::new(),
        };
        let (name, root, down, draw) = (name?.value, root?.value, down?, draw?);
        let mut rng = Rng::for_component(draw, &format!("tree {name}"));
        let mut read: Vec<Level<'d, 'r>> = Vec::new();
        let mut parents = 1;
        for table in tables {
            if let Some(before) =
                read.iter().find(|l| table.get("name").and_then(|e| e.as_text()) == Some(&l.name))
            {
                let problem = format!("the tree {name} has a level {} already", before.name);
                return table.get("name")?.wrong(Wrong::new(problem, "give each its own name"));
            }
            let level = Level::read(&name, table, parents, &mut rng)?;
            parents = level.nodes();
            so_far.links += parents;
            level.fits(&name, so_far.links)?;
            read.push(level);
        }
        let plan = Plan { name, root, down, levels: read, flows };
        plan.fits(section, so_far)?;
        Some(plan)
    }

    /// Whether it stays within what an experiment may have; nothing has been made for its nodes yet.
    fn fits(&self, section: &Section<'_, '_>, so_far: &mut Counts) -> Option<()> {
        for flows in &self.flows {
            let join = match flows.table().get("join").map(|node| &node.item) {
                Some(Item::Table(join)) => join.get("node").is_some(),
                _ => false,
            };
            let given = |key: &str| flows.table().get(key).is_some();
            for (key, given) in [("from", given("from")), ("to", given("to")), ("join", join)] {
                if given {
                    let key_in = if key == "join" { "join.node" } else { key };
                    let problem = "the flows of a tree begin and end at its root and its leaves";
                    return flows.get(key)?.wrong(Wrong::new(problem, format!("remove {key_in}")));
                }
            }
        }
        let leaves = self.levels.last().map_or(0, Level::nodes) as u64;
        let place = |key: &str| Location { quoted: false, ..section.locate(key) };
        so_far.groups += self.levels.last().map_or(0, Level::nodes) * self.flows.len();
        if so_far.groups > MAX_TABLES {
            let problem = format!(
                "with {leaves} leaves with {} groups of flows each there are {}; an experiment has at most {MAX_TABLES} groups",
                self.flows.len(),
                so_far.groups
            );
            let remedy =
                "write fewer leaves with a larger count: the flows of a leaf have hosts of their own";
            section.report().error(&place("flows"), problem, remedy);
            return None;
        }
        let count = |f: &Section<'_, '_>| f.get("count").map_or(Some(1), |e| e.as_whole()).unwrap_or(0);
        let of_leaf = self.flows.iter().map(count).fold(0u64, u64::saturating_add);
        so_far.flows = so_far.flows.saturating_add(of_leaf.saturating_mul(leaves));
        if so_far.flows > MAX_FLOWS {
            let problem = format!("{} flows in total; the maximum is {MAX_FLOWS}", so_far.flows);
            section.report().error(&place("flows"), problem, "write smaller counts or fewer leaves");
            return None;
        }
        Some(())
    }

    /// Writes it out, after its contracts have been added up.
    fn write(&self, section: &Section<'_, '_>, first: bool, made: &mut Made) -> Option<Tree> {
        let promised = self.promised()?;
        let mut parents = vec![(self.root.clone(), String::new())];
        let mut levels = Vec::new();
        for (level, promised) in self.levels.iter().zip(promised) {
            let from = made.links.len();
            let mut nodes = Vec::new();
            let mut number = 0;
            for ((parent, path), fan_out) in parents.iter().zip(&level.fan_out) {
                for i in 0..if first { 1 } else { *fan_out as usize } {
                    let path = format!("{path}-{}", i + 1);
                    let node = format!("{}{path}", level.name);
                    let (parent, child) = (parent.as_str(), node.as_str());
                    let ends = if self.down { (parent, child) } else { (child, parent) };
                    made.links.push(level.link(&node, ends, number + i));
                    made.edges.extend(level.edge(&node));
                    nodes.push((node, path));
                }
                number += *fan_out as usize;
            }
            levels.push(TreeLevel {
                name: level.name.clone(),
                links: (from, nodes.len()),
                rates: level.rates.clone(),
                contracts: level.contracts.clone(),
                promised,
                oversubscription: level.oversubscription,
            });
            parents = nodes;
        }
        let groups = (made.flows.len(), self.flows.len(), parents.len());
        for (leaf, path) in &parents {
            made.flows.extend(self.flows.iter().map(|flows| self.group(section, flows, leaf, path)));
        }
        Some(Tree { name: self.name.clone(), root: self.root.clone(), down: self.down, levels, groups })
    }

    /// A leaf's group of flows.
    fn group(&self, tree: &Section<'_, '_>, flows: &Section<'_, '_>, leaf: &str, path: &str) -> Node {
        let at = flows.place().origin;
        let mut table = flows.table().clone();
        if let Some(Node { item: Item::Text(name), .. }) = table.get_mut("name") {
            name.push_str(path);
        }
        let (source, sink) = if self.down { (self.root.as_str(), leaf) } else { (leaf, self.root.as_str()) };
        let place = tree.place().origin;
        match table.get_mut("join") {
            Some(Node { item: Item::Table(join), .. }) => {
                set(join, "node", source, place);
                set(&mut table, "from", "H*", place);
            }
            _ => set(&mut table, "from", source, place),
        }
        set(&mut table, "to", sink, place);
        Node { item: Item::Table(table), origin: at }
    }

    /// What the flows below each node of each level were promised, checked; levels from the top. `None` if something was reported.
    fn promised(&self) -> Option<Vec<Vec<u128>>> {
        let of_leaf: u128 = self.flows.iter().map(|f| contracts(f)).sum();
        let mut below = vec![of_leaf; self.levels.last()?.nodes()];
        let mut all = Vec::new();
        for level in self.levels.iter().rev() {
            let has = level.contracts.as_ref().unwrap_or(&level.rates);
            for (i, (promised, has)) in below.iter().zip(has).enumerate() {
                level.keeps(&self.name, i, *promised, *has)?;
            }
            let committed: Vec<u128> = match &level.contracts {
                Some(own) => own.iter().map(|r| u128::from(r.0)).collect(),
                None => below.clone(),
            };
            let mut children = committed.into_iter();
            let up = level.fan_out.iter().map(|n| children.by_ref().take(*n as usize).sum()).collect();
            all.push(std::mem::replace(&mut below, up));
        }
        all.reverse();
        Some(all)
    }
}

/// What a group of flows was promised at one leaf, as far as it can be read.
fn contracts(flows: &Section<'_, '_>) -> u128 {
    let rate =
        |e: &Entry<'_, '_>| e.as_text().and_then(|t| quantity::rate(t).ok()).map_or(0, |r| u128::from(r.0));
    let count = flows.get("count").map_or(Some(1), |e| e.as_whole()).unwrap_or(0);
    match flows.get("contract") {
        Some(e) if e.is_list() => e.elements("rates").unwrap_or_default().iter().map(rate).sum(),
        Some(e) => rate(&e) * u128::from(count),
        None => 0,
    }
}

/// A rate in words, however large.
fn said(bits: u128) -> String {
    u64::try_from(bits).map_or_else(|_| format!("{bits} bit/s"), |r| Rate(r).to_string())
}

/// Sets a key, or replaces what it has.
fn set(table: &mut Table, key: &str, text: &str, origin: Origin) {
    let node = Node { item: Item::Text(text.to_owned()), origin };
    match table.get_mut(key) {
        Some(old) => *old = node,
        None => table.0.push((key.to_owned(), origin, node)),
    }
}
