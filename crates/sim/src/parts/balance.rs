//! Where to cut a network, so that every part has about as much to do: an estimate from rates, before anything runs.
//!
//! Sets of nodes that stay together are handed out, the largest first, each to the part that would then be done soonest; or parts are grown,
//! each from the largest set that is left, along links with most packets. Then sets are moved while that helps, and the faster of both cuts
//! counts. A longer lookahead means fewer meetings, but larger sets; a few lengths are tried.

use std::collections::BinaryHeap;

use inprofile_core::units::Duration;

use crate::network::{Network, Transport};
use crate::parts::cut::{Cut, keeps_whole, together};
use crate::plan::shares;

/// What is done for a data packet and its acknowledgement, in nanoseconds: at the sender, at the receiver, at a link that is reported, at
/// one of a flow's own; at each end of a link from one part to another. In proportion as `bench-parts` measures them in a tree of ten
/// thousand flows, and as long as they take where everything is in a cache near the processor.
const SEND: f64 = 190.0;
const RECEIVE: f64 = 100.0;
const LINK: f64 = 40.0;
const OWN_LINK: f64 = 5.0;
const CROSS: f64 = 14.0;
/// A flow made ready, in every part; likewise.
const SET_UP: f64 = 1000.0;
/// A meeting of all threads, in nanoseconds.
const MEETING: f64 = 3000.0;
/// How many lengths of lookahead are tried.
const LENGTHS: usize = 6;
/// How many times as fast as in one piece a run must be expected to be.
const LEAST: f64 = 1.1;
/// How often all sets are looked at whether to move them.
const PASSES: usize = 4;

/// A cut, and what is expected of it.
#[derive(Clone, Debug)]
pub struct Balanced {
    /// The cut.
    pub cut: Cut,
    /// What is done in one piece for each second of the run, in seconds.
    pub work: f64,
    /// How many packets go from one part to another each second.
    pub crossing: f64,
    /// How many times as fast as in one piece the run should be, if each part has a core.
    pub speed_up: f64,
    /// The share of the work in the part with most of it.
    pub largest: f64,
    /// Why it is in one piece, if it is.
    pub whole: Option<&'static str>,
}

/// The best cut into at most so many parts; in one piece where none is expected to be a tenth faster.
#[must_use]
pub fn balanced(network: &Network, parts: u32) -> Balanced {
    let found = best(network, parts);
    if found.whole.is_none() && found.speed_up < LEAST {
        return whole(network, "waiting and what crosses would cost more than parts save");
    }
    found
}

/// The best cut into at most so many parts, whether it is expected to be faster or not; in one piece where there is none.
#[must_use]
pub fn best(network: &Network, parts: u32) -> Balanced {
    if parts < 2 {
        return whole(network, "one thread was asked for");
    }
    if let Some(why) = keeps_whole(network) {
        return whole(network, why);
    }
    let load = Load::of(network);
    let tried = lengths(network).into_iter().map(|shortest| try_length(network, &load, parts, shortest));
    let tried = tried.filter(|b| b.cut.parts() > 1);
    let found = tried.max_by(|a, b| a.speed_up.total_cmp(&b.speed_up));
    found.unwrap_or_else(|| whole(network, "no link with a delay divides it"))
}

fn whole(network: &Network, why: &'static str) -> Balanced {
    Balanced {
        cut: Cut::none(network),
        work: 0.0,
        crossing: 0.0,
        speed_up: 1.0,
        largest: 1.0,
        whole: Some(why),
    }
}

/// Lengths of lookahead to try: of the delays that there are, the longest first.
fn lengths(network: &Network) -> Vec<Duration> {
    let mut all: Vec<Duration> = network.links.iter().map(|l| l.delay).filter(|d| d.0 > 0).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    let last = all.len().saturating_sub(1);
    let tried = LENGTHS.min(all.len());
    (0..tried).map(|i| all[if tried > 1 { i * last / (tried - 1) } else { 0 }]).collect()
}

