//! What the tests of mechanisms share: the names that nearly all of them use, a queue as long as the test says, and one under a
//! discipline that the test feeds and drains by hand.

use std::collections::BTreeMap;

pub use crate::params::Params as _;
pub(crate) use crate::params::{defaults, fields};
pub use crate::prelude::*;
pub use crate::queue::fifo::{Fifo, Stamped};
pub use crate::registry::AnyAqm;
pub use crate::rng::Rng;
pub use crate::verdict::Notes;
pub use proptest::prelude::*;

/// In picoseconds.
pub const MS: u64 = 1_000_000_000;

/// A packet takes 1 ms.
pub const CONTEXT: Context = Context {
    link_rate: Some(Rate(8_000_000)),
    contract: None,
    packet: Bytes(1000),
    limit: Some(Backlog::Packets(1000.0)),
};

/// A place for packets of 1,000 B before a link of this rate, with so much room.
pub fn context(link_rate: Option<Rate>, limit: impl Into<Option<Backlog>>) -> Context {
    Context { link_rate, contract: None, packet: Bytes(1000), limit: limit.into() }
}

/// Counts a verdict, as a queue does.
pub fn count(counts: &mut Counts, colour: Colour, verdict: Admission) {
    match verdict {
        Admission::Admit => {}
        Admission::Mark => counts.marked[colour as usize] += 1,
        Admission::Drop(cause) => counts.dropped[cause.index()][colour as usize] += 1,
    }
}

/// All that a discipline shows, given what its queue has counted.
pub fn shown(aqm: &dyn Aqm, counts: &Counts) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    aqm.show_counts(counts, &mut |name, n| assert!(all.insert(name, n).is_none(), "{name} twice"));
    all
}

/// Lengths as set; packets are of 1,000 B.
#[derive(Clone, Debug)]
pub struct Fake {
    /// By colour.
    pub packets: [u32; 3],
    /// In packets.
    pub limit: f64,
    /// Since when the link is idle, if it is.
    pub idle: Option<Time>,
}

impl Fake {
    /// So many IN and OUT packets wait, and the link is busy.
    pub fn of(ins: u32, outs: u32) -> Fake {
        Fake { packets: [ins, outs, 0], limit: 1e9, idle: None }
    }
}

impl Queue for Fake {
    fn packets(&self) -> u32 {
        self.packets.iter().sum()
    }
    fn bytes(&self) -> u64 {
        u64::from(self.packets()) * 1000
    }
    fn packets_of(&self, colour: Colour) -> u32 {
        self.packets[colour as usize]
    }
    fn bytes_of(&self, colour: Colour) -> u64 {
        u64::from(self.packets_of(colour)) * 1000
    }
    fn limit(&self) -> Backlog {
        Backlog::Packets(self.limit)
    }
    fn fits(&self, _: u32) -> bool {
        f64::from(self.packets()) < self.limit
    }
    fn idle_since(&self) -> Option<Time> {
        self.idle
    }
}

/// A packet that left a [`Bench`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Which one, counted from 0.
    pub number: u32,
    /// Whose.
    pub flow: u32,
    /// Its code point now.
    pub ecn: Ecn,
    /// How long it waited.
    pub waited: Duration,
}

impl Left {
    /// Which one it is, and whether it is marked.
    pub fn marked(self) -> (u32, bool) {
        (self.number, self.ecn == Ecn::Experienced)
    }

    /// Which one it is, and whose.
    pub fn of_flow(self) -> (u32, u32) {
        (self.number, self.flow)
    }
}

/// A queue under a discipline that a test feeds and drains by hand. Packets are numbered as they arrive.
pub struct Bench {
    pub queue: Fifo<Stamped>,
    pub aqm: AnyAqm,
    pub rng: Rng,
    pub now: Time,
    due: Option<Time>,
    pub arrived: u32,
    /// Which packets were dropped at the head.
    pub dropped: Vec<u32>,
    /// And why.
    pub causes: Vec<Cause>,
    /// Which were dropped in favour of others.
    pub evicted: Vec<u32>,
    /// And whose they were.
    pub evicted_flows: Vec<u32>,
}

impl Bench {
    pub fn new(aqm: AnyAqm, limit: Backlog) -> Bench {
        Bench {
            queue: Fifo::before(limit, &aqm),
            aqm,
            rng: Rng::for_component(1, "bench"),
            now: Time::ZERO,
            due: Some(Time::ZERO),
            arrived: 0,
            dropped: Vec::new(),
            causes: Vec::new(),
            evicted: Vec::new(),
            evicted_flows: Vec::new(),
        }
    }

