//! TCP's rules as timed packet traces, a file a topic, beside this one; `script.rs` describes the language.

mod script;

use std::path::{Path, PathBuf};

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of this file")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "trace"))
        .collect();
    files.sort();
    files
}

/// The traces of a file, each below a line `== name`: name, number of that line, text.
fn each(text: &str) -> Vec<(&str, usize, &str)> {
    let begins = |&at: &usize| at == 0 || text[..at].ends_with('\n');
    let starts: Vec<usize> = text.match_indices("== ").map(|(at, _)| at).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let traces = starts.iter().zip(ends).map(|(&start, end)| {
        let (name, below) = text[start + 3..end].split_once('\n').expect("a trace below its name");
        (name, text[..start].lines().count() + 1, below)
    });
    traces.collect()
}

#[test]
fn every_trace_holds() {
    let files = traces();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        for (name, begins, trace) in each(&text) {
            count += 1;
            let result = script::Script::parse(trace).and_then(|script| play::play(&script));
            if let Err((line, problem)) = result {
                wrong.push(format!("{file}:{}: {name}: {problem}", begins + line));
            }
        }
    }
    assert!(count > 120, "only {count} traces");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

mod play {
    //! Plays a trace to a sender or a receiver of the RFC or the Linux profile.

    use inprofile_core::packet::Ecn;
    use inprofile_core::units::{Duration, Time};
    use inprofile_sim::clock::{Clock, Exact};
    use inprofile_sim::tcp::receiver::{Receiver, TimerAction};
    use inprofile_sim::tcp::{Ack, ByteOption, EcnBits, Flags, Host, More, Sack, Sender, TimerKind};

    use super::script::{Fault, Line, Number, Script, Side, What, When};

