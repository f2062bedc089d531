//! From the model and a seed to a network: creates hosts, draws start times and sizes, builds mechanisms.

use std::sync::Arc;

use inprofile_core::params::{Context, Values};
use inprofile_core::queue::scheduled::Setup;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_sim::network::{self, Network, SignalPath, Target as Seen, Transport};
use inprofile_sim::traffic::distribution::Distribution;
use inprofile_sim::wire::{Jitter, Law, Wire};

use crate::model::{
    Delay, Distributions, Group, Model, Queue, Queues, Scheduled, Signals, Source, Start, Target, Turn, Way,
    packet,
};
use crate::traffic::{Traffic, Web, no_context, segments};

/// The network of this seed. Links of the file come first, forward 2k and reverse 2k + 1; then two for
/// each host, to the network and from it, in the order of flows.
pub(crate) fn network(model: &Model, seed: u64, trace: bool) -> Network {
    let flows = model.flows();
    let mut net = Network {
        nodes: model.nodes.clone(),
        links: Vec::with_capacity(2 * (model.links.len() + flows)),
        flows: Vec::with_capacity(flows),
        edges: model.edges.iter().map(|e| edge(model, e)).collect(),
        pages: Vec::new(),
        signals: Vec::new(),
        monitors: Vec::new(),
        measure: model.distributions.map(|d| measure(model, d)),
        duration: model.duration,
        window: model.window,
        seed,
        profile: model.profile,
        trace,
    };
    let size = packet(&model.tcp);
    for (k, link) in model.links.iter().enumerate() {
        let (from, to) = link.ends;
        for (i, ends) in [(0, (from, to)), (1, (to, from))] {
            let direction = &link.directions[i];
            let queue = match &direction.queue {
                Queues::One(queue) => one(queue, direction.rate, size),
                Queues::Scheduled(scheduled) => classes(model, scheduled, direction.rate, size),
            };
            let (rate, delay, capacity) = (direction.rate, direction.delay, direction.capacity.clone());
            let wire = wire(&direction.way, delay);
            let access = direction.access.as_ref().map(Turn::access);
            net.links.push(network::Link {
                name: model.direction_name(2 * k + i),
                from: ends.0,
                to: ends.1,
                rate,
                capacity,
                access,
                delay,
                wire,
                queue,
                reported: true,
                pause: direction.pause,
                ack_filter: direction.ack_filter,
            });
        }
    }
    // One draw per flow, needed or not, so that a change to one group does not move the starts of the others.
    let mut rng = Rng::for_component(seed, "start");
    let mut first = Vec::with_capacity(model.groups.len());
    for group in &model.groups {
        first.push(net.flows.len() as u32);
        let mut arrival = 0.0;
        for i in 0..group.count {
            let start = start(&group.start, i, &mut rng, &mut arrival);
            let class = group.class.as_ref().map_or(0, |name| model.class_number(name));
            let flow = flow(&mut net, group, i, start, class);
            net.flows.push(flow);
        }
        if let Traffic::Web(web) = group.sends() {
            pages(&mut net, group, &web, group.count);
        }
    }
    net.signals = model.signals.iter().flat_map(|s| paths(model, s, &first)).collect();
    for monitor in &model.monitors {
        for (target, one, _) in single(model, monitor.target, &first) {
            let name = model.target_name(one);
            net.monitors.push(network::Monitor { name, target, every: monitor.every });
        }
    }
    let addresses: Arc<[(u32, u32)]> = net.flows.iter().map(|f| (f.from, f.to)).collect();
    for link in &mut net.links {
        if let network::Queue::One { aqm, .. } = &mut link.queue {
            aqm.tell_addresses(&addresses);
        }
    }
    net
}

/// The pages of a group of connections, which are the last `count` flows: each has so many connections in a row, and the
/// clients take turns. A client's first page begins with its first connection, later ones when the page before is there.
fn pages(net: &mut Network, group: &Group, web: &Web, count: usize) {
    let (first, before) = (net.flows.len() - count, net.pages.len() as u32);
    let (each, clients) = (web.connections as usize, web.clients as usize);
    let in_all = count / each;
    for k in 0..in_all {
        let mut rng = Rng::for_component(net.seed, &format!("objects {}, page {k}", group.name));
        let object = |_| {
            let drawn = web.law.draw(web.object.amount(), &mut rng);
            segments(web.object, drawn, group.tcp.segment)
        };
        let from = first + k * each;
        let start = if k < clients { net.flows[from].start } else { after(net.duration) };
        for (i, flow) in (from..).zip(&mut net.flows[from..from + each]) {
            flow.start = start;
            if let Transport::Web(_, page) = &mut flow.transport {
                *page = before + ((i - first) / each) as u32;
            }
        }
        net.pages.push(network::Page {
            number: (k / clients) as u32,
            connections: from as u32..(from + each) as u32,
            objects: (0..web.objects).map(object).collect(),
            think: web.think,
            next: (k + clients < in_all).then_some(before + (k + clients) as u32),
        });
    }
}

