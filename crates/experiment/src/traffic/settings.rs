//! The settings of each kind of traffic, and whether they go together.

use inprofile_core::packet::Ecn;
use inprofile_core::params::{Fault, Warning};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};
use inprofile_sim::traffic::distribution::Distribution;
use inprofile_sim::traffic::udp;

/// IPv4, UDP and RTP (RFC 3550 §5.1).
const RTP_HEADERS: u64 = 40;
/// The most objects of a page, levels of a video, and so on.
pub(super) const MANY: u64 = 10_000;
/// The largest packet on the wire: IPv4's total length.
const LARGEST_PACKET: u64 = 65_535;
/// How far bounds may move the mean of sizes without a word.
const TRUNCATED: f64 = 0.01;
/// An on period lasts at least this share of a packet's time: else a run would do nothing but look for the next packet.
const LEAST_PART: f64 = 1e-3;

inprofile_core::choice! {
    /// How lengths are drawn.
    pub enum Drawn {
        /// All are the mean.
        Fixed = "fixed",
        /// Exponential.
        Exponential = "exponential",
        /// Pareto.
        Pareto = "pareto",
    }
}

inprofile_core::params! {
    /// A transfer.
    pub struct Transfer {
        /// How much each flow sends: payload in bytes, rounded up to full segments, or full segments.
        size: Backlog [POSITIVE];
        /// How sizes are drawn around `size`, one for each flow; at least one segment.
        sizes: Drawn = Drawn::Fixed;
        /// Shape of Pareto's distribution, above 1. Default: 1.5.
        shape: Option<f64> [POSITIVE];
    }
}

inprofile_core::choice! {
    /// The code point that packets leave with (RFC 3168 §5).
    pub enum CodePoint {
        /// Not-ECT: queues drop them.
        NotEct = "not_ect",
        /// ECT(0): queues may mark them.
        Ect0 = "ect0",
        /// ECT(1): queues may mark them, and L4S ones serve them as L4S traffic (RFC 9331).
        Ect1 = "ect1",
    }
}

impl CodePoint {
    /// As packets carry it.
    #[must_use]
    pub fn ecn(self) -> Ecn {
        match self {
            CodePoint::NotEct => Ecn::NotCapable,
            CodePoint::Ect0 => Ecn::Ect0,
            CodePoint::Ect1 => Ecn::Ect1,
        }
    }
}

inprofile_core::params! {
    /// Datagrams at a constant rate.
    pub struct Cbr {
        /// Rate on the wire.
        rate: Rate [POSITIVE];
        /// Size of each packet on the wire, the 28 B of IPv4 and UDP included.
        packet: Bytes = Bytes(1000);
        /// Each packet is late by a random part, up to this share, of the time between two.
        dither: f64 [UNIT] = 0.0;
        /// Their ECN code point. The source sends on at its rate however many are marked.
        ecn: CodePoint = CodePoint::NotEct;
    }
}

inprofile_core::params! {
    /// Datagrams at the times of a Poisson process.
    pub struct Poisson {
        /// Mean rate on the wire.
        rate: Rate [POSITIVE];
        /// Size of each packet on the wire, the 28 B of IPv4 and UDP included; where sizes are drawn, their mean before the bounds.
        packet: Bytes = Bytes(1000);
        /// How sizes are drawn around `packet`, each rounded to whole bytes.
        sizes: Drawn = Drawn::Fixed;
        /// Shape of Pareto's distribution, above 1. Default: 1.5.
        shape: Option<f64> [POSITIVE];
        /// The least size; smaller draws become this. Default: 29 B, a byte of payload.
        smallest: Option<Bytes>;
        /// The largest size; larger draws become this; with bounds fewer or more packets a second keep the rate. Default: 65535 B, IPv4's largest.
        largest: Option<Bytes>;
        /// Their ECN code point. The source sends on at its rate however many are marked.
        ecn: CodePoint = CodePoint::NotEct;
    }
}

inprofile_core::params! {
    /// Datagrams at a peak rate during on periods, none during off periods; the first period is on.
    pub struct OnOff {
        /// Rate on the wire while on.
        peak: Rate [POSITIVE];
        /// Size of each packet on the wire, the 28 B of IPv4 and UDP included.
        packet: Bytes = Bytes(1000);
        /// Mean length of an on period.
        on: Duration [POSITIVE];
        /// Mean length of an off period.
        off: Duration;
        /// How periods are drawn.
        periods: Drawn = Drawn::Fixed;
        /// Shape of Pareto's distribution, above 1. Default: 1.5.
        shape: Option<f64> [POSITIVE];
        /// Their ECN code point. The source sends on at its rate however many are marked.
        ecn: CodePoint = CodePoint::NotEct;
    }
}

