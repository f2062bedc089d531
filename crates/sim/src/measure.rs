//! Measurements made only where the experiment asks for them: distributions of delays, loss events, goodput over time.
//!
//! Nothing here is created, and no packet's path is longer than by a test for its absence, where it is not asked for.

pub mod arrivals;
pub mod sketch;

use inprofile_core::units::{Duration, Time};

use crate::measure::arrivals::{Arrivals, Delays};
use crate::measure::losses::Losses;
use crate::measure::waits::Waits;
use crate::network::Network;
use crate::outcome::{Measured, VerdictPoint};
use crate::packet::InFlight;
use crate::plan::longest_delay;

/// The measurements of a run, apart from those that links keep themselves.
#[derive(Debug)]
pub struct Measures {
    arrivals: Arrivals,
    losses: Losses,
    groups: std::sync::Arc<[u32]>,
}

impl Measures {
    /// The request of a network, if it has one.
    pub fn of(network: &Network) -> Option<Box<Measures>> {
        let asked = network.measure.as_ref()?;
        let crosses = network.flows.iter().map(|f| f.path.contains(&asked.link)).collect();
        let groups = asked.groups.clone();
        Some(Box::new(Measures {
            arrivals: Arrivals::new(network, groups.clone(), periods(network)),
            losses: Losses::new(network.window, asked.link, longest_delay(network), crosses),
            groups,
        }))
    }

    /// A flow's packet is sent now; segment 0 opens a connection.
    #[inline(never)]
    pub fn sent(&mut self, slot: u32, flow: u32, segment: u32, now: Time) {
        self.arrivals.sent(slot, flow, segment, now);
    }

    /// The packet in a slot reaches its receiver, whose application could then have read so many bytes of payload.
    #[inline(never)]
    pub fn received(&mut self, slot: u32, packet: &InFlight, at: Time, readable: u64) {
        self.arrivals.received(slot, &packet.packet, at, readable);
    }

    /// A packet is lost.
    pub fn lost(&mut self, place: VerdictPoint, packet: &InFlight, at: Time) {
        if let VerdictPoint::Queue(link) = place {
            let p = &packet.packet;
            let of = (p.flow, self.groups[p.flow.0 as usize], p.colour);
            self.losses.lost(link, of, at, |since, asked| self.arrivals.active(since, asked));
        }
    }

    /// The measurements beyond counts, at the end of the run; with the queueing delays of links by number, which these keep.
    pub fn close(self, queueing: Vec<(u32, Waits)>) -> Measured {
        let Measures { arrivals, losses, .. } = self;
        let (Delays { one_way, excess, variation }, first_data, goodput) = arrivals.close();
        Measured { queueing, one_way, excess, variation, first_data, goodput, losses: losses.close() }
    }
}

/// The periods that a network asks for.
fn periods(network: &Network) -> Option<Periods> {
    Some(Periods::new(network.window, network.measure.as_ref()?.every?))
}

/// The queueing delays of a reported link, where a network asks for them.
pub(crate) fn waits(network: &Network) -> Option<Waits> {
    let groups = network.measure.as_ref()?.groups.clone();
    Some(Waits::new(network.window, groups, periods(network)))
}

/// Sums over periods of equal length within the measured window (RFC 7928 §2.7: every K · minRTT), one row a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Periods {
    from: Time,
    every: Duration,
    /// How many whole periods the window has.
    count: usize,
    /// By group.
    sums: Vec<Vec<u64>>,
}

impl Periods {
    /// Zero, for the whole periods of a window.
    #[must_use]
    pub fn new(window: (Time, Time), every: Duration) -> Periods {
        let count = (window.1 - window.0).0 / every.0.max(1);
        Periods { from: window.0, every, count: count as usize, sums: Vec::new() }
    }

    /// Adds to the period that a moment of the window is in.
    pub fn add(&mut self, group: u32, at: Time, amount: u64) {
        let (group, period) = (group as usize, (at.since(self.from).0 / self.every.0) as usize);
        if self.sums.len() <= group {
            self.sums.resize(group + 1, Vec::new());
        }
        let sums = &mut self.sums[group];
        // What is left of the window after its last whole period is not measured.
        if period < self.count {
            if sums.is_empty() {
                sums.resize(self.count, 0);
            }
            sums[period] += amount;
        }
    }

    /// Their length.
    #[must_use]
    pub fn every(&self) -> Duration {
        self.every
    }