/// A start that never comes by itself.
fn after(duration: Duration) -> Time {
    Time(duration.0.saturating_add(1))
}

/// The measurements beyond counts.
fn measure(model: &Model, distributions: Distributions) -> network::Measure {
    let group = |(number, group): (u32, &Group)| std::iter::repeat_n(number, group.count);
    network::Measure {
        groups: (0..).zip(&model.groups).flat_map(group).collect(),
        link: model.at as u32,
        every: distributions.every,
    }
}

/// Each mechanism or flow that a target stands for: in the network, in the model, and its number within the group. `first`
/// is the number of each group's first flow.
fn single<'m>(
    model: &'m Model,
    target: Target,
    first: &'m [u32],
) -> impl Iterator<Item = (Seen, Target, usize)> + Clone + 'm {
    let range = match target {
        Target::Group(g) => 0..model.groups[g].count,
        Target::Flow(_, i) => i..i + 1,
        Target::Queue(_) | Target::Class(..) | Target::Edge(_) => 0..1,
    };
    range.map(move |i| match target {
        Target::Queue(direction) => (Seen::Queue(direction as u32), target, i),
        Target::Class(direction, class) => (Seen::Class(direction as u32, class as u32), target, i),
        Target::Edge(e) => (Seen::Edge(e as u32), target, i),
        Target::Group(g) | Target::Flow(g, _) => (Seen::Flow(first[g] + i as u32), Target::Flow(g, i), i),
    })
}

/// One path for each pair of mechanisms that are connected.
fn paths<'m>(model: &'m Model, s: &'m Signals, first: &'m [u32]) -> impl Iterator<Item = SignalPath> + 'm {
    let receivers = single(model, s.to, first);
    single(model, s.from, first).flat_map(move |(from, sender, i)| {
        receivers.clone().map(move |(to, receiver, j)| SignalPath {
            name: format!("{} to {}", model.target_name(sender), model.target_name(receiver)),
            from,
            to,
            loss: s.loss,
            delay: match s.delay {
                Delay::Set(delay) => delay,
                Delay::Route(route) => {
                    let [up, _] = model.joining_delays(sender, i);
                    let [_, down] = model.joining_delays(receiver, j);
                    up + route + down
                }
            },
        })
    })
}

/// The start of the i-th flow; `arrival`: the sum of the intervals drawn so far for its group, in ps.
fn start(start: &Start, i: usize, rng: &mut Rng, arrival: &mut f64) -> Time {
    match start {
        Start::Arrivals(first, every, Distribution::Fixed) => {
            rng.uniform();
            *first + Duration(every.0 * i as u64)
        }
        Start::Arrivals(first, every, law) => {
            *arrival += law.draw(every.0 as f64, rng);
            Time(first.0.saturating_add(*arrival as u64))
        }
        Start::At(times) => {
            rng.uniform();
            times.get(i)
        }
        Start::Uniform(low, high) => *low + Duration(((high.0 - low.0) as f64 * rng.uniform()) as u64),
    }
}

/// The traffic of a group's i-th flow, its size drawn; it leaves by a port of this rate.
fn transport(group: &Group, i: usize, port: Option<Rate>, seed: u64) -> Transport {
    let mut tcp = group.tcp.clone();
    tcp.settings.line_rate = tcp.settings.line_rate.or(port);
    match group.sends() {
        Traffic::Bulk => Transport::Tcp(tcp),
        Traffic::Udp(udp) => Transport::Udp(udp),
        Traffic::Video(video) => Transport::Video(tcp, video),
        // Its page is set once all connections are there.
        Traffic::Web(_) => Transport::Web(tcp, 0),
        Traffic::Transfer(size, law) => {
            let mut rng = Rng::for_component(seed, &format!("size {}", group.flow_name(i)));
            let drawn = law.draw(size.amount(), &mut rng);
            Transport::Transfer(tcp, segments(size, drawn, group.tcp.segment))
        }
    }
}

