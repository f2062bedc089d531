//! Imports `tc qdisc … red …`, `tc qdisc … gred …` (tc-red(8), tc-gred) and `tc filter … police …`.
//!
//! tc counts in bytes, K is 1024, and it derives what is omitted: min from max, max from limit, burst from both, w_q from
//! burst. The rule is written beside each derived value.

use inprofile_core::units::Rate;

use super::words::{Complaints, Word, lines, rate, size};
use super::{Draft, Imported, police, wlog};
use crate::config;

/// The link's rate that tc assumes if none is given, in bit/s.
const BANDWIDTH: u64 = 10_000_000;
/// tc's default for max_p.
const PROBABILITY: f64 = 0.02;
/// The comment beside our `ecn`.
const ECN: &str = "ecn; above max ours drops, as with harddrop";
const RED: [&str; 12] = [
    "limit",
    "min",
    "max",
    "avpkt",
    "burst",
    "bandwidth",
    "probability",
    "ecn",
    "harddrop",
    "nodrop",
    "adaptive",
    "adaptative",
];
const GRED: [&str; 12] = [
    "limit",
    "min",
    "max",
    "avpkt",
    "burst",
    "bandwidth",
    "probability",
    "prio",
    "DP",
    "vq",
    "ecn",
    "harddrop",
];

/// Reads tc commands; `file` is their file's name in messages.
///
/// # Errors
/// Every word that is not understood, and what is missing.
pub fn import(text: &str, file: &str) -> Imported {
    let mut c = Complaints::new(file);
    let (mut reds, mut dps, mut setup, mut dev) = (Vec::new(), Vec::new(), None, None);
    let (mut polices, mut at) = (Vec::new(), None);
    for words in lines(text, '#') {
        if words.iter().take(2).any(|w| w.text == "filter") {
            let found = police::tc(&words, &mut at, polices.len() + 1, (size, rate), &mut c);
            polices.extend(found.map(|p| (words[0], p)));
            continue;
        }
        // It only holds ingress filters.
        if words.iter().any(|w| matches!(w.text, "ingress" | "clsact")) {
            continue;
        }
        let Some((kind, rest)) = head(&words, &mut dev, &mut c) else { continue };
        match (kind.text, rest.first().map(|w| w.text)) {
            ("red", _) => reds.push((kind, settings(rest, &RED, &mut c))),
            (_, Some("setup")) => setup = Some(set_up(kind, &rest[1..], &mut c)),
            _ => dps.push((kind, settings(rest, &GRED, &mut c))),
        }
    }
    let draft = match (reds.as_slice(), dps.as_slice()) {
        ([], []) if !polices.is_empty() => {
            let mut draft = Draft::default();
            police::queue(&mut draft);
            Some((polices[0].0, draft))
        }
        ([], []) if !c.all.is_empty() => None,
        ([], []) => {
            c.missing(
                None,
                "no red or gred qdisc and no police filter in it",
                "write tc qdisc add dev eth0 root red limit … avpkt …",
            );
            None
        }
        ([(kind, one)], []) if setup.is_none() => red(*kind, one, &mut c).map(|d| (*kind, d)),
        ([], all) => gred(setup.as_ref(), all, &mut c),
        ([.., (kind, _)], _) => {
            c.word(kind, "more than one qdisc", "import one at a time: each is a queue of its own");
            None
        }
    };
    match draft {
        Some((kind, draft)) if c.all.is_empty() => {
            let customers = polices.into_iter().map(|(_, p)| p.customer()).collect();
            let inside = at.filter(|at| dev.as_ref() != Some(at));
            Draft { outside: dev, inside, customers, ..draft }.finish(&kind, c)
        }
        _ => Err(c.all),
    }
}

