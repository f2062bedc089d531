//! SFQ, in lockstep: who is served next, and who loses where the queue is full.
//!
//! The law knows no time: only the order of arrivals and of the link's questions counts. Where the stamps leave open whether a packet
//! came before a question or after it, both are tried, and every state that agrees with Linux so far is kept.

use std::io::{self, BufRead, Write};

use inprofile_core::aqm::sfq::Sfq;
use inprofile_core::packet::Packet;
use inprofile_core::queue::fifo::{Fifo, Stamped};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Duration};
use inprofile_core::verdict::{Admission, Silent};

use crate::events::{Arrival, Call, Event, Events};
use crate::lockstep::{Fate, tell};

/// The most states that are kept.
const STATES: usize = 256;

/// A queue that may be as Linux's. Packets have their number in the plan for a sequence number.
struct State {
    /// Arrivals so far.
    came: usize,
    queue: Fifo<Stamped>,
    aqm: AnyAqm,
    rng: Rng,
    dropped: Vec<u32>,
    /// How far an arrival had to be moved across a question, for all that Linux answered since this was not the first state.
    shift: Duration,
}

impl Clone for State {
    fn clone(&self) -> State {
        let aqm = AnyAqm::Sfq(Box::new(self.law().clone()));
        State {
            queue: self.queue.clone(),
            aqm,
            rng: self.rng.clone(),
            dropped: self.dropped.clone(),
            ..*self
        }
    }
}

impl State {
    fn law(&self) -> &Sfq {
        let AnyAqm::Sfq(law) = &self.aqm else { unreachable!("it was made with no other") };
        law
    }

    /// Whether nothing that comes can tell the two apart.
    fn is(&self, other: &State) -> bool {
        let seq = |item: &Stamped| item.packet.seq;
        self.came == other.came
            && self.queue.iter().map(seq).eq(other.queue.iter().map(seq))
            && self.law().is_like(other.law())
    }

    /// A packet comes; whether Linux, too, dropped all that is dropped now.
    fn arrive(&mut self, all: &[Arrival]) -> bool {
        let Arrival { number, at, packet, .. } = all[self.came];
        self.came += 1;
        let packet = Packet { seq: number, ..packet };
        let (item, before) = (Stamped { packet, since: at }, self.dropped.len());
        if let Admission::Drop(_) =
            self.queue.arrive(at, &packet, item, &mut self.aqm, &mut self.rng, &mut Silent)
        {
            self.dropped.push(number);
        }
        self.dropped
            .extend(std::iter::from_fn(|| self.queue.take_evicted()).map(|evicted| evicted.packet.seq));
        self.dropped[before..].iter().all(|number| !all[*number as usize].passed)
    }

    /// The link asks for a packet.
    fn ask(&mut self, call: &Call) -> Option<u32> {
        let (aqm, rng) = (&mut self.aqm, &mut self.rng);
        let next = self.queue.depart(call.at, |item| item.packet, aqm, rng, &mut Silent, |_, _| {});
        next.map(|item| item.packet.seq)
    }
}

/// All states that agree with Linux's answer to a question, that first which takes least of the stamps.
fn agreed(states: &[State], call: &Call, all: &[Arrival]) -> Vec<State> {
    let count = |before: &dyn Fn(&Arrival) -> bool| all.partition_point(before);
    let surely = count(&|a| a.within.1 < call.at);
    let nominal = count(&|a| a.at <= call.at);
    let at_most = count(&|a| a.within.0 <= call.latest);
    let mut found: Vec<State> = Vec::new();
    for state in states {
        let mut state = state.clone();
        let (least, most) = (surely.max(state.came), at_most.max(state.came));
        loop {
            if state.came >= least && found.len() < STATES {
                let mut asked = state.clone();
                let moved = &all[state.came.min(nominal)..state.came.max(nominal)];
                let shift = moved.iter().map(|a| a.at.since(call.at).max(call.at.since(a.at))).max();
                asked.shift = asked.shift.max(shift.unwrap_or(Duration(0)));
                if asked.ask(call) == Some(call.number) && !found.iter().any(|known| known.is(&asked)) {
                    found.push(asked);
                }
            }
            if state.came >= most || !state.arrive(all) {
                break;
            }
        }
    }
    found.sort_by_key(|state| state.shift);
    found
}

