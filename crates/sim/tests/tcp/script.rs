//! The language of timed packet traces: what arrives when, and what has to be sent in response.
//!
//! In a file each trace stands below a line `== name`. Its first line names the end under test and the flow's settings. Every other line is `[time | +time] statement`, in
//! seconds; without a time it happens at the time of the line before. `#` starts a comment.
//!
//! ```text
//! sender congestion=newreno window=20 min_rto=1 ecn=on      receiver delayed_ack=0.1 congestion=sack
//!
//! 0 start [until 20]            the application has data     < data 1-3 5 [ce|ect|ect1] [cwr]
//! > data 0 [ect|ect1] [cwr]     sent, in this order          > ack 4 [ace7] [sack 5 2-3] [ece]
//! 0.1 < ack 1 [ace6] [x3] [sack 3-5 8] [ece]  `ack 1-3`: one each  > nothing [until 0.3]
//! > nothing [until 0.3]                                      +0.1 timeout
//! 1.3 timeout    delay over    end (no more data)            expect delivered 3
//! expect cwnd 10 ssthresh inf flight 10 timer 1.3
//! ```
//!
//! Ranges include both ends. SACK blocks are ranges too, the most recent first. A segment sent without a line for it is an
//! error, and so is a timer that expires without one. ECN's flags are `ae`, `cwr` and `ece`, or all three as a number, `ace0` to `ace7` (RFC 9768);
//! with ECN, `syn` says that an acknowledgement is a SYN/ACK. Its AccECN Option is `e0b=1001 ceb=2000`, or
//! with `e1b=` first. `receiver_ecn` is accurate, dctcp, classic or none. `expect cwnd ~10.5` compares to the digits written.

use inprofile_core::packet::Ecn;
use inprofile_core::units::Duration;
use inprofile_sim::tcp::control::Kind;
use inprofile_sim::tcp::negotiation::Ability;
use inprofile_sim::tcp::{
    ByteOption, Config, Congestion, EcnBits, Flags, Profile, PrrRules, Sack, SlowStart,
};

/// A trace.
#[derive(Debug)]
pub struct Script {
    /// The end under test.
    pub side: Side,
    /// The flow's settings.
    pub config: Config,
    /// The event.
    pub lines: Vec<Line>,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends data, receives acknowledgements.
    Sender,
    /// Receives data, sends acknowledgements.
    Receiver,
}

/// A statement.
#[derive(Debug)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    /// When.
    pub at: When,
    /// What.
    pub what: What,
}

/// When a statement holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At the time of the line before.
    Now,
    /// This long after the start.
    At(Duration),
    /// This long after the line before.
    After(Duration),
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The application has data, up to this segment if one is named.
    Start { until: Option<u32> },
    /// The application has no more data than was sent.
    End,
    /// Acknowledgements arrive: each of `next`, `times` times.
    AcksArrive { next: Vec<u32>, times: u32, sack: Sack, flags: Flags, bytes: Option<ByteOption> },
    /// Segments arrive.
    DataArrives { segments: Vec<u32>, bits: EcnBits },
    /// These segments are sent.
    Sends { segments: Vec<u32>, bits: EcnBits },
    /// These acknowledgements are sent.
    Answers { next: Vec<u32>, sack: Sack, flags: Flags, bytes: Option<ByteOption> },
    /// Nothing is sent, until a later time if one is given.
    Nothing { until: Option<Duration> },
    /// The retransmission timer expires, or that of delayed acknowledgements.
    Timeout,
    /// The random delay before a send is over.
    DelayOver,
    /// Figures have these values.
    Expect(Vec<(String, Number)>),
}

/// A value to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// The value; a timer that is off is infinitely far.
    pub value: f64,
    /// How far off it may be.
    pub within: f64,
}

/// The fault of a line.
pub type Fault = (usize, String);

/// Figures of a sender, and of a receiver.
const FIGURES: [&[&str]; 2] = [
    &["cwnd", "ssthresh", "flight", "timer", "timeouts", "fast_retransmits", "retransmissions"],
    &["delivered", "timer"],
];

