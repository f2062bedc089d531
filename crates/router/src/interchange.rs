//! Import and export: queues and policers of `tc`, Cisco and Open vSwitch into our file, and our file as commands for `tc` and
//! Open vSwitch.
//!
//! Every derived value is explained in a comment beside it; a word that is not understood is an error with its line and column,
//! never ignored.

pub mod cisco;
mod disciplines;
mod dualpi2;
pub mod export;
pub mod ovs;
mod police;
pub mod tc;
mod words;

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

#[cfg(test)]
mod tests;