/// SFQ below a link that asks ahead: a line for each packet that left, as it does, and at the end for each that was dropped. After a
/// difference ours goes its own way.
pub fn queue<R: BufRead>(
    events: Events<R>,
    (limit, aqm): (f64, AnyAqm),
    out: &mut impl Write,
) -> io::Result<()> {
    let AnyAqm::Sfq(_) = aqm else {
        return Err(io::Error::other("turns is for sfq"));
    };
    let (mut all, mut calls) = (Vec::new(), Vec::new());
    for event in events {
        match event? {
            Event::Arrival(arrival) => all.push(arrival),
            Event::Call(call) => calls.push(call),
            Event::Left(_) | Event::Stall(..) | Event::Timer(_) => {}
        }
    }
    // Linux counts the packet that tbf keeps towards the limit.
    let queue = Fifo::before(Backlog::Packets(limit - 1.0), &aqm);
    let rng = Rng::for_component(1, "linux");
    let mut states = vec![State { came: 0, queue, aqm, rng, dropped: Vec::new(), shift: Duration(0) }];
    for call in &calls {
        let found = agreed(&states, call, &all);
        if let Some(first) = found.first() {
            tell(out, call.number, (Fate::Sent, Fate::Sent), Some(first.shift), true)?;
            states = found;
            states[0].shift = Duration(0);
        } else {
            states.truncate(1);
            while all.get(states[0].came).is_some_and(|a| a.at <= call.at) {
                states[0].arrive(&all);
            }
            states[0].ask(call);
            tell(out, call.number, (Fate::Sent, Fate::Waiting), None, false)?;
        }
    }
    // What came last may have been dropped, too.
    for state in &mut states {
        while state.came < all.len() && state.arrive(&all) {}
    }
    states.sort_by_key(|state| all.len() - state.came);
    for a in all.iter().filter(|a| !a.passed) {
        if states[0].dropped.contains(&a.number) {
            tell(out, a.number, (Fate::Dropped, Fate::Dropped), Some(Duration(0)), true)?;
        } else {
            tell(out, a.number, (Fate::Dropped, Fate::Sent), None, false)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1,000 B at these microseconds, of these flows, with stamps 10 us apart; the link asks at the other times, and gets
    /// these. What is not asked for was dropped.
    fn answers(limit: f64, came: &[(u64, u32)], asked: &[(u64, u32)]) -> Vec<String> {
        let mut lines: Vec<(u64, u8, String)> = Vec::new();
        for (number, (at, flow)) in came.iter().enumerate() {
            let (at, passed) = (at * 1000, asked.iter().any(|(_, n)| *n as usize == number));
            let line = format!("a {number} {at} 1000 {flow} 0 {at} {} {}", at + 10_000, u8::from(passed));
            lines.push((at, 0, line));
        }
        for (at, number) in asked {
            lines.push((at * 1000, 1, format!("c {} 5000 {number} 0", at * 1000)));
        }
        lines.sort();
        let text: String = lines.iter().map(|(_, _, line)| format!("{line}\n")).collect();
        let registry = inprofile_core::registry::Registry::default();
        let table = "aqm = \"sfq\"\nflow_quantum = \"1000 B\"\ndivisor = 1024";
        let (aqm, _) = crate::built(table, "aqm", &registry.aqms).expect("it is right");
        let mut out = Vec::new();
        queue(Events::read(text.as_bytes()), (limit, aqm), &mut out).expect("the events are whole");
        String::from_utf8(out).expect("text").lines().map(str::to_owned).collect()
    }

    /// Three of flow 1, then one of flow 2, which goes second; the limit of four counts the one that the link keeps.
    const CAME: [(u64, u32); 6] = [(100, 1), (200, 1), (300, 1), (400, 2), (500, 1), (2_000, 2)];

    #[test]
    fn turns_and_the_longest_queues_tail() {
        let said = answers(4.0, &CAME, &[(100, 0), (1_000, 1), (1_100, 3), (1_200, 2), (2_000, 5)]);
        let right = ["0 sent sent 0 1", "1 sent sent 0 1", "3 sent sent 0 1", "2 sent sent 0 1"];
        assert_eq!(said[..4], right);
        assert_eq!(said[4..], ["5 sent sent 0 1", "4 dropped dropped 0 1"]);
    }

    #[test]
    fn a_turn_out_of_order_is_a_difference() {
        let said = answers(4.0, &CAME, &[(100, 0), (1_000, 1), (1_100, 2), (1_200, 3), (2_000, 5)]);
        assert!(said.contains(&"2 sent waiting -1 0".to_owned()), "{said:?}");
        // A limit that would have room for all: what Linux dropped is sent here.
        let said = answers(9.0, &CAME, &[(100, 0), (1_000, 1), (1_100, 3), (1_200, 2), (2_000, 5)]);
        assert!(said.contains(&"4 dropped sent -1 0".to_owned()), "{said:?}");
    }

    /// Flow 3's packet comes 4 us after a question, or before it: then it goes before what is left of flow 1.
    #[test]
    fn an_arrival_may_be_on_either_side_of_a_question() {
        let ask = |at: u64, last: [u32; 2]| {
            let came = [(100, 1), (200, 1), (300, 1), (1_000, 2), (at, 3)];
            answers(9.0, &came, &[(100, 0), (1_000, 1), (1_100, 3), (1_200, last[0]), (1_300, last[1])])
        };
        assert!(ask(1_104, [2, 4]).iter().all(|line| line.ends_with(" 0 1")));
        let moved = ask(1_104, [4, 2]);
        assert_eq!(moved[3..], ["4 sent sent 4000 1", "2 sent sent 0 1"]);
        assert_eq!(ask(1_120, [4, 2])[3], "4 sent waiting -1 0");
    }
}
