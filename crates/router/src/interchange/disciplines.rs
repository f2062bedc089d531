//! Queue disciplines that tc has words for, beside RED and its like: CoDel, PIE, CHOKe and SFB.

use inprofile_core::params::{Default, Value, Values};
use inprofile_core::units::Bytes;
use inprofile_experiment::text::show;

use super::wlog;
use crate::config::Class;

/// A line of tc's behind `parent … handle …`, and what it can't say: which setting, and why.
pub(super) type Said = (String, Vec<(String, String)>);

/// The most packets a burst of `tc red` is looked for within.
const LONGEST_BURST: u32 = 100_000;
/// tc's units of PIE's alpha and beta: sixteenths.
pub(super) const SIXTEENTHS: f64 = 16.0;
/// And no more of them.
pub(super) const MOST_SIXTEENTHS: f64 = 32.0;

/// The class's discipline; `None` where it is CHOKe and no burst gives its w_q, or where it is none of these.
pub(super) fn modern(class: &Class, bandwidth: u64, packet: Bytes) -> Option<Said> {
    let v = &class.aqm.values;
    let limit = class.limit.packets(packet).max(1.0);
    let ecn = if v.get("ecn") == Some(&Value::Flag(true)) { "ecn" } else { "noecn" };
    let (line, said, always): (String, &[&str], &[(&str, &str)]) = match class.aqm.name {
        "codel" => (
            format!("codel limit {limit:.0} target {} interval {} {ecn}", us(v, "target"), us(v, "interval")),
            &["target", "interval", "ecn", "mtu"],
            &[("variant", "linux")],
        ),
        "pie" => {
            let (alpha, beta) = (sixteenths(number(v, "alpha")), sixteenths(number(v, "beta")));
            let from = if v.get("delay_from") == Some(&Value::Choice("dequeue_rate")) { "" } else { "no_" };
            let line = format!(
                "pie limit {limit:.0} target {} tupdate {} alpha {alpha:.0} beta {beta:.0} {ecn} nobytemode {from}dq_rate_estimator",
                us(v, "target"),
                us(v, "t_update"),
            );
            (
                line,
                &["target", "t_update", "alpha", "beta", "ecn", "delay_from", "mean_packet"],
                &[("variant", "linux")],
            )
        }
        "choke" => {
            let Curve { words, lossy, .. } = curve(v, v, packet)?;
            let mean = match v.get("mean_packet") {
                Some(Value::Bytes(b)) => b.0 as f64,
                _ => packet.0 as f64,
            };
            let ecn = if ecn == "ecn" { " ecn" } else { "" };
            let th = |name: &str| match v.get(name) {
                Some(Value::Backlog(b)) => b.bytes(packet) / mean,
                _ => 0.0,
            };
            // Thresholds are packets there, not bytes.
            let rest = words.split_once(" avpkt ").map_or("", |(_, rest)| rest);
            let line = format!(
                "choke limit {limit:.0} min {:.0} max {:.0} avpkt {rest} bandwidth {bandwidth}bit{ecn}",
                th("min_th"),
                th("max_th")
            );
            let said = &["min_th", "max_th", "max_p", "w_q", "mean_packet", "ecn"];
            let mut missing = unsaid(class, said, &[]);
            missing.extend(lossy.map(|why| ("w_q".to_owned(), why)));
            return Some((line, missing));
        }
        "sfb" => {
            let count = |name: &str| match v.get(name) {
                Some(Value::Count(n)) => *n,
                _ => 0,
            };
            let ms = |name: &str| match v.get(name) {
                Some(Value::Duration(d)) => d.secs() * 1e3,
                _ => 0.0,
            };
            let line = format!(
                "sfb rehash {:.0} db {:.0} limit {limit:.0} max {} target {} increment {} decrement {} penalty_rate {:.0} penalty_burst {}",
                ms("rehash"),
                ms("warmup"),
                count("bin_max"),
                count("bin_size"),
                number(v, "increment"),
                number(v, "decrement"),
                number(v, "penalty_rate"),
                count("penalty_burst"),
            );
            let said = &[
                "rehash",
                "warmup",
                "bin_max",
                "bin_size",
                "increment",
                "decrement",
                "penalty_rate",
                "penalty_burst",
                "ecn",
            ];
            let mut missing = unsaid(class, said, &[]);
            if ecn == "noecn" {
                let why = "the kernel's sfb marks every packet of an ECN-capable transport";
                missing.push(("ecn = false".into(), why.into()));
            }
            return Some((line, missing));
        }
        _ => return None,
    };
    let mut missing = unsaid(class, said, always);
    if class.aqm.name == "pie" {
        missing.extend(["alpha", "beta"].iter().filter_map(|gain| in_sixteenths(v, gain)));
    }
    Some((line, missing))
}

