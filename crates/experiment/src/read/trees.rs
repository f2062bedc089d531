//! `[[trees]]`: an access network said in a few lines. Each is written out as the links, groups of flows and edges that it stands
//! for, before anything else is read, so that all that holds for those holds for a tree; a mistake in it is reported once, at the
//! tree's own line.
//!
//! A node's contracts are checked here: at each level they add up to at most what the node has, its own contract or the
//! rate of its link, unless the level states by how much it is oversubscribed.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Rate};

use crate::model::{MAX_FLOWS, MAX_TABLES, Tree, TreeLevel};
use crate::read::links::DIRECTION;
use crate::read::names;
use crate::text::problem::Wrong;
use crate::text::tree::{Item, Node, Origin, Table};
use crate::text::{Document, Entry, Location, Problem, Report, Section, quantity};

/// The key of trees.
pub(crate) const KEY: &str = "trees";

/// Bytes that the traces of a level may have together.
const MOST_TRACES: usize = 64 << 20;

/// Keys of a level that are no keys of its links.
const OF_LEVEL: [&str; 6] = ["name", "fan_out", "contract", "oversubscription", "marker", "reverse"];

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

/// A level as read.
struct Level<'d, 'r> {
    name: String,
    section: Section<'d, 'r>,
    /// How many nodes each node above has.
    fan_out: Vec<u32>,
    rates: Vec<Rate>,
    delays: Vec<Duration>,
    contracts: Option<Vec<Rate>>,
    oversubscription: f64,
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

impl<'d, 'r> Level<'d, 'r> {
    fn read(tree: &str, section: Section<'d, 'r>, parents: usize, rng: &mut Rng) -> Option<Level<'d, 'r>> {
        section.refuse_unknown(&[OF_LEVEL.as_slice(), DIRECTION.as_slice()].concat());
        let name = section.need("name", "\"street\"").and_then(|e| names::name(&e))?.value;
        let fan_out = section.need("fan_out", "10").and_then(|e| fan_out(&e, parents, rng))?;
        let nodes: u64 = fan_out.iter().map(|n| u64::from(*n)).sum();
        if nodes == 0 || nodes > MAX_TABLES as u64 {
            let problem = format!(
                "the tree {tree} has {nodes} nodes at its level {name}, and a link for each; an experiment has 1 to {MAX_TABLES} links"
            );
            let remedy = "write a smaller fan_out; customers need no level of their own: the flows of a leaf have hosts of their own, joined by join = { rate = … }";
            return section.get("fan_out")?.wrong(Wrong::new(problem, remedy));
        }
        let nodes = nodes as usize;
        let rates = section.need("rate", "\"1 Gbit/s\"").and_then(|e| each(&e, nodes, |e| e.positive_rate()));
        let delays = section.need("delay", "\"1 ms\"").and_then(|e| delays(&e, nodes, rng));
        let contracts = match section.get("contract") {
            Some(e) => each(&e, nodes, |e| e.positive_rate()).map(Some),
            None => Some(None),
        };
        let oversubscription = match section.get("oversubscription") {
            Some(e) => e.number().and_then(|x| {
                let remedy =
                    "write oversubscription = 1.5 where 1.5 times what a node has may be sold below it";
                if x >= 1.0 && x.is_finite() {
                    Some(x)
                } else {
                    e.wrong(Wrong::new("below 1, less would be sold than there is", remedy))
                }
            }),
            None => Some(1.0),
        };
        let (rates, contracts) = (rates?, contracts?);
        if let Some((i, (own, rate))) =
            contracts.iter().flatten().zip(&rates).enumerate().find(|(_, (own, rate))| own > rate)
        {
            let problem =
                format!("the {}. {name} of {tree} has a link of {rate}: less than its contract", i + 1);
            let remedy = format!("write at most \"{rate}\", or a rate of \"{own}\"");
            return section.get("contract")?.wrong(Wrong::new(problem, remedy));
        }
        Some(Level {
            name,
            section,
            fan_out,
            rates,
            delays: delays?,
            contracts,
            oversubscription: oversubscription?,
        })
    }

    /// Whether the links so far, this level's included, are as many as an experiment may have, and what each says fits into memory as often
    /// as it is said.
    fn fits(&self, tree: &str, links: usize) -> Option<()> {
        if links > MAX_TABLES {
            let problem = format!(
                "with the level {} of {tree} there are {links} links; an experiment has at most {MAX_TABLES}",
                self.name
            );
            let remedy = "write fewer levels or a smaller fan_out";
            return self.section.get("fan_out")?.wrong(Wrong::new(problem, remedy));
        }
        let trace = self.section.get("trace").and_then(|e| e.as_text().map(str::len)).unwrap_or(0);
        if trace * self.nodes() > MOST_TRACES {
            let problem = format!(
                "a trace of {trace} bytes for each of {} links of {tree}: more than {MOST_TRACES} bytes",
                self.nodes()
            );
            let remedy = "write a shorter trace, or a rate and a capacity";
            return self.section.get("trace")?.wrong(Wrong::new(problem, remedy));
        }
        Some(())
    }