/// What is done each second.
struct Load {
    /// At each node, in nanoseconds.
    nodes: Vec<f64>,
    /// Packets over each link.
    links: Vec<f64>,
}

impl Load {
    fn of(network: &Network) -> Load {
        let mut load = Load { nodes: vec![0.0; network.nodes.len()], links: vec![0.0; network.links.len()] };
        for (f, fair) in network.flows.iter().zip(shares(network)) {
            let bits = 8.0 * f64::from(f.transport.packet().max(1));
            let asked = match &f.transport {
                Transport::Udp(udp) => udp.rate.0 as f64,
                Transport::Video(_, video) => video.highest.0 as f64,
                _ => f64::INFINITY,
            };
            let rate = fair.min(asked);
            let packets = if rate.is_finite() { rate / bits } else { 0.0 };
            load.nodes[f.from as usize] += packets * SEND;
            load.nodes[f.to as usize] += packets * RECEIVE;
            let back = if f.transport.tcp().is_some() { f.back.as_slice() } else { &[] };
            for &l in f.path.iter().chain(back) {
                let link = &network.links[l as usize];
                load.links[l as usize] += packets;
                load.nodes[link.from as usize] += packets * if link.reported { LINK } else { OWN_LINK };
            }
        }
        load
    }
}

/// The best cut whose lookahead is at least this.
fn try_length(network: &Network, load: &Load, parts: u32, shortest: Duration) -> Balanced {
    let mut together = together(network, shortest);
    let nodes = network.nodes.len() as u32;
    let first: Vec<u32> = (0..nodes).map(|node| together.first(node)).collect();
    let mut number = vec![0u32; nodes as usize];
    let mut sets = Sets { work: Vec::new(), beside: Vec::new() };
    for node in 0..nodes as usize {
        if first[node] as usize == node {
            number[node] = sets.work.len() as u32;
            sets.work.push(0.0);
        }
        number[node] = number[first[node] as usize];
        sets.work[number[node] as usize] += load.nodes[node];
    }
    sets.beside = vec![Vec::new(); sets.work.len()];
    for (link, packets) in network.links.iter().zip(&load.links) {
        let (a, b) = (number[link.from as usize], number[link.to as usize]);
        if a != b {
            sets.beside[a as usize].push((b, *packets));
            sets.beside[b as usize].push((a, *packets));
        }
    }
    let all = sets.work.iter().sum::<f64>();
    let judged = |part: Vec<u32>| {
        let cut = Cut::wanted(network, |node| part[number[node as usize] as usize]);
        let work = sets.done_by(&part, parts);
        let largest = work.iter().copied().fold(0.0, f64::max);
        let meetings = 1e12 / cut.lookahead().0.max(1) as f64;
        let (ready, time) = (SET_UP * network.flows.len() as f64, network.duration.secs());
        let in_parts = ready + (largest + meetings * MEETING) * time;
        let speed_up = (ready + all * time) / in_parts;
        let crossing =
            network.links.iter().zip(&load.links).filter(|(l, _)| cut.crosses(l)).map(|(_, n)| n).sum();
        let largest = largest / work.iter().sum::<f64>();
        Balanced { work: all / 1e9, crossing, speed_up, largest, whole: None, cut }
    };
    let (spread, grown) = (judged(sets.spread(parts)), judged(sets.grown(parts)));
    if spread.speed_up > grown.speed_up { spread } else { grown }
}

/// The part of a set that has none yet.
const NOWHERE: u32 = u32::MAX;

/// Sets of nodes that stay together.
struct Sets {
    /// What is done for each every second, in nanoseconds.
    work: Vec<f64>,
    /// The others that it has links with, and packets over them.
    beside: Vec<Vec<(u32, f64)>>,
}

