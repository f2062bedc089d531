//! `jitter = { kind = "…", … }` and `loss = { kind = "…", … }` of a link: what happens to packets on their way.

use inprofile_core::params::{Fault, Params, Warning};
use inprofile_core::registry::Entry;
use inprofile_core::units::Duration;
use inprofile_sim::traffic::distribution::Distribution;
use inprofile_sim::wire::{Jitter, Law, Loss};

inprofile_core::params! {
    /// Uniform between two bounds.
    pub struct Uniform {
        /// The shortest.
        from: Duration = Duration::ZERO;
        /// The longest.
        to: Duration;
        /// For how long a delay that was drawn holds for all packets. At 0 s each packet has its own.
        hold: Duration = Duration::ZERO;
        /// Whether a packet may pass one that was sent before.
        reorder: bool = false;
    }
}

inprofile_core::params! {
    /// Exponential.
    pub struct Exponential {
        /// The mean, before `most`.
        mean: Duration [POSITIVE];
        /// What is longer becomes this. Default: no bound.
        most: Option<Duration> [POSITIVE];
        /// For how long a delay that was drawn holds for all packets. At 0 s each packet has its own.
        hold: Duration = Duration::ZERO;
        /// Whether a packet may pass one that was sent before.
        reorder: bool = false;
    }
}

inprofile_core::params! {
    /// Pareto: a few are very long.
    pub struct Pareto {
        /// The mean, before `most`.
        mean: Duration [POSITIVE];
        /// Shape, above 1; the shortest is `mean` · (`shape` − 1)/`shape`.
        shape: f64 [POSITIVE] = 1.5;
        /// What is longer becomes this. Default: no bound.
        most: Option<Duration> [POSITIVE];
        /// For how long a delay that was drawn holds for all packets. At 0 s each packet has its own.
        hold: Duration = Duration::ZERO;
        /// Whether a packet may pass one that was sent before.
        reorder: bool = false;
    }
}

inprofile_core::params! {
    /// Normal; what is below zero is drawn again.
    pub struct Normal {
        /// The mean.
        mean: Duration [POSITIVE];
        /// The standard deviation; at most the mean.
        deviation: Duration [POSITIVE];
        /// What is longer becomes this. Default: no bound.
        most: Option<Duration> [POSITIVE];
        /// For how long a delay that was drawn holds for all packets. At 0 s each packet has its own.
        hold: Duration = Duration::ZERO;
        /// Whether a packet may pass one that was sent before.
        reorder: bool = false;
    }
}

inprofile_core::params! {
    /// One delay for some packets, none for the others.
    pub struct Share {
        /// Probability that a packet is delayed.
        share: f64 [UNIT];
        /// By how much.
        delay: Duration [POSITIVE];
        /// For how long it holds for all packets whether they are delayed. At 0 s it is drawn for each packet.
        hold: Duration = Duration::ZERO;
        /// Whether a packet may pass one that was sent before.
        reorder: bool = false;
    }
}

inprofile_core::params! {
    /// Losses that do not depend on one another.
    pub struct Independent {
        /// Probability that a packet is lost.
        share: f64 [UNIT];
    }
}

inprofile_core::params! {
    /// Losses in bursts: a chain of two states, with a step before each packet.
    pub struct GilbertElliott {
        /// Probability of going from the good state to the bad one.
        to_bad: f64 [UNIT];
        /// Probability of going from the bad state to the good one: a stay in it lasts 1/`to_good` packets on average.
        to_good: f64 [UNIT];
        /// Probability that a packet is lost in the bad state.
        in_bad: f64 [UNIT] = 1.0;
        /// Probability that a packet is lost in the good state.
        in_good: f64 [UNIT] = 0.0;
    }
}

fn fault(field: &'static str, problem: String, remedy: String) -> Result<Vec<Warning>, Fault> {
    Err(Fault { field, problem, remedy })
}

/// Whether an upper bound leaves anything to draw: if no delay is below it, every delay would equal it.
fn bounded(most: Option<Duration>, least: Duration) -> Result<Vec<Warning>, Fault> {
    match most {
        Some(most) if most <= least => fault(
            "most",
            format!("no delay is shorter than {least}: all would be {most}"),
            format!("a time above \"{least}\""),
        ),
        _ => Ok(Vec::new()),
    }
}

impl Uniform {
    fn check(&self) -> Result<Vec<Warning>, Fault> {
        if self.to > self.from {
            return Ok(Vec::new());
        }
        let problem = format!("the longest delay is not above the shortest, {}", self.from);
        fault(
            "to",
            problem,
            format!("a time above \"{}\", or a longer delay of the link without jitter", self.from),
        )
    }
}

