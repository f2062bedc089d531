//! Imports Cisco's `random-detect` and `police` lines, and those around them in a class of a policy map.

use inprofile_core::units::Rate;
use inprofile_experiment::text::quantity::FASTEST;
use inprofile_live::code_points::Dscp;

use super::police::{self, Police};
use super::words::{Complaints, Word, lines};
use super::{Draft, Imported};

/// `random-detect exponential-weighting-constant` if nothing is said.
const WEIGHT: u32 = 9;
/// The denominator of the mark probability if nothing is said.
const DENOMINATOR: u32 = 10;
/// `queue-limit` if nothing is said, in packets.
const QUEUE_LIMIT: u32 = 64;
const COMMANDS: [&str; 8] =
    ["policy-map", "class", "bandwidth", "shape", "queue-limit", "random-detect", "police", "exit"];
const DETECT: [&str; 4] = ["dscp-based", "dscp", "exponential-weighting-constant", "ecn"];

/// One `random-detect dscp` line.
struct Curve<'a> {
    word: Word<'a>,
    dscp: Dscp,
    min: u32,
    max: u32,
    denominator: (u32, &'static str),
}

#[derive(Default)]
struct PolicyMap<'a> {
    curves: Vec<Curve<'a>>,
    weight: Option<u32>,
    limit: Option<u32>,
    rate: Option<(u64, &'static str)>,
    ecn: bool,
    classes: u32,
    /// Its policer, with its word.
    police: Option<(Word<'a>, Police)>,
    class: Option<&'a str>,
}

/// Reads such lines; `file` is its name in messages.
///
/// # Errors
/// Every word that is not understood, and what is missing.
pub fn import(text: &str, file: &str) -> Imported {
    let mut c = Complaints::new(file);
    let mut found = PolicyMap::default();
    for words in lines(text, '!') {
        line(&words, &mut found, &mut c);
    }
    let police = found.police.take();
    let drafted = match &police {
        _ if !c.all.is_empty() => None,
        Some(_) if found.curves.is_empty() => {
            let mut draft = Draft::default();
            police::queue(&mut draft);
            Some(draft)
        }
        _ => draft(&mut found, &mut c),
    };
    let near = police.as_ref().map(|(word, _)| *word).or(found.curves.first().map(|k| k.word));
    match (drafted, near) {
        (Some(draft), Some(near)) if c.all.is_empty() => {
            let customers = police.into_iter().map(|(_, p)| p.customer()).collect();
            Draft { customers, ..draft }.finish(&near, c)
        }
        _ => Err(c.all),
    }
}

fn line<'a>(words: &[Word<'a>], found: &mut PolicyMap<'a>, c: &mut Complaints<'_>) {
    let texts: Vec<&str> = words.iter().map(|w| w.text).collect();
    match texts.as_slice() {
        ["policy-map", _] | ["exit"] => {}
        ["class", name] => {
            found.class = Some(name);
            found.classes += 1;
            if found.classes > 1 {
                c.word(&words[0], "a second class", "import one class at a time: each is a queue of its own");
            }
        }
        ["bandwidth", kbits] => match rate(kbits, 1_000) {
            Some(n) => found.rate = found.rate.or(Some((n, "bandwidth, in kbit/s"))),
            None => c.word(
                &words[1],
                "no rate in kbit/s",
                "write a number; a percentage depends on an interface that isn't here",
            ),
        },
        ["shape", "average", bits] => match rate(bits, 1) {
            Some(n) => found.rate = Some((n, "shape average")),
            None => c.word(&words[2], "no rate in bit/s", "write a number"),
        },
        ["queue-limit", n] | ["queue-limit", n, "packets"] => match number(n) {
            Some(n) => found.limit = Some(n),
            None => c.word(&words[1], "no number of packets", "write queue-limit 200 packets"),
        },
        ["police", _, ..] => {
            let name = found.class.map_or_else(|| "class".to_owned(), |name| format!("class-{name}"));
            let police = police::cisco(words, c);
            found.police = police.map(|p| (words[0], Police { name, ..p }));
        }
        ["random-detect", "dscp-based"] => {}
        // Plain random-detect goes by IP precedence.
        ["random-detect"] => c.word(&words[0], "goes by IP precedence", "write random-detect dscp-based"),
        ["random-detect", "ecn"] => found.ecn = true,
        ["random-detect", "exponential-weighting-constant", n] => match number(n).filter(|n| *n <= 16) {
            Some(n) => found.weight = Some(n),
            None => c.word(&words[2], "no exponent from 1 to 16", "write 9, which is usual"),
        },
        ["random-detect", "dscp", ..] => curve(words, found, c),
        ["random-detect", _, ..] => c.unknown(&words[1], &DETECT),
        [first, ..] if COMMANDS.contains(first) => {
            let (word, what) =
                words.get(1).map_or((&words[0], "its value is missing"), |w| (w, "not understood here"));
            c.word(
                word,
                what,
                "write bandwidth KBITS, shape average BITS, queue-limit PACKETS or random-detect …",
            );
        }
        _ => c.unknown(&words[0], &COMMANDS),
    }
}

