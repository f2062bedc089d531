//! Import and export: queues and policers of `tc`, Cisco and Open vSwitch into our file, and our file as commands for `tc` and
//! Open vSwitch.
//!
//! Every derived value is explained in a comment beside it; a word that is not understood is an error with its line and column,
//! never ignored.

pub mod cisco;
mod disciplines;
pub mod export;
pub mod ovs;
mod police;
pub mod tc;

use inprofile_experiment::text::Problem;

use crate::{config, router};
use words::{Complaints, Word};

/// A configuration file under construction.
#[derive(Debug, Default)]
struct Draft {
    outside: Option<String>,
    code_points: Option<[String; 3]>,
    rate: (String, String),
    /// Keys of the queue: name, value, where the value comes from.
    queue: Vec<(&'static str, String, String)>,
    inside: Option<String>,
    /// Likewise the keys of each customer.
    customers: Vec<Vec<(&'static str, String, String)>>,
}

impl Draft {
    fn set(&mut self, key: &'static str, value: impl Into<String>, from: impl Into<String>) {
        self.queue.push((key, value.into(), from.into()));
    }

    /// The file, as `check` accepts it. What `check` would refuse is reported at `near`, the word it comes from.
    fn finish(&self, near: &Word<'_>, mut c: Complaints<'_>) -> Imported {
        let text = self.toml();
        let Err(refused) = config::parse(text.as_bytes(), "imported", &router::registry()) else {
            return Ok(text);
        };
        for p in refused {
            let value = p.value.map_or_else(String::new, |v| format!(" = {v}"));
            c.word(near, format!("becomes {}{value}, which is refused: {}", p.path, p.problem), p.remedy);
        }
        Err(c.all)
    }

    fn toml(&self) -> String {
        let (outside, from) = match &self.outside {
            Some(dev) => (dev.as_str(), "dev"),
            None => ("outside", "not given: the interface where packets go out"),
        };
        let (inside, said) = match &self.inside {
            Some(dev) => (dev.as_str(), "where it is policed"),
            None => (
                if outside == "inside" { "outside" } else { "inside" },
                "not given: the interface where packets come in",
            ),
        };
        let mut out = String::new();
        line(&mut out, "inside", &quoted(inside), said);
        line(&mut out, "outside", &quoted(outside), from);
        if let Some([green, yellow, red]) = &self.code_points {
            let points = format!("{{ in = \"{green}\", out = \"{yellow}\", red = \"{red}\" }}");
            line(&mut out, "code_points", &points, "");
        }
        out.push_str("\n[upstream]\n");
        line(&mut out, "role", "\"core\"", "as there, the DSCP that a packet comes with is trusted");
        line(&mut out, "rate", &quoted(&self.rate.0), &self.rate.1);
        out.push_str("\n[upstream.queue]\n");
        for (key, value, from) in &self.queue {
            line(&mut out, key, value, from);
        }
        for customer in &self.customers {
            out.push_str("\n[[upstream.customers]]\n");
            customer.iter().for_each(|(key, value, from)| line(&mut out, key, value, from));
        }
        out
    }
}

/// A key, its value, and where the value comes from.
fn line(out: &mut String, key: &str, value: &str, from: &str) {
    let comment = if from.is_empty() { String::new() } else { format!(" # {from}") };
    out.push_str(&format!("{key} = {value}{comment}\n"));
}

/// A TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Our file, or everything that was not understood.
pub type Imported = Result<String, Vec<Problem>>;

/// tc's EWMA: the exponent n of w_q = 2^−n, the least for which `burst` packets into an empty queue leave the
/// average at or below `min` (bytes): burst + 1 − min/avpkt ≤ (1 − (1 − w)^burst) / w. `None` if no n up to 31 does.
/// (Floyd and Jacobson 1993, §6; tc-red(8), `burst`.)
#[must_use]
pub fn wlog(min: f64, avpkt: f64, burst: f64) -> Option<u32> {
    let over = burst + 1.0 - min / avpkt;
    if over < 1.0 {
        return None;
    }
    (1..32).find(|n| {
        let w = 0.5f64.powi(*n as i32);
        over <= (1.0 - (1.0 - w).powf(burst)) / w
    })
}

mod words {
    //! A text as words with their positions, errors that point to them, and sizes and rates in tc's notation.

    use inprofile_experiment::text::nearest::suggest;
    use inprofile_experiment::text::{Problem, Severity};

    /// A word and where it is.
    #[derive(Clone, Copy, Debug)]
    pub struct Word<'a> {
        pub text: &'a str,
        pub line: u32,
        pub column: u32,
    }

    /// The lines of a text, each as its words; without empty ones and what follows `#`.
    pub fn lines<'a>(text: &'a str, comment: char) -> Vec<Vec<Word<'a>>> {
        let mut all = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split(comment).next().unwrap_or("");
            let mut words = Vec::new();
            let mut rest = line;
            while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
                let tail = &rest[start..];
                let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
                let before = line.len() - tail.len();
                words.push(Word {
                    text: &tail[..end],
                    line: number,
                    column: line[..before].chars().count() as u32 + 1,
                });
                rest = &tail[end..];
            }
            if !words.is_empty() {
                all.push(words);
            }
        }
        all
    }

    /// Complaints about a file.
    pub struct Complaints<'f> {
        file: &'f str,
        pub all: Vec<Problem>,
    }

    impl<'f> Complaints<'f> {
        pub fn new(file: &'f str) -> Complaints<'f> {
            Complaints { file, all: Vec::new() }
        }

        /// About one word.
        pub fn word(&mut self, word: &Word<'_>, problem: impl Into<String>, remedy: impl Into<String>) {
            self.push(Some(word), problem.into(), remedy.into());
        }

        /// A word that means nothing here.
        pub fn unknown(&mut self, word: &Word<'_>, known: &[&str]) {
            self.word(word, "unknown word", suggest(word.text, known));
        }

        /// About something that isn't there; `near` is the word it belongs to.
        pub fn missing(
            &mut self,
            near: Option<&Word<'_>>,
            problem: impl Into<String>,
            remedy: impl Into<String>,
        ) {
            self.push(near, problem.into(), remedy.into());
        }

        fn push(&mut self, word: Option<&Word<'_>>, problem: String, remedy: String) {
            self.all.push(Problem {
                file: self.file.to_owned(),
                line: word.map(|w| w.line),
                column: word.map(|w| w.column),
                path: String::new(),
                value: word.map(|w| w.text.chars().take(40).collect()),
                problem,
                remedy,
                severity: Severity::Error,
            });
        }
    }

    /// tc(8), PARAMETERS: a bare number counts bytes, k, m and g are powers of 1024, `kbit` counts bits.
    pub(super) fn size(text: &str) -> Option<f64> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let number: f64 = text[..end].parse().ok()?;
        let factor = match text[end..].to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kb" => 1024.0,
            "m" | "mb" => 1024.0 * 1024.0,
            "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
            "kbit" => 1024.0 / 8.0,
            "mbit" => 1024.0 * 1024.0 / 8.0,
            "gbit" => 1024.0 * 1024.0 * 1024.0 / 8.0,
            _ => return None,
        };
        Some((number * factor).floor())
    }

    /// tc(8), PARAMETERS: a bare number counts bits a second, `bps` bytes a second; k is 1000, ki 1024.
    pub(super) fn rate(text: &str) -> Option<u64> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let number: f64 = text[..end].parse().ok()?;
        let unit = text[end..].to_ascii_lowercase();
        let (prefix, bits) = match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
            (Some(prefix), _) => (prefix, 1.0),
            (_, Some(prefix)) => (prefix, 8.0),
            (None, None) if unit.is_empty() => ("", 1.0),
            _ => return None,
        };
        let factor = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            "ki" => 1024.0,
            "mi" => 1024.0 * 1024.0,
            "gi" => 1024.0 * 1024.0 * 1024.0,
            "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        let bps = number * bits * factor;
        (1.0..=1e13).contains(&bps).then_some(bps as u64)
    }
}

