//! Policers in the words of `tc`, Open vSwitch and Cisco, as customers in ours.

use inprofile_core::units::Rate;

use super::words::{Complaints, Word};
use super::{Draft, quoted};

/// The packets that are policed when nothing says which.
pub(super) const EVERYBODY: &str = "[\"0.0.0.0/0\", \"::/0\"]";

/// A meter that drops.
#[derive(Clone, Debug, Default)]
pub(super) struct Police {
    pub(super) name: String,
    /// `prefix` or `port`, and what they come from.
    pub(super) who: Vec<(&'static str, String, String)>,
    pub(super) rate: (u64, &'static str),
    /// The marker, as a file of ours has it.
    pub(super) marker: (String, String),
}

impl Police {
    /// A token bucket of so many bytes.
    pub(super) fn bucket(bytes: f64, from: impl Into<String>) -> (String, String) {
        let marker = format!("{{ kind = \"token_bucket\", depth = \"{bytes} B\", action = \"drop\" }}");
        (marker, from.into())
    }

    /// As a customer.
    pub(super) fn customer(self) -> Vec<(&'static str, String, String)> {
        let mut keys = vec![("name", quoted(&self.name), String::new())];
        if self.who.is_empty() {
            keys.push(("prefix", EVERYBODY.into(), "nothing says which packets: all".into()));
        }
        keys.extend(self.who);
        keys.push(("contract", quoted(&Rate(self.rate.0).to_string()), self.rate.1.into()));
        keys.push(("marker", self.marker.0, self.marker.1));
        keys
    }
}

/// A queue for a file that polices and says nothing of queues.
pub(super) fn queue(draft: &mut Draft) {
    draft.rate = ("1 Gbit/s".into(), "not given: the link's".into());
    draft.set("aqm", "\"drop_tail\"", "nothing is said of a queue");
    draft.set("limit", "\"1000 packets\"", "");
}

/// `10.0.0.1/32` of `10.0.0.1/32`, `10.0.0.0/255.0.0.0` or `2001:db8::/32`, as our files have prefixes.
pub(super) fn prefix(text: &str) -> Option<String> {
    let (address, mask) = text.split_once('/').map_or((text, None), |(a, m)| (a, Some(m)));
    let address: std::net::IpAddr = address.parse().ok()?;
    let bits = match mask {
        None => None,
        Some(m) if m.contains('.') => {
            let mask = u32::from(m.parse::<std::net::Ipv4Addr>().ok()?);
            // Ones, then zeros.
            (mask.leading_ones() + mask.trailing_zeros() == 32).then_some(mask.leading_ones()).map(Some)?
        }
        Some(m) => Some(m.parse::<u32>().ok()?),
    };
    Some(quoted(&bits.map_or_else(|| address.to_string(), |bits| format!("{address}/{bits}"))))
}

/// Of a filter by it.
const PEERS_PORT: &str = "the port outside is the peer's choice, and tells ours no customer";

/// No IP packet is longer.
const MOST_MTU: f64 = 65_535.0;

/// How a text is read as a number.
type Reads<T> = fn(&str) -> Option<T>;

/// `tc filter add dev … u32 match ip src … police rate … burst … conform-exceed drop` (tc-u32(8), tc-flower(8), tc-police(8)).
pub(super) fn tc<'a>(
    all: &[Word<'a>],
    dev: &mut Option<String>,
    number: usize,
    (size, rate): (Reads<f64>, Reads<u64>),
    c: &mut Complaints<'_>,
) -> Option<Police> {
    let known = [
        "dev",
        "parent",
        "protocol",
        "prio",
        "pref",
        "handle",
        "flowid",
        "classid",
        "matchall",
        "u32",
        "flower",
        "match",
        "src_ip",
        "src_port",
        "dst_port",
        "police",
        "rate",
        "burst",
        "mtu",
        "conform-exceed",
        "drop",
    ];
    let mut police = Police { name: format!("police{number}"), ..Police::default() };
    let (mut burst, mut drops, mut polices, before) = (None, None, false, c.all.len());
    let mut words = all.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied();
        match word.text {
            "tc" | "filter" | "add" | "change" | "replace" | "root" | "ingress" | "egress" | "action"
            | "u32" | "flower" | "matchall" => {}
            "police" => polices = true,
            "dev" => *dev = value().map(|w| w.text.to_owned()),
            "parent" | "protocol" | "prio" | "pref" | "handle" | "flowid" | "classid" | "ip_proto" => {
                let _ = value();
            }
            "match" => {
                let (family, field, what) = (value(), value(), value());
                let texts = [family, field].map(|w| w.map_or("", |w| w.text));
                match (texts, what) {
                    (["ip" | "ip6", "src"], Some(what)) => {
                        who(&mut police, "prefix", &what, prefix(what.text), c)
                    }
                    (["ip" | "ip6", "dport"], Some(what)) => {
                        c.word(&what, PEERS_PORT, "write match ip sport PORT 0xffff")
                    }
                    (["ip" | "ip6", "sport"], Some(what)) => {
                        let mask = words.next();
                        let whole = mask.is_some_and(|m| m.text == "0xffff");
                        who(&mut police, "port", &what, port(what.text).filter(|_| whole), c);
                    }
                    _ => c.word(
                        field.as_ref().unwrap_or(word),
                        "ours knows a customer by his own address and ports",
                        "write match ip src PREFIX, or match ip sport PORT 0xffff",
                    ),
                }
            }
            "src_ip" => {
                if let Some(what) = value() {
                    who(&mut police, "prefix", &what, prefix(what.text), c);
                }
            }
            "dst_port" => c.word(word, PEERS_PORT, "write src_port PORT"),
            "src_port" => {
                if let Some(what) = value() {
                    who(&mut police, "port", &what, port(what.text), c);
                }
            }
            "rate" => match value() {
                Some(w) => match rate(w.text) {
                    Some(bits) => police.rate = (bits, "rate"),
                    None => c.word(&w, "no rate", "write one as tc(8) has it, such as 10mbit"),
                },
                None => c.word(word, "its value is missing", "write one, such as 10mbit"),
            },
            "burst" | "buffer" | "maxburst" => {
                let w = value();
                let bytes = w.and_then(|w| size(w.text.split('/').next().unwrap_or("")));
                match (bytes, w) {
                    (Some(bytes), _) => burst = Some(bytes),
                    (None, w) => {
                        c.word(&w.unwrap_or(*word), "no size", "write one as tc(8) has it, such as 15k")
                    }
                }
            }
            "drop" => drops = Some(*word),
            "conform-exceed" => match value() {
                // tc-police(8): EXCEEDACT[/NOTEXCEEDACT].
                Some(w) if matches!(w.text, "drop" | "drop/ok" | "drop/pass" | "drop/pipe") => {
                    drops = Some(w)
                }
                w => c.word(
                    &w.unwrap_or(*word),
                    "ours drops what exceeds and lets the rest go on",
                    "write conform-exceed drop/ok",
                ),
            },
            // As large as a packet can be: none is dropped for its length, as with ours.
            "mtu" => match value() {
                Some(w) if size(w.text).is_some_and(|n| n >= MOST_MTU) => {}
                w => c.word(&w.unwrap_or(*word), "ours drops no packet for its length", "write mtu 65535"),
            },
            "peakrate" | "avrate" | "overhead" | "linklayer" | "mpu" => {
                c.word(word, "ours has no such setting of a policer", "leave it out; trtcm has a peak rate");
                let _ = value();
            }
            _ => c.unknown(word, &known),
        }
    }
    if c.all.len() > before {
        return None;
    }
    for (there, problem, remedy) in [
        (polices, "a filter without police", "write police rate 10mbit burst 15k conform-exceed drop"),
        (police.rate.0 > 0, "the policer has no rate", "write rate 10mbit"),
        (burst.is_some(), "the policer has no burst", "write burst 15k"),
        // tc-police(8): if nothing is said what exceeds is reclassified, by the next filter.
        (
            drops.is_some(),
            "what exceeds isn't dropped: tc takes it to the next filter",
            "write conform-exceed drop",
        ),
    ] {
        if !there {
            c.missing(all.last(), problem, remedy);
            return None;
        }
    }
    police.marker = Police::bucket(burst?, "police: what exceeds rate and burst is dropped");
    Some(police)
}

fn who(
    police: &mut Police,
    key: &'static str,
    word: &Word<'_>,
    value: Option<String>,
    c: &mut Complaints<'_>,
) {
    match value {
        Some(value) => police.who.push((key, value, word.text.to_owned())),
        None => c.word(
            word,
            format!("no {key}"),
            "write a prefix such as 10.0.0.0/24, or a port such as 80 0xffff",
        ),
    }
}

fn port(text: &str) -> Option<String> {
    text.parse::<u16>().ok().filter(|n| *n > 0).map(|n| n.to_string())
}

/// Cisco's `police`, on one line: `police cir BPS bc BYTES [be BYTES] [pir BPS] conform-action … exceed-action … violate-action …`.
pub(super) fn cisco(words: &[Word<'_>], c: &mut Complaints<'_>) -> Option<Police> {
    let known =
        ["cir", "bc", "be", "pir", "bps", "bytes", "conform-action", "exceed-action", "violate-action"];
    let before = c.all.len();
    let (mut cir, mut bc, mut be, mut pir, mut actions) = (None, None, None, None, [None; 3]);
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let of = |name: &str| {
            ["conform-action", "exceed-action", "violate-action"].iter().position(|a| *a == name)
        };
        match word.text {
            "cir" | "bc" | "be" | "pir" => {
                let value = rest.next();
                let number = value.and_then(|w| w.text.parse::<u64>().ok()).filter(|n| *n > 0);
                match (word.text, number) {
                    (_, None) => c.word(
                        value.unwrap_or(word),
                        "no number",
                        "write bit/s behind cir and pir, bytes behind bc and be",
                    ),
                    ("cir", n) => cir = n,
                    ("bc", n) => bc = n,
                    ("be", n) => be = n,
                    (_, n) => pir = n,
                }
            }
            "bps" | "bytes" => {}
            // `police 1000000 15000`: the rate, the burst and the excess burst.
            text if text.bytes().all(|b| b.is_ascii_digit()) => {
                let number = text.parse::<u64>().ok().filter(|n| *n > 0);
                *(if cir.is_none() {
                    &mut cir
                } else if bc.is_none() {
                    &mut bc
                } else {
                    &mut be
                }) = number;
            }
            text => match (of(text), rest.next()) {
                (Some(i), Some(action)) => match action.text {
                    "transmit" => actions[i] = Some(false),
                    "drop" => actions[i] = Some(true),
                    _ => c.word(action, "ours passes with a colour, or drops", "write transmit or drop"),
                },
                (Some(_), None) => c.word(word, "an action is missing behind it", "write transmit or drop"),
                (None, _) => c.unknown(word, &known),
            },
        }
    }
    if c.all.len() > before {
        return None;
    }
    let (Some(cir), Some(bc)) = (cir, bc) else {
        c.missing(words.last(), "police without a rate and a burst", "write police cir 1000000 bc 15000 …");
        return None;
    };
    // If nothing is said: conform transmit, exceed drop, violate as exceed.
    let [conform, exceed, violate] =
        [actions[0].unwrap_or(false), actions[1].unwrap_or(true), actions[2].or(actions[1]).unwrap_or(true)];
    let three = pir.is_some() || be.is_some();
    let fits = !conform && violate && (exceed != three);
    if !fits {
        c.missing(
            words.last(),
            "ours drops what violates where there are two bursts, and what exceeds where there is one",
            "write conform-action transmit exceed-action drop, or with be or pir exceed-action transmit violate-action drop",
        );
        return None;
    }
    let second = be.unwrap_or(bc);
    let marker = match pir {
        None if !three => Police::bucket(bc as f64, "police: one burst, what exceeds it is dropped"),
        None => (
            format!("{{ kind = \"srtcm\", cbs = \"{bc} B\", ebs = \"{second} B\", action = \"drop\" }}"),
            "police with be: RFC 2697; what violates is dropped".into(),
        ),
        Some(pir) => (
            format!(
                "{{ kind = \"trtcm\", pir = \"{}\", cbs = \"{bc} B\", pbs = \"{second} B\", action = \"drop\" }}",
                Rate(pir)
            ),
            "police with pir: RFC 2698; what violates is dropped".into(),
        ),
    };
    Some(Police { rate: (cir, "cir"), marker, ..Police::default() })
}