impl Script {
    /// Reads a trace.
    ///
    /// # Errors
    /// The number of the first wrong line, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Script, Fault> {
        let mut lines = text.lines().enumerate().filter_map(|(i, line)| {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            (!words.is_empty()).then_some((i + 1, words))
        });
        let Some((number, words)) = lines.next() else {
            return Err((1, "is empty; write \"sender\" or \"receiver\" and what its flow is told".into()));
        };
        let (side, config) = head(&words).map_err(|problem| (number, problem))?;
        let lines = lines
            .map(|(number, words)| {
                statement(side, &words).map(|(at, what)| Line { number, at, what }).map_err(|p| (number, p))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Script { side, config, lines })
    }
}

/// The first line. What isn't said is as in the trace's own defaults: Reno, 1000 B, a window of 1000, the RFCs' timer
/// and initial window, limited transmit, no delayed acknowledgements.
fn head(words: &[&str]) -> Result<(Side, Config), String> {
    let side = match words[0] {
        "sender" => Side::Sender,
        "receiver" => Side::Receiver,
        other => return Err(format!("\"{other}\": the first line starts with \"sender\" or \"receiver\"")),
    };
    let mut config = Config { min_rto: Duration::from_millis(1000), ..Config::plain() };
    let mut slow_start = None;
    for word in &words[1..] {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("\"{word}\": write key=value"));
        };
        let count = || value.parse().map_err(|_| format!("{key}={value}: write a whole number"));
        let switch = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(format!("{key}={value}: write on or off")),
        };
        match key {
            "congestion" => {
                config.congestion = match value {
                    "reno" => Congestion::Reno,
                    "newreno" => Congestion::NewReno,
                    "sack" => Congestion::Sack,
                    "cubic" => Congestion::Cubic { sack: true },
                    _ => match Kind::ALL.iter().find(|kind| kind.name() == value) {
                        Some(kind) => Congestion::Linux(*kind),
                        None => {
                            return Err(format!(
                                "{key}={value}: write reno, newreno, sack, cubic or one of {:?}",
                                Kind::ALL
                            ));
                        }
                    },
                }
            }
            "sack" => match &mut config.congestion {
                Congestion::Cubic { sack } => *sack = switch()?,
                _ => return Err("sack: goes after congestion=cubic".into()),
            },
            "profile" => {
                config.profile = match value {
                    "rfc" => Profile::Rfc,
                    "linux" => Profile::Linux,
                    _ => return Err(format!("{key}={value}: write rfc or linux")),
                }
            }
            "slow_start" => {
                let all = [SlowStart::Standard, SlowStart::HyStart, SlowStart::HyStartPlusPlus];
                let known = all.into_iter().find(|known| known.word() == value);
                slow_start =
                    Some(known.ok_or(format!("{key}={value}: write standard, hystart or hystart++"))?);
            }
            "window" => config.window = count()?,
            "initial_window" => config.initial_window = count()?,
            "min_rto" => config.min_rto = seconds(value)?,
            "jitter" => config.settings.jitter = seconds(value)?,
            "delayed_ack" => config.delayed_ack = Some(seconds(value)?),
            "limited_transmit" => config.settings.limited_transmit = switch()?,
            "ecn" => config.ecn = switch()?,
            "pacing" => config.pacing = switch()?,
            "prr" => {
                let all = [PrrRules::Linux, PrrRules::Rfc9937, PrrRules::Rfc6937];
                let known = all.into_iter().find(|known| known.word() == value);
                config.settings.prr =
                    known.ok_or(format!("{key}={value}: write linux, rfc9937 or rfc6937"))?;
            }
            "accurate_ecn" => config.accurate_ecn = switch()?,
            "receiver_ecn" => {
                config.receiver_ecn = Some(match value {
                    "accurate" => Ability::Accurate,
                    "dctcp" => Ability::EachMark,
                    "classic" => Ability::Classic,
                    "none" => Ability::None,
                    _ => return Err(format!("{key}={value}: write accurate, dctcp, classic or none")),
                })
            }
            "accurate_ecn_option" => config.settings.accurate_ecn_option = switch()?,
            "ect1" => config.settings.ect1 = switch()?,
            _ => {
                return Err(format!(
                    "\"{key}\": known are congestion, sack, profile, window, initial_window, min_rto, jitter, delayed_ack, limited_transmit, slow_start, ecn, accurate_ecn, receiver_ecn, accurate_ecn_option, ect1, pacing, prr"
                ));
            }
        }
    }
    config.slow_start = slow_start.unwrap_or(SlowStart::of(config.profile, config.congestion));
    Ok((side, config))
}

