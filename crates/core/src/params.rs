//! What an operator sets of a mechanism, described once: the struct, its names, units, bounds,
//! defaults and documentation all come from one [`params!`](crate::params!) declaration, so the
//! parser, the JSON Schema, `inprofile list` and the code can't disagree.
//!
//! Text with units becomes a [`Value`] in the `config` crate; here values are typed already.

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
}

/// What kind of value a parameter takes.
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
    /// 0 to 1.
    pub const UNIT: Bounds = Bounds { min: 0.0, max: 1.0, open_min: false };
    /// Above 0, to 1.
    pub const UNIT_POSITIVE: Bounds = Bounds { min: 0.0, max: 1.0, open_min: true };

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
    /// What it takes.
    pub kind: Kind,
    /// Which numbers are allowed.
    pub bounds: Bounds,
    /// What it means, as in the code's documentation.
    pub doc: &'static [&'static str],
    /// Whether it may be left out, and what it is then.
    pub default: Default,
}

/// What a parameter is when it is left out.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// It may not be left out.
    Required,
    /// This value.
    Value(fn() -> Value),
    /// Follows from other things, as its documentation says.
    Derived,
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
    /// What it takes in a file.
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

/// What is known where a mechanism is built: its link, its flow.
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
    /// What is wrong, with the values.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

/// Allowed, but worth a word: a threshold above the limit, colours that overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// The parameter it is about, as a path.
    pub field: &'static str,
    /// What follows from it.
    pub text: String,
}

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

/// Parameters that build a mechanism.
pub trait Build: Params {
    /// What they build.
    type Mechanism;
    /// Whether they go together, and in this place.
    ///
    /// # Errors
    /// The first fault, with its remedy.
    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault>;
    /// The mechanism in its first state. [`Build::check`] has passed.
    fn build(&self, context: &Context) -> Self::Mechanism;
}

/// Declares a struct of parameters. A field is `name: Type [bounds] = default;`; bounds are an associated
/// constant of [`Bounds`]; without a default it is required, unless its type is `Option`, which
/// means that it is derived when left out.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $ty:ty $([$bounds:ident])? $(= $default:expr)? ;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
        }

        impl $crate::params::Params for $name {
            const FIELDS: &'static [$crate::params::Field] = &[
                $( $crate::params::Field {
                    // `in` and the like are keywords: written r#in, named in.
                    name: $crate::params::bare(stringify!($field)),
                    kind: <$ty as $crate::params::Slot>::KIND,
                    bounds: $crate::params!(@bounds $($bounds)?),
                    doc: &[$($doc),+],
                    default: $crate::params!(@default $ty $(, $default)?),
                }, )*
            ];

            fn from_values(values: &$crate::params::Values) -> Self {
                // Where there is nothing to set.
                let _ = values;
                $name {
                    $( $field: <$ty as $crate::params::Slot>::take(
                        values, $crate::params::bare(stringify!($field))), )*
                }
            }

            fn values(&self) -> $crate::params::Values {
                let all: Vec<Option<(&'static str, $crate::params::Value)>> = vec![
                    $( <$ty as $crate::params::Slot>::give(&self.$field)
                        .map(|v| ($crate::params::bare(stringify!($field)), v)), )*
                ];
                $crate::params::Values(all.into_iter().flatten().collect())
            }
        }

        impl $crate::params::Param for $name {
            const KIND: $crate::params::Kind =
                $crate::params::Kind::Group(<$name as $crate::params::Params>::FIELDS);
            fn from_value(value: &$crate::params::Value) -> Option<Self> {
                match value {
                    $crate::params::Value::Group(v) =>
                        Some(<$name as $crate::params::Params>::from_values(v)),
                    _ => None,
                }
            }
            fn to_value(&self) -> $crate::params::Value {
                $crate::params::Value::Group(<$name as $crate::params::Params>::values(self))
            }
        }
    };
    (@bounds) => { $crate::params::Bounds::ANY };
    (@bounds $bounds:ident) => { $crate::params::Bounds::$bounds };
    (@default $ty:ty) => { <$ty as $crate::params::Slot>::LEFT_OUT };
    (@default $ty:ty, $default:expr) => {
        $crate::params::Default::Value(|| {
            let v: $ty = $default;
            <$ty as $crate::params::Param>::to_value(&v)
        })
    };
}

