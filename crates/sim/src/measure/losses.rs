//! When packets were lost: intervals between a flow's losses, and how many flows lose packets together.
//!
//! RFC 7928 §2.4's global synchronisation ratio is "the proportion of flows losing packets during a loss event". A loss
//! event begins with a loss at the measured link and lasts for the longest propagation round trip: what TCP answers
//! once. Flows that sent nothing for that long before it are not counted.

use std::collections::BTreeSet;

use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::units::{Duration, Time};

use crate::measure::waits::ByGroup;

/// One loss event.
#[derive(Debug)]
struct Event {
    begins: Time,
    losing: BTreeSet<u32>,
    lost: f64,
    active: usize,
}

/// The losses at the measured link within the window.
#[derive(Debug)]
pub struct Losses {
    window: (Time, Time),
    /// The link, and how long a loss event lasts.
    link: u32,
    lasts: Duration,
    /// Flows that cross the link.
    crosses: Vec<bool>,
    event: Option<Event>,
    /// Loss events, the sum of the shares of flows that lost packets in them, and of those that a random choice would leave.
    ended: (u64, f64, f64),
    /// The last loss of each flow.
    last: Vec<Option<Time>>,
    gaps: ByGroup,
}

/// Their figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossOutcome {
    /// Loss events.
    pub events: u64,
    /// The mean share of active flows that lost packets in an event; `None` if there was no event.
    pub synchronisation: Option<f64>,
    /// What that share would be if each lost packet were any active flow's with equal chance: `1 − (1 − 1/active)^lost`.
    pub random: Option<f64>,
    /// Times between two losses of the same flow (RFC 3611 §4.1: gaps).
    pub intervals: ByGroup,
}

impl Losses {
    /// None yet.
    #[must_use]
    pub fn new(window: (Time, Time), link: u32, lasts: Duration, crosses: Vec<bool>) -> Losses {
        let last = vec![None; crosses.len()];
        Losses {
            window,
            link,
            lasts,
            crosses,
            event: None,
            ended: (0, 0.0, 0.0),
            last,
            gaps: ByGroup::default(),
        }
    }

    /// A flow of a group has lost a packet at a link. `active` counts the flows that have sent since then.
    pub fn lost(
        &mut self,
        link: u32,
        (flow, group, colour): (FlowId, u32, Colour),
        at: Time,
        active: impl FnOnce(Time, &[bool]) -> usize,
    ) {
        if link != self.link || at < self.window.0 || at >= self.window.1 {
            return;
        }
        if let Some(before) = self.last[flow.0 as usize].replace(at) {
            self.gaps.of(group, colour).record(at.since(before));
        }
        match &mut self.event {
            Some(event) if at.since(event.begins) < self.lasts => {
                event.losing.insert(flow.0);
                event.lost += 1.0;
            }
            _ => {
                self.end_event();
                let since = Time(at.0.saturating_sub(self.lasts.0));
                let active = active(since, &self.crosses);
                self.event = Some(Event { begins: at, losing: BTreeSet::from([flow.0]), lost: 1.0, active });
            }
        }
    }

    fn end_event(&mut self) {
        if let Some(event) = self.event.take() {
            self.ended.0 += 1;
            // A flow that begins within the event may lose packets in it.
            let active = event.active.max(event.losing.len()) as f64;
            self.ended.1 += event.losing.len() as f64 / active;
            self.ended.2 += 1.0 - libm::pow(1.0 - active.recip(), event.lost);
        }
    }

    /// Their figures.
    #[must_use]
    pub fn close(mut self) -> LossOutcome {
        self.end_event();
        let (events, shares, random) = self.ended;
        let mean = |sum: f64| (events > 0).then(|| sum / events as f64);
        LossOutcome { events, synchronisation: mean(shares), random: mean(random), intervals: self.gaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn lose(losses: &mut Losses, flow: u32, ms: u64, active: usize) {
        losses.lost(0, (FlowId(flow), 0, Colour::IN), Time(ms * MS), |_, _| active);
    }

    /// By hand: two of four flows within the first 100 ms, one of four in the second event, all four in the third.
    #[test]
    fn the_share_of_flows_that_lose_in_an_event() {
        let window = (Time(0), Time(10_000 * MS));
        let mut losses = Losses::new(window, 0, Duration(100 * MS), vec![true; 4]);
        for (flow, ms) in
            [(0, 10), (1, 50), (0, 109), (2, 110), (2, 150), (0, 500), (1, 501), (2, 502), (3, 503)]
        {
            lose(&mut losses, flow, ms, 4);
        }
        // Outside the window, and at another link.
        lose(&mut losses, 0, 10_000, 4);
        losses.lost(1, (FlowId(0), 0, Colour::IN), Time(600 * MS), |_, _| 4);
        let outcome = losses.close();
        assert_eq!(outcome.events, 3);
        let by_hand = (0.5 + 0.25 + 1.0) / 3.0;
        assert!((outcome.synchronisation.unwrap() - by_hand).abs() < 1e-12);
        // Three packets of four flows' at random leave 1 − (3/4)³ of them with a loss; then two, then four.
        let by_hand = (37.0 / 64.0 + 7.0 / 16.0 + 175.0 / 256.0) / 3.0;
        assert!((outcome.random.unwrap() - by_hand).abs() < 1e-12);
        // Flow 0: 99 and 391 ms; flow 1: 451; flow 2: 40 and 352.
        let gaps = outcome.intervals.together(|_, _| true);
        assert_eq!((gaps.len(), gaps.min(), gaps.max()), (5, Some(0.04), Some(0.451)));
    }

    #[test]
    fn without_losses_nothing_is_synchronised() {
        let losses = Losses::new((Time(0), Time(1)), 0, Duration(1), Vec::new());
        assert_eq!(losses.close(), LossOutcome::default());
    }
}
