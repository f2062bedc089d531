//! Imports Open vSwitch's policers and exports ours as its meters: `ovs-vsctl set interface … ingress_policing_rate`
//! (ovs-vswitchd.conf.db(5)) and `ovs-ofctl add-meter`, `add-flow` (ovs-ofctl(8)).
//!
//! Both count in units of 1,000 bits. Of the flows, those that meter packets from an address are understood.

use super::police::{self, Police};
use super::words::{Complaints, Word, lines};
use super::{Draft, Imported};
use crate::config::{Config, DIRECTIONS};
use inprofile_core::params::Value;

/// `ingress_policing_burst` if it isn't said, or 0: in thousands of bits.
const BURST: u64 = 8_000;
/// The priority of a flow that says none.
const NORMAL: u32 = 32_768;

/// Reads such lines; `file` is its name in messages.
///
/// # Errors
/// Every word that is not understood, and what is missing.
pub fn import(text: &str, file: &str) -> Imported {
    let mut c = Complaints::new(file);
    let (mut meters, mut flows, mut polices, mut draft) =
        (Vec::new(), Vec::new(), Vec::new(), Draft::default());
    let mut near = None;
    for words in lines(text, '#') {
        near = near.or(words.first().copied());
        match words.iter().map(|w| w.text).find(|t| t.contains("policing") || t.starts_with("add-")) {
            Some("add-meter") => meters.extend(meter(&words, &mut c)),
            Some("add-flow") => flows.extend(flow(&words, &mut c)),
            Some(_) => polices.extend(ingress(&words, &mut draft, &mut c)),
            None => c.word(
                &words[0],
                "not understood here",
                "write ovs-vsctl set interface …, ovs-ofctl add-meter … or ovs-ofctl add-flow …",
            ),
        }
    }
    for (word, id, rate, burst) in meters {
        let who: Vec<_> = flows
            .iter()
            .filter(|(_, meter, _)| *meter == id)
            .map(|(.., p): &(Word<'_>, u64, String)| p.clone())
            .collect();
        if who.is_empty() {
            c.word(
                &word,
                format!("no flow has meter:{id}"),
                "write the add-flow that uses it, such as ip,nw_src=10.0.0.1,actions=meter:1,normal",
            );
        }
        let who = vec![("prefix", format!("[{}]", who.join(", ")), "nw_src of its flows".to_owned())];
        let marker = Police::bucket(burst as f64 * 125.0, "band type=drop, burst_size");
        polices.push(Police { name: format!("meter{id}"), who, rate: (rate * 1_000, "rate"), marker });
    }
    match (near, polices.is_empty()) {
        (Some(near), false) if c.all.is_empty() => {
            police::queue(&mut draft);
            draft.customers = polices.into_iter().map(Police::customer).collect();
            draft.finish(&near, c)
        }
        (_, true) if c.all.is_empty() => {
            c.missing(
                None,
                "no policer in it",
                "write ovs-vsctl set interface eth0 ingress_policing_rate=1000",
            );
            Err(c.all)
        }
        _ => Err(c.all),
    }
}

/// `key=value` of a word, and the number it is.
fn number(word: &Word<'_>, text: &str, c: &mut Complaints<'_>) -> Option<u64> {
    let number = text.parse().ok().filter(|n| *n <= 10_000_000_000);
    if number.is_none() {
        c.word(word, format!("{text} is no number"), "write a whole number of thousands of bits");
    }
    number
}

fn ingress(words: &[Word<'_>], draft: &mut Draft, c: &mut Complaints<'_>) -> Option<Police> {
    let (mut rate, mut burst) = (None, 0);
    for word in words {
        match word.text.split_once('=') {
            Some(("ingress_policing_rate", n)) => rate = Some((word, number(word, n, c)?)),
            Some(("ingress_policing_burst", n)) => burst = number(word, n, c)?,
            Some(_) => c.unknown(word, &["ingress_policing_rate", "ingress_policing_burst"]),
            None if matches!(word.text, "ovs-vsctl" | "set" | "interface" | "Interface" | "--") => {}
            None => draft.inside = Some(word.text.to_owned()),
        }
    }
    match rate {
        Some((_, rate)) if rate > 0 => {
            let said = if burst == 0 {
                "ingress_policing_burst not given: 8000 kbit"
            } else {
                "ingress_policing_burst"
            };
            let burst = if burst == 0 { BURST } else { burst };
            let marker = Police::bucket(burst as f64 * 125.0, said);
            let name = draft.inside.clone().unwrap_or_else(|| "ingress".into());
            Some(Police { name, rate: (rate * 1_000, "ingress_policing_rate"), marker, ..Police::default() })
        }
        // ovs-vswitchd.conf.db(5): 0 disables policing.
        rate => {
            let word = rate.map_or_else(|| words.last(), |(w, _)| Some(w));
            c.missing(
                word,
                "a rate of 0, or none, polices nothing",
                "write ingress_policing_rate=1000, in kbit/s",
            );
            None
        }
    }
}

/// The meter, its number, rate and burst in thousands of bits.
fn meter<'a>(words: &[Word<'a>], c: &mut Complaints<'_>) -> Option<(Word<'a>, u64, u64, u64)> {
    let last = *words.last()?;
    let (mut id, mut rate, mut burst, mut kind) = (None, None, None, None);
    for part in last.text.split(',') {
        let part = part.trim_start_matches("bands=").trim_start_matches("band=");
        match part.split_once('=') {
            Some(("meter", n)) => id = number(&last, n, c),
            Some(("rate", n)) => rate = number(&last, n, c),
            Some(("burst_size", n)) => burst = number(&last, n, c),
            Some(("type", k)) => kind = Some(k),
            None if matches!(part, "kbps" | "burst" | "stats") => {}
            _ => c.word(
                &last,
                format!("{part} is not understood"),
                "write meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=100",
            ),
        }
    }
    match (id, rate, burst, kind) {
        (Some(id), Some(rate), Some(burst), Some("drop")) if rate > 0 && burst > 0 => {
            Some((last, id, rate, burst))
        }
        _ => {
            c.word(
                &last,
                "no meter that drops, with a rate and a burst",
                "write meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=100",
            );
            None
        }
    }
}

/// A flow that is metered: the meter's number and the prefix.
fn flow<'a>(words: &[Word<'a>], c: &mut Complaints<'_>) -> Option<(Word<'a>, u64, String)> {
    let last = *words.last()?;
    let (matches, actions) = last.text.split_once("actions=").unwrap_or((last.text, ""));
    let of = |key: &str, text: &str| text.split(',').find_map(|p| p.strip_prefix(key).map(str::to_owned));
    let meter = of("meter:", actions).and_then(|n| n.parse().ok());
    let from = ["nw_src=", "ip_src=", "ipv6_src="]
        .iter()
        .find_map(|k| of(k, matches))
        .and_then(|t| police::prefix(&t));
    // The address, and what says nothing of the packets; anything else would be another customer than was meant.
    let plain = |p: &str| {
        let key = p.split('=').next().unwrap_or("");
        matches!(key, "" | "ip" | "ipv6" | "priority" | "table" | "cookie" | "nw_src" | "ip_src" | "ipv6_src")
    };
    if let Some(other) = matches.split(',').find(|p| !plain(p)) {
        c.word(
            &last,
            format!("{other} is not understood: ours knows a customer by his own address"),
            "write ip,nw_src=10.0.0.1,actions=meter:1,normal",
        );
        return None;
    }
    let (Some(meter), Some(from)) = (meter, from) else {
        c.word(
            &last,
            "ours knows a customer by his own address",
            "write ip,nw_src=10.0.0.1,actions=meter:1,normal",
        );
        return None;
    };
    Some((last, meter, from))
}

