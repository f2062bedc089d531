//! `traffic = { kind = "…", … }`: what the flows of a group send.

mod settings;

use crate::text::named::Mechanism;
use inprofile_core::params::{Context, Params, Values};
use inprofile_core::registry::Entry;
use inprofile_core::units::{Backlog, Bytes, Duration};
use inprofile_sim::traffic::distribution::Distribution;
use inprofile_sim::traffic::{udp, video};

pub use settings::{Cbr, CodePoint, Drawn, OnOff, Pages, Poisson, Transfer, Video, Voice};
use settings::{MANY, fits, size};

/// The traffic of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// TCP with unlimited data.
    Bulk,
    /// TCP with a limited amount of data: its mean, in full segments or bytes of payload, and its distribution.
    Transfer(Backlog, Distribution),
    /// TCP connections that fetch pages.
    Web(Web),
    /// A TCP connection that fetches video.
    Video(video::Config),
    /// Datagrams.
    Udp(udp::Config),
}

/// Pages of the web.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Web {
    /// Connections of a page.
    pub connections: u32,
    /// How many clients load pages at the same time.
    pub clients: u32,
    /// Objects of a page.
    pub objects: u32,
    /// An object's mean size, in full segments or bytes of payload.
    pub object: Backlog,
    /// How sizes are drawn.
    pub law: Distribution,
    /// From the end of a page to the start of the client's next.
    pub think: Duration,
}

/// Every kind of traffic; the first is the default.
pub const KINDS: &[Entry<Traffic>] = &[
    Entry {
        name: "bulk",
        summary: "TCP with unlimited data.",
        source: "RFC 793",
        fields: &[],
        check: &|_, _| Ok(Vec::new()),
        build: &|_, _| Traffic::Bulk,
    },
    Entry {
        name: "transfer",
        summary: "TCP with a limited amount of data; its completion time is recorded.",
        source: "RFC 793",
        fields: Transfer::FIELDS,
        check: &|v, _| Transfer::from_values(v).check(),
        build: &|v, _| {
            let t = Transfer::from_values(v);
            Traffic::Transfer(t.size, law(t.sizes, t.shape))
        },
    },
    Entry {
        name: "cbr",
        summary: "UDP at a constant rate.",
        source: "RFC 768",
        fields: Cbr::FIELDS,
        check: &|v, _| fits(Cbr::from_values(v).packet),
        build: &|v, _| {
            let c = Cbr::from_values(v);
            Traffic::Udp(udp::Config {
                rate: c.rate,
                packet: size(c.packet),
                dither: c.dither,
                periods: None,
                poisson: None,
                ecn: c.ecn.ecn(),
            })
        },
    },
    Entry {
        name: "poisson",
        summary: "UDP at the times of a Poisson process, with packets of one size or of sizes that are drawn.",
        source: "RFC 768; Kleinrock 1975, for M/M/1 and M/G/1",
        fields: Poisson::FIELDS,
        check: &|v, _| Poisson::from_values(v).check(),
        build: &|v, _| Traffic::Udp(Poisson::from_values(v).config()),
    },
    Entry {
        name: "on_off",
        summary: "UDP at a peak rate while on, silent while off.",
        source: "RFC 768",
        fields: OnOff::FIELDS,
        check: &|v, _| OnOff::from_values(v).check(),
        build: &|v, _| {
            let o = OnOff::from_values(v);
            let periods = udp::Periods { on: o.on, off: o.off, law: law(o.periods, o.shape) };
            Traffic::Udp(udp::Config {
                rate: o.peak,
                packet: size(o.packet),
                dither: 0.0,
                periods: Some(periods),
                poisson: None,
                ecn: o.ecn.ecn(),
            })
        },
    },
    Entry {
        name: "web",
        summary: "TCP connections that fetch pages of many objects, one page after the other.",
        source: "RFC 7928 §7.2",
        fields: Pages::FIELDS,
        check: &|v, _| Pages::from_values(v).check(),
        build: &|v, _| {
            let p = Pages::from_values(v);
            let count = |n: u64| n.min(MANY) as u32;
            Traffic::Web(Web {
                connections: count(p.connections),
                clients: count(p.clients),
                objects: count(p.objects),
                object: p.object,
                law: law(p.sizes, p.shape),
                think: p.think,
            })
        },
    },
    Entry {
        name: "video",
        summary: "TCP that fetches video chunk by chunk, at the rate that the throughput allows.",
        source: "RFC 7928 §9.1",
        fields: Video::FIELDS,
        check: &|v, _| Video::from_values(v).check(),
        build: &|v, _| {
            let Video { lowest, highest, levels, chunk, buffer } = Video::from_values(v);
            Traffic::Video(video::Config { lowest, highest, levels: levels.min(MANY) as u32, chunk, buffer })
        },
    },
    Entry {
        name: "voice",
        summary: "UDP with a small packet at regular times, while somebody speaks.",
        source: "RFC 7928 §9.1; RFC 3551",
        fields: Voice::FIELDS,
        check: &|v, _| Voice::from_values(v).check(),
        build: &|v, _| Traffic::Udp(Voice::from_values(v).config()),
    },
];

/// The default shape of a Pareto distribution: finite mean, infinite variance.
const SHAPE: f64 = 1.5;

/// The law a file names.
#[must_use]
pub fn law(drawn: Drawn, shape: Option<f64>) -> Distribution {
    match drawn {
        Drawn::Fixed => Distribution::Fixed,
        Drawn::Exponential => Distribution::Exponential,
        Drawn::Pareto => Distribution::Pareto(shape.unwrap_or(SHAPE)),
    }
}

/// How many segments of this payload a transfer has, at most what can be numbered.
#[must_use]
pub fn segments(size: Backlog, drawn: f64, payload: u32) -> u32 {
    let n = match size {
        Backlog::Packets(_) => drawn,
        Backlog::Bytes(_) => drawn / f64::from(payload),
    };
    // Rounded up; at most one less than there are numbers, since the SYN takes one.
    n.ceil().clamp(1.0, f64::from(i32::MAX - 1)) as u32
}

/// Bulk TCP, the default.
#[must_use]
pub fn bulk() -> Mechanism<Traffic> {
    let bulk = &KINDS[0];
    Mechanism { name: bulk.name, values: Values::default(), fields: bulk.fields, build: bulk.build }
}

/// The context that traffic is built with: none of it matters to traffic.
#[must_use]
pub fn no_context() -> Context {
    Context { link_rate: None, contract: None, packet: Bytes(0), limit: None }
}