/// `tc qdisc add dev eth0 root handle 1: red …` up to the kind.
fn head<'w, 'a>(
    words: &'w [Word<'a>],
    dev: &mut Option<String>,
    c: &mut Complaints<'_>,
) -> Option<(Word<'a>, &'w [Word<'a>])> {
    let known = ["tc", "qdisc", "add", "change", "replace", "dev", "root", "parent", "handle", "red", "gred"];
    let mut i = 0;
    while let Some(word) = words.get(i) {
        i += 1;
        match word.text {
            "tc" | "qdisc" | "add" | "change" | "replace" | "root" => {}
            "dev" => {
                let Some(name) = words.get(i) else { break };
                match config::interface_name(name.text) {
                    Ok(()) => *dev = Some(name.text.to_owned()),
                    Err(wrong) => c.word(name, wrong.problem, wrong.remedy),
                }
                i += 1;
            }
            "parent" | "handle" => i += 1,
            "red" | "gred" => return Some((*word, &words[i..])),
            _ => {
                c.unknown(word, &known);
                return None;
            }
        }
    }
    c.missing(words.last(), "the line ends before its qdisc", "go on with red … or gred …");
    None
}

/// The settings of a line.
#[derive(Default)]
struct Settings<'a> {
    limit: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    avpkt: Option<f64>,
    burst: Option<f64>,
    bandwidth: Option<u64>,
    probability: Option<f64>,
    prio: Option<u32>,
    dp: Option<u32>,
    ecn: bool,
    adaptive: Option<Word<'a>>,
}

fn settings<'a>(words: &[Word<'a>], known: &[&str], c: &mut Complaints<'_>) -> Settings<'a> {
    let mut s = Settings::default();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if !known.contains(&word.text) {
            c.unknown(word, known);
            // Its value needs no complaint of its own.
            words.next_if(|w| w.text.starts_with(|c: char| c.is_ascii_digit()));
            continue;
        }
        match word.text {
            "ecn" => s.ecn = true,
            // Ours never marks above max: that is what harddrop asks for.
            "harddrop" => {}
            "adaptive" | "adaptative" => s.adaptive = Some(*word),
            "nodrop" => c.word(word, "ours drops what it can't mark", "leave nodrop out"),
            key => {
                let Some(value) = words.next() else {
                    c.word(word, "its value is missing", "write one, as tc-red(8) has it");
                    break;
                };
                let right = match key {
                    "limit" => store(&mut s.limit, size(value.text)),
                    "min" => store(&mut s.min, size(value.text)),
                    "max" => store(&mut s.max, size(value.text)),
                    "avpkt" => store(&mut s.avpkt, size(value.text).filter(|n| *n > 0.0)),
                    "burst" => store(&mut s.burst, value.text.parse::<u32>().ok().map(f64::from)),
                    "bandwidth" => store(&mut s.bandwidth, rate(value.text)),
                    "probability" => {
                        store(&mut s.probability, value.text.parse().ok().filter(|p| *p > 0.0 && *p <= 1.0))
                    }
                    "prio" => store(&mut s.prio, value.text.parse().ok()),
                    _ => store(&mut s.dp, value.text.parse().ok()),
                };
                if !right {
                    c.word(
                        value,
                        format!("not a value for {key}"),
                        "write it as tc-red(8) has it, such as 60000, 60K or 10Mbit",
                    );
                }
            }
        }
    }
    s
}

fn store<T>(to: &mut Option<T>, value: Option<T>) -> bool {
    *to = value;
    to.is_some()
}

