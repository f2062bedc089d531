//! Exports our file as `tc` commands: as much as the kernel can do; the rest is named in comments.
//!
//! Structure: a token bucket (`tbf`) at the set rate, strict priority (`prio`) below it, and a queue for each class. Markers
//! have no counterpart, and `gred` has had no classifier since dsmark left the kernel: these are named, not imitated. So is
//! every setting that differs from its default and that tc cannot express.

use inprofile_core::params::{Default, Value, Values};
use inprofile_core::units::{Backlog, Bytes};
use inprofile_experiment::text::named::Mechanism;
use inprofile_experiment::text::show;
use inprofile_live::code_points::Dscp;

use super::disciplines::{Curve, MOST_SIXTEENTHS, SIXTEENTHS, curve, modern};
use super::dualpi2;
use crate::config::role::Role;
use crate::config::{Class, Config, Customer, DIRECTIONS, Direction};

/// The bytes that the kernel counts beside the IP packet: the Ethernet header.
const ETHERNET: u32 = 14;
/// The most bands of prio (TCQ_PRIO_BANDS).
const MOST_BANDS: usize = 16;
/// The settings that tc can express; it has no words for the rest of a discipline's.
const SAID: [&str; 12] = [
    "min_th",
    "max_th",
    "max_p",
    "w_q",
    "mean_packet",
    "ecn",
    "averages",
    "in",
    "out",
    "green",
    "yellow",
    "red",
];

/// Lines for a shell; those that begin with `#` say what is missing, and why.
#[must_use]
pub fn tc(config: &Config) -> String {
    let mut out = String::new();
    for (i, (direction, name)) in config.directions.iter().zip(DIRECTIONS).enumerate() {
        if let Some(direction) = direction {
            // What comes in at one port goes out at the other.
            let dev = &config.ports[1 - i];
            out.push_str(&format!("# {name}: out of {dev}\n"));
            one(config, direction, name, dev, &mut out);
        }
    }
    out
}

/// A virtual queue of gred's belongs to a discipline that is there already: the kernel refuses to add it once more.
fn verb(line: &str) -> &'static str {
    if line.contains(" DP ") { "change" } else { "add" }
}

fn cannot(out: &mut String, what: &str, why: &str) {
    out.push_str(&format!("# cannot: {what}: {why}\n"));
}

fn note(out: &mut String, what: &str, said: &str) {
    out.push_str(&format!("# note: {what}: {said}\n"));
}

