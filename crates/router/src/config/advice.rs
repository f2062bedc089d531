//! Warnings about settings that are allowed but perhaps not intended, in the words of `tc`.

use inprofile_core::params::{Value, Values};
use inprofile_core::units::{Bytes, Rate};
use inprofile_experiment::text::Section;

use super::datapath::Datapath;
use super::role::Role;
use super::{Class, Config, Customer, DIRECTIONS, Direction, Fail};

/// A queue that takes longer than this to drain is worth a word.
const LONG_QUEUE_S: f64 = 2.0;
/// An average that takes longer than this to follow the queue is worth a word: many round trips.
const SLOW_AVERAGE_S: f64 = 10.0;
/// An average that follows within fewer packets than this hardly averages.
const FAST_AVERAGE_PACKETS: f64 = 3.0;

/// Disciplines that treat all colours alike.
const COLOUR_BLIND: [&str; 4] = ["drop_tail", "red", "ared", "fdd_red"];

/// Looks at the whole file.
pub(super) fn look(root: &Section<'_, '_>, config: &Config) {
    unsafe_choices(root, config);
    for (direction, key) in config.directions.iter().zip(DIRECTIONS) {
        if let Some(direction) = direction {
            if config.datapath == Datapath::Kernel {
                super_packets(root, config, direction, key);
                continue;
            }
            contracts(root, direction, key);
            for (i, class) in direction.classes.iter().enumerate().skip(Direction::CONTROL + 1) {
                queue(root, &path(direction, key, i), direction, class, config.full_packet());
            }
            starving(root, direction, key);
            unbought(root, direction, key);
            oversold(root, direction, key);
        }
    }
}

/// Settings that let somebody see or do more than necessary.
fn unsafe_choices(root: &Section<'_, '_>, config: &Config) {
    if let Some(address) = config.metrics.filter(|a| !a.ip().is_loopback()) {
        root.report().warning(
            &root.locate("metrics"),
            format!("whoever reaches {address} sees customers' names, rates and drops: metrics ask nobody who he is"),
            "write \"127.0.0.1:9474\" and let the machine's own Prometheus read it, or keep others away by a firewall",
        );
    }
    let bleaches = |d: &Option<Direction>| d.as_ref().is_some_and(|d| d.unsold.bleach);
    if config.frames.drop_unreadable == Some(false) && config.directions.iter().any(bleaches) {
        root.report().warning(
            &root.locate("frames.unreadable"),
            "what is not IP or cannot be read leaves as it came: behind SNAP, five tags or an unknown EtherType with the code point that its sender wrote",
            "leave it out: then it is dropped where code points are bleached; keep \"best_effort\" where IS-IS, CFM or the like have to pass",
        );
    }
    if config.fail == Fail::Open {
        root.report().warning(
            &root.locate("fail"),
            "at a fault everything passes, unmarked and unshaped, with whatever DSCP its sender wrote",
            "\"closed\" forwards nothing then; keep \"open\" where a link without assurance beats none",
        );
    }
}

/// Where a class is in the file.
fn path(direction: &Direction, key: &str, class: usize) -> String {
    match class {
        i if i < direction.assured => format!("{key}.classes"),
        i if i == direction.assured => format!("{key}.queue"),
        _ => format!("{key}.best_effort"),
    }
}

fn contracts(root: &Section<'_, '_>, direction: &Direction, key: &str) {
    let Some(promised) = direction.promised() else { return };
    if promised > direction.rate {
        let more = promised.0 as f64 / direction.rate.0 as f64;
        root.report().warning(
            &root.locate(&format!("{key}.rate")),
            format!("the contracts add up to {promised}, {more:.2} times the rate: not all can hold at once"),
            "raise rate, or lower contracts; assured rates hold up to about 0.8 of it",
        );
    }
}

/// Strict priority without a bound starves what is behind it.
fn starving(root: &Section<'_, '_>, direction: &Direction, key: &str) {
    for class in
        direction.classes[Direction::CONTROL + 1..direction.assured].iter().filter(|c| c.rate.is_none())
    {
        root.report().warning(
            &root.locate(&format!("{key}.classes")),
            format!("the class {} is served first and has no rate: it can take the whole link", class.name),
            "give it a rate, as RFC 3246 asks of expedited forwarding",
        );
    }
}

/// The longest packet that offloads hand over.
const SUPER_PACKET: f64 = 65_536.0;

/// In the kernel's datapath several packets may come as one, and are metered as one.
fn super_packets(root: &Section<'_, '_>, config: &Config, direction: &Direction, key: &str) {
    let holds = |c: &Customer| {
        let depths = c.marker.values.0.iter().filter_map(|(_, value)| match value {
            Value::Backlog(depth) => Some(depth.bytes(config.full_packet())),
            _ => None,
        });
        depths.fold(0.0, f64::max) >= SUPER_PACKET
    };
    if let Some(customer) = direction.customers.iter().find(|c| !holds(c)).filter(|_| !config.fix_offloads) {
        root.report().warning(
            &root.locate(&format!("{key}.customers")),
            format!("with offloads on, up to 64 kB of a flow come as one and are metered as one: no bucket of {}'s holds that", customer.name),
            "write fix_offloads = true, which has every packet metered by itself, or depths of at least \"66 kB\"",
        );
    }
}

