//! Names of a network's parts, kept after the network is gone: what the numbers in an outcome stand for.

use inprofile_sim::network::{Link, Network, Target, Transport};
use inprofile_sim::outcome::VerdictPoint;

/// The names of a network's numbered parts, and the content of its transfers.
pub struct Names {
    /// Of every link.
    pub links: Packed,
    /// Of links up to the last one that is reported.
    pub reported: Vec<LinkNames>,
    pub edges: Vec<String>,
    pub flows: Packed,
    /// Payload of each transfer in bytes, up to the last one.
    sizes: Vec<Option<f64>>,
    pub monitors: Vec<String>,
    /// Sender, receiver, delay and probability of loss of each signal path.
    pub signals: Vec<(String, String, f64, f64)>,
}

/// One link: what its classes are called, whether it is in the results, and its rate in bit/s.
pub struct LinkNames {
    pub classes: Vec<String>,
    pub reported: bool,
    /// `None`: it changes.
    pub rate: Option<u64>,
}

/// The name of one of a link's classes.
fn class_name(link: &Link, class: usize) -> String {
    format!("{}/{}", link.name, link.queue.classes()[class].name)
}

impl LinkNames {
    fn of(link: &Link) -> LinkNames {
        LinkNames {
            classes: (0..link.queue.classes().len()).map(|c| class_name(link, c)).collect(),
            reported: link.reported,
            rate: (link.capacity.is_none() && link.access.is_none()).then_some(link.rate.0),
        }
    }
}

/// Texts one behind the other, as a hundred thousand hosts have three hundred thousand names.
pub struct Packed {
    all: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Packed {
    fn of<'a>(texts: impl ExactSizeIterator<Item = &'a String> + Clone) -> Packed {
        let mut packed = Packed {
            all: String::with_capacity(texts.clone().map(String::len).sum()),
            ends: Vec::with_capacity(texts.len()),
        };
        for text in texts {
            packed.all.push_str(text);
            packed.ends.push(packed.all.len());
        }
        packed
    }

    pub fn get(&self, i: u32) -> &str {
        let i = i as usize;
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.all[from..self.ends[i]]
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|i| self.get(i))
    }
}

impl Names {
    /// Those of a network.
    pub fn of(network: &Network) -> Names {
        let transfers = network.flows.iter().rposition(|f| size(&f.transport).is_some()).map_or(0, |i| i + 1);
        let last = network.links.iter().rposition(|l| l.reported).map_or(0, |i| i + 1);
        let name = |target: Target| match target {
            Target::Queue(l) => network.links[l as usize].name.clone(),
            Target::Class(l, c) => class_name(&network.links[l as usize], c as usize),
            Target::Flow(f) => network.flows[f as usize].name.clone(),
            Target::Edge(e) => network.edges[e as usize].name.clone(),
        };
        let signals: Vec<_> =
            network.signals.iter().map(|s| (name(s.from), name(s.to), s.delay.secs(), s.loss)).collect();
        Names {
            monitors: network.monitors.iter().map(|m| name(m.target)).collect(),
            signals,
            links: Packed::of(network.links.iter().map(|l| &l.name)),
            reported: network.links[..last].iter().map(LinkNames::of).collect(),
            edges: network.edges.iter().map(|e| e.name.clone()).collect(),
            flows: Packed::of(network.flows.iter().map(|f| &f.name)),
            sizes: network.flows[..transfers].iter().map(|f| size(&f.transport)).collect(),
        }
    }

    /// Of links up to the last one that is reported.
    pub fn of_reported(&self) -> Vec<&str> {
        self.links.iter().take(self.reported.len()).collect()
    }

    /// Payload of a flow's transfer in bytes, if it is one.
    pub fn size(&self, flow: usize) -> Option<f64> {
        self.sizes.get(flow).copied().flatten()
    }

    pub fn place(&self, place: VerdictPoint, flow: u32) -> &str {
        match place {
            VerdictPoint::Queue(l) | VerdictPoint::Link(l) => self.links.get(l),
            VerdictPoint::Edge(e) => &self.edges[e as usize],
            VerdictPoint::Host => self.flows.get(flow),
        }
    }
}

/// Payload of a transfer in bytes; other traffic has no end.
fn size(transport: &Transport) -> Option<f64> {
    match transport {
        Transport::Transfer(tcp, segments) => Some(f64::from(tcp.segment) * f64::from(*segments)),
        Transport::Tcp(_) | Transport::Udp(_) | Transport::Web(..) | Transport::Video(..) => None,
    }
}
