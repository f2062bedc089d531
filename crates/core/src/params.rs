//! Parameters of a mechanism, described once: the struct, the names, units, bounds, defaults and documentation all come from one
//! [`params!`](crate::params!) declaration, so the parser, the JSON Schema, `inprofile list` and the code cannot disagree.
//!
//! The `experiment` crate turns text with units into a [`Value`]; here values are typed already.

mod declare;

pub use declare::{Slot, bare, joined, joined_len, same};

use crate::units::{Backlog, Bytes, Duration, Rate};

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A number without a unit.
    Number(f64),
    /// Bits per second.
    Rate(Rate),
    /// A length of time.
    Duration(Duration),
    /// A size.
    Bytes(Bytes),
    /// Packets or bytes.
    Backlog(Backlog),
    /// One of a set of words.
    Choice(&'static str),
    /// Several values under one name.
    Group(Values),
}

/// Values by name, in the order of their declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(pub Vec<(&'static str, Value)>);

impl Values {
    /// The value called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// These, and the defaults of those of `fields` that are missing.
    #[must_use]
    pub fn filled(&self, fields: &[Field]) -> Values {
        let missing = fields.iter().filter(|f| self.get(f.name).is_none());
        let defaults = missing.filter_map(|f| match f.default {
            Default::Value(value) => Some((f.name, value())),
            Default::Required | Default::Derived => None,
        });
        Values(self.0.iter().cloned().chain(defaults).collect())
    }

    /// These, then `others` but those called one of `but`.
    #[must_use]
    pub fn beside(mut self, others: Values, but: &[&str]) -> Values {
        self.0.extend(others.0.into_iter().filter(|(name, _)| !but.contains(name)));
        self
    }
}

/// The kind of value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count,
    /// A number without a unit.
    Number,
    /// A rate with its unit.
    Rate,
    /// A time with its unit.
    Duration,
    /// A size with its unit.
    Bytes,
    /// Packets or bytes.
    Backlog,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table of these.
    Group(&'static [Field]),
}

/// The numbers a parameter may take, in its base unit (bit/s, s, B, packets or bytes).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Whether `min` itself is excluded.
    pub open_min: bool,
}

impl Bounds {
    /// Any number.
    pub const ANY: Bounds = Bounds { min: f64::NEG_INFINITY, max: f64::INFINITY, open_min: false };
    /// Above 0.
    pub const POSITIVE: Bounds = Bounds { min: 0.0, max: f64::INFINITY, open_min: true };
    /// 0 or above.
    pub const NON_NEGATIVE: Bounds = Bounds { min: 0.0, max: f64::INFINITY, open_min: false };
    /// Flows that a table has room for: it takes all its memory at the start.
    pub const FLOWS: Bounds = Bounds { min: 1.0, max: 1e6, open_min: false };
    /// Queues that flows are hashed into: as many as Linux allows (RFC 8290 §1.3).
    pub const QUEUES: Bounds = Bounds { min: 1.0, max: 65_535.0, open_min: false };
    /// 2 to a million.
    pub const TWO_OR_MORE: Bounds = Bounds { min: 2.0, max: 1e6, open_min: false };
    /// 0 to 1.
    pub const UNIT: Bounds = Bounds { min: 0.0, max: 1.0, open_min: false };
    /// Above 0, to 1.
    pub const UNIT_POSITIVE: Bounds = Bounds { min: 0.0, max: 1.0, open_min: true };
    /// Above 1, to a million: the base of an exponential.
    pub const BASE: Bounds = Bounds { min: 1.0, max: 1e6, open_min: true };
    /// Above 0, to a thousand million: a gain times any length, delay or rate stays a number.
    pub const GAIN: Bounds = Bounds { min: 0.0, max: 1e9, open_min: true };
    /// How often a second: from once in a quarter of an hour to every microsecond.
    pub const PER_SECOND: Bounds = Bounds { min: 0.001, max: 1e6, open_min: false };

    /// Whether `x` is allowed; NaN never is.
    #[must_use]
    pub fn allow(&self, x: f64) -> bool {
        x <= self.max && if self.open_min { x > self.min } else { x >= self.min }
    }

    /// In words: `above 0`, `0 to 1`; nothing where every number is allowed.
    #[must_use]
    pub fn describe(&self) -> String {
        let above = if self.open_min { "above " } else { "" };
        match (self.min.is_finite(), self.max.is_finite()) {
            (false, false) => String::new(),
            (true, false) if self.open_min => format!("above {}", self.min),
            (true, false) => format!("{} or more", self.min),
            (false, true) => format!("at most {}", self.max),
            (true, true) => format!("{above}{} to {}", self.min, self.max),
        }
    }
}

