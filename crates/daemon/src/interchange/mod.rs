//! Other routers' words: `tc`'s and Cisco's queue settings read into our file, and our file written as `tc` lines.
//!
//! Whatever is derived is said in a comment beside it; a word that is not understood is an error with its place, never
//! left out in silence.

pub mod cisco;
pub mod export;
pub mod tc;
mod words;

use inprofile_config::Problem;

/// A file of ours in the making.
#[derive(Debug, Default)]
struct Draft {
    outside: Option<String>,
    code_points: Option<[String; 3]>,
    rate: (String, String),
    /// Keys of the queue: name, value, what the value comes from.
    queue: Vec<(&'static str, String, String)>,
}

impl Draft {
    fn set(&mut self, key: &'static str, value: impl Into<String>, from: impl Into<String>) {
        self.queue.push((key, value.into(), from.into()));
    }

    /// As a file that `check` reads.
    fn toml(&self) -> String {
        let mut out = String::new();
        let mut line = |key: &str, value: &str, from: &str| {
            let comment = if from.is_empty() { String::new() } else { format!(" # {from}") };
            out.push_str(&format!("{key} = {value}{comment}\n"));
        };
        line("inside", "\"inside\"", "not said there: the interface where packets come in");
        match &self.outside {
            Some(dev) => line("outside", &format!("\"{dev}\""), "dev"),
            None => line("outside", "\"outside\"", "not said there: the interface where packets go out"),
        }
        if let Some([green, yellow, red]) = &self.code_points {
            line("code_points", &format!("{{ in = \"{green}\", out = \"{yellow}\", red = \"{red}\" }}"), "");
        }
        out.push_str("\n[upstream]\n");
        let mut line = |key: &str, value: &str, from: &str| {
            let comment = if from.is_empty() { String::new() } else { format!(" # {from}") };
            out.push_str(&format!("{key} = {value}{comment}\n"));
        };
        line("rate", &format!("\"{}\"", self.rate.0), &self.rate.1);
        out.push_str("\n[upstream.queue]\n");
        for (key, value, from) in &self.queue {
            let comment = if from.is_empty() { String::new() } else { format!(" # {from}") };
            out.push_str(&format!("{key} = {value}{comment}\n"));
        }
        out
    }
}

/// Our file, or everything that was not understood.
pub type Imported = Result<String, Vec<Problem>>;

/// tc's EWMA: the exponent n of w_q = 2^−n, the least for which a burst of so many packets into an empty queue leaves the
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