fn one(config: &Config, d: &Direction, name: &str, dev: &str, out: &mut String) {
    let packet = config.full_packet();
    let rate = d.rate.0;
    // The kernel sends control frames by priomap, with what no filter takes.
    let classes = &d.classes[Direction::CONTROL + 1..];
    let assured = d.assured - (Direction::CONTROL + 1);
    // A burst of 1 ms, or of a packet with its Ethernet header.
    let burst = (rate / 8_000).max(packet.0 + u64::from(ETHERNET));
    let room: f64 = classes.iter().map(|c| c.limit.bytes(packet)).sum();
    let qdisc =
        |out: &mut String, line: &str| out.push_str(&format!("tc qdisc {} dev {dev} {line}\n", verb(line)));
    let more = config.overhead.saturating_sub(ETHERNET);
    let mut overhead = if more > 0 { format!(" overhead {more}") } else { String::new() };
    if config.mpu > 0 {
        overhead += &format!(" mpu {}", config.mpu);
    }
    qdisc(out, &format!("root handle 1: tbf rate {rate}bit burst {burst} limit {room:.0}{overhead}"));
    if config.overhead < ETHERNET {
        let why = format!(
            "tbf counts {ETHERNET} B, the Ethernet header, of every packet: somewhat less gets through"
        );
        cannot(out, &format!("overhead = {} B", config.overhead), &why);
    }
    let bands = classes.len();
    let classes = if bands > MOST_BANDS {
        let why =
            format!("prio has at most {MOST_BANDS} bands: one queue takes all, first come, first served");
        cannot(out, &format!("{name}: {bands} classes"), &why);
        &classes[..0]
    } else {
        classes
    };
    let bands = classes.len();
    let parent = if bands > 1 {
        // prio has at least two bands, and sends by priomap what no filter takes: to the last one.
        let map = vec![(bands - 1).to_string(); 16].join(" ");
        qdisc(out, &format!("parent 1:1 handle 10: prio bands {bands} priomap {map}"));
        "10:"
    } else {
        "1:"
    };
    for (i, class) in classes.iter().enumerate() {
        // tc reads these numbers as hexadecimal.
        let at = format!("parent {parent}{:x} handle {:x}:", i + 1, 0x20 + i);
        let path = format!("{name}.{}", class.name);
        queue(&path, &at, d, class, packet, &qdisc, out);
        if let Some(rate) = class.rate {
            cannot(
                out,
                &format!("{path}.rate = {rate}"),
                "prio serves a band without bound; put a tbf of this rate before its queue",
            );
        }
        class.dscp.iter().for_each(|dscp| filters(dev, *dscp, i, out));
    }
    if bands > 1 && assured + 1 < bands {
        for colour in inprofile_core::packet::Colour::ALL {
            filters(dev, config.points.of(colour), assured, out);
        }
    }
    if d.role == Role::Edge {
        cannot(out, &format!("{name}.role = edge"), "qdiscs believe the DSCP that a packet comes with");
    }
    if d.customers.iter().any(|c| policer(c, packet).is_some()) {
        // Policed where it comes in, before it is queued.
        let dev = other(config, dev);
        out.push_str(&format!("tc qdisc add dev {dev} handle ffff: ingress\n"));
        out.push_str(&format!(
            "# A burst smaller than 64 kB needs packets as they come: ethtool -K {dev} gro off lro off\n"
        ));
    }
    for customer in d.customers.iter().filter(|c| c.own.is_some()) {
        let what = format!("{name}.customers.{}: his own queues and shaper", customer.name);
        cannot(
            out,
            &what,
            "what is printed here has one queue for all; htb has classes with a rate each, without turns of bytes",
        );
    }
    let mut unprinted_of: Vec<((&str, &str), &str, usize)> = Vec::new();
    for customer in &d.customers {
        if let Some((rate, depth)) = policer(customer, packet) {
            police(customer, name, other(config, dev), (rate, depth), out);
            continue;
        }
        let reason = (customer.marker.name, unprinted(&customer.marker));
        match unprinted_of.iter_mut().find(|(r, ..)| *r == reason) {
            Some((.., others)) => *others += 1,
            None => unprinted_of.push((reason, &customer.name, 0)),
        }
    }
    for ((marker, why), first, others) in unprinted_of {
        let more = if others == 0 { String::new() } else { format!(" and {others} more") };
        cannot(out, &format!("{name}.customers.{first}{more}: marker {marker}"), why);
    }
    if let Some(marker) = &d.aggregate {
        cannot(out, &format!("{name}.aggregate: {}", marker.name), "the kernel has no such marker");
    }
}

/// Why a marker is not printed: a chain of policers and pedit is a token bucket, or trTCM whose red packets are dropped, and nothing
/// else (docs/decisions/0102).
fn unprinted<M: 'static>(marker: &Mechanism<M>) -> &'static str {
    let drops = marker.values.get("action") == Some(&Value::Choice("drop"));
    if marker.name == "token_bucket" || (marker.name == "trtcm" && drops) {
        "it takes a chain of police (conform-exceed continue/pipe) and pedit, which isn't printed here; police.tc of inprofile plan has one"
    } else {
        "no chain of tc's police and pedit has its law: an action doesn't know of another's tokens"
    }
}

/// The other port.
fn other<'c>(config: &'c Config, dev: &str) -> &'c str {
    if config.ports[0] == dev { &config.ports[1] } else { &config.ports[0] }
}

/// The rate, in bit/s, and the depth, in bytes, of a customer's policer, if a token bucket says it all.
pub(super) fn policer(customer: &Customer, packet: Bytes) -> Option<(u64, f64)> {
    let v = &customer.marker.values;
    if customer.marker.name != "token_bucket" || v.get("action") != Some(&Value::Choice("drop")) {
        return None;
    }
    let rate = match v.get("rate") {
        Some(Value::Rate(rate)) => Some(*rate),
        _ => customer.contract,
    };
    match v.get("depth") {
        Some(Value::Backlog(depth)) => Some((rate?.0, depth.bytes(packet))),
        _ => None,
    }
}

/// A policer as filters of what comes in, one a prefix.
fn police(customer: &Customer, name: &str, dev: &str, (rate, depth): (u64, f64), out: &mut String) {
    let what = format!("{name}.customers.{}", customer.name);
    let side = if name == DIRECTIONS[0] { "src" } else { "dst" };
    if !customer.ports.is_empty() || !customer.circuits.is_empty() {
        // A filter by the prefix alone would police others too.
        return cannot(out, &what, "filters for his ports, VLANs and sessions are left for you to write");
    }
    for prefix in &customer.prefixes {
        let v4 = prefix.address.is_ipv4();
        let (protocol, family) = if v4 { ("ip", "ip") } else { ("ipv6", "ip6") };
        // The longest prefix is asked first, as with ours; a preference has filters of one protocol only.
        let pref = if v4 { 33 - u32::from(prefix.bits) } else { 33 + 129 - u32::from(prefix.bits) };
        // Without mtu the kernel takes every packet above 2,040 bytes for too long (docs/decisions/0102).
        out.push_str(&format!(
            "tc filter add dev {dev} parent ffff: protocol {protocol} pref {pref} u32 match {family} {side} {prefix} police rate {rate}bit burst {depth:.0} mtu 65535 conform-exceed drop/ok\n"
        ));
    }
    if customer.prefixes.len() > 1 {
        cannot(out, &what, "each of his prefixes has a policer of its own here; ours has one for all");
    }
    cannot(out, &format!("{what}: the DSCP of what is in profile"), "police passes it as it came");
}

