//! The senders of all flows, in two arrays: Linux's is nearly three times as large as any other, and most networks have one kind. None takes
//! the room of the largest, and none is an allocation of its own.

use crate::clock::Clock;
use crate::ends::FlowHost;
use crate::network::Transport;
use crate::tcp::{Ack, Config, Profile, Tally, TimerKind, linux};
use crate::timer::{Timer, Timers};
use crate::traffic::Source;

/// A flow's sender and its timers, which of them first. In whole cache lines, as few as can be: see
/// [`FlowState`](crate::flow::FlowState).
#[derive(Debug)]
#[repr(C, align(64))]
struct Lines<A, B>(A, B);

/// Linux's has lines of its own order; the timers come behind them.
type OfLinux<C> = Lines<linux::Sender<C>, Timers<C>>;
type Other<C> = Lines<Timers<C>, Source<C>>;

/// The place of a flow's sender: its number in one of the arrays, and a bit for Linux's.
#[derive(Clone, Copy, Debug)]
struct Seat(u32);

impl Seat {
    const LINUX: u32 = 1 << 31;

    #[inline(always)]
    fn number(self) -> usize {
        (self.0 & !Seat::LINUX) as usize
    }

    #[inline(always)]
    fn is_linux(self) -> bool {
        self.0 & Seat::LINUX != 0
    }
}

/// The senders of a run's flows. Those that are in other parts of the run are one, which does nothing.
#[derive(Debug)]
pub struct Senders<C: Clock> {
    seats: Vec<Seat>,
    linux: Vec<OfLinux<C>>,
    others: Vec<Other<C>>,
    elsewhere: Option<Seat>,
}

/// The TCP of a flow whose sender is among Linux's, and the segments of a transfer. What asks for one piece of data after another has its own.
pub fn of_linux(transport: &Transport) -> Option<(&Config, Option<u32>)> {
    let found = match transport {
        Transport::Tcp(config) => (config, None),
        Transport::Transfer(config, segments) => (config, Some(*segments)),
        Transport::Web(..) | Transport::Video(..) | Transport::Udp(_) => return None,
    };
    (found.0.profile == Profile::Linux).then_some(found)
}

impl<C: Clock> Senders<C> {
    /// None, with room for those of so many flows: Linux's, others, and those in other parts of the run.
    pub fn with_room(linux: usize, others: usize, elsewhere: usize) -> Senders<C> {
        Senders {
            seats: Vec::with_capacity(linux + others + elsewhere),
            linux: Vec::with_capacity(linux),
            others: Vec::with_capacity(others + usize::from(elsewhere > 0)),
            elsewhere: None,
        }
    }

    /// That of the next flow [is Linux's](of_linux).
    pub fn add_linux(&mut self, config: &Config, segments: Option<u32>) {
        let mut sender = linux::Sender::new(config);
        if let Some(segments) = segments {
            // Segment 0 is the SYN.
            sender.set_data_end(segments.saturating_add(1));
        }
        self.seats.push(Seat(self.linux.len() as u32 | Seat::LINUX));
        self.linux.push(Lines(sender, [Timer::default(); 2]));
    }

    /// That of the next flow is any other.
    pub fn add(&mut self, source: Source<C>) {
        self.seats.push(Seat(self.others.len() as u32));
        self.others.push(Lines([Timer::default(); 2], source));
    }

