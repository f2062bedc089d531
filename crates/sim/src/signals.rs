//! Signals between mechanisms, contracts announced to markers, and the answers of oracles.
//!
//! The signals of one tick travel and arrive together, in order; each is lost or not independently. Each path has a
//! random stream of its own, so that a lost signal changes no other draw.

use std::collections::{BTreeMap, VecDeque};

use inprofile_core::packet::FlowId;
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Oracle, Outbox, Signal};
use inprofile_core::units::Duration;

use crate::event::EventKind;
use crate::network::{Flow, LinkId, Network, SignalPath, Target};
use crate::outcome::SignalCounts;

impl Target {
    /// The event of its tick, which identifies a mechanism during a run.
    #[must_use]
    pub fn tick(self) -> EventKind {
        match self {
            // The disciplines of a link's classes tick together, and get the same signals.
            Target::Queue(l) | Target::Class(l, _) => EventKind::QueueTick(l),
            Target::Edge(e) => EventKind::EdgeTick(e),
            Target::Flow(f) => EventKind::HostTick(f),
        }
    }
}

/// A path in a run.
#[derive(Debug)]
struct Path {
    to: Target,
    delay: Duration,
    loss: f64,
    rng: Rng,
    /// One entry for each tick that sent something, in order.
    on_the_way: VecDeque<Vec<Signal>>,
    counts: SignalCounts,
}

/// All paths of a run.
#[derive(Debug, Default)]
pub struct Paths {
    paths: Vec<Path>,
    /// The paths of each sender, by its packed tick.
    by_sender: BTreeMap<u32, Vec<u32>>,
}

impl Paths {
    /// Nothing on its way yet.
    #[must_use]
    pub fn new(paths: Vec<SignalPath>, seed: u64) -> Paths {
        let mut all = Paths::default();
        for (i, p) in (0..).zip(paths) {
            all.by_sender.entry(p.from.tick().pack()).or_default().push(i);
            all.paths.push(Path {
                to: p.to,
                delay: p.delay,
                loss: p.loss,
                rng: Rng::for_component(seed, &format!("signals {}", p.name)),
                on_the_way: VecDeque::new(),
                counts: SignalCounts::default(),
            });
        }
        all
    }

    /// Takes what a mechanism has sent in its tick. Returns the paths on which signals are now on their way, and their
    /// delays.
    pub fn post(&mut self, sender: EventKind, outbox: &Outbox) -> Vec<(u32, Duration)> {
        let Some(own) = self.by_sender.get(&sender.pack()) else { return Vec::new() };
        let mut posted = Vec::new();
        for &i in own {
            let path = &mut self.paths[i as usize];
            let (loss, rng) = (path.loss, &mut path.rng);
            let survives = |_: &&Signal| loss <= 0.0 || rng.uniform() >= loss;
            let survivors: Vec<Signal> = outbox.signals.iter().filter(survives).copied().collect();
            path.counts.sent += outbox.signals.len() as u64;
            path.counts.lost += (outbox.signals.len() - survivors.len()) as u64;
            if !survivors.is_empty() {
                path.on_the_way.push_back(survivors);
                posted.push((i, path.delay));
            }
        }
        posted
    }

    /// Takes the signals that were posted last on a path which ends in another part of the run.
    pub(crate) fn take_posted(&mut self, path: u32) -> Vec<Signal> {
        self.paths[path as usize].on_the_way.pop_back().unwrap_or_default()
    }

    /// Signals of another part of the run are on their way.
    pub(crate) fn expect(&mut self, path: u32, signals: Vec<Signal>) {
        self.paths[path as usize].on_the_way.push_back(signals);
    }

    /// Adds what another part of the run has counted, and what is on its way there.
    pub(crate) fn absorb(&mut self, other: Paths) {
        for (own, other) in self.paths.iter_mut().zip(other.paths) {
            own.counts.sent += other.counts.sent;
            own.counts.lost += other.counts.lost;
            own.counts.delivered += other.counts.delivered;
            own.on_the_way.extend(other.on_the_way);
        }
    }

    /// The oldest signals of a path arrive: the receiver, and the signals.
    pub fn arrive(&mut self, path: u32) -> (Target, Vec<Signal>) {
        let path = &mut self.paths[path as usize];
        let signals = path.on_the_way.pop_front().unwrap_or_default();
        path.counts.delivered += signals.len() as u64;
        (path.to, signals)
    }

    /// The signals of each path, by what became of them.
    ///
    /// # Errors
    /// The counts that do not add up.
    pub fn close(self) -> Result<Vec<SignalCounts>, String> {
        let check = |(i, p): (usize, Path)| {
            let on_the_way: u64 = p.on_the_way.iter().map(|s| s.len() as u64).sum();
            let SignalCounts { sent, lost, delivered } = p.counts;
            if sent == lost + delivered + on_the_way {
                return Ok(p.counts);
            }
            Err(format!(
                "signal path {i}: {sent} sent, {lost} lost, {delivered} delivered, {on_the_way} on their way"
            ))
        };
        self.paths.into_iter().enumerate().map(check).collect()
    }
}