fn edge(model: &Model, edge: &crate::model::Edge) -> network::Edge {
    let marker = (edge.marker.build)(&edge.marker.values, &model.edge_context(edge));
    network::Edge { name: model.nodes[edge.node as usize].clone(), node: edge.node, marker }
}

fn one(Queue { aqm, limit, .. }: &Queue, rate: Rate, packet: Bytes) -> network::Queue {
    let context = Context { link_rate: Some(rate), contract: None, packet, limit: Some(*limit) };
    network::Queue::One { aqm: (aqm.build)(&aqm.values, &context), limit: *limit }
}

/// What happens to packets on a link of this delay, beyond it.
fn wire(way: &Way, delay: Duration) -> Wire {
    let drawn = way.jitter.as_ref().map(|j| (j.build)(&j.values, &no_context()));
    let jitter = drawn.or_else(|| {
        let (steps, repeat) = way.delays.clone()?;
        let beyond = steps.into_iter().map(|(at, d)| (at, Duration(d.0 - delay.0)));
        let law = Law::Steps([(Time::ZERO, Duration::ZERO)].into_iter().chain(beyond).collect(), repeat);
        Some(Jitter { law, most: None, hold: Duration::ZERO, reorder: false })
    });
    Wire { jitter, loss: way.loss.as_ref().map(|l| (l.build)(&l.values, &no_context())) }
}

fn classes(model: &Model, scheduled: &Scheduled, rate: Rate, packet: Bytes) -> network::Queue {
    let context = Context { link_rate: Some(rate), contract: None, packet, limit: None };
    let values: Vec<Values> = scheduled.classes.iter().map(|c| c.values.clone()).collect();
    let class = |c: &crate::model::Class| {
        let Queue { aqm, limit, .. } = &c.queue;
        let context = Context { link_rate: Some(c.rate_before(rate)), limit: Some(*limit), ..context };
        let (number, aqm) = (model.class_number(&c.name), (aqm.build)(&aqm.values, &context));
        network::Class {
            name: c.name.clone(),
            setup: Setup { number, limit: *limit, aqm, rate: c.rate, burst: c.burst },
        }
    };
    network::Queue::Scheduled(network::Scheduled {
        scheduler: (scheduled.build)(&values, &context),
        classes: scheduled.classes.iter().map(class).collect(),
    })
}

/// The i-th flow of a group; its host and both directions of its access link are added to the network.
fn flow(net: &mut Network, group: &Group, i: usize, start: Time, class: u8) -> network::Flow {
    let name = group.flow_name(i);
    let size = group.packet();
    let contract = group.contract(i);
    let context = Context { link_rate: None, contract, packet: size, limit: None };
    let (mut path, mut back) = (group.route.path.clone(), group.route.back.clone());
    let from = match &group.source {
        Source::Node(node) => *node,
        Source::Hosts(join) => {
            let host = net.nodes.len() as u32;
            net.nodes.push(name.clone());
            // Checked when the experiment was read: every round-trip time leaves room for the links.
            let (up, down) = group.route.joining(join.rtt.get(i)).unwrap_or_default();
            let up_link = net.links.len() as u32;
            for (suffix, ends, delay) in
                [("join", (host, join.node), up), ("join.reverse", (join.node, host), down)]
            {
                net.links.push(network::Link {
                    name: format!("{name}.{suffix}"),
                    from: ends.0,
                    to: ends.1,
                    rate: join.rate,
                    capacity: None,
                    access: None,
                    delay,
                    wire: Wire::default(),
                    queue: one(&join.queue, join.rate, size),
                    reported: false,
                    pause: None,
                    ack_filter: false,
                });
            }
            path.insert(0, up_link);
            back.push(up_link + 1);
            host
        }
    };
    let port = path.first().map(|link| net.links[*link as usize].rate);
    network::Flow {
        name,
        from,
        to: group.to,
        path,
        back,
        start,
        contract,
        marker: group.marker.as_ref().map(|m| (m.build)(&m.values, &context)),
        class,
        stop: group.stop.as_ref().map(|s| s.get(i)),
        transport: transport(group, i, port, net.seed),
    }
}