/// A line with tc's defaults filled in.
struct Whole {
    limit: f64,
    min: (f64, &'static str),
    max: (f64, &'static str),
    avpkt: f64,
    burst: f64,
    burst_from: &'static str,
    wlog: u32,
    probability: (f64, &'static str),
}

fn whole(kind: Word<'_>, s: &Settings<'_>, c: &mut Complaints<'_>) -> Option<Whole> {
    if s.limit.is_none() {
        c.missing(Some(&kind), "limit is missing", "write limit BYTES");
    }
    if s.avpkt.is_none() {
        c.missing(Some(&kind), "avpkt is missing", "write avpkt BYTES, such as avpkt 1000");
    }
    let (limit, avpkt) = (s.limit?, s.avpkt?);
    // Sally Floyd's advice, which tc follows.
    let max = s.max.map_or(((limit / 4.0).floor(), "not given: a quarter of limit"), |m| (m, "max"));
    let min = s.min.map_or(((max.0 / 3.0).floor(), "not given: a third of max"), |m| (m, "min"));
    let advised = ((2.0 * min.0 + max.0) / (3.0 * avpkt)).floor();
    let (burst, burst_from) =
        s.burst.map_or((advised, "not given: (2 min + max) / (3 avpkt)"), |b| (b, "burst"));
    if min.0 >= max.0 || max.0 > limit {
        let problem = format!("min {}, max {} and limit {limit} do not ascend", min.0, max.0);
        c.missing(Some(&kind), problem, "write min below max, and max not above limit");
        return None;
    }
    let Some(wlog) = wlog(min.0, avpkt, burst) else {
        let least = (min.0 / avpkt).ceil();
        c.missing(
            Some(&kind),
            format!("burst {burst} is too small for min {}", min.0),
            format!("write burst {least} or more: min / avpkt"),
        );
        return None;
    };
    let probability = s.probability.map_or((PROBABILITY, "not given: tc's 0.02"), |p| (p, "probability"));
    Some(Whole { limit, min, max, avpkt, burst, burst_from, wlog, probability })
}

fn bytes(n: f64) -> String {
    format!("\"{n} B\"")
}

/// `w_q`, and where it comes from.
fn weight(w: &Whole) -> (String, String) {
    let value = 0.5f64.powi(w.wlog as i32).to_string();
    (value, format!("2^-{}, from burst {} packets ({})", w.wlog, w.burst, w.burst_from))
}

fn rated(draft: &mut Draft, bandwidth: Option<u64>) {
    let from = if bandwidth.is_some() {
        "bandwidth"
    } else {
        "bandwidth not given: tc's 10Mbit; the parent qdisc shapes"
    };
    draft.rate = (Rate(bandwidth.unwrap_or(BANDWIDTH)).to_string(), from.to_owned());
}

fn red(kind: Word<'_>, s: &Settings<'_>, c: &mut Complaints<'_>) -> Option<Draft> {
    let w = whole(kind, s, c)?;
    let mut draft = Draft::default();
    rated(&mut draft, s.bandwidth);
    draft.set("aqm", if s.adaptive.is_some() { "\"ared\"" } else { "\"red\"" }, "red");
    draft.set("limit", bytes(w.limit), "limit");
    draft.set("min_th", bytes(w.min.0), w.min.1);
    draft.set("max_th", bytes(w.max.0), w.max.1);
    draft.set(
        "max_p",
        w.probability.0.to_string(),
        if s.adaptive.is_some() {
            "where adaptive begins; it stays from 0.01 to 0.5"
        } else {
            w.probability.1
        },
    );
    let (value, from) = weight(&w);
    draft.set("w_q", value, from);
    draft.set("gentle", "false", "tc drops everything above max");
    draft.set("mean_packet", bytes(w.avpkt), "avpkt: how fast an idle link ages the average");
    if s.ecn {
        draft.set("ecn", "true", ECN);
    }
    Some(draft)
}

/// The parameters of `gred setup`.
struct Setup {
    dps: u32,
    grio: bool,
    /// For all virtual queues.
    ecn: bool,
    limit: Option<f64>,
}

fn set_up<'a>(kind: Word<'a>, words: &[Word<'a>], c: &mut Complaints<'_>) -> (Word<'a>, Setup) {
    let known = ["DPs", "vqs", "default", "grio", "limit", "ecn", "harddrop"];
    let mut setup = Setup { dps: 0, grio: false, ecn: false, limit: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.text {
            "grio" => setup.grio = true,
            "ecn" => setup.ecn = true,
            // As with red.
            "harddrop" => {}
            "DPs" | "vqs" | "default" | "limit" => {
                let value = words.next();
                let number = value.and_then(|v| size(v.text));
                match (word.text, number) {
                    (_, None) => c.word(
                        value.unwrap_or(word),
                        format!("not a value for {}", word.text),
                        "write a number",
                    ),
                    ("limit", Some(n)) => setup.limit = Some(n),
                    // The virtual queue of unclassified packets: ours goes by DSCP.
                    ("default", Some(_)) => {}
                    (_, Some(n)) => setup.dps = n as u32,
                }
            }
            _ => c.unknown(word, &known),
        }
    }
    if !(2..=3).contains(&setup.dps) {
        let problem = format!("{} virtual queues; ours has two or three colours", setup.dps);
        c.word(&kind, problem, "write DPs 2 or DPs 3; for one, tc red");
    }
    (kind, setup)
}

fn gred<'a>(
    setup: Option<&(Word<'a>, Setup)>,
    dps: &[(Word<'_>, Settings<'_>)],
    c: &mut Complaints<'_>,
) -> Option<(Word<'a>, Draft)> {
    let Some((kind, setup)) = setup else {
        c.missing(
            dps.first().map(|(k, _)| k),
            "gred setup is missing",
            "write tc qdisc add … gred setup DPs 3 default 2 grio",
        );
        return None;
    };
    if dps.len() as u32 != setup.dps {
        c.word(
            kind,
            format!("gred setup says DPs {}, and {} are configured", setup.dps, dps.len()),
            "write a line for each DP",
        );
        return None;
    }
    let mut all: Vec<(Word<'_>, &Settings<'_>, Whole)> = Vec::new();
    for (kind, s) in dps {
        all.push((*kind, s, whole(*kind, s, c)?));
    }
    // Best first: the lowest prio, else the lowest number.
    all.sort_by_key(|(_, s, _)| (s.prio, s.dp));
    let (first, last) = (&all[0].2, &all[all.len() - 1].2);
    for (kind, _, w) in &all {
        if (w.wlog, w.avpkt.to_bits()) != (first.wlog, first.avpkt.to_bits()) {
            c.word(
                kind,
                "its burst and avpkt give a different w_q from the first DP's",
                "give all DPs the same burst and avpkt: ours has one w_q",
            );
            return None;
        }
    }
    let ecn = setup.ecn || all[0].1.ecn;
    if let Some((kind, ..)) = all.iter().find(|(_, s, _)| !setup.ecn && s.ecn != ecn) {
        c.word(
            kind,
            "ecn is set for some DPs only",
            "set it for all, or in the setup: ours marks every colour",
        );
        return None;
    }
    let prios: Vec<_> = all.iter().map(|(_, s, _)| s.prio).collect();
    let shared = !setup.grio && prios.windows(2).any(|w| w[0] == w[1]);
    let (averages, from) = match (setup.grio, shared) {
        (true, _) => ("coupled", "grio: each average includes the better colours"),
        (_, true) => ("shared", "equal prio: one average for all"),
        (_, false) => ("decoupled", "no grio and different prio: separate averages"),
    };
    let mut draft = Draft::default();
    rated(&mut draft, all.iter().find_map(|(_, s, _)| s.bandwidth));
    draft.set("aqm", "\"wred\"", "gred");
    let limit = setup.limit.unwrap_or_else(|| all.iter().map(|(_, _, w)| w.limit).fold(0.0, f64::max));
    let limit_from = if setup.limit.is_some() { "limit of the setup" } else { "the largest limit of a DP" };
    draft.set("limit", bytes(limit), limit_from);
    for ((_, s, w), colour) in all.iter().zip(["green", "yellow", "red"]) {
        let value = format!(
            "{{ min_th = {}, max_th = {}, max_p = {} }}",
            bytes(w.min.0),
            bytes(w.max.0),
            w.probability.0
        );
        let said: Vec<&str> =
            [w.min.1, w.max.1, w.probability.1].into_iter().filter(|f| f.starts_with("not given")).collect();
        let dp = s.dp.map_or_else(String::new, |n| format!("DP {n}"));
        draft.set(colour, value, [vec![dp.as_str()], said].concat().join("; "));
    }
    draft.set("averages", format!("\"{averages}\""), from);
    let (value, from) = weight(last);
    draft.set("w_q", value, from);
    draft.set("gentle", "false", "tc drops everything above max");
    draft.set("mean_packet", bytes(first.avpkt), "avpkt: how fast an idle link ages the average");
    if ecn {
        draft.set("ecn", "true", ECN);
    }
    Some((*kind, draft))
}
