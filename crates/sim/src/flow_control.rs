//! Priority flow control (IEEE 802.1Q §36, PFC) at a queue: what came over each link and waits there is counted by that link, and a
//! link whose count exceeds `xoff` is paused until it is down to `xon`. Both may lie higher by `alpha` times what is free of a pool, as where a
//! switch's ports share a buffer (Choudhury and Hahne 1998, dynamic thresholds); the pool here is of one queue.
//!
//! A pause frame takes the link's propagation delay; the packet being sent then is finished. All packets are of one priority. Frames are
//! not lost, and do not expire. No headroom is set apart: it is what the queue's limit leaves.
//! A run with it is served by events, and is in one part.

use std::collections::BTreeMap;

use inprofile_core::units::{Bytes, Duration, Rate, Time};

use crate::clock::Clock;
use crate::event::EventKind;
use crate::network::Network;
use crate::world::World;

/// The thresholds of a queue, for what came over one link: in bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// Above this the link is paused.
    pub xoff: Bytes,
    /// At this or below it sends again.
    pub xon: Bytes,
    /// By how much of what is free of the pool both lie higher; 0: fixed thresholds.
    pub alpha: f64,
    /// What all links together may have waiting before nothing is free.
    pub pool: Bytes,
}

impl Pause {
    /// By how much both thresholds lie higher while all links have so many bytes waiting.
    fn raised(&self, waiting: u64) -> u64 {
        (self.alpha * self.pool.0.saturating_sub(waiting) as f64) as u64
    }

    /// The most that links of these rates and delays may have waiting, all together: up to their thresholds, each reached when those before it
    /// have reached theirs, and what a link sends until it heeds the pause, there and back at its rate, with a packet at either end.
    #[must_use]
    pub fn most(&self, links: &[(Rate, Duration)], packet: Bytes) -> Bytes {
        let (xoff, pool) = (self.xoff.0 as f64, self.pool.0 as f64);
        let below = links.iter().fold(0.0, |waiting: f64, _| {
            // The b of b = xoff + alpha · (pool − waiting − b), or xoff where nothing is free.
            waiting + xoff.max((xoff + self.alpha * (pool - waiting)) / (1.0 + self.alpha))
        });
        let on_the_way = links.iter().map(|(rate, delay)| rate.bytes_in(*delay + *delay).ceil() as u64);
        Bytes(below.ceil() as u64 + on_the_way.map(|bytes| bytes + 2 * packet.0).sum::<u64>())
    }
}

/// A packet that waits at no such queue.
const NOWHERE: (u32, u32) = (u32::MAX, u32::MAX);

/// What one link has brought to one queue.
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    bytes: u64,
    /// Since when the queue wants it paused.
    since: Option<Time>,
}

/// What a queue has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paused {
    /// Pauses begun.
    pub pauses: u64,
    /// How long links were to be paused, all together.
    pub time: Duration,
    /// The most bytes that one link had waiting.
    pub most: Bytes,
}

impl Paused {
    /// What was asked for since then.
    pub(crate) fn since(&self, then: &Paused) -> Paused {
        Paused { pauses: self.pauses - then.pauses, time: self.time - then.time, most: self.most }
    }
}

/// The state of all links.
#[derive(Debug)]
pub(crate) struct FlowControl {
    /// The thresholds of each link's queue, if it pauses others.
    queues: Vec<Option<Pause>>,
    /// By queue, then by the link over which packets came.
    ingress: BTreeMap<(u32, u32), Ingress>,
    /// The bytes of all links in each queue.
    waiting: Vec<u64>,
    /// Where the packet in each slot waits, and over which link it came.
    waits: Vec<(u32, u32)>,
    /// By how many queues each link is paused.
    paused: Vec<u32>,
    counts: Vec<Paused>,
}

impl FlowControl {
    /// Nothing is paused; `None`: nothing ever will be.
    pub fn new(network: &Network) -> Option<Box<FlowControl>> {
        let links = network.links.len();
        network.pauses().then(|| {
            Box::new(FlowControl {
                queues: network.links.iter().map(|l| l.pause).collect(),
                ingress: BTreeMap::new(),
                waiting: vec![0; links],
                waits: Vec::new(),
                paused: vec![0; links],
                counts: vec![Paused::default(); links],
            })
        })
    }