impl Pareto {
    fn check(&self) -> Result<Vec<Warning>, Fault> {
        if self.shape <= 1.0 {
            let problem = "a Pareto distribution of this shape has no mean".into();
            return fault("shape", problem, "shape = 1.5".into());
        }
        bounded(self.most, Duration((self.mean.0 as f64 * (self.shape - 1.0) / self.shape) as u64))
    }
}

impl Normal {
    fn check(&self) -> Result<Vec<Warning>, Fault> {
        if self.deviation > self.mean {
            let problem = format!(
                "with a mean of {} more than a sixth of all delays would be below zero: jitter adds to the link's delay, which is the shortest",
                self.mean
            );
            return fault(
                "deviation",
                problem,
                format!("at most \"{}\", or a larger mean and a shorter delay of the link", self.mean),
            );
        }
        bounded(self.most, Duration::ZERO)
    }
}

impl GilbertElliott {
    fn loss(&self) -> Loss {
        Loss { to_bad: self.to_bad, to_good: self.to_good, in_good: self.in_good, in_bad: self.in_bad }
    }

    fn check(&self) -> Result<Vec<Warning>, Fault> {
        for (field, p, other, never) in [
            ("to_bad", self.to_bad, self.to_good, "the bad state is never entered"),
            ("to_good", self.to_good, self.to_bad, "the bad state is never left"),
        ] {
            if p == 0.0 {
                let share = if other == 0.0 || field == "to_bad" { self.in_good } else { self.in_bad };
                return fault(
                    field,
                    never.into(),
                    format!("a probability above 0, or loss = {{ kind = \"independent\", share = {share} }}"),
                );
            }
        }
        Ok(Vec::new())
    }
}

/// Every kind of jitter.
pub const JITTERS: &[Entry<Jitter>] = &[
    Entry {
        name: "uniform",
        summary: "Delays between two bounds, all as likely.",
        source: "RFC 5481 §4.2",
        fields: Uniform::FIELDS,
        check: &|v, _| Uniform::from_values(v).check(),
        build: &|v, _| {
            let Uniform { from, to, hold, reorder } = Uniform::from_values(v);
            Jitter { law: Law::Uniform(from, to), most: None, hold, reorder }
        },
    },
    Entry {
        name: "exponential",
        summary: "Delays drawn from an exponential distribution.",
        source: "RFC 5481 §4.2",
        fields: Exponential::FIELDS,
        check: &|v, _| bounded(Exponential::from_values(v).most, Duration::ZERO),
        build: &|v, _| {
            let Exponential { mean, most, hold, reorder } = Exponential::from_values(v);
            Jitter { law: Law::Mean(mean, Distribution::Exponential), most, hold, reorder }
        },
    },
    Entry {
        name: "pareto",
        summary: "Delays drawn from a Pareto distribution: a few are very long.",
        source: "RFC 5481 §4.2",
        fields: Pareto::FIELDS,
        check: &|v, _| Pareto::from_values(v).check(),
        build: &|v, _| {
            let Pareto { mean, shape, most, hold, reorder } = Pareto::from_values(v);
            Jitter { law: Law::Mean(mean, Distribution::Pareto(shape)), most, hold, reorder }
        },
    },
    Entry {
        name: "normal",
        summary: "Delays drawn from a normal distribution cut off at zero.",
        source: "RFC 5481 §4.2; Box and Muller 1958",
        fields: Normal::FIELDS,
        check: &|v, _| Normal::from_values(v).check(),
        build: &|v, _| {
            let Normal { mean, deviation, most, hold, reorder } = Normal::from_values(v);
            Jitter { law: Law::Normal(mean, deviation), most, hold, reorder }
        },
    },
    Entry {
        name: "share",
        summary: "Some packets are delayed, all by the same time; with reorder, the others pass them.",
        source: "RFC 4737",
        fields: Share::FIELDS,
        check: &|_, _| Ok(Vec::new()),
        build: &|v, _| {
            let Share { share, delay, hold, reorder } = Share::from_values(v);
            Jitter { law: Law::Share(share, delay), most: None, hold, reorder }
        },
    },
];

/// Every kind of loss.
pub const LOSSES: &[Entry<Loss>] = &[
    Entry {
        name: "independent",
        summary: "Each packet is lost with the same probability, whatever happens to the others.",
        source: "RFC 7680 §3.1",
        fields: Independent::FIELDS,
        check: &|_, _| Ok(Vec::new()),
        build: &|v, _| Loss::independent(Independent::from_values(v).share),
    },
    Entry {
        name: "gilbert_elliott",
        summary: "Losses in bursts, by a chain of two states.",
        source: "Gilbert 1960; Elliott 1963",
        fields: GilbertElliott::FIELDS,
        check: &|v, _| GilbertElliott::from_values(v).check(),
        build: &|v, _| GilbertElliott::from_values(v).loss(),
    },
];