/// A rate in so many bit/s each, no faster than a file of ours can say.
fn rate(text: &str, unit: u64) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(unit).filter(|n| *n > 0 && *n <= FASTEST.0)
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| *n > 0 && *n <= 1_000_000)
}

/// `random-detect dscp af11 MIN MAX [DENOMINATOR]`, in packets.
fn curve<'a>(words: &[Word<'a>], found: &mut PolicyMap<'a>, c: &mut Complaints<'_>) {
    let [_, _, name, min, max, rest @ ..] = words else {
        let last = words.last().unwrap_or(&words[0]);
        return c.word(last, "the line ends too early", "write random-detect dscp af11 MIN MAX DENOMINATOR");
    };
    let Some(dscp) = Dscp::parse(name.text) else {
        return c.word(name, "no such DSCP", "write af11 to af43, or a number");
    };
    if let Some(twice) = found.curves.iter().find(|k| k.dscp == dscp) {
        let problem = format!("line {} has it already", twice.word.line);
        return c.word(name, problem, "write each DSCP once");
    }
    let denominator = match rest {
        [] => Some((DENOMINATOR, "denominator not given: 10")),
        [n] => number(n.text).map(|n| (n, "")),
        [_, more, ..] => return c.word(more, "unknown word", "nothing comes behind the denominator"),
    };
    match (number(min.text), number(max.text), denominator) {
        (Some(lower), Some(upper), Some(denominator)) if lower < upper => {
            found.curves.push(Curve { word: *name, dscp, min: lower, max: upper, denominator });
        }
        (None, ..) => c.word(min, "no threshold in packets", "write a number from 1"),
        (_, None, _) => c.word(max, "no threshold in packets", "write a number from 1"),
        (.., None) => {
            c.word(rest.first().unwrap_or(max), "no denominator", "write 10 for a probability of 1/10")
        }
        _ => c.word(min, "the lower threshold is not below the upper", "write MIN below MAX"),
    }
}

fn draft(found: &mut PolicyMap<'_>, c: &mut Complaints<'_>) -> Option<Draft> {
    // Best first: in an AF class the lowest number (RFC 2597 §6).
    found.curves.sort_by_key(|k| k.dscp);
    if !(2..=3).contains(&found.curves.len()) {
        let word = found.curves.get(3).map(|k| k.word);
        let problem = format!("{} curves; ours has two or three colours", found.curves.len());
        c.missing(word.as_ref(), problem, "write random-detect dscp af11 …, af12 … and af13 …");
        return None;
    }
    let mut draft = Draft::default();
    let spare = Dscp::af(1, 3).into_iter().chain((1..64).filter_map(Dscp::new));
    let mut points: Vec<Dscp> = found.curves.iter().map(|k| k.dscp).collect();
    let third = spare.into_iter().find(|d| !points.contains(d));
    points.extend(third.filter(|_| points.len() == 2));
    let mut names = points.iter().map(ToString::to_string);
    draft.code_points = Some([names.next()?, names.next()?, names.next()?]);
    draft.rate = match found.rate {
        Some((rate, from)) => (Rate(rate).to_string(), from.to_owned()),
        None => ("10 Mbit/s".into(), "not given: set it".into()),
    };
    draft.set("aqm", "\"wred\"", "random-detect dscp-based");
    match found.limit {
        Some(n) => draft.set("limit", format!("\"{n} packets\""), "queue-limit"),
        None => {
            let most = found.curves.iter().map(|k| k.max).max().unwrap_or(0).max(QUEUE_LIMIT);
            draft.set(
                "limit",
                format!("\"{most} packets\""),
                "queue-limit not given: 64, or the highest threshold",
            );
        }
    }
    for (k, colour) in found.curves.iter().zip(["green", "yellow", "red"]) {
        let value = format!(
            "{{ min_th = \"{} packets\", max_th = \"{} packets\", max_p = {} }}",
            k.min,
            k.max,
            1.0 / f64::from(k.denominator.0)
        );
        let note = format!("{}: 1/{}", k.dscp, k.denominator.0);
        draft.set(
            colour,
            value,
            [note.as_str(), k.denominator.1]
                .iter()
                .filter(|s| !s.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join("; "),
        );
    }
    draft.set("averages", "\"shared\"", "one average for all");
    let (n, from) = found.weight.map_or((WEIGHT, "exponential-weighting-constant not given: 9"), |n| {
        (n, "exponential-weighting-constant")
    });
    draft.set("w_q", 0.5f64.powi(n as i32).to_string(), format!("2^-{n}, from {from}"));
    draft.set("gentle", "false", "everything is dropped above the upper threshold");
    if found.ecn {
        draft.set("ecn", "true", "ecn");
    }
    Some(draft)
}