/// Any other line.
fn statement(side: Side, words: &[&str]) -> Result<(When, What), String> {
    let first = words[0];
    let (at, words) = if let Some(after) = first.strip_prefix('+') {
        (When::After(seconds(after)?), &words[1..])
    } else if first.starts_with(|c: char| c.is_ascii_digit()) {
        (When::At(seconds(first)?), &words[1..])
    } else {
        (When::Now, words)
    };
    let what = match (words, side) {
        (["start"], Side::Sender) => What::Start { until: None },
        (["start", "until", segment], Side::Sender) => {
            let until =
                segment.parse().map_err(|_| format!("start until {segment}: write a whole number"))?;
            What::Start { until: Some(until) }
        }
        (["end"], Side::Sender) => What::End,
        (["timeout"], _) => What::Timeout,
        (["delay", "over"], Side::Sender) => What::DelayOver,
        ([">", "nothing"], _) => What::Nothing { until: None },
        ([">", "nothing", "until", time], _) => What::Nothing { until: Some(seconds(time)?) },
        (["<", "ack", rest @ ..], Side::Sender) => {
            let p = packet(rest, &["syn"])?;
            let (next, bytes) = (p.numbers, p.bytes);
            What::AcksArrive { next, times: p.times, sack: p.sack, flags: p.flags, bytes }
        }
        ([">", "data", rest @ ..], Side::Sender) => {
            let p = packet(rest, &["ect", "ect1"])?.plain()?;
            What::Sends { segments: p.numbers, bits: EcnBits { ip: p.ip, flags: p.flags } }
        }
        (["<", "data", rest @ ..], Side::Receiver) => {
            let p = packet(rest, &["ce", "ect", "ect1"])?.plain()?;
            What::DataArrives { segments: p.numbers, bits: EcnBits { ip: p.ip, flags: p.flags } }
        }
        ([">", "ack", rest @ ..], Side::Receiver) => {
            let p = packet(rest, &["syn"])?;
            What::Answers { next: p.numbers, sack: p.sack, flags: p.flags, bytes: p.bytes }
        }
        (["expect", rest @ ..], _) => expect(rest, FIGURES[side as usize])?,
        _ => {
            let known = match side {
                Side::Sender => {
                    "start [until N], end, < ack …, > data …, > nothing, timeout, delay over, expect …"
                }
                Side::Receiver => "< data …, > ack …, > nothing, timeout, expect …",
            };
            return Err(format!("\"{}\": a line is one of {known}", words.join(" ")));
        }
    };
    Ok((at, what))
}

/// The words after `ack` or `data`.
#[derive(Default)]
struct Packets {
    numbers: Vec<u32>,
    times: u32,
    sack: Sack,
    ip: Ecn,
    flags: Flags,
    bytes: Option<ByteOption>,
}

impl Packets {
    /// For data: neither repeated nor with blocks.
    fn plain(self) -> Result<Self, String> {
        if self.times == 1 && self.sack.blocks().is_empty() && self.bytes.is_none() {
            Ok(self)
        } else {
            Err("x, sack and counts of bytes go with what comes in, and with acknowledgements".into())
        }
    }
}