    /// That of the next flow is in another part of the run.
    pub fn add_elsewhere(&mut self) {
        match self.elsewhere {
            Some(seat) => self.seats.push(seat),
            None => {
                self.elsewhere = Some(Seat(self.others.len() as u32));
                self.add(Source::Elsewhere);
            }
        }
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// A flow's, with its timers.
    #[inline(always)]
    pub fn of(&mut self, flow: u32) -> (Sender<'_, C>, &mut Timers<C>) {
        let seat = self.seats[flow as usize];
        if seat.is_linux() {
            let Lines(sender, timers) = &mut self.linux[seat.number()];
            (Sender::Linux(sender), timers)
        } else {
            let Lines(timers, source) = &mut self.others[seat.number()];
            (Sender::Other(source), timers)
        }
    }

    /// A flow's that is not Linux's.
    pub fn source(&self, flow: u32) -> Option<&Source<C>> {
        let seat = self.seats[flow as usize];
        (!seat.is_linux()).then(|| &self.others[seat.number()].1)
    }

    /// Whether a flow's is TCP.
    pub fn is_tcp(&self, flow: u32) -> bool {
        self.source(flow).is_none_or(Source::is_tcp)
    }

    /// The congestion window and slow-start threshold of a flow's TCP sender, in segments.
    pub fn window(&self, flow: u32) -> Option<(f64, f64)> {
        let seat = self.seats[flow as usize];
        if seat.is_linux() {
            let sender = &self.linux[seat.number()].0;
            Some((sender.cwnd(), sender.ssthresh()))
        } else {
            self.others[seat.number()].1.window()
        }
    }

    /// The counts of each flow's since the start of the run.
    pub fn tallies(&self) -> impl ExactSizeIterator<Item = Tally> {
        self.seats.iter().map(|seat| {
            if seat.is_linux() {
                self.linux[seat.number()].0.tally()
            } else {
                self.others[seat.number()].1.tally()
            }
        })
    }

    /// Reads from each cache line that an acknowledgement of this flow touches first: what it reads means nothing.
    #[inline(always)]
    pub fn touch(&self, flow: u32) -> u64 {
        let seat = self.seats[flow as usize];
        if seat.is_linux() {
            let Lines(sender, timers) = &self.linux[seat.number()];
            u64::from(timers[0].is_set()) ^ sender.cwnd().to_bits()
        } else {
            let Lines(timers, source) = &self.others[seat.number()];
            u64::from(timers[0].is_set()) ^ source.touch()
        }
    }

    /// Takes those of another part of the run that are there.
    pub(crate) fn take(&mut self, mut other: Senders<C>, there: &[bool]) {
        let before = [self.others.len(), self.linux.len()];
        for ((own, seat), _) in self.seats.iter_mut().zip(other.seats).zip(there).filter(|(_, there)| **there)
        {
            *own = Seat(seat.0 + before[usize::from(seat.is_linux())] as u32);
        }
        self.linux.append(&mut other.linux);
        self.others.append(&mut other.others);
    }
}

/// The sender of one flow.
#[derive(Debug)]
pub enum Sender<'a, C: Clock> {
    /// Linux's TCP.
    Linux(&'a mut linux::Sender<C>),
    /// Any other.
    Other(&'a mut Source<C>),
}

impl<C: Clock> Sender<'_, C> {
    /// The flow starts.
    pub fn start<const TRACE: bool>(self, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Sender::Linux(sender) => sender.start(host),
            Sender::Other(source) => source.start(host),
        }
    }

    /// The application has no more data.
    pub fn stop<const TRACE: bool>(self, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Sender::Linux(sender) => sender.stop(),
            Sender::Other(source) => source.stop(host),
        }
    }

    /// An acknowledgement arrived.
    #[inline(always)]
    pub fn on_ack<const TRACE: bool>(self, ack: Ack<'_>, host: &mut FlowHost<'_, C, TRACE>) {
        match self {
            Sender::Linux(sender) => sender.on_ack(ack, host),
            Sender::Other(source) => source.on_ack(ack, host),
        }
    }

    /// One of its timers expired.
    #[inline(always)]
    pub fn on_timer<const TRACE: bool>(self, which: TimerKind, host: &mut FlowHost<'_, C, TRACE>) {
        match (self, which) {
            (Sender::Linux(sender), TimerKind::Retransmit) => sender.on_timer(host),
            (Sender::Linux(sender), TimerKind::Send | TimerKind::DelayedAck) => sender.on_jitter_end(host),
            (Sender::Other(source), _) => source.on_timer(which, host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;

    #[test]
    fn a_sender_takes_whole_lines_and_no_more_than_its_kind() {
        assert_eq!(size_of::<Other<Exact>>(), 4 * 64);
        assert_eq!(size_of::<OfLinux<Exact>>(), 10 * 64);
    }
}