/// Answers to mechanisms that ask for what they could not know: round-trip times, windows.
#[derive(Debug, Default)]
pub struct Oracles {
    /// At time 0.
    first: Vec<(Target, Signal)>,
    /// By packed tick: the flows that pass.
    before_ticks: BTreeMap<u32, Vec<CrossingFlow>>,
}

/// A flow as [`Oracle::Window`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct CrossingFlow {
    /// Which.
    pub flow: u32,
    /// The receiver's window in segments.
    pub most: f64,
    /// A full segment on the wire, in bytes.
    pub packet: f64,
}

impl Oracles {
    /// Whatever the network's mechanisms ask for.
    #[must_use]
    pub fn of(network: &Network) -> Oracles {
        let mut oracles = Oracles::default();
        let flows = || (0..).zip(&network.flows);
        for (i, e) in (0..).zip(&network.edges) {
            // An edge sees what arrives at its node over a link and leaves it again.
            let passes = |f: &Flow| match f.path.split_last() {
                Some((_, on_the_way)) => on_the_way.iter().any(|&l| network.links[l as usize].to == e.node),
                None => false,
            };
            let passing = || flows().filter(|(_, f)| passes(f));
            oracles.contracts(Target::Edge(i), passing());
            oracles.ask(network, Target::Edge(i), e.marker.oracle(), passing());
        }
        for (i, l) in (0..).zip(&network.links) {
            // If several classes ask for the same, one signal is enough: it reaches all of them.
            for wants in [Oracle::Rtt, Oracle::Window] {
                if l.queue.aqms().any(|aqm| aqm.oracle() == Some(wants)) {
                    let passing = flows().filter(|(_, f)| f.path.contains(&i));
                    oracles.ask(network, Target::Queue(i), Some(wants), passing);
                }
            }
        }
        // A flow's own marker sees that flow alone.
        for own in flows() {
            if let Some(marker) = &own.1.marker {
                oracles.contracts(Target::Flow(own.0), std::iter::once(own));
                oracles.ask(network, Target::Flow(own.0), marker.oracle(), std::iter::once(own));
            }
        }
        oracles
    }

    /// Contracts are no secret: a marker's operator knows those of the flows that pass it.
    fn contracts<'n>(&mut self, who: Target, flows: impl Iterator<Item = (u32, &'n Flow)>) {
        for (i, f) in flows {
            if let Some(rate) = f.contract {
                let signal = Signal { topic: "contract", flow: Some(FlowId(i)), value: rate.0 as f64 };
                self.first.push((who, signal));
            }
        }
    }

    fn ask<'n>(
        &mut self,
        network: &Network,
        who: Target,
        wants: Option<Oracle>,
        flows: impl Iterator<Item = (u32, &'n Flow)>,
    ) {
        let Some(wants) = wants else { return };
        for (i, f) in flows {
            match wants {
                Oracle::Rtt => {
                    let links: &[LinkId] = &[f.path.as_slice(), f.back.as_slice()].concat();
                    let rtt: u64 = links.iter().map(|&l| network.links[l as usize].delay.0).sum();
                    let value = Duration(rtt).secs();
                    self.first.push((who, Signal { topic: "rtt", flow: Some(FlowId(i)), value }));
                }
                Oracle::Window => {
                    let Some(tcp) = f.transport.tcp() else { continue };
                    let (most, packet) = (f64::from(tcp.window), f64::from(tcp.packet()));
                    let passing = CrossingFlow { flow: i, most, packet };
                    self.before_ticks.entry(who.tick().pack()).or_default().push(passing);
                }
            }
        }
    }

    /// The signals sent once, at time 0.
    pub fn take_first(&mut self) -> Vec<(Target, Signal)> {
        std::mem::take(&mut self.first)
    }

    /// The flows whose windows the mechanism is told before this tick.
    #[must_use]
    pub fn before(&self, tick: EventKind) -> &[CrossingFlow] {
        if self.before_ticks.is_empty() {
            return &[];
        }
        self.before_ticks.get(&tick.pack()).map_or(&[], Vec::as_slice)
    }
}

impl CrossingFlow {
    /// The signal: how many bytes a sender with this congestion window (in segments) may have in flight.
    #[must_use]
    pub fn window(&self, cwnd: f64) -> Signal {
        let value = cwnd.min(self.most) * self.packet;
        Signal { topic: "window", flow: Some(FlowId(self.flow)), value }
    }
}