inprofile_core::params! {
    /// Pages of the web: each over several connections at once, which fetch its objects one after the other.
    pub struct Pages {
        /// Connections of a page: `count` has to be a multiple of them, and that multiple is the number of pages.
        connections: u64 [POSITIVE] = 6;
        /// Clients that load pages at the same time, each one page after the other.
        clients: u64 [POSITIVE] = 1;
        /// Objects of a page.
        objects: u64 [POSITIVE] = 50;
        /// Mean size of an object: payload in bytes, rounded up to full segments, or full segments.
        object: Backlog [POSITIVE] = Backlog::Bytes(10_000.0);
        /// How sizes are drawn around `object`; at least one segment.
        sizes: Drawn = Drawn::Fixed;
        /// Shape of Pareto's distribution, above 1. Default: 1.5.
        shape: Option<f64> [POSITIVE];
        /// From the end of a page to the start of the client's next.
        think: Duration = Duration::ZERO;
    }
}

inprofile_core::params! {
    /// Adaptive video: chunks, each at the highest level that the throughput of the last ones allows.
    pub struct Video {
        /// Rate of the lowest level, of payload.
        lowest: Rate [POSITIVE] = Rate(500_000);
        /// Rate of the highest level.
        highest: Rate [POSITIVE] = Rate(8_000_000);
        /// Number of levels, each the same factor above the one before.
        levels: u64 [POSITIVE] = 5;
        /// How much is played by a chunk.
        chunk: Duration [POSITIVE] = Duration::from_millis(4000);
        /// How much the player's buffer holds; at least a chunk.
        buffer: Duration [POSITIVE] = Duration::from_millis(20_000);
    }
}

inprofile_core::params! {
    /// Voice: a packet at regular times, while somebody speaks.
    pub struct Voice {
        /// Payload of a packet; 40 B of IPv4, UDP and RTP headers come on top. The default is G.711's: 64 kbit/s.
        payload: Bytes = Bytes(160);
        /// Time between packets.
        every: Duration [POSITIVE] = Duration::from_millis(20);
        /// Mean length of a talk spurt, exponential; with `silence`. Default: somebody always speaks.
        talk: Option<Duration> [POSITIVE];
        /// Mean length of the silence between spurts, exponential, without packets.
        silence: Option<Duration> [POSITIVE];
    }
}

/// As a source takes it: what is too large has been refused.
pub(super) fn size(packet: Bytes) -> u32 {
    packet.0.min(LARGEST_PACKET) as u32
}

/// Whether datagrams of this size can be.
pub(super) fn fits(packet: Bytes) -> Result<Vec<Warning>, Fault> {
    let least = u64::from(udp::HEADER) + 1;
    if (least..=LARGEST_PACKET).contains(&packet.0) {
        return Ok(Vec::new());
    }
    Err(Fault {
        field: "packet",
        problem: format!(
            "packets of {packet}: with IPv4 and UDP headers a packet has {least} to {LARGEST_PACKET} B"
        ),
        remedy: "packet = \"1000 B\"".into(),
    })
}

/// Whether Pareto's shape gives a mean, and is of use.
fn shaped(drawn: Drawn, shape: Option<f64>) -> Result<(), Fault> {
    let problem = match (drawn, shape) {
        (Drawn::Pareto, Some(s)) if s <= 1.0 => "a Pareto distribution of this shape has no mean",
        (Drawn::Fixed | Drawn::Exponential, Some(_)) => "only a Pareto distribution has a shape",
        _ => return Ok(()),
    };
    let remedy = if drawn == Drawn::Pareto { "shape = 1.5" } else { "\"pareto\", or remove shape" };
    Err(Fault { field: "shape", problem: problem.into(), remedy: remedy.into() })
}

impl Transfer {
    pub(super) fn check(&self) -> Result<Vec<Warning>, Fault> {
        shaped(self.sizes, self.shape)?;
        let amount = self.size.amount();
        if matches!(self.size, Backlog::Packets(_)) && amount.fract() != 0.0 {
            return Err(Fault {
                field: "size",
                problem: "a transfer is a whole number of segments".into(),
                remedy: "size = \"100 packets\"".into(),
            });
        }
        if amount > 1e12 {
            return Err(Fault {
                field: "size",
                problem: "more than can be sent".into(),
                remedy: "traffic = { kind = \"bulk\" } for a flow without end".into(),
            });
        }
        Ok(Vec::new())
    }
}

impl Pages {
    pub(super) fn check(&self) -> Result<Vec<Warning>, Fault> {
        shaped(self.sizes, self.shape)?;
        let fault =
            |field, problem: String, remedy: &str| Err(Fault { field, problem, remedy: remedy.into() });
        for (field, n) in
            [("connections", self.connections), ("clients", self.clients), ("objects", self.objects)]
        {
            if n > MANY {
                return fault(field, format!("{n}; the maximum is {MANY}"), "a smaller number");
            }
        }
        if self.object.amount() > 1e12 {
            return fault("object", "more than can be sent".into(), "object = \"10 kB\"");
        }
        Ok(Vec::new())
    }
}

