//! Support for comparing a run with ns-2 2.35 event by event: its clock, its packet trace, the times
//! at which its scripts send datagrams. Its TCP is in [`crate::tcp::ns2`].
//!
//! The engine meets ns-2 in two places: [`Clock::NS2`], its order of events, and the one random stream that all
//! components share (`World::shared`). TCP meets it in [`Profile::Ns2`](crate::tcp::Profile::Ns2).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use inprofile_core::packet::Kind;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Bytes, Duration, Rate, Time};

use crate::clock::Clock;
use crate::network::{Flow, Network, Transport};
use crate::outcome::Outcome;
use crate::packet::kind_name;
use crate::run_log::{self, Code, Incomplete, LogRow};
use crate::traffic::udp;

/// When a source that is not [steady](udp::Config::is_steady) and starts at `start` sends in the ns-2 profile: in
/// seconds, each the sum of the one before and the time to wait.
pub fn datagram_times(
    config: udp::Config,
    start: Time,
    stop: Option<Time>,
    rng: Rng,
) -> impl Iterator<Item = f64> {
    let mut schedule = udp::Schedule::new(config, stop, rng);
    let mut due = schedule.begin(start);
    let mut now = Seconds::at(start);
    std::iter::from_fn(move || {
        now = now.after(Seconds::span(udp::until(due?, now)));
        due = schedule.following();
        Some(now.secs())
    })
}

// ns-2's clock: seconds in double precision.
//
// ns-2's event times are sums of doubles, and some of its events coincide only because of how those sums round. To order
// events as ns-2 does, the engine has to add the same numbers in the same order.

/// Seconds in double precision, as ns-2 has them. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Clock for Seconds {
    type Span = f64;
    /// Buckets a second.
    type Buckets = f64;
    const NS2: bool = true;
    const ZERO: Seconds = Seconds(0.0);
    const NEVER: Seconds = Seconds(f64::INFINITY);
    const NO_TIME: f64 = 0.0;

    fn span(d: Duration) -> f64 {
        d.secs()
    }
    fn span_secs(s: f64) -> f64 {
        s
    }
    fn secs_of(span: f64) -> f64 {
        span
    }
    fn span_ps(span: f64) -> u64 {
        Duration::from_secs(span).0
    }
    fn serialise(rate: Rate, size: Bytes) -> f64 {
        8.0 * size.0 as f64 / rate.0 as f64
    }
    fn add(a: f64, b: f64) -> f64 {
        a + b
    }
    fn after(self, span: f64) -> Seconds {
        Seconds(self.0 + span)
    }
    fn since(self, earlier: Seconds) -> f64 {
        self.0 - earlier.0
    }
    fn max(self, other: Seconds) -> Seconds {
        if self.0 >= other.0 { self } else { other }
    }
    fn at(t: Time) -> Seconds {
        Seconds(t.secs())
    }
    fn time(self) -> Time {
        Time::from_secs(self.0)
    }
    fn secs(self) -> f64 {
        self.0
    }
    fn bits(self) -> u64 {
        self.0.to_bits()
    }
    fn from_bits(bits: u64) -> Seconds {
        Seconds(f64::from_bits(bits))
    }
    fn buckets(width: Duration) -> f64 {
        1.0 / width.secs()
    }
    #[inline]
    fn bucket(bits: u64, buckets: f64) -> u64 {
        // By way of a signed number, which processors convert in one step.
        (f64::from_bits(bits) * buckets) as i64 as u64
    }
    /// First in, first out; the count may wrap.
    fn tie(a: u32, b: u32) -> Ordering {
        (a.wrapping_sub(b) as i32).cmp(&0)
    }
}

// ns-2's packet trace (`$ns trace-all`), line by line as ns-2 2.35 writes it.
//
// ```text
// + 0.10416 0 2 tcp 1040 ------- 0 0.0 3.0 1 2
// what time from to type size flags flow source destination sequence packet
// ```
//
// The flags (ECN bits, the sender's reaction to congestion) are not written: the column is always
// `-------`, and comparisons leave it out. Source and destination are node.port, ports being given in the order
// of flows as ns-2 gives them when each flow's two agents are attached before the next flow's.

