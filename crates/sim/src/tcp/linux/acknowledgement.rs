//! The processing of an acknowledgement: it tells what has arrived and what has not, losses and marks are answered, the window grows, and what
//! it allows is sent.

use crate::clock::Clock;
use crate::tcp::control::{Cause, RateSample, Sample, least};
use crate::tcp::{Ack, Flags, Host, Sack};

use super::delivery::Delivery;
use super::rack::Rack;
use super::scoreboard::{Scoreboard, Segment};
use super::timers::Timeout;
use super::{Sender, State};

/// The segments that one acknowledgement tells of.
pub(super) struct AckOutcome {
    /// Segments that were not known to have arrived.
    pub(super) delivered: u32,
    /// Whether SND.UNA moved on.
    pub(super) advanced: bool,
    /// Whether SACK blocks told of a segment that was not known to have arrived.
    pub(super) selected: bool,
    /// A round-trip time, in seconds.
    pub(super) rtt: Option<f64>,
    /// The least number among them that was sent only once.
    pub(super) original: Option<u32>,
    /// One that has arrived twice (RFC 2883).
    pub(super) duplicate: Option<u32>,
}

/// The part of it that concerns the window.
#[derive(Clone, Copy)]
pub(super) struct AckSample {
    pub(super) delivered: u32,
    pub(super) advanced: bool,
    pub(super) rtt: Option<f64>,
}

impl AckSample {
    #[inline(always)]
    fn of(outcome: &AckOutcome) -> AckSample {
        AckSample { delivered: outcome.delivered, advanced: outcome.advanced, rtt: outcome.rtt }
    }
}

/// The state in which an acknowledgement arrives, and the marks and losses found by it.
pub(super) struct AckContext {
    pub(super) now: f64,
    /// Segments in flight before the acknowledgement.
    pub(super) prior_in_flight: u32,
    /// The window was full.
    pub(super) limited: bool,
    /// Segments that were marked.
    pub(super) marked: u32,
    /// Segments found lost.
    pub(super) lost: u32,
}

/// An acknowledgement while it is read.
struct AckProcessing<'a, C: Clock> {
    outcome: AckOutcome,
    now: C,
    /// One past the highest segment sent.
    max: u32,
    rack: &'a mut Rack<C>,
    timeout: &'a mut Timeout<C>,
    next_sample: &'a mut u32,
    delivery: Option<&'a mut Delivery<C>>,
}

impl<C: Clock> AckProcessing<'_, C> {
    /// A segment has arrived that was not known to have.
    #[inline(always)]
    fn arrived(&mut self, number: u32, segment: &Segment<C>) {
        let outcome = &mut self.outcome;
        outcome.delivered += 1;
        let rtt = C::secs_of(self.now.since(segment.sent_at));
        self.rack.arrived(number, segment, rtt);
        if let Some(delivery) = &mut self.delivery {
            delivery.arrived(number, segment.sent_at, self.now);
        }
        // Karn's rule.
        if !segment.retransmitted {
            outcome.original = Some(outcome.original.map_or(number, |least: u32| least.min(number)));
            outcome.rtt = Some(outcome.rtt.map_or(rtt, |shortest| least(shortest, rtt)));
            if number >= *self.next_sample {
                *self.next_sample = self.max;
                self.timeout.sample(rtt);
            }
        }
    }

    /// SACK blocks, in the order of their numbers and not of their arrival: what came in between is not overtaken.
    #[inline(never)]
    fn select(&mut self, sack: &Sack, board: &mut Scoreboard<C>) {
        sack.by_number(|block| board.select(block, |number, segment| self.arrived(number, segment)));
    }
}