/// Beside ECN's flags, `own` words.
fn packet(words: &[&str], own: &[&str]) -> Result<Packets, String> {
    let mut p = Packets { times: 1, ..Packets::default() };
    let mut in_sack = false;
    for &word in words {
        let flag = match word {
            "ae" => Flags::AE,
            "cwr" => Flags::CWR,
            "ece" => Flags::ECE,
            "syn" if own.contains(&word) => Flags::SYN,
            _ => Flags::NONE,
        };
        if flag != Flags::NONE {
            p.flags = p.flags.and(flag);
        } else if own.contains(&word) {
            p.ip = match word {
                "ect" => Ecn::Ect0,
                "ect1" => Ecn::Ect1,
                _ => Ecn::Experienced,
            };
        } else if word == "sack" {
            in_sack = true;
        } else if let Some((name @ ("e0b" | "ceb" | "e1b"), count)) = word.split_once('=') {
            let count = count.parse().map_err(|_| format!("\"{word}\": write a whole number"))?;
            let before = p.bytes.map_or(vec![], |b| b.fields().to_vec());
            let order = p.bytes.map_or(u8::from(name == "e1b"), |b| b.order());
            if [["e0b", "ceb", "e1b"], ["e1b", "ceb", "e0b"]][usize::from(order)].get(before.len())
                != Some(&name)
            {
                return Err(format!(
                    "\"{word}\": write e0b=, ceb=, e1b=, or e1b=, ceb=, e0b=; the last may be missing"
                ));
            }
            p.bytes = Some(ByteOption::new(order, &[&before[..], &[count]].concat()));
        } else if let Some(ace) = word.strip_prefix("ace") {
            p.flags = match ace.parse() {
                Ok(ace @ 0..=7) => Flags::of_ace(ace),
                _ => return Err(format!("\"{word}\": write ace0 to ace7")),
            };
        } else if let Some(times) = word.strip_prefix('x') {
            p.times = times.parse().map_err(|_| format!("\"{word}\": write x3 for three times"))?;
        } else {
            let (from, to) = range(word)?;
            if !in_sack {
                p.numbers.extend(from..=to);
            } else if p.sack.blocks().len() < Sack::MAX_BLOCKS {
                p.sack.push((from, to + 1));
            } else {
                return Err(format!("no more than {} blocks fit", Sack::MAX_BLOCKS));
            }
        }
    }
    if p.numbers.is_empty() {
        return Err("which segments? Write 3, or 3-5".into());
    }
    if in_sack && p.sack.blocks().is_empty() {
        return Err("sack: which segments? Write 3, or 3-5".into());
    }
    Ok(p)
}

fn range(word: &str) -> Result<(u32, u32), String> {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    match (from.parse(), to.parse()) {
        (Ok(from), Ok(to)) if from <= to => Ok((from, to)),
        _ => Err(format!("\"{word}\": write a segment such as 3, or a range such as 3-5")),
    }
}

fn expect(words: &[&str], figures: &[&str]) -> Result<What, String> {
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err("expect: write names and values by turns, such as cwnd 10 ssthresh 5".into());
    }
    let pairs = words.chunks(2).map(|pair| {
        if figures.contains(&pair[0]) {
            Ok((pair[0].to_owned(), number(pair[1])?))
        } else {
            Err(format!("expect {}: known are {}", pair[0], figures.join(", ")))
        }
    });
    Ok(What::Expect(pairs.collect::<Result<_, String>>()?))
}

fn number(word: &str) -> Result<Number, String> {
    if word == "inf" || word == "off" {
        return Ok(Number { value: f64::INFINITY, within: 0.0 });
    }
    let digits = word.strip_prefix('~').unwrap_or(word);
    let value = digits
        .parse()
        .map_err(|_| format!("\"{word}\": write a number, ~ before one that is rounded, or inf"))?;
    let places = digits.split_once('.').map_or(0, |(_, p)| p.len());
    let within = if digits.len() == word.len() { 1e-9 } else { 0.5 / libm::pow(10.0, places as f64) };
    Ok(Number { value, within })
}