/// Writes lines of the trace.
#[derive(Clone, Debug)]
pub struct Lines {
    /// By flow: where data comes from and where it goes, as node.port, and what ns-2 calls its datagrams.
    ends: Vec<(String, String, &'static str)>,
}

impl Lines {
    /// For the flows of this network.
    #[must_use]
    pub fn of(network: &Network) -> Lines {
        let mut ports: BTreeMap<u32, u32> = BTreeMap::new();
        let mut end = |node: u32| {
            let port = ports.entry(node).or_default();
            *port += 1;
            format!("{node}.{}", *port - 1)
        };
        let datagrams = |f: &Flow| match &f.transport {
            Transport::Udp(config) if config.is_steady() => "cbr",
            _ => kind_name(Kind::Datagram),
        };
        Lines { ends: network.flows.iter().map(|f| (end(f.from), end(f.to), datagrams(f))).collect() }
    }

    /// Writes one line, its end included.
    ///
    /// # Errors
    /// Whatever `to` refuses.
    pub fn write(&self, row: &LogRow, to: &mut impl Write) -> io::Result<()> {
        let t = &row.packet;
        let code = match row.code {
            Code::Enqueue => '+',
            Code::Dequeue => '-',
            Code::Receive => 'r',
            Code::Drop(_) => 'd',
        };
        let flow = t.packet.flow.0;
        let (sender, receiver, datagram) = &self.ends[flow as usize];
        let kind = if t.packet.kind == Kind::Datagram { datagram } else { kind_name(t.packet.kind) };
        let (from, back) = if t.forward() { (sender, receiver) } else { (receiver, sender) };
        // An acknowledgement names the last segment in order, we the one that is waited for.
        let sequence = i64::from(t.segment) - i64::from(t.packet.kind == Kind::Ack);
        write!(to, "{code} ")?;
        write_time(row.at, to)?;
        writeln!(
            to,
            " {} {} {kind} {} ------- {flow} {from} {back} {sequence} {}",
            row.from, row.to, t.packet.size, row.number
        )
    }
}

/// A time as ns-2 prints it: rounded to microseconds, then as C's `%.15g` has it.
fn write_time(seconds: f64, to: &mut impl Write) -> io::Result<()> {
    let rounded = (seconds * 1e6 + 0.5).floor() / 1e6;
    if rounded > 0.0 && rounded < 1e-4 {
        // At most two digits remain; below 0.0001, `%g` uses powers of ten.
        let text = format!("{rounded:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return write!(to, "{digits}e-0{}", power.trim_start_matches('-'));
    }
    let text = format!("{rounded:.6}");
    to.write_all(text.trim_end_matches('0').trim_end_matches('.').as_bytes())
}

/// Runs a network to its end and writes every event at every link to `to`.
///
/// `stop` ends the run early, as it does when the trace can't be written any more.
///
/// # Errors
/// [`Incomplete`].
pub fn run(
    network: Network,
    stop: &Arc<AtomicBool>,
    to: impl Write + Send + 'static,
) -> Result<Outcome, Incomplete> {
    let lines = Lines::of(&network);
    run_log::run(network, stop, to, move |row, to| lines.write(row, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_c_prints_them() {
        let printed = |t: f64| {
            let mut text = Vec::new();
            write_time(t, &mut text).expect("memory takes everything");
            String::from_utf8(text).expect("digits")
        };
        let all = [0.0, 0.5, 20.0, 12.345_678_4, 0.000_1, 0.000_099_9, 0.000_012, 0.000_005, 1e-7];
        let as_c = ["0", "0.5", "20", "12.345678", "0.0001", "0.0001", "1.2e-05", "5e-06", "0"];
        assert_eq!(all.map(printed), as_c);
    }
}