/// A gain of PIE that tc can't say to the last digit.
fn in_sixteenths(v: &Values, gain: &str) -> Option<(String, String)> {
    let ours = number(v, gain);
    let said = sixteenths(ours) / SIXTEENTHS;
    let why = format!("tc pie counts it in sixteenths, at most {MOST_SIXTEENTHS}: it became {said}");
    (said.to_bits() != ours.to_bits()).then(|| (format!("{gain} = {ours}"), why))
}

fn sixteenths(gain: f64) -> f64 {
    (gain * SIXTEENTHS).round().min(MOST_SIXTEENTHS)
}

/// A RED curve in tc's words.
pub(super) struct Curve {
    /// `min … max … avpkt … burst … probability …`.
    pub words: String,
    /// The rounding error of w_q.
    pub lossy: Option<String>,
    /// tc's warning about a line that it accepts.
    pub warning: Option<String>,
}

/// The least exponent of w_q = 2^−n of which tc says that the burst seems to be too large.
const TC_WARNS_FROM: u32 = 10;

/// `None` if no burst gives this w_q.
pub(super) fn curve(curve: &Values, all: &Values, packet: Bytes) -> Option<Curve> {
    let amount = |name: &str| match curve.get(name) {
        Some(Value::Backlog(b)) => Some(b.bytes(packet)),
        _ => None,
    };
    let number = |values: &Values, name: &str| match values.get(name) {
        Some(Value::Number(x)) => Some(*x),
        _ => None,
    };
    let (min, max, max_p) = (amount("min_th")?, amount("max_th")?, number(curve, "max_p")?);
    let w_q = number(all, "w_q")?;
    let avpkt = match all.get("mean_packet") {
        Some(Value::Bytes(b)) => b.0 as f64,
        _ => packet.0 as f64,
    };
    let exponent = (-w_q.log2()).round().clamp(1.0, 31.0) as u32;
    let burst = (1..=LONGEST_BURST).find(|b| wlog(min, avpkt, f64::from(*b)) == Some(exponent))?;
    let is = 0.5f64.powi(exponent as i32);
    let lossy = (is.to_bits() != w_q.to_bits())
        .then(|| format!("tc knows powers of two: {w_q} became 2^-{exponent} = {is}"));
    let warning = (exponent >= TC_WARNS_FROM).then(|| {
        format!("tc warns that a burst of {burst} seems too large, as for any w_q of 2^-{TC_WARNS_FROM} or less, and takes the line")
    });
    let words = format!("min {min:.0} max {max:.0} avpkt {avpkt:.0} burst {burst} probability {max_p}");
    Some(Curve { words, lossy, warning })
}

/// Settings that there are no words for: where they are not as the kernel always has them, or as they are by default.
fn unsaid(class: &Class, said: &[&str], always: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut missing = Vec::new();
    for field in class.aqm.fields.iter().filter(|f| !said.contains(&f.name)) {
        let Some(value) = class.aqm.values.get(field.name) else { continue };
        let is = always.iter().find(|(name, _)| *name == field.name);
        let (same, why) = match (is, field.default) {
            (Some((_, word)), _) => {
                (matches!(value, Value::Choice(w) if w == word), format!("the kernel's is \"{word}\""))
            }
            (None, Default::Value(left_out)) => {
                (left_out() == *value, format!("tc {} has no such setting", class.aqm.name))
            }
            _ => (false, format!("tc {} has no such setting", class.aqm.name)),
        };
        if !same {
            missing.push((format!("{} = {}", field.name, show::toml(value)), why));
        }
    }
    missing
}

/// A time in microseconds, as tc reads it.
fn us(values: &Values, name: &str) -> String {
    match values.get(name) {
        Some(Value::Duration(d)) => format!("{:.0}us", d.secs() * 1e6),
        _ => "0us".into(),
    }
}

fn number(values: &Values, name: &str) -> f64 {
    match values.get(name) {
        Some(Value::Number(x)) => *x,
        _ => 0.0,
    }
}