/// Declares an enum that is written as one of a set of words, the first the default.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $word:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $( $(#[$vmeta])* $variant ),+ }

        impl $name {
            /// The word in a file.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $( $name::$variant => $word ),+ }
            }
        }

        impl $crate::params::Param for $name {
            const KIND: $crate::params::Kind = $crate::params::Kind::Choice(&[$($word),+]);
            fn from_value(value: &$crate::params::Value) -> Option<Self> {
                match value {
                    $( $crate::params::Value::Choice($word) => Some($name::$variant), )+
                    _ => None,
                }
            }
            fn to_value(&self) -> $crate::params::Value {
                $crate::params::Value::Choice(self.word())
            }
        }
    };
}

/// A field's type: a parameter, or an optional one. Used by [`params!`](crate::params!).
pub trait Slot: Sized {
    /// What it takes in a file.
    const KIND: Kind;
    /// What it means to leave it out where no default is given.
    const LEFT_OUT: Default;
    /// Out of the values.
    fn take(values: &Values, name: &'static str) -> Self;
    /// As a value, if there is one.
    fn give(&self) -> Option<Value>;
}

impl<T: Param> Slot for T {
    const KIND: Kind = T::KIND;
    const LEFT_OUT: Default = Default::Required;
    fn take(values: &Values, name: &'static str) -> T {
        values
            .get(name)
            .and_then(T::from_value)
            .unwrap_or_else(|| panic!("the parser let `{name}` pass without a value of its kind"))
    }
    fn give(&self) -> Option<Value> {
        Some(self.to_value())
    }
}

impl<T: Param> Slot for Option<T> {
    const KIND: Kind = T::KIND;
    const LEFT_OUT: Default = Default::Derived;
    fn take(values: &Values, name: &'static str) -> Option<T> {
        values.get(name).and_then(T::from_value)
    }
    fn give(&self) -> Option<Value> {
        self.as_ref().map(Param::to_value)
    }
}

/// `r#in` without its prefix.
#[must_use]
pub const fn bare(name: &'static str) -> &'static str {
    let b = name.as_bytes();
    if b.len() > 2 && b[0] == b'r' && b[1] == b'#' { name.split_at(2).1 } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::choice! {
        /// A set of words.
        pub enum Mode {
            /// The first.
            Soft = "soft",
            /// The second.
            Hard = "hard",
        }
    }

    crate::params! {
        /// Two thresholds.
        pub struct Thresholds {
            /// Lower.
            min_th: Backlog [NON_NEGATIVE];
        }
    }

    crate::params! {
        /// A bit of everything.
        pub struct Sample {
            /// For IN.
            r#in: Thresholds;
            /// Weight of the newest sample.
            w_q: f64 [UNIT_POSITIVE] = 0.002;
            /// How hard.
            mode: Mode = Mode::Soft;
            /// Left out: the contract.
            rate: Option<Rate> [POSITIVE];
        }
    }

    #[test]
    fn a_declaration_describes_itself() {
        let f = Sample::FIELDS;
        assert_eq!(f.iter().map(|f| f.name).collect::<Vec<_>>(), ["in", "w_q", "mode", "rate"]);
        assert!(matches!(f[0].default, Default::Required));
        assert!(matches!(f[3].default, Default::Derived));
        assert_eq!(f[2].kind, Kind::Choice(&["soft", "hard"]));
        assert_eq!(f[1].summary(), "Weight of the newest sample.");
        assert!(!f[1].bounds.allow(0.0) && f[1].bounds.allow(1.0) && !f[1].bounds.allow(f64::NAN));
        assert_eq!(f[1].bounds.describe(), "above 0 to 1");
    }

    #[test]
    fn parameters_survive_being_written_and_read() {
        let p = Sample {
            r#in: Thresholds { min_th: Backlog::Packets(45.0) },
            w_q: 0.5,
            mode: Mode::Hard,
            rate: None,
        };
        assert_eq!(Sample::from_values(&p.values()), p);
        let q = Sample { rate: Some(Rate(5)), ..p };
        assert_eq!(Sample::from_values(&q.values()), q);
    }
}
