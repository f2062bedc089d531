//! The counts of the maps as `stats` and the metrics show them.

use std::sync::Arc;

use inprofile_core::aqm::red::{EARLY, FORCED};
use inprofile_core::marker::POLICED;
use inprofile_core::marker::tsw_whole::LOST;
use inprofile_core::queue::Counts;
use inprofile_live::datapath::Refusal;
use inprofile_live::datapath::customer::CustomerCounts;
use inprofile_live::datapath::lateness::Lateness;
use inprofile_live::datapath::marker::MarkerCounts;
use inprofile_live::packet::{Census, Control};

use super::layout::{Account, Colours, ESTIMATE, GRAINS, Totals, VirtualBacklog};
use super::maps::Maps;
use super::places::{of_control, of_customer, of_service};
use crate::config::{Config, DIRECTIONS, datapath};
use crate::snapshot::{ClassState, DirectionState, MarkerState, PortState, Snapshot};

/// Everything, at about one moment: what is counted on several CPUs is added up while they go on.
///
/// # Errors
/// The system's error.
pub fn snapshot(
    maps: &mut Maps,
    config: &Config,
    uptime: f64,
    ports: [PortState; 2],
) -> Result<Box<Snapshot>, String> {
    // Customers' counts are found by their places.
    let mut placed = config.clone();
    for (i, direction) in placed.directions.iter_mut().enumerate() {
        for customer in direction.iter_mut().flat_map(|d| &mut d.customers) {
            customer.place = maps.places(i).get(&of_customer(&customer.name)).unwrap_or_default();
        }
    }
    let bypass = maps.state()?.bypass != 0;
    let directions = [direction(maps, &placed, 0)?, direction(maps, &placed, 1)?];
    let mut ports = ports;
    for (port, state) in ports.iter_mut().enumerate() {
        let (in_by, out_by) = (maps.totals(port)?, maps.totals(1 - port)?);
        state.counts.received = in_by.came;
        state.counts.refused = out_by.no_port;
        state.counts.sent = (out_by.sent + out_by.passed).saturating_sub(out_by.no_port);
    }
    let (failure, since_failure) = (None, 0);
    Ok(Box::new(Snapshot {
        uptime,
        bypass,
        failure,
        since_failure,
        ports,
        directions: directions.into(),
        config: Arc::new(placed),
    }))
}

fn direction(maps: &mut Maps, config: &Config, i: usize) -> Result<DirectionState, String> {
    let t = maps.totals(i)?;
    let mut by_place = vec![CustomerCounts::default(); maps.places(i).end() as usize];
    let mut markers = Vec::new();
    if let Some(d) = &config.directions[i] {
        let mut policers = Vec::new();
        for customer in &d.customers {
            let account = maps.account(i, customer.place)?;
            by_place[customer.place as usize] = of(&account);
            markers.push(meter(&account));
            policers.extend(
                customer.services.iter().map(|s| of_service(&customer.name, &d.classes[s.class].name)),
            );
        }
        policers.extend(Control::ALL.into_iter().map(of_control));
        for name in policers {
            let place = maps.places(i).get(&name).unwrap_or_default();
            markers.push(meter(&maps.account(i, place)?));
        }
    }
    let mut classes = Vec::new();
    for (place, of) in config.directions[i].iter().flat_map(|d| d.classes.iter().enumerate()) {
        let queue = datapath::virtual_queue(of, config.full_packet());
        classes.push(class(&t, place, &maps.backlog(i, place)?, queue.is_some()));
    }
    Ok(DirectionState {
        name: DIRECTIONS[i],
        came: t.came,
        passed: t.passed,
        bypassed: t.bypassed,
        refused: t.refused.iter().sum(),
        refusals: Refusal::NAMES.into_iter().zip(t.refused).collect(),
        marker_dropped: 0,
        policed: t.policed,
        too_late: 0,
        length_disagrees: t.length_disagrees,
        no_buffer: 0,
        sent: t.sent,
        dropped: t.dropped,
        waiting: 0,
        amiss: None,
        census: Census::NAMES.into_iter().zip(t.census).collect(),
        control_excess: Control::ALL.into_iter().map(Control::name).zip(t.excess).collect(),
        fragments_without_first: t.without_first,
        classes,
        markers,
        lateness: Lateness::default(),
        by_place,
        own_queues: Vec::new(),
        flows: 0,
        flows_replaced: 0,
    })
}

fn packets(of: [Colours; 3]) -> [u64; 3] {
    of.map(|c| c.packets)
}

fn bytes(of: [Colours; 3]) -> [u64; 3] {
    of.map(|c| c.bytes)
}

/// What passes a class leaves at once; what a virtual queue dropped and marked outlives a reload that takes it away.
fn class(t: &Totals, class: usize, backlog: &VirtualBacklog, queued: bool) -> ClassState {
    let of = t.class.get(class).copied().unwrap_or_default();
    let mut counts = Counts { sent: packets(of), sent_bytes: bytes(of), ..Counts::default() };
    counts.marked = backlog.marked;
    for (cause, of) in [EARLY, FORCED, POLICED].into_iter().zip(backlog.dropped) {
        counts.dropped[cause.index()] = of;
    }
    for c in 0..3 {
        let dropped: u64 = backlog.dropped.iter().map(|of| of[c]).sum();
        counts.arrived[c] = counts.sent[c] + dropped;
        counts.arrived_bytes[c] = counts.sent_bytes[c] + backlog.lost[c];
    }
    // In bytes, as of its last packet.
    let gauges =
        if queued { vec![("virtual_backlog", backlog.level as f64 / GRAINS as f64)] } else { Vec::new() };
    ClassState { name: String::new(), counts, waiting: [0; 3], gauges, stats: Vec::new() }
}

fn of(account: &Account) -> CustomerCounts {
    let mut counts = CustomerCounts::default();
    counts.arrived = account.came.packets;
    counts.arrived_bytes = account.came.bytes;
    counts.sent = packets(account.sent);
    counts.sent_bytes = bytes(account.sent);
    counts.dropped[POLICED.index()] = account.policed;
    counts.dropped[EARLY.index()] = account.early;
    counts.dropped[FORCED.index()] = account.forced;
    counts
}

fn meter(account: &Account) -> MarkerState {
    let tokens = account.tokens.map(|grains| grains as f64 / GRAINS as f64);
    // As of his last packet.
    let gauges = match account.rate[0] {
        ESTIMATE => vec![("rate", account.tokens[0] as f64 * LOST)],
        _ => vec![("tokens", tokens[0]), ("excess_tokens", tokens[1])],
    };
    MarkerState {
        name: String::new(),
        kind: "",
        counts: MarkerCounts {
            arrived: packets(account.arrived),
            arrived_bytes: bytes(account.arrived),
            left: packets(account.left),
            left_bytes: bytes(account.left),
            dropped: account.dropped,
        },
        gauges,
        stats: Vec::new(),
    }
}