/// The part of a file that Open vSwitch can do, as lines for a shell; those that begin with `#` say what it can't, and why.
#[must_use]
pub fn export(config: &Config) -> String {
    let mut out = String::from("# policers; queues, markers and shapers have no counterpart in a meter\n");
    let mut id = 0;
    for (direction, name) in config.directions.iter().zip(DIRECTIONS) {
        for customer in direction.iter().flat_map(|d| &d.customers) {
            let what = format!("{name}.customers.{}", customer.name);
            let Some((rate, depth)) = super::export::policer(customer, config.full_packet()) else {
                out.push_str(&format!("# cannot: {what}: marker {}: a meter drops what exceeds one rate and burst, and no more\n", customer.marker.name));
                continue;
            };
            id += 1;
            // Thousands of bits, rounded up: a meter of none would drop everything.
            let (kbit, burst) = (rate.div_ceil(1_000), ((depth / 125.0).ceil() as u64).max(1));
            out.push_str(&format!(
                "ovs-ofctl -O OpenFlow13 add-meter br0 meter={id},kbps,burst,band=type=drop,rate={kbit},burst_size={burst}\n"
            ));
            if !customer.ports.is_empty() || !customer.circuits.is_empty() {
                // A flow by the prefix alone would meter others too.
                out.push_str(&format!(
                    "# cannot: {what}: flows of his ports, VLANs and sessions are left for you to write\n"
                ));
                continue;
            }
            for prefix in &customer.prefixes {
                let v4 = prefix.address.is_ipv4();
                let field = match (v4, name) {
                    (true, "upstream") => "ip,nw_src",
                    (true, _) => "ip,nw_dst",
                    (false, "upstream") => "ipv6,ipv6_src",
                    (false, _) => "ipv6,ipv6_dst",
                };
                // Of flows of one priority any may be taken: the longest prefix goes first, as with ours.
                let priority = NORMAL + u32::from(prefix.bits);
                out.push_str(&format!(
                    "ovs-ofctl -O OpenFlow13 add-flow br0 priority={priority},{field}={prefix},actions=meter:{id},normal\n"
                ));
            }
            if customer.marker.values.get("action") == Some(&Value::Choice("drop")) {
                out.push_str(&format!("# cannot: {what}: the DSCP of what is in profile stays as it came\n"));
            }
        }
    }
    out
}