/// The filter that sends a DSCP to a band: IPv4 and IPv6 each by its own words (RFC 2474 §3: the field is the same).
fn filters(dev: &str, dscp: Dscp, band: usize, out: &mut String) {
    for (protocol, field) in [("ip", "ip dsfield"), ("ipv6", "ip6 priority")] {
        let (octet, band) = (dscp.value() << 2, band + 1);
        out.push_str(&format!(
            "tc filter add dev {dev} parent 10: protocol {protocol} u32 match {field} {octet:#04x} 0xfc flowid 10:{band:x}\n"
        ));
    }
}

/// Settings that tc has no word for: where they are not the defaults, or, as gentle, not as with tc.
fn unsaid(path: &str, class: &Class, qdisc: &str, said: &[&str], out: &mut String) {
    for field in class.aqm.fields.iter().filter(|f| !said.contains(&f.name)) {
        let Some(value) = class.aqm.values.get(field.name) else { continue };
        let (same, why) = match (field.name, field.default) {
            ("gentle", _) => (*value == Value::Flag(false), "drops everything above max"),
            (_, Default::Value(left_out)) => (left_out() == *value, "has no such setting"),
            _ => (false, "has no such setting"),
        };
        if same {
            continue;
        }
        cannot(out, &format!("{path}.{} = {}", field.name, show::toml(value)), &format!("tc {qdisc} {why}"));
    }
}

/// A class's queue, with what can't be said of it.
fn queue(
    path: &str,
    at: &str,
    d: &Direction,
    class: &Class,
    packet: Bytes,
    qdisc: &impl Fn(&mut String, &str),
    out: &mut String,
) {
    let v = &class.aqm.values;
    let limit = class.limit.bytes(packet);
    let plain = match class.limit {
        Backlog::Packets(n) => format!("{at} pfifo limit {n:.0}"),
        Backlog::Bytes(b) => format!("{at} bfifo limit {b:.0}"),
    };
    let bandwidth = class.rate.unwrap_or(d.rate).0;
    // Above max ours drops.
    let ecn = if v.get("ecn") == Some(&Value::Flag(true)) { " ecn harddrop" } else { "" };
    match class.aqm.name {
        "drop_tail" => qdisc(out, &plain),
        "red" => match curve(v, v, packet) {
            Some(Curve { words, lossy, warning }) => {
                qdisc(out, &format!("{at} red limit {limit:.0} {words} bandwidth {bandwidth}bit{ecn}"));
                if let Some(lossy) = lossy {
                    cannot(out, &format!("{path}.w_q"), &lossy);
                }
                if let Some(warning) = warning {
                    note(out, &format!("{path}.w_q"), &warning);
                }
                unsaid(path, class, "red", &SAID, out);
            }
            None => {
                qdisc(out, &plain);
                cannot(out, path, "tc red finds no burst that gives these thresholds and this w_q");
            }
        },
        "rio" | "wred" => {
            let colours: &[&str] =
                if class.aqm.name == "rio" { &["in", "out"] } else { &["green", "yellow", "red"] };
            let curves: Vec<_> = colours.iter().filter_map(|c| group(v, c)).collect();
            let coupled = class.aqm.name == "rio" || v.get("averages") == Some(&Value::Choice("coupled"));
            let grio = if coupled { " grio" } else { "" };
            let lines: Option<Vec<_>> = curves.iter().map(|g| curve(g, v, packet)).collect();
            let Some(lines) = lines else {
                qdisc(out, &plain);
                return cannot(out, path, "tc gred finds no burst that gives these thresholds and this w_q");
            };
            qdisc(
                out,
                &format!("{at} gred setup DPs {} default {}{grio}{ecn}", lines.len(), lines.len() - 1),
            );
            for (dp, Curve { words, lossy, warning }) in lines.iter().enumerate() {
                // tc's prio counts from 1; without grio equal ones share an average.
                let prio = match v.get("averages") {
                    Some(Value::Choice("shared")) => 1,
                    _ => dp + 1,
                };
                let line = format!(
                    "{at} gred limit {limit:.0} {words} bandwidth {bandwidth}bit DP {dp} prio {prio}{ecn}"
                );
                qdisc(out, &line);
                if let (0, Some(lossy)) = (dp, lossy) {
                    cannot(out, &format!("{path}.w_q"), lossy);
                }
                if let Some(warning) = warning {
                    note(out, &format!("{path}.w_q"), warning);
                }
            }
            unsaid(path, class, "gred", &SAID, out);
            cannot(
                out,
                &format!("{path}: colours by DSCP"),
                "gred takes them from tc_index, and dsmark, which set it, has left the kernel (6.3)",
            );
        }
        "dualpi2" => {
            let (words, unsaid) = dualpi2::words(v, class.limit, packet);
            qdisc(out, &format!("{at} dualpi2 {words}"));
            for (what, why) in unsaid {
                cannot(out, &format!("{path}.{what}"), &why);
            }
        }
        "codel" | "pie" | "choke" | "sfb" => match modern(class, bandwidth, packet) {
            Some((settings, lossy)) => {
                qdisc(out, &format!("{at} {settings}"));
                lossy.iter().for_each(|(field, why)| cannot(out, &format!("{path}.{field}"), why));
            }
            None => {
                qdisc(out, &plain);
                cannot(out, path, "tc choke finds no burst that gives these thresholds and this w_q");
            }
        },
        "cobalt" => {
            qdisc(out, &plain);
            let why = "the kernel has it in cake alone, which shapes and has a queue for each flow; its limit stays";
            cannot(out, &format!("{path}: cobalt"), why);
        }
        "fq_codel" | "fq_pie" | "sfq" => {
            let (settings, said) = settings(path, class, packet, out);
            qdisc(out, &format!("{at} {}{settings}", class.aqm.name));
            unsaid(path, class, class.aqm.name, &said, out);
        }
        other => {
            qdisc(out, &plain);
            cannot(out, &format!("{path}: {other}"), "the kernel has no such discipline; its limit stays");
        }
    }
}