fn seconds(word: &str) -> Result<Duration, String> {
    match word.parse::<f64>() {
        Ok(s) if (0.0..1e6).contains(&s) => Ok(Duration::from_secs(s)),
        _ => Err(format!("\"{word}\": write a time in seconds, such as 0.25")),
    }
}

/// Wrong traces are refused, with the line and what to write.
#[test]
fn wrong_lines_are_refused() {
    let cases = [
        ("", 1, "is empty"),
        ("# only this", 1, "is empty"),
        ("server", 1, "starts with \"sender\" or \"receiver\""),
        ("sender window", 1, "key=value"),
        ("sender window=many", 1, "whole number"),
        ("sender ecn=yes", 1, "on or off"),
        ("sender min_rto=soon", 1, "in seconds"),
        ("sender sack=off", 1, "after congestion=cubic"),
        ("sender congestion=vegas", 1, "reno, newreno, sack, cubic or one of ["),
        ("sender colour=red", 1, "known are congestion"),
        ("sender\n\n0 begin", 3, "a line is one of start"),
        ("sender\n0 < data 1", 2, "a line is one of start"),
        ("receiver\n0 start", 2, "a line is one of < data"),
        ("sender\n0.x start", 2, "in seconds"),
        ("sender\n+soon start", 2, "in seconds"),
        ("sender\n0.1", 2, "a line is one of"),
        ("sender\n0 < ack", 2, "which segments"),
        ("sender\n0 < ack 5-3", 2, "a range such as 3-5"),
        ("sender\n0 < ack 1 twice", 2, "a segment such as 3"),
        ("sender\n0 < ack 1 xx", 2, "x3 for three times"),
        ("sender\n0 < ack 1 sack", 2, "sack: which segments"),
        ("sender\n0 < ack 1 sack 3 5 7 9 11", 2, "no more than 4 blocks"),
        ("sender\n0 < ack 1 ace8", 2, "ace0 to ace7"),
        ("sender\n0 < ack 1 ceb=3", 2, "write e0b=, ceb="),
        ("sender\n0 < ack 1 e0b=x", 2, "whole number"),
        ("sender\n> data 1 sack 3", 2, "go with what comes in"),
        ("sender\n> nothing until then", 2, "in seconds"),
        ("sender\nexpect cwnd", 2, "by turns"),
        ("sender\nexpect speed 3", 2, "known are cwnd"),
        ("sender\nexpect cwnd large", 2, "write a number"),
        ("receiver\nexpect cwnd 3", 2, "known are delivered"),
    ];
    for (text, line, said) in cases {
        let (at, problem) = Script::parse(text).expect_err(text);
        assert_eq!(at, line, "{text}");
        assert!(problem.contains(said), "{text}: {problem}");
    }
}

#[test]
fn a_line_is_read_as_written() {
    let text = "sender ecn=on # a comment\n\n 0.25 < ack 3-5 x2 sack 9-10 7 ece\n+0.5 > nothing until 2\nexpect cwnd ~10.5";
    let script = Script::parse(text).expect("a good trace");
    assert!(script.config.ecn && script.side == Side::Sender);
    let mut sack = Sack::default();
    sack.push((9, 11));
    sack.push((7, 8));
    let first = &script.lines[0];
    assert_eq!((first.number, first.at), (3, When::At(Duration::from_millis(250))));
    assert_eq!(
        first.what,
        What::AcksArrive { next: vec![3, 4, 5], times: 2, sack, flags: Flags::ECE, bytes: None }
    );
    let second = &script.lines[1];
    assert_eq!(second.at, When::After(Duration::from_millis(500)));
    assert_eq!(second.what, What::Nothing { until: Some(Duration::from_millis(2000)) });
    let third = What::Expect(vec![("cwnd".into(), Number { value: 10.5, within: 0.05 })]);
    assert_eq!((script.lines[2].at, &script.lines[2].what), (When::Now, &third));
}
