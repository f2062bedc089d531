//! `access = { kind = "…", … }` and `trace = "…"` of a link: when it may send.

use inprofile_core::params::{Fault, Params, Warning};
use inprofile_core::registry::Entry;
use inprofile_core::units::{Bytes, Duration, Rate};
use inprofile_sim::access::{Access, Bursts as Burst, Slots as Slot};
use inprofile_sim::trace::Trace;

use crate::text::problem::Wrong;

/// The most opportunities of a trace.
const LONGEST: usize = 2_000_000;
/// The most packets of a burst.
const MOST: u64 = 10_000;

inprofile_core::params! {
    /// Slots at regular times.
    pub struct Slots {
        /// From the beginning of one slot to that of the next.
        every: Duration [POSITIVE];
        /// How long a slot lasts, at most `every`. A packet is sent whole within one slot, at the link's rate.
        length: Duration [POSITIVE];
        /// From a packet's arrival to the earliest slot that may carry it.
        request: Duration = Duration::ZERO;
    }
}

inprofile_core::params! {
    /// Bursts of packets, with a time without data before each.
    pub struct Bursts {
        /// Time before each burst: spaces between frames, preamble, acknowledgement of the block.
        overhead: Duration [POSITIVE];
        /// Contention on top, uniform from nothing up to this.
        contention: Duration = Duration::ZERO;
        /// The most packets of a burst.
        most: u64 [POSITIVE] = 32;
    }
}

impl Slots {
    fn check(&self) -> Result<Vec<Warning>, Fault> {
        if self.length <= self.every {
            return Ok(Vec::new());
        }
        let problem =
            format!("a slot of {} is longer than the {} from one to the next", self.length, self.every);
        Err(Fault { field: "length", problem, remedy: format!("at most \"{}\"", self.every) })
    }
}

impl Bursts {
    fn check(&self) -> Result<Vec<Warning>, Fault> {
        if self.most <= MOST {
            return Ok(Vec::new());
        }
        let problem = format!("{} packets; the maximum is {MOST}", self.most);
        Err(Fault { field: "most", problem, remedy: "most = 32".into() })
    }
}

/// Every kind of access.
pub const ACCESSES: &[Entry<Access>] = &[
    Entry {
        name: "slots",
        summary: "Slots at regular times, each for packets that came a while before: a simple model of granted uplinks.",
        source: "DOCSIS 3.1 MULPI §7.2; ITU-T G.984.3 §8",
        fields: Slots::FIELDS,
        check: &|v, _| Slots::from_values(v).check(),
        build: &|v, _| {
            let Slots { every, length, request } = Slots::from_values(v);
            Access::Slots(Slot { every, length, request })
        },
    },
    Entry {
        name: "bursts",
        summary: "What waits goes in one burst, after a time without data: a simple model of Wi-Fi's aggregation.",
        source: "IEEE 802.11-2020 §10.12, §10.23",
        fields: Bursts::FIELDS,
        check: &|v, _| Bursts::from_values(v).check(),
        build: &|v, _| {
            let Bursts { overhead, contention, most } = Bursts::from_values(v);
            Access::Bursts(Burst { overhead, contention, most: most.min(MOST) as u32 })
        },
    },
];

/// The rate at which a link of this rate sends full packets at most, on average.
pub(crate) fn mean(access: &Access, rate: Rate, packet: Bytes) -> Rate {
    match access {
        Access::Trace(trace) => trace.mean(),
        Access::Slots(s) => {
            // Each goes whole in one slot.
            let whole = s.length.0 / rate.serialise(packet).0.max(1);
            Rate(((whole as f64 * 8.0 * packet.0 as f64 / s.every.secs()) as u64).max(1))
        }
        Access::Bursts(b) => {
            let bits = rate.serialise(packet).secs() * f64::from(b.most);
            let all = bits + b.overhead.secs() + b.contention.secs() / 2.0;
            Rate((rate.0 as f64 * bits / all) as u64)
        }
    }
}

/// Reads a trace in mahimahi's format: a line for each opportunity, with its time in whole milliseconds.
///
/// # Errors
/// A line that is no time, or an earlier one than the line before, or more lines than there may be.
pub fn trace(text: &str) -> Result<Trace, Wrong> {
    let remedy = "write a line for each opportunity to send 1,500 bytes, with its time in whole milliseconds, in order";
    let mut times: Vec<u32> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let digits = Some(line.trim()).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let Some(time) = digits.and_then(|text| text.parse::<u32>().ok()) else {
            let shown = crate::text::quantity::clip(line.trim());
            return Err(Wrong::new(
                format!("line {number} of the trace, \"{shown}\", is no whole number of milliseconds"),
                remedy,
            ));
        };
        if let Some(before) = times.last().filter(|before| **before > time) {
            let problem = format!(
                "line {number} of the trace, {time} ms, comes after {before} ms: a trace does not go back in time"
            );
            return Err(Wrong::new(problem, remedy));
        }
        if times.len() == LONGEST {
            return Err(Wrong::new(
                format!("the trace has more than {LONGEST} opportunities"),
                "cut it: it starts over at its end",
            ));
        }
        times.push(time);
    }
    match times.last() {
        None => Err(Wrong::new("the trace has no opportunity: the link would send nothing", remedy)),
        Some(0) => Err(Wrong::new("the trace lasts 0 ms: all its opportunities would be at once", remedy)),
        Some(_) => Ok(Trace::new(times)),
    }
}

/// A trace in mahimahi's format.
#[must_use]
pub fn write_trace(trace: &Trace) -> String {
    trace.times().iter().map(|ms| format!("{ms}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,500 B take 1 ms at 12 Mbit/s: one goes in a slot of 1.9 ms, two in one of 2 ms.
    #[test]
    fn slots_carry_whole_packets() {
        let slots = |us| {
            let (length, every) = (Duration::from_micros(us), Duration::from_micros(2_000));
            Access::Slots(inprofile_sim::access::Slots { every, length, request: Duration::ZERO })
        };
        for (us, mbit) in [(1_000, 6), (1_900, 6), (2_000, 12)] {
            assert_eq!(mean(&slots(us), Rate(12_000_000), Bytes(1_500)), Rate(mbit * 1_000_000), "{us} us");
        }
    }

    #[test]
    fn a_trace_is_read_and_written() {
        let text = "0\n1\n1\n7\n";
        assert_eq!(write_trace(&trace(text).unwrap()), text);
        assert_eq!(trace(" 3 \r\n\n9").unwrap().times(), [3, 9]);
        for (text, said) in [
            ("", "no opportunity"),
            ("\n\n", "no opportunity"),
            ("0\n0\n", "lasts 0 ms"),
            ("1\n2.5\n", "line 2 of the trace, \"2.5\""),
            ("1\n-2\n", "line 2"),
            ("1\n+2\n", "line 2"),
            ("5\n\n4\n", "line 3 of the trace, 4 ms, comes after 5 ms"),
        ] {
            let wrong = trace(text).unwrap_err();
            assert!(wrong.problem.contains(said), "{text:?}: {}", wrong.problem);
        }
    }
}