mod dualpi2 {
    //! DualPI2 as a line of tc's (tc-dualpi2(8); in Linux from 6.17): the same law but for a step in place of the ramp, and dice in place of
    //! even spacing.

    use inprofile_core::aqm::dualpi2::Params;
    use inprofile_core::aqm::l4s::coupling::{MOST_COUPLING, Saturation};
    use inprofile_core::aqm::l4s::dual::Bound;
    use inprofile_core::params::Params as _;
    use inprofile_core::params::Values;
    use inprofile_core::units::{Backlog, Bytes, Duration};

    /// The words after `dualpi2`, and what they do not say: a setting, and why.
    pub(super) fn words(values: &Values, limit: Backlog, packet: Bytes) -> (String, Vec<(String, String)>) {
        let p = Params::from_values(values);
        let (c, common) = (&p.controller, &p.controller.coupling);
        let gains = c.gains();
        let us = |d: Duration| format!("{:.0}us", d.secs() * 1e6);
        let mut unsaid = Vec::new();
        let mut cannot = |what: String, why: String| unsaid.push((what, why));
        let packets = match limit {
            Backlog::Packets(n) => n,
            Backlog::Bytes(_) => {
                cannot(format!("limit = {limit}"), "dualpi2 counts packets; this is of full ones".into());
                limit.bytes(packet) / packet.0 as f64
            }
        };
        // Half way up the ramp; tc takes no step at 0.
        let step = Duration((p.min_th.0 + p.range.0 / 2).max(Duration::from_micros(1).0));
        if p.range > Duration::ZERO {
            let why = format!("dualpi2 has a step, here at {step}, half way up");
            cannot(format!("range = {}", p.range), why);
        }
        let factor = common.k.round().clamp(1.0, MOST_COUPLING);
        if factor.to_bits() != common.k.to_bits() {
            cannot(format!("k = {}", common.k), format!("coupling_factor is a whole number: {factor}"));
        }
        let percent = (p.classic_weight * 100.0).round().max(1.0);
        match p.l4s_priority {
            Bound::Wrr if (percent - p.classic_weight * 100.0).abs() > 1e-9 => cannot(
                format!("classic_weight = {}", p.classic_weight),
                format!("classic_protection is in whole per cent: {percent} %"),
            ),
            Bound::Wrr => {}
            Bound::TsFifo => {
                cannot("l4s_priority = ts_fifo".into(), "dualpi2 has weighted round robin".into())
            }
        }
        for (differs, what, why) in [
            (common.derandomise, "derandomise = true".to_owned(), "dualpi2 draws random numbers"),
            (!common.l4s, "l4s = false".to_owned(), "dualpi2 always treats ECT(1) as L4S"),
            (!common.ecn, "ecn = false".to_owned(), "dualpi2 marks ECT(0) where ours drops it"),
            (
                common.p_cmax.is_some(),
                format!("p_cmax = {}", common.p_cmax.unwrap_or_default()),
                "dualpi2 has 1/coupling_factor²",
            ),
            (
                common.min_backlog != Bytes(2 * packet.0),
                format!("min_backlog = {}", common.min_backlog),
                "dualpi2 has two MTUs: neither dropped nor marked by the base probability while less waits",
            ),
        ] {
            if differs {
                cannot(what, why.into());
            }
        }
        let overload = match common.saturation {
            Saturation::Drop => "drop_on_overload",
            Saturation::Delay => "overflow",
        };
        let words = format!(
            "limit {packets:.0} target {} tupdate {} alpha {:.6} beta {:.6} step_thresh {} min_qlen_step {} coupling_factor {factor} {overload} drop_dequeue l4s_ect classic_protection {percent}%",
            us(c.target),
            us(gains.t_update),
            gains.alpha,
            gains.beta,
            us(step),
            p.th_len,
        );
        (words, unsaid)
    }
}

#[cfg(test)]
mod tests;