    /// Whose random numbers are those of this component.
    pub fn drawing(self, seed: u64, component: &str) -> Bench {
        Bench { rng: Rng::for_component(seed, component), ..self }
    }

    /// Lets time pass, and updates that are due happen.
    pub fn to(&mut self, at: Time) {
        while let Some(due) = self.due.filter(|due| *due <= at) {
            self.now = due;
            self.due = self.aqm.tick(due, &mut Outbox::default());
        }
        self.now = at;
    }

    /// A packet of 1,000 B and a flow of its own.
    pub fn arrive(&mut self, ecn: Ecn) -> Admission {
        self.arrive_with(ecn, 1000)
    }

    /// A packet of a flow of its own.
    pub fn arrive_with(&mut self, ecn: Ecn, size: u32) -> Admission {
        self.arrive_at(self.now.0, self.arrived, size, ecn)
    }

    /// A flow's packet at this time, in picoseconds.
    pub fn arrive_at(&mut self, at: u64, flow: u32, size: u32, ecn: Ecn) -> Admission {
        self.to(Time(at));
        let packet = Packet { flow: FlowId(flow), seq: self.arrived, size, ecn, ..Packet::default() };
        self.arrived += 1;
        let item = Stamped { packet, since: self.now };
        let verdict = self.queue.arrive(self.now, &packet, item, &mut self.aqm, &mut self.rng, &mut Silent);
        self.queue.went_busy();
        self.look();
        verdict
    }

    /// Whether a flow's packet is admitted; its transport knows no ECN.
    pub fn admits(&mut self, at: u64, flow: u32, size: u32) -> bool {
        self.arrive_at(at, flow, size, Ecn::NotCapable) == Admission::Admit
    }

    /// The packet that the link takes.
    pub fn depart(&mut self) -> Option<Left> {
        let lost = |p: Stamped, cause| {
            self.dropped.push(p.seq);
            self.causes.push(cause);
        };
        let sent = self.queue.depart(self.now, |p| p.packet, &mut self.aqm, &mut self.rng, &mut Silent, lost);
        if sent.is_none() {
            self.queue.went_idle(self.now);
        }
        self.look();
        sent.map(|p| Left {
            number: p.seq,
            flow: p.flow.0,
            ecn: p.packet.ecn,
            waited: self.now.since(p.since),
        })
    }

    /// The packet that the link takes at this time, in picoseconds.
    pub fn depart_at(&mut self, at: u64) -> Option<Left> {
        self.to(Time(at));
        self.depart()
    }

    /// What a link of a packet a millisecond takes while packets of these code points come each millisecond: 1, 0 or n by the code point,
    /// m if it is marked, - if there is none, behind an x for each packet that was dropped before; a line is 50 ms.
    pub fn golden(&mut self, ms: u64, come: impl Fn(u64) -> Vec<Ecn>) -> Vec<String> {
        let mut lines = vec![String::new(); ms as usize / 50];
        for t in 0..ms {
            self.to(Time(t * MS));
            for ecn in come(t) {
                self.arrive(ecn);
            }
            let before = self.dropped.len();
            let sent = self.depart().map_or('-', |p| ['n', '1', '0', 'm'][usize::from(p.ecn.bits())]);
            let line = &mut lines[t as usize / 50];
            line.push_str(&"x".repeat(self.dropped.len() - before));
            line.push(sent);
        }
        lines
    }

    /// The flows of the next `n` packets, or of all that wait.
    pub fn flows(&mut self, n: usize) -> Vec<u32> {
        std::iter::from_fn(|| self.depart()).take(n).map(|p| p.flow).collect()
    }

    fn look(&mut self) {
        while let Some(p) = self.queue.take_evicted() {
            self.evicted.push(p.seq);
            self.evicted_flows.push(p.flow.0);
        }
    }

    pub fn gauge(&self, what: &str) -> f64 {
        let mut found = None;
        self.aqm.gauges(self.now, &mut |name, x| {
            if name == what {
                found = Some(x);
            }
        });
        found.expect("it is shown")
    }

    /// What the discipline shows under this name.
    pub fn stat(&self, what: &str) -> u64 {
        shown(&*self.aqm, self.queue.counts())[what]
    }

    /// Arrived = sent + dropped + waiting.
    pub fn conserves(&self) -> bool {
        let c = self.queue.counts();
        let dropped: u64 = c.dropped.iter().flatten().sum();
        c.arrived.iter().sum::<u64>()
            == c.sent.iter().sum::<u64>() + dropped + u64::from(self.queue.packets())
    }
}