    /// A packet that came over a link arrives at a queue. True: that link is to be paused.
    fn arrives(&mut self, slot: u32, (queue, link): (u32, u32), size: u32, now: Time) -> bool {
        let Some(pause) = self.queues[queue as usize] else { return false };
        if self.waits.len() <= slot as usize {
            self.waits.resize(slot as usize + 1, NOWHERE);
        }
        self.waits[slot as usize] = (queue, link);
        let ingress = self.ingress.entry((queue, link)).or_default();
        ingress.bytes += u64::from(size);
        let waiting = &mut self.waiting[queue as usize];
        *waiting += u64::from(size);
        let counts = &mut self.counts[queue as usize];
        counts.most.0 = counts.most.0.max(ingress.bytes);
        if ingress.bytes <= pause.xoff.0 + pause.raised(*waiting) || ingress.since.is_some() {
            return false;
        }
        ingress.since = Some(now);
        counts.pauses += 1;
        true
    }

    /// A packet leaves the queue in which it waits, if it does. The link that may send again.
    fn leaves(&mut self, slot: u32, size: u32, now: Time) -> Option<u32> {
        let place = self.waits.get_mut(slot as usize)?;
        let (queue, link) = std::mem::replace(place, NOWHERE);
        let pause = self.queues.get(queue as usize).copied().flatten()?;
        let ingress = self.ingress.get_mut(&(queue, link))?;
        ingress.bytes -= u64::from(size);
        let waiting = &mut self.waiting[queue as usize];
        *waiting -= u64::from(size);
        if ingress.bytes > pause.xon.0 + pause.raised(*waiting) {
            return None;
        }
        let since = ingress.since.take()?;
        self.counts[queue as usize].time += now.since(since);
        Some(link)
    }

    /// What each link's queue has asked for by `now`, if it may pause others.
    pub fn counts(&self, now: Time) -> Vec<Option<Paused>> {
        let mut counts = self.counts.clone();
        for (&(queue, _), ingress) in &self.ingress {
            if let Some(since) = ingress.since {
                counts[queue as usize].time += now.since(since);
            }
        }
        counts.into_iter().zip(&self.queues).map(|(c, q)| q.map(|_| c)).collect()
    }
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// A packet that came over a link is about to join the queue of another.
    #[inline(never)]
    pub(crate) fn count_in(&mut self, slot: u32, link: u32, queue: u32) {
        let size = self.packets.get(slot).packet.size;
        let (now, delay) = (self.now, self.links[link as usize].delay());
        if let Some(control) = &mut self.flow_control
            && control.arrives(slot, (queue, link), size, now.time())
        {
            self.schedule(now.after(delay), EventKind::FlowControl(link, true));
        }
    }

    /// A packet has left the queue that it waited in, for whatever reason.
    #[inline(never)]
    pub(crate) fn count_out(&mut self, slot: u32) {
        let (now, size) = (self.now, self.packets.get(slot).packet.size);
        if let Some(control) = &mut self.flow_control
            && let Some(link) = control.leaves(slot, size, now.time())
        {
            let delay = self.links[link as usize].delay();
            self.schedule(now.after(delay), EventKind::FlowControl(link, false));
        }
    }

    /// Whether a link that could send now may not, though a packet waits.
    #[inline(never)]
    pub(crate) fn holds(&mut self, link: u32, now: C) -> bool {
        let l = &mut self.links[link as usize];
        let paused = self.flow_control.as_ref().is_some_and(|c| c.paused[link as usize] > 0);
        paused && l.queue.waiting() > 0 && l.hold(now)
    }

    /// A pause frame arrives at the start of a link: to stop, or to go on.
    #[inline(never)]
    pub(crate) fn obey(&mut self, link: u32, stop: bool) {
        let Some(control) = &mut self.flow_control else { return };
        let by = &mut control.paused[link as usize];
        *by = if stop { *by + 1 } else { *by - 1 };
        if *by > 0 {
            return;
        }
        self.catch_up(link);
        if !self.links[link as usize].is_busy() {
            self.start_next(link, self.now);
        }
    }
}
