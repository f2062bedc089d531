//! CoDel and COBALT, in lockstep: packets are put to them as they are about to leave.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};

use inprofile_core::aqm::cobalt::Signal;
use inprofile_core::aqm::{cobalt, codel};
use inprofile_core::units::{Duration, Time};
use inprofile_core::verdict::Departure;

use crate::events::{Arrival, Call, Event, Events, NANO};
use crate::lockstep::{Fate, Said, agree, tell};

/// Linux counts CoDel's time in units of 1,024 ns; three such roundings meet in a decision.
const GRAIN: Duration = Duration(3 * 1024 * NANO);
/// The most states that are kept.
const STATES: usize = 512;
/// Moments of what the stamps leave open at which the law is asked: the ends and between.
const MOMENTS: u64 = 5;

/// Moments from one time to another.
fn moments(from: Time, to: Time) -> impl Iterator<Item = Time> {
    (0..MOMENTS).map(move |n| Time(from.0 + (to.0 - from.0) * n / (MOMENTS - 1)))
}

/// What a law is asked: when, how long the packet has waited, how many bytes wait behind it.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    now: Time,
    since: Time,
    bytes: u64,
}

/// A law that decides as a packet leaves.
pub trait Law {
    /// What it remembers.
    type State: Copy + PartialEq + Default;

    /// The sojourn time that a standing queue may have, and the bytes behind a packet up to which it is let go.
    fn bounds(&self) -> (Duration, u64);

    /// The verdict, and the state afterwards.
    fn ask(&self, state: Self::State, q: Question, can_mark: bool) -> Said<Self::State>;

    /// Whether a decision set the law's clock. `first`: it is the first of a packet that waited for too long.
    fn set(&self, first: bool, before: &Self::State, after: &Self::State) -> bool;
}

impl Law for codel::Control {
    type State = codel::Vars;

    fn bounds(&self) -> (Duration, u64) {
        codel::Control::bounds(self)
    }

    fn ask(&self, state: codel::Vars, q: Question, can_mark: bool) -> Said<codel::Vars> {
        let mut state = state;
        let fate = match state.decide(self, q.now, q.since, q.bytes, can_mark) {
            Departure::Send => Fate::Sent,
            Departure::Mark => Fate::Marked,
            Departure::Drop(_) => Fate::Dropped,
        };
        (fate, state)
    }

    fn set(&self, first: bool, before: &codel::Vars, after: &codel::Vars) -> bool {
        first || before.is_dropping() != after.is_dropping()
    }
}

/// The queue is never full, so BLUE has nothing to do; and CAKE tells a queue that it is empty only as it serves another.
impl Law for cobalt::Control {
    type State = cobalt::Vars;

    fn bounds(&self) -> (Duration, u64) {
        (self.target.max(self.least), 0)
    }

    fn ask(&self, state: cobalt::Vars, q: Question, can_mark: bool) -> Said<cobalt::Vars> {
        let mut state = state;
        let due = state.leaves(q.now, q.now.since(q.since), self) == Signal::Due;
        state.left(q.now, due && !can_mark, self);
        let fate = match (due, can_mark, q.bytes > 0) {
            (true, true, _) => Fate::Marked,
            (true, false, true) => Fate::Dropped,
            (true, false, false) | (false, ..) => Fate::Sent,
        };
        (fate, state)
    }

    fn set(&self, first: bool, before: &cobalt::Vars, after: &cobalt::Vars) -> bool {
        first || before.is_dropping() != after.is_dropping() || after.was_set()
    }
}

/// A queue under such a law, and the states that the law can be in.
#[derive(Debug)]
struct Head<'a, L: Law> {
    law: &'a L,
    ecn: bool,
    waiting: VecDeque<Arrival>,
    bytes: u64,
    /// The one first that the stamps lead to when they are taken as they are.
    states: Vec<L::State>,
    /// How far the stamps of the decision lay apart that has set the law's clock.
    clock: Duration,
    /// Whether the next packet that waits for too long sets it.
    unset: bool,
}