/// One parameter, as parser, schema and documentation need it.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in a file.
    pub name: &'static str,
    /// The value that it takes.
    pub kind: Kind,
    /// Which numbers are allowed.
    pub bounds: Bounds,
    /// Its meaning, as in the code's documentation.
    pub doc: &'static [&'static str],
    /// Its default, or that it is required.
    pub default: Default,
}

/// The default of a parameter.
#[derive(Clone, Copy)]
pub enum Default {
    /// None: something has to be said.
    Required,
    /// This value.
    Value(&'static (dyn Fn() -> Value + Send + Sync)),
    /// Follows from other things, as its documentation says.
    Derived,
}

impl std::fmt::Debug for Default {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Default::Required => f.write_str("Required"),
            Default::Value(value) => f.debug_tuple("Value").field(&value()).finish(),
            Default::Derived => f.write_str("Derived"),
        }
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Field) -> bool {
        self.name == other.name
    }
}

impl Field {
    /// The documentation in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        self.doc.iter().map(|l| l.trim()).collect::<Vec<_>>().join(" ")
    }
}

/// A type a parameter can have.
pub trait Param: Sized {
    /// The value that it takes in a file.
    const KIND: Kind;
    /// From a value of that kind. The parser guarantees the kind.
    fn from_value(value: &Value) -> Option<Self>;
    /// As a value.
    fn to_value(&self) -> Value;
}

macro_rules! param {
    ($($t:ty => $kind:ident),* $(,)?) => {$(
        impl Param for $t {
            const KIND: Kind = Kind::$kind;
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::$kind(v) = value { Some(v.clone()) } else { None }
            }
            fn to_value(&self) -> Value { Value::$kind(self.clone()) }
        }
    )*};
}
param! {
    bool => Flag, u64 => Count, f64 => Number, Rate => Rate, Duration => Duration,
    Bytes => Bytes, Backlog => Backlog,
}

/// The facts known where a mechanism is built: its link, its flow.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Rate of the link behind the queue, if there is one.
    pub link_rate: Option<Rate>,
    /// The flow's contract, if it has one.
    pub contract: Option<Rate>,
    /// Size of a full packet on the wire: turns packets into bytes.
    pub packet: Bytes,
    /// The queue's limit, if there is one.
    pub limit: Option<Backlog>,
}

/// Why parameters that are each in bounds can't go together.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The parameter at fault, as a path: `in.min_th`.
    pub field: &'static str,
    /// The fault, with the values.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// Allowed, but worth a word: a threshold above the limit, colours that overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// The parameter it is about, as a path.
    pub field: &'static str,
    /// The consequence.
    pub text: String,
}

/// Whether values go together in this place, with what they deserve a word about; else the first fault.
pub type Check = &'static (dyn Fn(&Values, &Context) -> Result<Vec<Warning>, Fault> + Send + Sync);

/// Makes a mechanism from values that have passed its [`Check`].
pub type Make<M> = &'static (dyn Fn(&Values, &Context) -> M + Send + Sync);

/// The parameters of one mechanism. Implemented by [`params!`](crate::params!).
pub trait Params: Sized {
    /// Every parameter.
    const FIELDS: &'static [Field];
    /// From values that the parser checked against [`Params::FIELDS`], defaults filled in.
    ///
    /// # Panics
    /// If a required value is missing or of another kind: an error in the parser.
    fn from_values(values: &Values) -> Self;
    /// As an operator would write them.
    fn values(&self) -> Values;
}

/// Parameters as they are where nothing is set; every one must have a default.
#[must_use]
pub fn defaults<P: Params>() -> P {
    P::from_values(&Values::default().filled(P::FIELDS))
}

/// The fields that a check warns of, or the one that it refuses.
#[cfg(test)]
pub(crate) fn fields(checked: Result<Vec<Warning>, Fault>) -> Result<Vec<&'static str>, &'static str> {
    checked.map(|w| w.iter().map(|w| w.field).collect()).map_err(|f| f.field)
}

/// Parameters that build a mechanism.
pub trait Build: Params {
    /// The mechanism that they build.
    type Mechanism;
    /// Whether they go together, and in this place; beyond their bounds nothing is asked by default.
    ///
    /// # Errors
    /// The first fault, with its remedy.
    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let _ = context;
        Ok(Vec::new())
    }
    /// The mechanism in its first state. [`Build::check`] has passed.
    fn build(&self, context: &Context) -> Self::Mechanism;
}