/// Flow queueing, which Linux has under the same names: our parameter, and tc's word for it.
const WORDS: [(&str, &str); 15] = [
    ("target", "target"),
    ("interval", "interval"),
    ("t_update", "tupdate"),
    ("alpha", "alpha"),
    ("beta", "beta"),
    ("flow_quantum", "quantum"),
    ("flows", "flows"),
    ("depth", "depth"),
    ("divisor", "divisor"),
    ("perturb", "perturb"),
    ("ce_threshold", "ce_threshold"),
    ("drop_batch", "drop_batch"),
    ("memory_limit", "memory_limit"),
    ("ecn", "ecn"),
    ("headdrop", "headdrop"),
];

/// The settings of such a discipline, and which of our parameters they say. tc's own counterpart is always Linux's variant.
fn settings(path: &str, class: &Class, packet: Bytes, out: &mut String) -> (String, Vec<&'static str>) {
    let name = class.aqm.name;
    let mut said = vec!["variant"];
    if let Backlog::Bytes(_) = class.limit {
        cannot(out, &format!("{path}.limit = {}", class.limit), &format!("tc {name} counts packets"));
    }
    let mut text = format!(" limit {:.0}", (class.limit.bytes(packet) / packet.0 as f64).floor().max(1.0));
    for (ours, word) in WORDS {
        let Some(value) = class.aqm.values.get(ours) else { continue };
        let as_tc = match *value {
            Value::Flag(yes) if ours == "ecn" => if yes { "ecn" } else { "noecn" }.to_owned(),
            Value::Flag(yes) => if yes { word } else { "" }.to_owned(),
            Value::Duration(d) if ours == "perturb" => format!("{word} {:.0}", d.secs().ceil()),
            Value::Duration(d) => format!("{word} {}us", d.secs() * 1e6),
            // In sixteenths.
            Value::Number(x) if (x * SIXTEENTHS).fract() == 0.0 && x * SIXTEENTHS <= MOST_SIXTEENTHS => {
                format!("{word} {}", x * SIXTEENTHS)
            }
            Value::Number(_) => continue,
            Value::Bytes(b) => format!("{word} {}", b.0),
            Value::Count(n) => format!("{word} {n}"),
            _ => continue,
        };
        said.push(ours);
        if !as_tc.is_empty() {
            text.push(' ');
            text.push_str(&as_tc);
        }
    }
    if name == "fq_pie" && class.aqm.values.get("delay_from") == Some(&Value::Choice("dequeue_rate")) {
        text.push_str(" dq_rate_estimator");
        said.push("delay_from");
    }
    (text, said)
}

fn group<'v>(values: &'v Values, name: &str) -> Option<&'v Values> {
    match values.get(name) {
        Some(Value::Group(inner)) => Some(inner),
        _ => None,
    }
}