impl<L: Law> Head<'_, L> {
    /// All that it may have been asked: the stamps as they are first.
    fn questions(&self, head: &Arrival, call: &Call, coming: u64) -> Vec<Question> {
        let mut sinces = vec![head.at];
        let (sojourn, width) = (call.at.since(head.at), head.within.1 - head.within.0);
        let (target, full) = self.law.bounds();
        if sojourn < target + GRAIN + width && target < sojourn + width + GRAIN {
            sinces.extend(moments(Time(head.within.0.0.saturating_sub(GRAIN.0)), head.within.1 + GRAIN));
        }
        let may = |a: &&Arrival| a.within.1 > call.at;
        let going: u64 = self.waiting.iter().rev().take_while(may).map(|a| u64::from(a.packet.size)).sum();
        let mut behind = vec![self.bytes, self.bytes - going, self.bytes + coming];
        behind.dedup_by_key(|bytes| *bytes <= full);
        let mut all = Vec::new();
        for bytes in behind {
            for since in &sinces {
                all.extend(moments(call.at, call.latest).map(|now| Question { now, since: *since, bytes }));
            }
        }
        all
    }

    /// The packet at the head: what Linux did with it, and what may be on its way by then, in bytes.
    fn decide(&mut self, call: &Call, coming: u64, out: &mut impl Write) -> io::Result<bool> {
        let missing = || io::Error::other(format!("packet {} left before it came", call.number));
        let head = self.waiting.pop_front().ok_or_else(missing)?;
        self.bytes -= u64::from(head.packet.size);
        let linux = match (head.number == call.number, call.marked) {
            (false, _) => Fate::Dropped,
            (true, false) => Fate::Sent,
            (true, true) => Fate::Marked,
        };
        let can_mark = self.ecn && head.packet.ecn.can_mark();
        let questions = self.questions(&head, call, coming);
        let own = call.latest - call.at;
        let first = self.states[0];
        let (ours, shift, then) =
            agree(linux, call.at, |now| self.law.ask(first, Question { now, ..questions[0] }, can_mark));
        let mut states = Vec::new();
        for state in &self.states {
            for question in &questions {
                let (fate, state) = self.law.ask(*state, *question, can_mark);
                if fate == linux && !states.contains(&state) && states.len() < STATES {
                    states.push(state);
                }
            }
        }
        let allowed = own + self.clock + GRAIN;
        let possible = !states.is_empty() || shift.is_some_and(|shift| shift <= allowed);
        if states.is_empty() || shift.is_some_and(|shift| shift <= allowed) {
            states.retain(|state| *state != then);
            states.insert(0, then);
        }
        let (target, full) = self.law.bounds();
        let low = call.at.since(head.at) < target || self.bytes <= full;
        if self.law.set(self.unset && !low, &first, &states[0]) {
            self.clock = own;
        }
        self.unset = low;
        self.states = states;
        tell(out, head.number, (linux, ours), shift, possible)?;
        Ok(linux == Fate::Dropped)
    }
}

/// Packets are put to the law as they are about to leave. `ecn`: it marks what can be marked.
pub fn queue<R: BufRead, L: Law>(
    events: Events<R>,
    law: &L,
    ecn: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let events: Vec<Event> = events.collect::<io::Result<_>>()?;
    let (waiting, states) = (VecDeque::new(), vec![L::State::default()]);
    let mut head = Head { law, ecn, waiting, bytes: 0, states, clock: Duration(0), unset: true };
    for (i, event) in events.iter().enumerate() {
        match event {
            Event::Arrival(arrival) => {
                head.bytes += u64::from(arrival.packet.size);
                head.waiting.push_back(*arrival);
            }
            Event::Left(_) | Event::Stall(..) | Event::Timer(_) => {}
            Event::Call(call) => {
                let arrivals = events[i..].iter().filter_map(|event| match event {
                    Event::Arrival(arrival) => Some(arrival),
                    Event::Call(_) | Event::Left(_) | Event::Stall(..) | Event::Timer(_) => None,
                });
                let coming =
                    arrivals.take_while(|a| a.within.0 < call.latest).map(|a| u64::from(a.packet.size));
                let coming = coming.sum();
                while head.decide(call, coming, out)? {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use inprofile_core::aqm::codel::Variant;
    use inprofile_core::units::Duration;

    /// A packet of 1,000 B a millisecond for a second comes, and leaves 20 ms later; the stamps lie 10 us apart. `drops` are
    /// those that did not leave; whoever is next leaves in their place.
    fn answers(drops: &[u32]) -> Vec<(String, String, i64, bool)> {
        let mut text = String::new();
        let mut leaving = 0;
        for ms in 0..400u32 {
            let (at, passed) = (u64::from(ms) * 1_000_000, u8::from(!drops.contains(&ms)));
            text += &format!("a {ms} {at} 1000 0 0 {at} {} {passed}\n", at + 10_000);
            if ms >= 20 {
                while drops.contains(&leaving) {
                    leaving += 1;
                }
                text += &format!("c {} 10000 {leaving} 0\n", at + 500_000);
                leaving += 1;
            }
        }
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        let control = Variant::Rfc8289.control(target, interval, 1000);
        let mut out = Vec::new();
        queue(Events::read(text.as_bytes()), &control, false, &mut out).expect("the events are whole");
        let text = String::from_utf8(out).expect("text");
        let answer = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[1].to_owned(), words[2].to_owned(), words[3].parse().expect("a number"), words[4] == "1")
        };
        text.lines().map(answer).collect()
    }

    /// The first packet leaves at 20.5 ms, so the law drops at 120.5 ms (packet 100), and after 100, 70.7, 57.7 and 50 ms more.
    #[test]
    fn what_the_law_would_have_done_is_agreed_with() {
        let all = answers(&[100, 201, 273, 332, 383]);
        let differ: Vec<usize> = (0..all.len()).filter(|i| all[*i].0 != all[*i].1).collect();
        assert!(differ.is_empty(), "{differ:?}");
    }

    /// A drop a millisecond early is none that ten microseconds explain; the law then goes on from its own time.
    #[test]
    fn a_drop_that_no_stamp_explains_is_a_difference() {
        let all = answers(&[99, 201]);
        assert_eq!(all[99], ("dropped".into(), "sent".into(), all[99].2, false));
        assert!((999_000..=1_001_000).contains(&all[99].2), "{:?}", all[99]);
        assert_eq!(all.iter().take(210).filter(|a| !a.3).count(), 1);
    }
}