/// At an edge what nobody has bought stays empty.
fn unbought(root: &Section<'_, '_>, direction: &Direction, key: &str) {
    if direction.role == Role::Core {
        return;
    }
    let sold = |class: usize| direction.customers.iter().any(|c| c.services.iter().any(|s| s.class == class));
    for i in (Direction::CONTROL + 1..direction.assured).filter(|i| !sold(*i)) {
        let name = &direction.classes[i].name;
        root.report().warning(
            &root.locate(&format!("{key}.classes")),
            format!("nobody has bought the class {name}: at an edge no packet is ever in it"),
            format!("give a customer services = [{{ class = \"{name}\", … }}], or write role = \"core\""),
        );
    }
    let assured = &direction.classes[direction.assured];
    if direction.assured + 1 == direction.classes.len() && COLOUR_BLIND.contains(&assured.aqm.name) {
        root.report().warning(
            &root.locate(&format!("{key}.queue")),
            format!(
                "{} does not distinguish colours: best effort shares this queue with IN packets",
                assured.aqm.name
            ),
            format!("add a table {key}.best_effort, or use a discipline such as rio, which drops OUT first"),
        );
    }
    if direction.customers.is_empty() {
        root.report().warning(
            &root.locate(key),
            "an edge without customers: every packet is best effort",
            "add customers, or write role = \"core\" where what comes in was metered before",
        );
    }
}

/// RFC 3246 §2.2: a class keeps its delay only as long as less comes than is served.
fn oversold(root: &Section<'_, '_>, direction: &Direction, key: &str) {
    for (i, class) in direction.classes.iter().enumerate() {
        let services = direction.customers.iter().flat_map(|c| &c.services).filter(|s| s.class == i);
        let sold = services.fold(0, |all: u64, s| all.saturating_add(s.police.rate.0));
        let served = class.rate.unwrap_or(direction.rate);
        if sold > served.0 {
            let name = &class.name;
            root.report().warning(
                &root.locate(&format!("{key}.classes")),
                format!(
                    "services of the class {name} add up to {}, and it is served at {served}",
                    Rate(sold)
                ),
                format!("raise the rate of {name}, or sell less of it"),
            );
        }
    }
}

fn queue(root: &Section<'_, '_>, at: &str, direction: &Direction, class: &Class, packet: Bytes) {
    let rate = class.rate.unwrap_or(direction.rate).0 as f64;
    let drain = class.limit.bytes(packet) * 8.0 / rate;
    let report = root.report();
    if drain > LONG_QUEUE_S {
        let problem = format!("a full queue of {} takes {drain:.1} s to drain", class.limit);
        report.warning(&root.locate(&format!("{at}.limit")), problem, "a lower limit keeps delay down");
    }
    let Some(w_q) = weight(&class.aqm.values) else { return };
    let packets = constant(w_q);
    let seconds = packets * packet.0 as f64 * 8.0 / rate;
    let place = root.locate(&format!("{at}.w_q"));
    if seconds > SLOW_AVERAGE_S {
        let problem = format!("w_q = {w_q} averages over {packets:.0} packets, {seconds:.0} s at this rate");
        report.warning(&place, problem, "a larger w_q follows the queue sooner");
    } else if packets < FAST_AVERAGE_PACKETS {
        let problem = format!("w_q = {w_q} averages over {packets:.1} packets: bursts are not let by");
        report.warning(&place, problem, "0.002 is usual; see burst in `tc red`");
    }
    if let Some(min_th) = lowest_threshold(&class.aqm.values, packet)
        && let Some(burst) = burst(w_q, min_th)
        && burst < min_th + 1.0
    {
        let problem =
            format!("a burst of {burst:.0} packets into an empty queue brings the average to min_th");
        report.warning(&place, problem, "a smaller w_q lets longer bursts by");
    }
}

/// The weight of an average, under either of its names.
pub(super) fn weight(values: &Values) -> Option<f64> {
    match values.get("w_q") {
        Some(Value::Number(w)) if *w > 0.0 && *w < 1.0 => Some(*w),
        _ => None,
    }
}

/// Packets until the average has gone 1 − 1/e of the way to a new length.
pub(super) fn constant(w_q: f64) -> f64 {
    -1.0 / (-w_q).ln_1p()
}

/// The lowest min_th anywhere among the values, in packets.
pub(super) fn lowest_threshold(values: &Values, packet: Bytes) -> Option<f64> {
    let each = values.0.iter().filter_map(|(name, value)| match value {
        Value::Backlog(b) if *name == "min_th" => Some(b.packets(packet)),
        Value::Group(inner) => lowest_threshold(inner, packet),
        _ => None,
    });
    each.min_by(f64::total_cmp)
}

/// How many packets at once into an empty queue bring the average to `min_th`: the least L with
/// L + 1 + ((1 − w)^(L+1) − 1) / w ≥ min_th (Floyd and Jacobson 1993, §6). `None` beyond a million.
pub(super) fn burst(w_q: f64, min_th: f64) -> Option<f64> {
    let reached = |l: f64| l + 1.0 + ((1.0 - w_q).powf(l + 1.0) - 1.0) / w_q >= min_th;
    let (mut low, mut high) = (0.0, 1_000_000.0);
    if !reached(high) {
        return None;
    }
    while high - low > 0.5 {
        let middle: f64 = f64::midpoint(low, high);
        if reached(middle) { high = middle } else { low = middle }
    }
    Some(high.round())
}
