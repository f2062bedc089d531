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