    /// The segments sent.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Sent {
        Data(u32, EcnBits),
        Ack(u32, Sack, Flags, Option<ByteOption>),
    }

    impl std::fmt::Display for Sent {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let said = |flags: Flags| {
                let of =
                    [(Flags::SYN, " syn"), (Flags::AE, " ae"), (Flags::CWR, " cwr"), (Flags::ECE, " ece")];
                of.into_iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, word)| word).collect::<String>()
            };
            match self {
                Sent::Data(segment, bits) => {
                    let ect = match bits.ip {
                        Ecn::NotCapable => "",
                        Ecn::Ect0 => " ect",
                        Ecn::Ect1 => " ect1",
                        Ecn::Experienced => " ce",
                    };
                    write!(f, "data {segment}{ect}{}", said(bits.flags))
                }
                Sent::Ack(next, sack, flags, bytes) => {
                    write!(f, "ack {next}{}", said(*flags))?;
                    if let Some(bytes) = bytes {
                        write!(f, " order {} {:?}", bytes.order(), bytes.fields())?;
                    }
                    if !sack.blocks().is_empty() {
                        f.write_str(" sack")?;
                    }
                    for (from, to) in sack.blocks() {
                        write!(f, " {from}-{}", to - 1)?;
                    }
                    Ok(())
                }
            }
        }
    }

    /// The host of the end under test.
    struct World {
        now: Exact,
        sent: Vec<Sent>,
        /// When a segment was last sent.
        last_sent: Option<Exact>,
        due: [Option<Exact>; 3],
    }

    impl Host for World {
        type Clock = Exact;
        fn now(&self) -> Exact {
            self.now
        }
        fn send(&mut self, segment: u32, bits: EcnBits) {
            self.sent.push(Sent::Data(segment, bits));
            self.last_sent = Some(self.now);
        }
        fn set_timer(&mut self, which: TimerKind, after: Duration) {
            self.due[which as usize] = Some(self.now.after(after));
        }
        fn cancel_timer(&mut self, which: TimerKind) {
            self.due[which as usize] = None;
        }
        fn timer_is_set(&self, which: TimerKind) -> bool {
            self.due[which as usize].is_some()
        }
        fn uniform(&mut self) -> f64 {
            0.5
        }
    }

    /// The end under test.
    enum End {
        Sender(Box<Sender<Exact>>),
        Receiver(Receiver),
    }

    struct Play {
        world: World,
        end: End,
        /// Segments the application could read.
        delivered: u32,
        /// The flow has ECN: bits of what arrives are looked at.
        ecn: bool,
    }

    /// Plays a trace.
    ///
    /// # Errors
    /// The number of the first line that does not hold, and what happened instead.
    pub fn play(script: &Script) -> Result<(), Fault> {
        let end = match script.side {
            Side::Sender => End::Sender(Box::new(Sender::new(&script.config, || 0.5))),
            Side::Receiver => End::Receiver(Receiver::new(&script.config)),
        };
        let world = World { now: Exact(0), sent: Vec::new(), last_sent: None, due: [None; 3] };
        let mut play = Play { world, end, delivered: 0, ecn: script.config.ecn };
        for line in &script.lines {
            play.line(line).map_err(|problem| (line.number, problem))?;
        }
        let last = script.lines.last().map_or(1, |l| l.number);
        play.all_was_expected().map_err(|problem| (last, problem))
    }

    impl Play {
        fn line(&mut self, line: &Line) -> Result<(), String> {
            let at = match line.at {
                When::Now => self.world.now,
                When::At(t) => Exact::at(Time::ZERO + t),
                When::After(t) => self.world.now.after(t),
            };
            if at < self.world.now {
                return Err(format!("goes back in time: it is {} s already", self.world.now.secs()));
            }
            let moves = at > self.world.now
                || !matches!(line.what, What::Sends { .. } | What::Answers { .. } | What::Expect(_));
            if moves && line.what != (What::Nothing { until: None }) {
                self.all_was_expected()?;
            }
            let expires = match line.what {
                What::Timeout => Some(self.timer()),
                What::DelayOver => Some(TimerKind::Send),
                _ => None,
            };
            self.pass(at, expires)?;
            self.happen(&line.what, expires)
        }

        /// The timer that `timeout` means.
        fn timer(&self) -> TimerKind {
            match self.end {
                End::Sender(_) => TimerKind::Retransmit,
                End::Receiver(_) => TimerKind::DelayedAck,
            }
        }

        /// Time advances to `at`; no timer may expire but the given one.
        fn pass(&mut self, at: Exact, expires: Option<TimerKind>) -> Result<(), String> {
            for which in TimerKind::ALL {
                match self.world.due[which as usize] {
                    Some(due) if due < at => {
                        return Err(format!("the {which:?} timer expires at {} s, before this", due.secs()));
                    }
                    due if expires == Some(which) && due != Some(at) => {
                        let when = due.map_or("is off".into(), |due| format!("expires at {} s", due.secs()));
                        return Err(format!("the {which:?} timer {when}"));
                    }
                    _ => {}
                }
            }
            self.world.now = at;
            Ok(())
        }

        fn all_was_expected(&self) -> Result<(), String> {
            if self.world.sent.is_empty() {
                return Ok(());
            }
            let sent: Vec<String> = self.world.sent.iter().map(ToString::to_string).collect();
            Err(format!("was sent before this, and no line says so: {}", sent.join(", ")))
        }

        fn happen(&mut self, what: &What, expires: Option<TimerKind>) -> Result<(), String> {
            if let Some(which) = expires {
                self.world.due[which as usize] = None;
            }
            match (what, &mut self.end) {
                (What::Start { until }, End::Sender(s)) => {
                    let idle = s.all_acknowledged();
                    if let Some(last) = until {
                        s.set_data_end(last + 1);
                    }
                    match self.world.last_sent {
                        Some(at) if idle => s.resume(at, &mut self.world),
                        _ => s.start(&mut self.world),
                    }
                }
                (What::End, End::Sender(s)) => s.stop(),
                (What::AcksArrive { next, times, sack, flags, bytes }, End::Sender(s)) => {
                    let more = bytes.map(|bytes| More { bytes: Some(bytes), ..More::default() });
                    for next in next.iter().flat_map(|n| std::iter::repeat_n(*n, *times as usize)) {
                        s.on_ack(Ack { next, sack, flags: *flags, more: more.as_ref() }, &mut self.world);
                    }
                }
                (What::Timeout, End::Sender(s)) => s.on_timer(TimerKind::Retransmit, &mut self.world),
                (What::DelayOver, End::Sender(s)) => s.on_timer(TimerKind::Send, &mut self.world),
                (What::DataArrives { segments, bits }, End::Receiver(_)) => {
                    for segment in segments {
                        self.data(*segment, *bits);
                    }
                }
                (What::Timeout, End::Receiver(r)) => {
                    r.on_delayed_ack_timer();
                    self.answer();
                }
                (What::Sends { segments, bits }, _) => {
                    return self.goes_out(segments.iter().map(|s| Sent::Data(*s, *bits)));
                }
                (What::Answers { next, sack, flags, bytes }, _) => {
                    return self.goes_out(next.iter().map(|n| Sent::Ack(*n, *sack, *flags, *bytes)));
                }
                (What::Nothing { until }, _) => {
                    self.all_was_expected()?;
                    if let Some(until) = until {
                        return self.pass(Exact::at(Time::ZERO + *until), None);
                    }
                }
                (What::Expect(pairs), _) => {
                    return pairs.iter().try_for_each(|(name, n)| self.compare(name, *n));
                }
                (what, _) => unreachable!("the parser knows the sides: {what:?}"),
            }
            Ok(())
        }

        fn goes_out(&mut self, expected: impl Iterator<Item = Sent>) -> Result<(), String> {
            let expected: Vec<Sent> = expected.collect();
            let n = expected.len().min(self.world.sent.len());
            let sent: Vec<Sent> = self.world.sent.drain(..n).collect();
            if sent == expected {
                return Ok(());
            }
            let sent: Vec<String> = sent.iter().map(ToString::to_string).collect();
            let sent = if sent.is_empty() { "nothing".into() } else { sent.join(", ") };
            Err(format!("sent instead: {sent}"))
        }

        /// A segment arrives at the receiver under test; its reply is carried out as in the simulator.
        fn data(&mut self, segment: u32, bits: EcnBits) {
            let End::Receiver(r) = &mut self.end else { unreachable!("data comes to a receiver") };
            if r.acknowledges_before(bits.ip == Ecn::Experienced) {
                r.on_delayed_ack_timer();
                self.world.cancel_timer(TimerKind::DelayedAck);
                self.answer();
            }
            let End::Receiver(r) = &mut self.end else { unreachable!("data comes to a receiver") };
            if self.ecn {
                r.count_bytes(segment, bits.ip);
                r.on_ecn_bits(segment, bits.ip, bits.flags);
            }
            let reply = r.on_segment(segment, || self.world.timer_is_set(TimerKind::DelayedAck));
            let span = r.max_ack_delay::<Exact>();
            self.delivered += reply.delivered;
            match reply.timer {
                TimerAction::Leave => {}
                TimerAction::Cancel => self.world.cancel_timer(TimerKind::DelayedAck),
                TimerAction::Set => self.world.set_timer(TimerKind::DelayedAck, span),
            }
            if reply.acknowledge {
                self.answer();
            }
        }

        fn answer(&mut self) {
            let End::Receiver(r) = &mut self.end else { unreachable!("a receiver answers") };
            let mut sack = if r.uses_sack() { r.sack() } else { Sack::default() };
            let flags = if self.ecn { r.flags() } else { Flags::NONE };
            let bytes = r.byte_option();
            if let Some(bytes) = bytes {
                sack.truncate(bytes.blocks_beside());
            }
            let ack = Sent::Ack(r.rcv_nxt(), sack, flags, bytes);
            self.world.sent.push(ack);
        }

        fn compare(&self, name: &str, number: Number) -> Result<(), String> {
            let timer = self.world.due[self.timer() as usize].map_or(f64::INFINITY, Clock::secs);
            let is = match (&self.end, name) {
                (_, "timer") => timer,
                (End::Receiver(_), _) => f64::from(self.delivered),
                (End::Sender(s), "cwnd") => s.cwnd(),
                (End::Sender(s), "ssthresh") => s.ssthresh(),
                (End::Sender(s), "flight") => match &**s {
                    Sender::Rfc(s) => s.flight_size(),
                    Sender::Linux(s) => s.flight_size(),
                    Sender::Ns2(_) => return Err("traces are of the other profiles".into()),
                },
                (End::Sender(s), "timeouts") => s.tally().timeouts as f64,
                (End::Sender(s), "fast_retransmits") => s.tally().fast_retransmits as f64,
                (End::Sender(s), _) => s.tally().retransmissions as f64,
            };
            let same = is == number.value || (is - number.value).abs() <= number.within;
            if same { Ok(()) } else { Err(format!("{name} is {is}, not {}", number.value)) }
        }
    }

    /// A trace that does not hold fails at the wrong line, with what happened instead.
    #[test]
    fn what_does_not_hold_is_found() {
        let cases = [
            ("sender\n0 start\n> data 1", 3, "sent instead: data 0"),
            ("sender\n0 start\n0.1 < ack 1", 3, "no line says so: data 0"),
            ("sender\n0 start\n> nothing", 3, "no line says so: data 0"),
            ("sender\n0 start\n> data 0\n> data 1", 4, "sent instead: nothing"),
            ("sender\n0 start\n> data 0 ect", 3, "sent instead: data 0"),
            ("sender\n0 start", 2, "no line says so: data 0"),
            ("sender\n0 start\n> data 0\n2 < ack 1", 4, "the Retransmit timer expires at 1 s"),
            ("sender\n0 start\n> data 0\n> nothing until 1.1", 4, "the Retransmit timer expires at 1 s"),
            ("sender\n0 start\n> data 0\n0.5 timeout", 4, "the Retransmit timer expires at 1 s"),
            ("sender\n0 timeout", 2, "the Retransmit timer is off"),
            ("sender\n0 start\n> data 0\nexpect cwnd 2", 4, "cwnd is 1, not 2"),
            ("sender\n0 start\n> data 0\n0.5 < ack 1\n> data 1-10\n0.4 < ack 2", 6, "goes back in time"),
            ("receiver\n0 < data 0\n> ack 2", 3, "sent instead: ack 1"),
            (
                "receiver delayed_ack=0.1\n0 < data 0\n> ack 1\n0 < data 1\n0.2 < data 2",
                5,
                "the DelayedAck timer",
            ),
            ("receiver congestion=sack\n0 < data 0 2\n> ack 1 1", 3, "sent instead: ack 1, ack 1 sack 2-2"),
            ("receiver ecn=on\n0 < data 0 cwr ece\n> ack 1", 3, "sent instead: ack 1 syn ece"),
            ("receiver\n0 < data 0\n> ack 1\nexpect delivered 2", 4, "delivered is 1, not 2"),
        ];
        for (text, line, said) in cases {
            let script = Script::parse(text).expect(text);
            let (at, problem) = play(&script).expect_err(text);
            assert!(at == line && problem.contains(said), "{text}: line {at}: {problem}");
        }
    }
}