impl<C: Clock> Sender<C> {
    /// An acknowledgement arrived. A function of its own: inlined beside the RFCs' sender, that one would save the registers that
    /// this one needs.
    #[inline(never)]
    pub fn on_ack<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        if ack.next > self.board.max() || ack.next < self.board.una() {
            return;
        }
        let segments = ack.next - self.board.una();
        let plain = ack.sack.blocks().is_empty() && ack.more.is_none();
        let unmarked = || match &self.marks {
            None => ack.flags == Flags::NONE,
            Some(marks) => marks.is_told(ack.flags, segments),
        };
        if self.ordinary && segments > 0 && plain && unmarked() {
            self.on_ordinary_ack(ack.next, host);
        } else {
            self.on_any_ack(&ack, host);
        }
    }

    /// Any acknowledgement of what is outstanding.
    #[inline(never)]
    pub(super) fn on_any_ack<H: Host<Clock = C>>(&mut self, ack: &Ack<'_>, host: &mut H) {
        let first = self.board.una() == 0 && ack.next > 0;
        let now = host.now();
        let secs = now.secs();
        if let Some(more) = ack.more
            && !more.delays.secs().is_empty()
        {
            self.control.delays(more.delays.secs(), secs);
        }
        let prior_in_flight = self.board.in_flight();
        let limited = self.is_limited(ack.next, prior_in_flight);
        let outcome = self.take_in(ack, now);
        let syn_marked = first && self.connected(ack.flags);
        if let Some(rtt) = outcome.rtt {
            self.control.measured(rtt, secs);
        }
        // RFC 9768 §3.2.2, RFC 3168 §6.1.1: a SYN/ACK neither counts nor echoes.
        let (marked, echo) = match &mut self.marks {
            _ if ack.flags.has(Flags::SYN) => (u32::from(syn_marked), syn_marked),
            Some(tracker) => {
                let (ace, delivered) = (ack.flags.ace(), outcome.delivered);
                let marked = match ack.more.and_then(|more| more.bytes.as_ref()) {
                    Some(option) => {
                        tracker.marks_with(ace, delivered, option, self.segment, &mut self.reader)
                    }
                    // RFC 9768 §3.2.3.2.3: without options, or until one comes, the field alone.
                    None => {
                        let marked = tracker.marks(ace, delivered);
                        self.reader.told_by_field(marked);
                        marked
                    }
                };
                (marked, marked > 0)
            }
            None if self.ecn.is_some() && ack.flags.has(Flags::ECE) => (outcome.delivered, true),
            None => (0, false),
        };
        if echo && let Some(undo) = &mut self.undo {
            undo.forbid();
        }
        if let Some(segment) = outcome.duplicate {
            self.arrived_twice(segment);
        }
        if self.probe.is_some() {
            self.probe_answered(ack, &outcome, now);
        }
        if self.frto.is_some() {
            self.judge_timeout(&outcome);
        }
        if !matches!(self.state, State::Open) && self.has_recovered() {
            self.leave_recovery();
        }
        let (lost, wait) = self.detect(now);
        self.recover_if_lost(echo, outcome.delivered);
        let decided = self.control.watches()
            && self.consult(
                AckSample::of(&outcome),
                &AckContext { now: secs, prior_in_flight, limited, marked, lost },
            );
        if !decided && echo {
            self.on_echo(ack, outcome.delivered);
        }
        match &mut self.state {
            _ if decided => {}
            State::Reduction(prr) | State::Recovery(prr) => {
                let pipe = self.board.in_flight();
                let safe = outcome.advanced && lost == 0;
                if outcome.delivered > 0 {
                    self.cwnd = f64::from(pipe) + prr.allow(outcome.delivered, pipe, self.ssthresh, safe);
                }
            }
            _ if outcome.advanced && !first && !echo => self.grow(AckSample::of(&outcome), limited, secs),
            _ => {}
        }
        if self.pacer.is_some() {
            self.set_pacing_rate(outcome.rtt);
        }
        self.send(false, secs, host);
        if outcome.advanced || outcome.delivered > 0 || wait.is_some() {
            self.set_timer(wait, host);
        }
        self.ordinary = self.has_nothing_open();
    }

    /// Shows the acknowledgement to a control that looks at each. True: it has set the window.
    #[inline(always)]
    pub(super) fn consult(&mut self, sample: AckSample, context: &AckContext) -> bool {
        if self.delivery.is_some() {
            self.consult_on_rate(sample, context)
        } else {
            self.consult_on_marks(sample, context)
        }
    }

    #[inline(never)]
    fn consult_on_marks(&mut self, sample: AckSample, context: &AckContext) -> bool {
        let sample = self.sample(sample, context, None);
        let mut window = self.window();
        let decided = self.control.acknowledged(&sample, &mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
        decided
    }

    /// The same for a control that [asks for rates](Control::wants_rate).
    #[inline(never)]
    fn consult_on_rate(&mut self, sample: AckSample, context: &AckContext) -> bool {
        let next = self.board.una();
        let rate = self.delivery.as_deref_mut().and_then(|d| d.sample(next, sample.rtt));
        let sample = self.sample(sample, context, rate);
        let mut window = self.window();
        let decided = self.control.acknowledged_with_rate(&sample, &mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
        if self.control.limits_itself() {
            self.out_of_data();
        }
        decided
    }

    /// The acknowledgement as controls see it.
    #[inline(always)]
    fn sample(&self, sample: AckSample, context: &AckContext, rate: Option<RateSample>) -> Sample {
        Sample {
            now: context.now,
            delivered: sample.delivered,
            marked: context.marked,
            lost: context.lost,
            rtt: sample.rtt,
            srtt: self.timeout.srtt(),
            prior_in_flight: context.prior_in_flight,
            in_flight: self.board.in_flight(),
            una: self.board.una(),
            next: self.board.max(),
            advanced: sample.advanced,
            limited: context.limited,
            phase: self.state.phase(),
            rate,
        }
    }

    /// Whether the window was full: when the acknowledgement arrived; or where segments wait for their time, at some time in the last
    /// window of data, as Linux has it (`tcp_cwnd_validate`).
    #[inline(always)]
    pub(super) fn is_limited(&mut self, next: u32, in_flight: u32) -> bool {
        let full = f64::from(in_flight) + self.room > self.cwnd;
        if self.pacer.is_some() {
            let (end, before) = self.full;
            if full || next >= end {
                self.full = (self.board.max(), full);
            }
            return full || before;
        }
        full
    }

    /// Takes in the segments that arrived, by the acknowledgement's number and its SACK blocks.
    #[inline(always)]
    fn take_in(&mut self, ack: &Ack<'_>, now: C) -> AckOutcome {
        let advanced = ack.next > self.board.una();
        let Sender { board, rack, next_sample, timeout, delivery, .. } = self;
        rack.begin();
        let mut processing = AckProcessing {
            outcome: AckOutcome {
                delivered: 0,
                advanced,
                selected: false,
                rtt: None,
                original: None,
                duplicate: None,
            },
            now,
            max: board.max(),
            rack,
            timeout,
            next_sample,
            delivery: delivery.as_deref_mut(),
        };
        board.acknowledge(ack.next, |number, segment| processing.arrived(number, segment));
        if !ack.sack.blocks().is_empty() {
            let before = processing.outcome.delivered;
            processing.select(ack.sack, board);
            processing.outcome.selected = processing.outcome.delivered > before;
            processing.outcome.duplicate = ack.sack.duplicate(ack.next);
        }
        let outcome = processing.outcome;
        if outcome.advanced {
            self.una_timed_out = false;
        }
        self.sampled |= outcome.rtt.is_some();
        outcome
    }

    /// RFC 3168 §6.1.2: an ECN-Echo reduces the window once a window of data, as a loss does; nothing is retransmitted. A probe that is
    /// out tells of nothing more, as in Linux.
    fn on_echo(&mut self, ack: &Ack<'_>, delivered: u32) {
        let Some(ecn) = &mut self.ecn else { return };
        if !matches!(self.state, State::Open) || !ecn.is_new_congestion(ack.next) {
            return;
        }
        ecn.on_reduction(self.board.max(), true);
        self.undo = None;
        self.probe = None;
        self.ssthresh = self.control.reduce(Cause::Mark, self.cwnd, self.cwnd).max(2.0);
        self.state = State::Reduction(self.begin_reduction(delivered));
        self.recovery_point = self.board.max();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use crate::tcp::control::Kind;
    use crate::tcp::{Config, Congestion, Profile};

    /// draft-ietf-ccwg-bbr §2.2, C.is_cwnd_limited: full "at any point in the last packet-timed round trip"; Linux's `tcp_cwnd_validate`: the window of data begins
    /// anew whenever it is full.
    #[test]
    fn a_full_window_is_remembered_for_a_round_trip() {
        let mut sender = Sender::<Exact>::new(&Config {
            profile: Profile::Linux,
            congestion: Congestion::Linux(Kind::Bbr),
            pacing: true,
            ..Config::plain()
        });
        sender.cwnd = 10.0;
        (0..10).for_each(|n| sender.board.sent(n, Exact(0)));
        assert!(sender.is_limited(1, 10));
        assert!(sender.is_limited(9, 5), "the same window");
        // Full once more, near its end, with segments up to 30 sent.
        (10..30).for_each(|n| sender.board.sent(n, Exact(0)));
        assert!(sender.is_limited(9, 10));
        for next in [10, 20, 29] {
            assert!(sender.is_limited(next, 5), "{next}");
        }
        sender.is_limited(30, 5);
        assert!(!sender.is_limited(31, 5));
    }
}
