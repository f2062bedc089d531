//! How parameters are declared: the macros [`params!`](crate::params!) and [`choice!`](crate::choice!), and what they expand to.

use super::{Default, Kind, Param, Value, Values};

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
    use crate::params::Params;
    use crate::units::{Backlog, Rate};

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