impl Video {
    pub(super) fn check(&self) -> Result<Vec<Warning>, Fault> {
        let fault = |field, problem: String, remedy: String| Err(Fault { field, problem, remedy });
        if self.highest < self.lowest {
            let problem = format!("the highest level is below the lowest, {}", self.lowest);
            return fault("highest", problem, format!("highest = \"{}\"", self.lowest));
        }
        if self.levels > MANY {
            let problem = format!("{} levels; the maximum is {MANY}", self.levels);
            return fault("levels", problem, "levels = 5".into());
        }
        if self.buffer < self.chunk {
            let problem = format!("a buffer of {} does not hold a chunk of {}", self.buffer, self.chunk);
            return fault("buffer", problem, format!("buffer = \"{}\"", self.chunk));
        }
        Ok(Vec::new())
    }
}

impl Voice {
    /// Its datagrams.
    pub(super) fn config(&self) -> udp::Config {
        let packet = self.payload.0 + RTP_HEADERS;
        let rate = u128::from(packet) * 8 * 1_000_000_000_000 / u128::from(self.every.0.max(1));
        let periods = self.talk.zip(self.silence);
        udp::Config {
            rate: Rate(u64::try_from(rate).unwrap_or(u64::MAX)),
            packet: size(Bytes(packet)),
            dither: 0.0,
            poisson: None,
            ecn: Ecn::NotCapable,
            periods: periods.map(|(on, off)| udp::Periods { on, off, law: Distribution::Exponential }),
        }
    }

    pub(super) fn check(&self) -> Result<Vec<Warning>, Fault> {
        let most = LARGEST_PACKET - RTP_HEADERS;
        if !(1..=most).contains(&self.payload.0) {
            let problem = format!("a payload of {}: a packet holds 1 to {most} B", self.payload);
            return Err(Fault { field: "payload", problem, remedy: "payload = \"160 B\"".into() });
        }
        if self.talk.is_some() != self.silence.is_some() {
            let (there, other) = if self.talk.is_some() { ("talk", "silence") } else { ("silence", "talk") };
            return Err(Fault {
                field: there,
                problem: format!("talk spurts and silences come together: there is no {other}"),
                remedy: format!("{other} = \"1 s\" beside it, or remove {there}"),
            });
        }
        if self.config().rate.0 == 0 {
            let problem = format!("a packet every {} is less than a bit a second", self.every);
            return Err(Fault { field: "every", problem, remedy: "every = \"20 ms\"".into() });
        }
        Ok(Vec::new())
    }
}

impl Poisson {
    fn bounds(&self) -> (Bytes, Bytes) {
        let least = Bytes(u64::from(udp::HEADER) + 1);
        (self.smallest.unwrap_or(least), self.largest.unwrap_or(Bytes(LARGEST_PACKET)))
    }

    /// Its datagrams.
    pub(super) fn config(&self) -> udp::Config {
        let (least, most) = self.bounds();
        let law = super::law(self.sizes, self.shape);
        udp::Config {
            rate: self.rate,
            packet: size(self.packet),
            dither: 0.0,
            periods: None,
            poisson: Some(udp::Sizes { law, least: size(least), most: size(most) }),
            ecn: self.ecn.ecn(),
        }
    }

    pub(super) fn check(&self) -> Result<Vec<Warning>, Fault> {
        shaped(self.sizes, self.shape)?;
        fits(self.packet)?;
        let (least, most) = self.bounds();
        for (field, bound) in [("smallest", self.smallest), ("largest", self.largest)] {
            let Some(bound) = bound else { continue };
            if self.sizes == Drawn::Fixed {
                let problem = "packets of one size have no other bounds".into();
                return Err(Fault { field, problem, remedy: "sizes = \"exponential\", or remove it".into() });
            }
            if let Err(fault) = fits(bound) {
                return Err(Fault { field, remedy: format!("{field} = \"1000 B\""), ..fault });
            }
        }
        if !(least..=most).contains(&self.packet) {
            return Err(Fault {
                field: "packet",
                problem: format!("a mean of {} is not between {least} and {most}", self.packet),
                remedy: format!(
                    "packet = \"{}\", or other bounds",
                    Bytes(self.packet.0.clamp(least.0, most.0.max(least.0)))
                ),
            });
        }
        let (mean, kept) = (self.packet.0 as f64, self.config().mean());
        if (kept / mean - 1.0).abs() <= TRUNCATED {
            return Ok(Vec::new());
        }
        Ok(vec![Warning {
            field: "sizes",
            text: format!(
                "between {least} and {most} the mean of the sizes is {kept:.0} B, not {}: the rate is kept by {} packets",
                self.packet,
                if kept < mean { "more" } else { "fewer" },
            ),
        }])
    }
}

impl OnOff {
    pub(super) fn check(&self) -> Result<Vec<Warning>, Fault> {
        shaped(self.periods, self.shape)?;
        let part = self.on.secs() * self.peak.0 as f64 / (self.packet.0 as f64 * 8.0);
        if part < LEAST_PART {
            return Err(Fault {
                field: "on",
                problem: format!("an on period of {} is too short to send a thousandth of a packet", self.on),
                remedy: "a longer period, or a higher peak".into(),
            });
        }
        fits(self.packet)
    }
}
