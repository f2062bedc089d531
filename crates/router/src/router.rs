//! Two datapaths, one a direction, set up from a configuration and reconfigured from another without losing a packet.

mod next;

use std::sync::Arc;

use inprofile_core::registry::Registry;
use inprofile_core::rng::Rng;
use inprofile_core::units::Time;
use inprofile_live::datapath::lateness::Lateness;
use inprofile_live::datapath::{Datapath, Policy, Witness};
use inprofile_live::flow::Flows;
use inprofile_live::io::replay::Frames;
use inprofile_live::packet::{self, Layer};

use crate::config::{Config, DIRECTIONS, Fail};
use crate::policy::Classifier;

pub use next::{Next, Unused};

/// Queues whose accounts are checked at a time: no packet waits for more.
const AUDITED: usize = 256;

/// The output: frames, each with the moment its turn came.
struct Leaving<'a>(&'a mut Frames);

impl Witness for Leaving<'_> {
    fn send(&mut self, due: Time, _: u64, frame: &mut [u8]) {
        self.0.push(due, frame);
    }
}

/// One direction at work.
#[derive(Debug)]
pub struct Lane {
    /// Markers, queues, link.
    pub path: Datapath<Classifier>,
    /// Frames to be sent at the other port, each with the moment its turn came.
    pub leaving: Frames,
    /// How late packets left, after their turn had come.
    pub lateness: Lateness,
    /// Whether some mechanism looks at what goes the other way.
    sees_reverse: bool,
    /// Up to which queue the accounts were last checked.
    audited: usize,
}

/// The router without its ports.
#[derive(Debug)]
pub struct Router {
    /// The configuration it was last set up from.
    pub config: Arc<Config>,
    /// From inside to outside, from outside to inside.
    pub lanes: [Lane; 2],
    /// Why the mechanisms are out of use, if they are.
    pub failure: Option<String>,
    /// Frames that were forwarded, or not, since then: by the port they came in at.
    pub since_failure: [u64; 2],
}

impl Router {
    /// Empty and idle.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, layer: Layer, seed: u64) -> Router {
        let config = config.into();
        let lanes = [0, 1].map(|i| {
            let secret = Rng::for_component(seed, DIRECTIONS[i]).uniform().to_bits();
            let direction = config.directions[i].as_ref();
            let policy = Classifier::new(direction, i == 0, &config, Flows::keeping(config.flows, secret));
            let markers = Vec::from_iter(direction.into_iter().flat_map(|d| next::markers(d, &config, seed)));
            let (parts, sees_reverse) = next::parts(direction, &config, layer, seed, markers, None);
            let path = Datapath::new(policy, parts);
            Lane { path, leaving: Frames::default(), lateness: Lateness::default(), sees_reverse, audited: 0 }
        });
        Router { config, lanes, failure: None, since_failure: [0; 2] }
    }

    /// Set up from another configuration at `now`. Packets that wait are kept; a class, discipline, marker or customer whose
    /// settings are the same goes on in the state it is in, others start over.
    pub fn reconfigure(self, config: Config, layer: Layer, seed: u64, now: Time) -> Router {
        let next = Next::prepare(&self.config, config, layer, seed);
        self.adopt(next, now).0
    }

    /// Takes over what was prepared from this router's configuration; the time this takes doesn't grow with what the file says, but
    /// for a few moves a customer. What is of no use any more comes back, to be thrown away by who has the time.
    pub fn adopt(self, next: Next, now: Time) -> (Router, Unused) {
        let Router { config: old, lanes, failure, since_failure } = self;
        let mut unused = Unused::of(old);
        let mut of_lane = next.lanes.into_iter();
        let lanes = lanes.map(|lane| match of_lane.next() {
            Some(next) => next.adopt(lane, now, &mut unused),
            None => lane,
        });
        (Router { config: next.config, lanes, failure, since_failure }, unused)
    }

    /// Whether it pays to [look ahead](Router::foresee) at frames that wait.
    #[must_use]
    pub fn looks_ahead(&self) -> bool {
        self.failure.is_none() && self.lanes.iter().any(|l| l.path.looks_ahead())
    }

    /// Frames that wait are about to be [looked at](Router::foresee), from the first on.
    pub fn look_anew(&mut self) {
        self.lanes.iter_mut().for_each(|l| l.path.policy.look_anew());
    }

    /// A frame waits at a port and will be taken in soon: prefetches what it will need. Nothing is decided by it.
    pub fn foresee(&mut self, port: usize, frame: &[u8]) {
        let path = &mut self.lanes[port].path;
        if path.looks_ahead() {
            path.foresee(frame);
        }
    }

    /// A frame has come in at a port.
    pub fn arrive(&mut self, now: Time, port: usize, layer: Layer, frame: &mut [u8]) {
        if self.failure.is_some() {
            self.since_failure[port] += 1;
            if self.config.fail == Fail::Open {
                self.lanes[port].leaving.push(now, frame);
            }
            return;
        }
        let [up, down] = &mut self.lanes;
        let (lane, other) = if port == 0 { (up, down) } else { (down, up) };
        if other.sees_reverse
            && let Ok(headers) = packet::parse(layer, frame)
            && let Some(treatment) = other.path.policy.reverse_treatment(&headers)
        {
            other.path.reverse(now, frame, &treatment, &mut Leaving(&mut other.leaving));
        }
        let Lane { path, leaving, .. } = lane;
        path.arrive(now, frame, &mut Leaving(leaving));
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Time) {
        if self.failure.is_none() {
            for Lane { path, leaving, .. } in &mut self.lanes {
                path.advance(now, &mut Leaving(leaving));
            }
        }
    }

    /// The present time, set before arrived frames and what was due earlier are handled.
    pub fn set_present(&mut self, now: Time) {
        self.lanes.iter_mut().for_each(|l| l.path.set_present(now));
    }

    /// The MTUs of the ports' interfaces: frames leave by the other one than they came in by.
    pub fn set_mtus(&mut self, mtus: [Option<usize>; 2]) {
        for (port, lane) in self.lanes.iter_mut().enumerate() {
            lane.path.set_mtu(mtus[1 - port]);
        }
    }

    /// When something is next due.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        if self.failure.is_some() { None } else { self.lanes.iter().filter_map(|l| l.path.due()).min() }
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.lanes.iter().map(|l| l.path.waiting()).sum()
    }

    /// Lets everything pass, or stops doing so. Packets that wait leave as they would have.
    pub fn set_bypass(&mut self, on: bool) {
        self.lanes.iter_mut().for_each(|l| l.path.policy.set_bypass(on));
    }

    /// Whether every frame is accounted for, in total, and by the counts of some queues, of others at every call.
    ///
    /// # Errors
    /// The accounting faults, and their direction.
    pub fn audit(&mut self) -> Result<(), String> {
        for (lane, name) in self.lanes.iter_mut().zip(DIRECTIONS) {
            let next = lane.path.check_totals().and_then(|()| lane.path.check_queues(lane.audited, AUDITED));
            lane.audited = next.map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(())
    }

    /// Whether every frame is accounted for, by all queues' counts too.
    ///
    /// # Errors
    /// The accounting faults, and their direction.
    pub fn check(&self) -> Result<(), String> {
        for (lane, name) in self.lanes.iter().zip(DIRECTIONS) {
            lane.path.check().map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(())
    }
}

/// The mechanisms a file may name.
#[must_use]
pub fn registry() -> Registry {
    Registry::default()
}

#[cfg(test)]
mod tests;
