//! A level of a tree: how many nodes it has, and what the link and the edge of each are.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Rate};

use super::{said, set};
use crate::model::MAX_TABLES;
use crate::read::links::DIRECTION;
use crate::read::names;
use crate::text::problem::Wrong;
use crate::text::tree::{Item, Node, Table};
use crate::text::{Entry, Location, Section, quantity};

/// Keys of a level that are no keys of its links.
const OF_LEVEL: [&str; 6] = ["name", "fan_out", "contract", "oversubscription", "marker", "reverse"];

/// Bytes that the traces of a level may have together.
const MOST_TRACES: usize = 64 << 20;

/// A level as read.
pub(super) struct Level<'d, 'r> {
    pub(super) name: String,
    pub(super) section: Section<'d, 'r>,
    /// How many nodes each node above has.
    pub(super) fan_out: Vec<u32>,
    pub(super) rates: Vec<Rate>,
    pub(super) delays: Vec<Duration>,
    pub(super) contracts: Option<Vec<Rate>>,
    pub(super) oversubscription: f64,
}

impl<'d, 'r> Level<'d, 'r> {
    pub(super) fn read(
        tree: &str,
        section: Section<'d, 'r>,
        parents: usize,
        rng: &mut Rng,
    ) -> Option<Level<'d, 'r>> {
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
    pub(super) fn fits(&self, tree: &str, links: usize) -> Option<()> {
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
    pub(super) fn nodes(&self) -> usize {
        self.rates.len()
    }

    /// Whether what was promised below its i-th node is at most what that one has, times what is stated.
    pub(super) fn keeps(&self, tree: &str, i: usize, promised: u128, has: Rate) -> Option<()> {
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
    pub(super) fn link(&self, node: &str, (from, to): (&str, &str), i: usize) -> Node {
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
    pub(super) fn edge(&self, node: &str) -> Option<Node> {
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