    /// How many nodes it has.
    fn nodes(&self) -> usize {
        self.rates.len()
    }

    /// Whether what was promised below its i-th node is at most what that one has, times what is stated.
    fn keeps(&self, tree: &str, i: usize, promised: u128, has: Rate) -> Option<()> {
        let factor = promised as f64 / has.0 as f64;
        if factor <= self.oversubscription * (1.0 + 1e-12) {
            return Some(());
        }
        let (key, what) = if self.contracts.is_some() { ("contract", "contract") } else { ("rate", "link") };
        let problem = format!(
            "contracts below the {}. {} of {tree} add up to {}, {factor:.3} times its {what} of {has}",
            i + 1,
            self.name,
            said(promised)
        );
        let place = Location { quoted: false, ..self.section.locate(key) };
        let stated = (factor * 1000.0).ceil() / 1000.0;
        let remedy = format!(
            "write a {key} of \"{}\", smaller contracts, or oversubscription = {stated} to state it",
            said(promised)
        );
        self.section.report().error(&place, problem, remedy);
        None
    }

    /// The link to, or from, its i-th node.
    fn link(&self, node: &str, (from, to): (&str, &str), i: usize) -> Node {
        let own = |key: &str| key == "reverse" || DIRECTION.contains(&key);
        let mut table = Table(self.section.table().0.iter().filter(|(key, ..)| own(key)).cloned().collect());
        let at = self.section.place().origin;
        for (key, text) in [("name", node), ("from", from), ("to", to)] {
            set(&mut table, key, text, at);
        }
        for (key, text) in [("rate", self.rates[i].to_string()), ("delay", self.delays[i].to_string())] {
            let origin = self.section.locate(key).origin;
            set(&mut table, key, &text, origin);
        }
        Node { item: Item::Table(table), origin: at }
    }

    /// The edge at a node.
    fn edge(&self, node: &str) -> Option<Node> {
        let marker = self.section.table().get("marker")?.clone();
        let at = self.section.place().origin;
        let mut table = Table::default();
        set(&mut table, "node", node, at);
        table.0.push(("marker".into(), marker.origin, marker));
        Some(Node { item: Item::Table(table), origin: at })
    }
}

/// One value for all, or one for each of `n`.
fn each<T: Copy>(
    entry: &Entry<'_, '_>,
    n: usize,
    read: impl Fn(&Entry<'_, '_>) -> Option<T>,
) -> Option<Vec<T>> {
    if !entry.is_list() {
        return Some(vec![read(entry)?; n]);
    }
    let all = entry.elements("a list")?;
    if all.len() != n {
        let problem = format!("{} values for {n} nodes", all.len());
        return entry.wrong(Wrong::new(problem, "write one for all, or one for each"));
    }
    all.iter().map(read).collect()
}

/// How many nodes each of the nodes above has: one number, one each, or `"uniform 5..15"`.
fn fan_out(entry: &Entry<'_, '_>, parents: usize, rng: &mut Rng) -> Option<Vec<u32>> {
    let number = |e: &Entry<'_, '_>| e.count_in(1..=1_000_000_000).and_then(|n| u32::try_from(n).ok());
    let Some(text) = entry.as_text() else { return each(entry, parents, number) };
    let bounds = text.trim().strip_prefix("uniform").and_then(|range| {
        let (low, high) = range.split_once("..")?;
        Some((low.trim().parse::<u32>().ok()?, high.trim().parse::<u32>().ok()?))
    });
    match bounds {
        Some((low, high)) if low >= 1 && low <= high => {
            let among = (high - low).saturating_add(1);
            Some((0..parents).map(|_| low + rng.below(among)).collect())
        }
        _ => entry.wrong(Wrong::new(
            "not a number of nodes",
            "write 10, a list with one for each node above, or \"uniform 5..15\"",
        )),
    }
}

/// One delay for all, one each, a range that is spread evenly (`"1..5 ms"`), or drawn (`"uniform 1..5 ms"`).
fn delays(entry: &Entry<'_, '_>, n: usize, rng: &mut Rng) -> Option<Vec<Duration>> {
    let Some(text) = entry.as_text().filter(|t| t.contains("..")) else {
        return each(entry, n, |e| e.duration());
    };
    let drawn = text.trim().strip_prefix("uniform");
    let (from, to) = match quantity::span(drawn.unwrap_or(text)) {
        Ok(span) => span,
        Err(wrong) => return entry.wrong(wrong),
    };
    let wide = (to.0 - from.0) as f64;
    let even = |i: usize| i as f64 / (n.max(2) - 1) as f64;
    let at = |share: f64| Duration(from.0 + (share * wide) as u64);
    Some((0..n).map(|i| at(if drawn.is_some() { rng.uniform() } else { even(i) })).collect())
}
