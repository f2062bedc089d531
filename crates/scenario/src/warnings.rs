//! What may be run but is perhaps not meant, seen once the whole experiment is known.

use std::collections::BTreeSet;

use inprofile_config::{Place, Section};
use inprofile_core::units::Rate;

use crate::model::{Group, Model, Source};

/// Adds a warning for each.
pub(crate) fn warn(root: &Section<'_, '_>, model: &Model) {
    oversold(root, model);
    unseen_edges(root, model);
}

/// Contracts that the measured link can't keep all at once; and a measured link that nobody crosses.
fn oversold(root: &Section<'_, '_>, model: &Model) {
    let crosses = |g: &&Group| g.route.path.contains(&(model.at as u32));
    let rate = model.way(model.at).rate;
    let link = model.way_name(model.at);
    let report = root.report();
    if !model.groups.iter().any(|g| crosses(&g)) {
        let place = root.locate("measure.at");
        let problem = format!("no flow's data crosses the measured link {link}");
        report.warning(&place, problem, "name a link on the way of the flows: at = \"…\"");
        return;
    }
    let promised: u128 = model
        .groups
        .iter()
        .filter(crosses)
        .flat_map(|g| (0..g.count).filter_map(|i| g.contract(i)))
        .map(|r| u128::from(r.0))
        .sum();
    if promised > u128::from(rate.0) {
        let place = Place { quoted: false, ..root.locate("flows") };
        let sum =
            u64::try_from(promised).map_or_else(|_| format!("{promised} bit/s"), |r| Rate(r).to_string());
        let problem =
            format!("contracts add up to {sum}, more than the {rate} of {link}: not all can be kept");
        report.warning(
            &place,
            problem,
            "lower the contracts or raise the rate, unless this is what is studied",
        );
    }
}

/// Edges that no data enters.
fn unseen_edges(root: &Section<'_, '_>, model: &Model) {
    let mut entered = BTreeSet::new();
    for group in &model.groups {
        if matches!(group.source, Source::Hosts(_)) {
            entered.insert(group.entry());
        }
        for way in &group.route.path {
            let link = &model.links[*way as usize / 2];
            entered.insert(if way.is_multiple_of(2) { link.ends.1 } else { link.ends.0 });
        }
    }
    let tables = root.get("edges").and_then(|e| e.tables("[[edges]]")).unwrap_or_default();
    for (edge, table) in model.edges.iter().zip(&tables).filter(|(e, _)| !entered.contains(&e.node)) {
        let node = &model.nodes[edge.node as usize];
        let problem = format!("no data enters {node} from a link: its marker has nothing to do");
        root.report().warning(table.place(), problem, "name a node on the way of the flows");
    }
}