impl Sets {
    /// The part of each: the largest first, each to the part that would then be done soonest.
    fn spread(&self, parts: u32) -> Vec<u32> {
        let mut part = vec![NOWHERE; self.work.len()];
        self.improve(&mut part, parts);
        part
    }

    /// The part of each: one part after another begins with the largest that has none yet, and takes those whose packets go there
    /// rather than elsewhere, until it has its share of what is left.
    fn grown(&self, parts: u32) -> Vec<u32> {
        let order = self.largest_first();
        let all_packets: Vec<f64> = self.beside.iter().map(|b| b.iter().map(|(_, n)| n).sum()).collect();
        let mut part = vec![NOWHERE; self.work.len()];
        let mut left: f64 = self.work.iter().sum();
        for p in 0..parts - 1 {
            let share = left / f64::from(parts - p);
            let mut done = 0.0;
            let mut near = BinaryHeap::new();
            let mut packets_there = vec![0.0; self.work.len()];
            for &begin in &order {
                near.push((0, 0, begin));
                while let Some((_, packets, set)) = near.pop() {
                    let over = done + self.work[set] - share;
                    let overtaken = packets < packets_there[set] as u64;
                    if part[set] != NOWHERE || overtaken || done > 0.0 && over > share - done {
                        continue;
                    }
                    part[set] = p;
                    done += self.work[set];
                    for &(other, packets) in &self.beside[set] {
                        let other = other as usize;
                        let there = &mut packets_there[other];
                        *there += packets;
                        near.push((
                            (1000.0 * *there / all_packets[other].max(1.0)) as u64,
                            *there as u64,
                            other,
                        ));
                    }
                }
                if done >= share {
                    break;
                }
            }
            left -= done;
        }
        part.iter_mut().filter(|p| **p == NOWHERE).for_each(|p| *p = parts - 1);
        self.improve(&mut part, parts);
        part
    }

    fn largest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.work.len()).collect();
        order.sort_by(|a, b| self.work[*b].total_cmp(&self.work[*a]).then(a.cmp(b)));
        order
    }

    /// Sets are handed out, or moved, to the part where they cost least, while that helps.
    fn improve(&self, part: &mut [u32], parts: u32) {
        let order = self.largest_first();
        let each = self.work.iter().sum::<f64>() / f64::from(parts);
        let mut done = vec![0.0; parts as usize];
        part.iter()
            .zip(&self.work)
            .filter(|(p, _)| **p != NOWHERE)
            .for_each(|(p, work)| done[*p as usize] += work);
        for pass in 0..=PASSES {
            let mut moved = false;
            for &set in &order {
                let before = part[set];
                if before != NOWHERE {
                    done[before as usize] -= self.work[set];
                }
                // Up to its share a part takes what belongs to it; beyond that, what others would take longer for.
                let costs = |p: u32| {
                    let apart = self.beside[set].iter().filter(|(other, _)| {
                        let there = part[*other as usize];
                        there != NOWHERE && there != p
                    });
                    let crossing = CROSS * apart.map(|(_, packets)| packets).sum::<f64>();
                    (done[p as usize] + self.work[set]).max(each) + crossing
                };
                let best =
                    (0..parts).map(|p| (costs(p), p)).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let to = best.map_or(0, |(_, p)| p);
                moved |= to != before;
                part[set] = to;
                done[to as usize] += self.work[set];
            }
            if !moved && pass > 0 {
                break;
            }
        }
    }

    /// What each part does every second, in nanoseconds, with what crosses its border.
    fn done_by(&self, part: &[u32], parts: u32) -> Vec<f64> {
        let mut done = vec![0.0; parts as usize];
        for (set, work) in self.work.iter().enumerate() {
            let here = part[set];
            let apart = self.beside[set].iter().filter(|(other, _)| part[*other as usize] != here);
            done[here as usize] += work + CROSS * apart.map(|(_, packets)| packets).sum::<f64>();
        }
        done
    }
}
