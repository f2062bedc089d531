//! How parameters are declared: the macros [`params!`](crate::params!) and [`choice!`](crate::choice!), and what they expand to.

use super::{Default, Field, Kind, Param, Value, Values};

/// Declares a struct of parameters. A field is `name: Type [bounds] = default;`; bounds are an associated
/// constant of [`Bounds`]; without a default it is required, unless its type is `Option`, which
/// means that its default is derived. `..name: Type { field = default };` after the fields takes in a struct of parameters that
/// others have in common, with defaults of its own: in a file its fields are beside the others, and a field of its own
/// replaces one of the same name.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $ty:ty $([$bounds:ident])? $(= $default:expr)? ;
            )*
            $( ..$common:ident : $group:ty $({ $($over:ident = $value:expr),* $(,)? })? ; )?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
            $( #[doc = "What it has in common with others."] pub $common: $group, )?
        }

        impl $crate::params::Params for $name {
            const FIELDS: &'static [$crate::params::Field] = $crate::params!(@joined [
                $( $crate::params::Field {
                    // `in` and the like are keywords: written r#in, named in.
                    name: $crate::params::bare(stringify!($field)),
                    kind: <$ty as $crate::params::Slot>::KIND,
                    bounds: $crate::params!(@bounds $($bounds)?),
                    doc: &[$($doc),+],
                    default: $crate::params!(@default $ty $(, $default)?),
                }, )*
            ] $(, $group $({ $($over = $value),* })?)?);

            fn from_values(values: &$crate::params::Values) -> Self {
                // Where there is nothing to set.
                let _ = values;
                $name {
                    $( $field: <$ty as $crate::params::Slot>::take(
                        values, $crate::params::bare(stringify!($field))), )*
                    $( $common: <$group as $crate::params::Params>::from_values(
                        &values.filled(<$group as $crate::params::Params>::FIELDS)), )?
                }
            }

            fn values(&self) -> $crate::params::Values {
                let all: Vec<Option<(&'static str, $crate::params::Value)>> = vec![
                    $( <$ty as $crate::params::Slot>::give(&self.$field)
                        .map(|v| ($crate::params::bare(stringify!($field)), v)), )*
                ];
                let own = $crate::params::Values(all.into_iter().flatten().collect());
                let names: &[&str] = &[$($crate::params::bare(stringify!($field))),*];
                let group = $crate::params::Values::default();
                $( let group = group.beside($crate::params::Params::values(&self.$common), &[]); )?
                own.beside(group, names)
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
    (@joined [$($own:tt)*]) => { &[$($own)*] };
    (@joined [$($own:tt)*], $group:ty $({ $($over:ident = $value:expr),* })?) => {{
        const OWN: &[$crate::params::Field] = &[$($own)*];
        const GROUP: &[$crate::params::Field] = <$group as $crate::params::Params>::FIELDS;
        const ALL: [$crate::params::Field; $crate::params::joined_len(OWN, GROUP)] =
            $crate::params::joined(OWN, GROUP, &[
                $($( (stringify!($over), $crate::params::Default::Value(
                    &|| $crate::params::Param::to_value(&$value))), )*)?
            ]);
        &ALL
    }};
    (@bounds) => { $crate::params::Bounds::ANY };
    (@bounds $bounds:ident) => { $crate::params::Bounds::$bounds };
    (@default $ty:ty) => { <$ty as $crate::params::Slot>::LEFT_OUT };
    (@default $ty:ty, $default:expr) => {
        $crate::params::Default::Value(&|| {
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
    /// The value that it takes in a file.
    const KIND: Kind;
    /// The meaning of leaving it out where no default is given.
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

/// Whether `fields` has one of this name.
const fn has(fields: &[Field], name: &str) -> bool {
    let mut i = 0;
    while i < fields.len() {
        if same(fields[i].name, name) {
            return true;
        }
        i += 1;
    }
    false
}

/// How many [`joined`] are.
#[must_use]
pub const fn joined_len(own: &[Field], group: &[Field]) -> usize {
    let (mut n, mut i) = (own.len(), 0);
    while i < group.len() {
        n += !has(own, group[i].name) as usize;
        i += 1;
    }
    n
}

/// Fields of its own, then those of a group that have other names, some with other defaults.
#[must_use]
pub const fn joined<const N: usize>(
    own: &[Field],
    group: &[Field],
    defaults: &[(&'static str, Default)],
) -> [Field; N] {
    let mut all = [if own.is_empty() { group[0] } else { own[0] }; N];
    let mut n = 0;
    while n < own.len() {
        all[n] = own[n];
        n += 1;
    }
    let mut i = 0;
    while i < group.len() {
        if !has(own, group[i].name) {
            all[n] = group[i];
            let mut d = 0;
            while d < defaults.len() {
                if same(defaults[d].0, group[i].name) {
                    all[n].default = defaults[d].1;
                }
                d += 1;
            }
            n += 1;
        }
        i += 1;
    }
    all
}

/// Whether two texts are equal, where a constant is computed.
#[must_use]
pub const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
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
            /// Default: the contract.
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

    crate::params! {
        /// With a group.
        pub struct Wider {
            /// Its own.
            rate: Rate [POSITIVE];
            /// Stands for the group's.
            w_q: Option<f64> [UNIT_POSITIVE];
            ..common: Shared { hard = true };
        }
    }

    crate::params! {
        /// A group.
        pub struct Shared {
            /// Weight.
            w_q: f64 [UNIT_POSITIVE] = 0.002;
            /// How.
            hard: bool = false;
            /// Where.
            depth: Option<f64>;
        }
    }

    #[test]
    fn a_group_stands_beside_what_is_its_own() {
        assert_eq!(
            Wider::FIELDS.iter().map(|f| f.name).collect::<Vec<_>>(),
            ["rate", "w_q", "hard", "depth"]
        );
        let Default::Value(hard) = Wider::FIELDS[2].default else { panic!("it has a default") };
        assert_eq!(hard(), Value::Flag(true));
        let common = Shared { w_q: 0.002, hard: true, depth: Some(2.0) };
        let p = Wider { rate: Rate(5), w_q: None, common };
        assert_eq!(p.values().0.iter().map(|(n, _)| *n).collect::<Vec<_>>(), ["rate", "hard", "depth"]);
        assert_eq!(Wider::from_values(&p.values()), p);
        let set = Wider { w_q: Some(0.5), ..p };
        assert_eq!(Wider::from_values(&set.values()).w_q, Some(0.5));
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