    /// The end of each period and the sum over it; of a group of which nothing was added, zeros.
    pub fn of(&self, group: u32) -> impl Iterator<Item = (Time, u64)> {
        let sums = self.sums.get(group as usize);
        let end = |i: usize| self.from + Duration(self.every.0 * (i as u64 + 1));
        (0..self.count).map(move |i| (end(i), sums.and_then(|s| s.get(i)).copied().unwrap_or(0)))
    }
}

pub mod waits {
    //! The queueing delay of every packet that a link sends: from its arrival to the start of its transmission.

    use std::sync::Arc;

    use inprofile_core::packet::{Colour, FlowId};
    use inprofile_core::units::Time;

    use crate::measure::Periods;
    use crate::measure::sketch::Sketch;

    /// Distributions by group of flows and colour; empty ones take no memory.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ByGroup(Vec<[Option<Box<Sketch>>; 3]>);

    impl ByGroup {
        /// The distribution of a group's packets of a colour, created if there is none.
        pub fn of(&mut self, group: u32, colour: Colour) -> &mut Sketch {
            let group = group as usize;
            if self.0.len() <= group {
                self.0.resize_with(group + 1, Default::default);
            }
            self.0[group][colour as usize].get_or_insert_default()
        }

        /// Every distribution that is not empty, with its group and colour.
        pub fn iter(&self) -> impl Iterator<Item = (u32, Colour, &Sketch)> {
            (0..).zip(&self.0).flat_map(|(group, row)| {
                Colour::ALL.into_iter().zip(row).filter_map(move |(c, s)| Some((group, c, s.as_deref()?)))
            })
        }

        /// The number of groups that have any.
        pub fn groups(&self) -> usize {
            self.0.iter().filter(|row| row.iter().any(Option::is_some)).count()
        }

        /// The distribution of all wanted groups and colours together.
        pub fn together(&self, wanted: impl Fn(u32, Colour) -> bool) -> Sketch {
            let mut all = Sketch::default();
            self.iter().filter(|(g, c, _)| wanted(*g, *c)).for_each(|(_, _, sketch)| all.add(sketch));
            all
        }
    }

    /// The queueing delays at one link within the measured window, by the start of transmission.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Waits {
        window: (Time, Time),
        /// The group of each flow.
        groups: Arc<[u32]>,
        /// By group and colour.
        pub delays: ByGroup,
        /// Packets and the sum of their delays in picoseconds, by period.
        pub by_period: Option<[Periods; 2]>,
    }

    impl Waits {
        /// No delays yet.
        #[must_use]
        pub fn new(window: (Time, Time), groups: Arc<[u32]>, periods: Option<Periods>) -> Waits {
            let by_period = periods.map(|p| [p.clone(), p]);
            Waits { window, groups, delays: ByGroup::default(), by_period }
        }

        /// Records a packet that arrived at `came` and whose transmission starts at `sent`.
        pub fn record(&mut self, came: Time, sent: Time, flow: FlowId, colour: Colour) {
            if self.window.0 <= sent && sent < self.window.1 {
                let delay = sent.since(came);
                self.delays.of(self.groups[flow.0 as usize], colour).record(delay);
                if let Some([packets, sums]) = &mut self.by_period {
                    packets.add(0, sent, 1);
                    sums.add(0, sent, delay.0);
                }
            }
        }

        /// The end of each period and the mean delay in it, in seconds; `None` where nothing was sent in it.
        pub fn means(&self) -> impl Iterator<Item = (Time, Option<f64>)> {
            let mean = |((at, n), (_, sum)): ((Time, u64), (Time, u64))| {
                (at, (n > 0).then(|| sum as f64 / n as f64 * 1e-12))
            };
            self.by_period.iter().flat_map(move |[packets, sums]| packets.of(0).zip(sums.of(0)).map(mean))
        }
    }
}

pub mod losses {
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
                    self.event =
                        Some(Event { begins: at, losing: BTreeSet::from([flow.0]), lost: 1.0, active });
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_in_one_period_and_the_rest_of_the_window_in_none() {
        // From 10 to 35, every 10: two whole periods.
        let mut p = Periods::new((Time(10), Time(35)), Duration(10));
        for (at, amount) in [(10, 1), (19, 2), (20, 4), (29, 8), (30, 16), (34, 32)] {
            p.add(1, Time(at), amount);
        }
        assert_eq!(p.of(1).collect::<Vec<_>>(), [(Time(20), 3), (Time(30), 12)]);
        assert_eq!(p.of(0).collect::<Vec<_>>(), [(Time(20), 0), (Time(30), 0)]);
        assert_eq!(p.of(7).collect::<Vec<_>>(), [(Time(20), 0), (Time(30), 0)]);
    }
}
